/* SPDX-License-Identifier: MIT */
/* The API's way to the rest of the supervisor: what it asks, and whom. */
#include "ublkd/manager_api.h"

#include "api/api.h"
#include "ublkd/authority/authority.h"
#include "ublkd/manager_internal.h"
#include "ublkd/manager_looks.h"
#include "ublkd/reconcile/device_reach.h"
#include "ublkd/reconcile/reconciler.h"
#include "ublkd/reconcile/spec_preflight.h"
#include "ublkd/tasks/manager_reports.h"
#include "ublkd/tasks/region_stats.h"

#include <stdio.h>

static int api_list_adoptable(void *userdata, struct adoptables *ret)
{
        return record_keeper_list(((struct manager *)userdata)->record_keeper, SIZE_MAX, ret);
}

static struct adoption api_adopt(void *userdata, const char *uid, const char *name)
{
        struct manager *manager = userdata;

        return record_keeper_adopt(manager->record_keeper, uid, name);
}

static bool api_is_ready(void *userdata)
{
        return ((struct manager *)userdata)->boot_pass_done;
}

static int api_read_stats(void *userdata, const struct device_record *record, struct device_stats **ret)
{
        return region_stats_read(((struct manager *)userdata)->runtime_dir, record, ret);
}

enum backing_reach manager_read_reach(
        void *userdata, const struct device_record *record, const struct device_spec *next)
{
        struct manager *manager = userdata;

        return manager->reconciler ? reconciler_reach(manager->reconciler, record->name, next)
                                   : BACKING_REACH_UNKNOWN;
}

int manager_try_spec(void *userdata, const struct device_record *record, const struct device_spec *spec,
        void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
        void *then_userdata, struct spec_preflight **ret)
{
        struct manager *manager = userdata;

        return manager->reconciler
                       ? spec_preflight_begin(manager->reconciler, record, spec, then, then_userdata, ret)
                       : -ENOENT;
}

static int api_ask_authority(void *userdata, int client, bool interactive,
        void (*then)(void *userdata, enum authority_answer answer), void *then_userdata,
        struct authority_question **ret)
{
        return authority_ask(
                ((struct manager *)userdata)->authority, client, interactive, then, then_userdata, ret);
}

static int api_deliver(void *userdata, int client, const struct device_record *record,
        const struct delivery_wish *wish, void (*then)(void *userdata, const struct delivery_report *report),
        void *then_userdata, struct node_delivery **ret)
{
        struct manager *manager = userdata;
        char number[DELIVERY_MOUNT_SIZE];
        const struct delivery_source source = {.uid = record->uid, .mount = record->mount, .number = number};

        snprintf(number, sizeof(number), "/sys/block/ublkb%d/dev", record->number);
        return client_delivery_begin(manager->node_deliveries, manager->private_nodes, client, &source, wish,
                then, then_userdata, ret);
}

static int api_make_filesystem(void *userdata, const struct device_record *record,
        const struct filesystem_wish *wish,
        void (*then)(void *userdata, const struct filesystem_answer *answer), void *then_userdata,
        struct filesystem_making **ret)
{
        return filesystem_request(
                ((struct manager *)userdata)->filesystem_maker, record, wish, then, then_userdata, ret);
}

static void api_read_counters(void *userdata, struct daemon_counters *ret)
{
        struct manager *manager = userdata;

        *ret = (struct daemon_counters){};
        if (manager->reconciler)
                reconciler_counters(manager->reconciler, ret);
}

/* What the API asks the supervisor, but for the sockets that it listens on. */
static struct api_config config_of(struct manager *manager, const struct manager_options *options)
{
        return (struct api_config){
                .store = manager->store,
                .host = &manager->host,
                .state_dir = options->state_dir,
                .rights = options->rights,
                .socket_group = options->socket_group,
                .refuse_unstable_paths = options->refuse_unstable_paths,
                .allow_fault_target = options->allow_fault_target,
                .best_effort = options->confinement.best_effort,
                .disk_search = manager->disk_search,
                .peer_paths = manager->peer_paths,
                .read_stats = api_read_stats,
                .read_counters = api_read_counters,
                .read_reach = manager_read_reach,
                .try_spec = manager_try_spec,
                .end_preflight = spec_preflight_end,
                .ask_authority = api_ask_authority,
                .withdraw_question = authority_withdraw,
                .deliver = api_deliver,
                .cancel_delivery = node_delivery_cancel,
                .make_filesystem = api_make_filesystem,
                .abandon_filesystem = filesystem_abandon,
                .look_at_host = manager_look_at_host,
                .look_at_state = manager_look_at_state,
                .adopt = api_adopt,
                .list_adoptable = api_list_adoptable,
                .is_ready = api_is_ready,
                .userdata = manager,
        };
}

int manager_open_api(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        struct api_config config = config_of(manager, options);
        const char *fallback = manager->socket_path;
        int r;

        snprintf(manager->socket_path, sizeof(manager->socket_path), "%s/ublkd.sock", options->runtime_dir);
        config.listen = options->listen;
        config.listen_count = options->listen_count;
        if (config.listen_count == 0)
                config.passed_sockets = fd_store_sockets(manager->fd_store);
        if (config.listen_count == 0 && config.passed_sockets == 0) {
                config.listen = &fallback;
                config.listen_count = 1;
        }
        r = api_new(manager->event, &config, &manager->api, problems);
        if (r >= 0 && options->socket_group.name && !api_is_of_socket_group(manager->api))
                manager_report_socket_group(options->socket_group.name);
        return r;
}
