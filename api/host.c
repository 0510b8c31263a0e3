/* GET /host: what this machine can do, and what is wrong with it. */
#include "ublkd/host.h"

#include "api/head_check.h"
#include "api/json_check.h"
#include "api/respond.h"
#include "api/routes.h"
#include "api/server.h"
#include "api/watch.h"

enum { QUEUE_DEPTH_MAX = 4096, IO_SIZE_MAX = 32 * 1024 * 1024 }; /* the driver's */

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
                {"cpus",              host->cpus                                       },
                {"queues",            host->cpus < QUEUES_MAX ? host->cpus : QUEUES_MAX},
                {"queueDepth",        QUEUE_DEPTH_MAX                                  },
                {"maxIoSize",         IO_SIZE_MAX                                      },
                {"id",                DEVICE_NUMBER_MAX                                },
                {"bodySize",          BODY_MAX                                         },
                {"jsonDepth",         JSON_DEPTH_MAX                                   },
                {"jsonNames",         JSON_NAMES_MAX                                   },
                {"headers",           HEADERS_MAX                                      },
                {"headerSize",        HEAD_SIZE_MAX                                    },
                {"pathSize",          TARGET_SIZE_MAX                                  },
                {"connections",       CONNECTIONS_MAX                                  },
                {"connectionsOfUser", CONNECTIONS_OF_A_USER                            },
                {"watches",           WATCHES_MAX                                      },
                {"watchesOfUser",     WATCHES_OF_A_USER                                },
                {"devices",           DEVICES_MAX                                      },
                {"labelFilters",      QUERY_LABELS_MAX                                 },
                {"listLimit",         QUERY_LIMIT_MAX                                  },
                {"waitSeconds",       QUERY_TIMEOUT_SECONDS_MAX                        },
        };
        cJSON *object_limits = cJSON_AddObjectToObject(object, "limits");

        for (size_t i = 0; object_limits && i < ARRAY_SIZE(limits); i++)
                if (!cJSON_AddNumberToObject(object_limits, limits[i].name, limits[i].value))
                        return false;
        return object_limits != NULL;
}

static bool add_problems(cJSON *object, const struct host *host)
{
        cJSON *problems = cJSON_AddArrayToObject(object, "problems");

        for (size_t i = 0; problems && i < host->problems.count; i++) {
                cJSON *item = cJSON_CreateObject();

                if (!item || !cJSON_AddItemToArray(problems, item)) {
                        cJSON_Delete(item);
                        return false;
                }
                if (!cJSON_AddStringToObject(item, "title", host->problems.items[i].reason)
                        || !cJSON_AddStringToObject(item, "detail", host->problems.items[i].detail))
                        return false;
        }
        return problems != NULL;
}

void handle_host(struct request *request)
{
        const struct host *host = request->api->config.host;
        cJSON *object = cJSON_CreateObject();

        if (object && cJSON_AddStringToObject(object, "version", UBLKD_VERSION)
                && cJSON_AddStringToObject(object, "kernel", host->kernel ? host->kernel : "")
                && add_ublk(object, host) && add_limits(object, host) && add_problems(object, host)) {
                reply_json(request, MHD_HTTP_OK, object);
                return;
        }
        cJSON_Delete(object);
        reply_error(request, -ENOMEM, "The facts could not be listed");
}
