/* SPDX-License-Identifier: MIT */
/* GET /host: what this machine supports, and its problems. */
#include "api/resources/handlers.h"
#include "api/resources/host.h"

#include "ublkd/base/version.h"
#include "ublkd/host/host.h"
#include "ublkd/kernel/kernel_feature.h"

#include "api/http/head_check.h"
#include "ublkd/store/device_change.h"
#include "ublkd/values/json_check.h"
#include "api/resources/path_policy.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/sharing.h"
#include "api/held/wait.h"
#include "api/held/watch.h"
#include "ublkd/values/json_print.h"

#include <stdio.h>

enum { QUEUE_DEPTH_MAX = 4096, IO_SIZE_MAX = 32 * 1024 * 1024 }; /* the driver's limits */

static bool add_ublk(cJSON *object, const struct host *host)
{
        cJSON *ublk = cJSON_AddObjectToObject(object, "ublk"),
              *features = kernel_features_to_json(host->features);

        if (ublk && features && cJSON_AddItemToObject(ublk, "features", features))
                return cJSON_AddBoolToObject(ublk, "available", host->ublk_available) != NULL;
        cJSON_Delete(features);
        return false;
}

static bool add_limits(cJSON *object, const struct host *host)
{
        const struct {
                const char *name;
                double value;
        } limits[] = {
                {"cpus",                 host->cpus                                       },
                {"queues",               host->cpus < QUEUES_MAX ? host->cpus : QUEUES_MAX},
                {"queueDepth",           QUEUE_DEPTH_MAX                                  },
                {"maxIoSize",            IO_SIZE_MAX                                      },
                {"id",                   DEVICE_NUMBER_MAX                                },
                {"bodySize",             BODY_MAX                                         },
                {"jsonDepth",            JSON_DEPTH_MAX                                   },
                {"jsonNames",            JSON_NAMES_MAX                                   },
                {"headers",              HEADERS_MAX                                      },
                {"headerSize",           HEAD_SIZE_MAX                                    },
                {"pathSize",             TARGET_SIZE_MAX                                  },
                {"connections",          CONNECTIONS_MAX                                  },
                {"connectionsOfUser",    CONNECTIONS_OF_A_USER                            },
                {"connectionsOfReaders", CONNECTIONS_OF_READERS                           },
                {"connectionsOfOthers",  CONNECTIONS_OF_OTHERS                            },
                {"connectionsOfToken",   CONNECTIONS_OF_TOKEN                             },
                {"watches",              WATCHES_MAX                                      },
                {"watchesOfUser",        WATCHES_OF_A_USER                                },
                {"devices",              DEVICES_MAX                                      },
                {"labelFilters",         QUERY_LABELS_MAX                                 },
                {"listLimit",            QUERY_LIMIT_MAX                                  },
                {"waitSeconds",          QUERY_TIMEOUT_SECONDS_MAX                        },
        };
        cJSON *object_limits = cJSON_AddObjectToObject(object, "limits");

        for (size_t i = 0; object_limits && i < ARRAY_SIZE(limits); i++)
                if (!cJSON_AddNumberToObject(object_limits, limits[i].name, limits[i].value))
                        return false;
        return object_limits != NULL;
}

/* Add what the kernel has to confine a worker with, of that which not every kernel has. */
static bool add_walls(cJSON *object, const struct host *host)
{
        cJSON *walls = cJSON_AddObjectToObject(object, "walls");

        return walls && cJSON_AddNumberToObject(walls, "landlock", host->walls.landlock)
               && cJSON_AddBoolToObject(walls, "callFilter", host->walls.call_filter)
               && cJSON_AddBoolToObject(walls, "noPaths", host->walls.no_paths);
}

static bool add_group(cJSON *policy, const char *name, const struct api_group *group)
{
        return json_add_text(policy, name, group->exists ? group->name : NULL);
}

/* Add the policies that the options of ublkd set. */
static bool add_policy(cJSON *object, const struct api *api)
{
        const struct api_config *config = &api->config;
        const struct api_rights *rights = &config->rights;
        cJSON *policy = cJSON_AddObjectToObject(object, "policy");

        return policy
               && cJSON_AddStringToObject(
                       policy, "unstablePaths", path_policy_to_string(config->refuse_unstable_paths))
               && cJSON_AddStringToObject(policy, "readers", rights->everyone_reads ? "everyone" : "group")
               && add_group(policy, "readersGroup", &rights->readers)
               && add_group(policy, "administrators", &rights->administrators)
               && cJSON_AddBoolToObject(policy, "polkit", config->ask_authority && rights->asks_polkit)
               && cJSON_AddStringToObject(policy, "sandbox", config->best_effort ? "best-effort" : "required")
               && host_add_socket_group(policy, api);
}

/* Append a new object to the array, which owns it. Return NULL on ENOMEM. */
static cJSON *append(cJSON *array)
{
        cJSON *item = cJSON_CreateObject();

        if (item && cJSON_AddItemToArray(array, item))
                return item;
        cJSON_Delete(item);
        return NULL;
}

static bool add_problem(cJSON *problems, const char *title, const char *detail)
{
        cJSON *item = append(problems);

        return item && cJSON_AddStringToObject(item, "title", title)
               && cJSON_AddStringToObject(item, "detail", detail);
}

static bool add_problem_list(cJSON *problems, const struct problem_list *list)
{
        for (size_t i = 0; i < list->count; i++)
                if (!add_problem(problems, list->items[i].reason, list->items[i].detail))
                        return false;
        return true;
}

static bool add_problems(cJSON *object, const struct host *host, const struct device_store *store)
{
        cJSON *problems = cJSON_AddArrayToObject(object, "problems");

        if (!problems || !add_problem_list(problems, &host->problems)
                || !add_problem_list(problems, &host->state) || !add_problem_list(problems, &host->settings)
                || !add_problem_list(problems, &host->workers) || !add_problem_list(problems, &host->files))
                return false;
        for (size_t i = 0; problems && i < host->foreign.count; i++)
                if (foreign_disk_is_problem(&host->foreign.items[i])
                        && !add_problem(problems, "DiskOfNoDevice", host->foreign.items[i].detail))
                        return false;
        return host_add_devices(problems, store);
}

static bool add_server(cJSON *item, const struct foreign_disk *disk)
{
        cJSON *process;

        if (disk->server.pid == 0)
                return cJSON_AddNullToObject(item, "process") != NULL;
        process = cJSON_AddObjectToObject(item, "process");
        return process && cJSON_AddNumberToObject(process, "pid", disk->server.pid)
               && cJSON_AddStringToObject(process, "command", disk->server.process);
}

static bool add_managed(cJSON *item, const struct foreign_disk *disk)
{
        return disk->looked ? cJSON_AddBoolToObject(item, "managed", disk->server.managed) != NULL
                            : cJSON_AddNullToObject(item, "managed") != NULL;
}

static bool add_foreign_disks(cJSON *object, const struct host *host)
{
        cJSON *disks = cJSON_AddArrayToObject(object, "foreignDisks");

        for (size_t i = 0; disks && i < host->foreign.count; i++) {
                const struct foreign_disk *disk = &host->foreign.items[i];
                cJSON *item;
                char node[32];

                if (disk->held)
                        continue;
                item = append(disks);
                snprintf(node, sizeof(node), "/dev/ublkb%d", disk->number);
                if (!item || !cJSON_AddNumberToObject(item, "id", disk->number)
                        || !cJSON_AddStringToObject(item, "device", node)
                        || !cJSON_AddStringToObject(item, "state", disk->state)
                        || !cJSON_AddStringToObject(item, "madeBy", foreign_maker_to_string(disk->maker))
                        || !add_managed(item, disk) || !add_server(item, disk)
                        || !cJSON_AddStringToObject(item, "detail", disk->detail))
                        return false;
        }
        return disks != NULL;
}

static bool add_disk(cJSON *item, int number)
{
        char node[32];

        if (number < 0)
                return cJSON_AddNullToObject(item, "id") && cJSON_AddNullToObject(item, "device");
        snprintf(node, sizeof(node), "/dev/ublkb%d", number);
        return cJSON_AddNumberToObject(item, "id", number) && cJSON_AddStringToObject(item, "device", node);
}

static bool add_adoptable(cJSON *object, const struct host *host)
{
        cJSON *array = cJSON_AddArrayToObject(object, "adoptable");

        for (size_t i = 0; array && i < host->adoptable.count; i++) {
                const struct adoptable *adoptable = &host->adoptable.items[i];
                bool possible = adoptable->verdict == ADOPT_POSSIBLE;
                cJSON *item = append(array);

                if (!item || !json_add_text(item, "uid", *adoptable->uid ? adoptable->uid : NULL)
                        || !json_add_text(item, "name", adoptable->name) || !add_disk(item, adoptable->number)
                        || !json_add_text(item, "state", adoptable->state)
                        || !cJSON_AddBoolToObject(item, "served", adoptable->pid > 0)
                        || !cJSON_AddBoolToObject(item, "outdated", adoptable->age != RECORD_CURRENT)
                        || !json_add_text(
                                item, "reason", possible ? NULL : adopt_verdict_to_string(adoptable->verdict))
                        || !json_add_text(item, "detail", adoptable->detail ? adoptable->detail : ""))
                        return false;
        }
        return array != NULL;
}

static void reply_host(struct request *request)
{
        const struct host *host = request->api->config.host;
        cJSON *object = cJSON_CreateObject();

        if (object && cJSON_AddStringToObject(object, "version", ublkd_version)
                && cJSON_AddStringToObject(object, "kernel", host->kernel ? host->kernel : "")
                && add_ublk(object, host) && add_walls(object, host) && add_limits(object, host)
                && add_policy(object, request->api) && host_add_sockets(object, request->api)
                && add_problems(object, host, request->api->config.store) && add_foreign_disks(object, host)
                && add_adoptable(object, host)) {
                reply_json(request, MHD_HTTP_OK, object);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "Cannot list the facts");
}

/* Return whether the request waits until ublkd has looked at the host. */
static bool waits_for_look(struct request *request)
{
        const struct api_config *config = &request->api->config;

        return !request->host_seen && config->look_at_host && config->look_at_host(config->userdata)
               && wait_begin_host(request) >= 0;
}

void handle_host(struct request *request)
{
        if (sharing_reply(request) || waits_for_look(request))
                return;
        reply_host(request);
        sharing_keep(request);
}
