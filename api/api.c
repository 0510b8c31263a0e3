/* SPDX-License-Identifier: MIT */
/* Put the rooms of the API together: the server, its subscription to the store, and the routes. */
#include "api/api.h"

#include "api/held/authority_check.h"
#include "api/held/first_pass.h"
#include "api/held/reader_turns.h"
#include "api/held/wait.h"
#include "api/held/watch.h"
#include "api/http/hold.h"
#include "api/http/server.h"
#include "api/route_table.h"

static void on_store_event(void *userdata, const struct store_event *event)
{
        wait_on_store_event(userdata, event);
        watch_on_store_event(userdata, event);
}

DEFINE_CLEANUP(struct api, api_free);

int api_new(sd_event *event, const struct api_config *config, struct api **ret, struct problem_list *problems)
{
        _cleanup_(api_free_pointer) struct api *api = calloc(1, sizeof(*api));
        int r;

        if (!api)
                return -ENOMEM;
        api->config = *config;
        api->event = sd_event_ref(event);
        api->routes = route_table;
        api->admit = first_pass_admit;
        api->take_turn = reader_turn_take;
        api->ask_permission = authority_check_begin;
        r = server_open(api, problems);
        if (r >= 0)
                r = device_store_subscribe(config->store, on_store_event, api);
        if (r < 0)
                return r;
        api->subscribed = true;
        r = server_listen(api, problems);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(api);
        return 0;
}

static bool is_same_group(const struct api_group *one, const struct api_group *other)
{
        return one->exists == other->exists && one->gid == other->gid;
}

/* Return whether clients may have other rights than before. */
static bool rights_differ(const struct api_rights *before, const struct api_rights *now)
{
        return before->everyone_reads != now->everyone_reads
               || !is_same_group(&before->readers, &now->readers)
               || !is_same_group(&before->administrators, &now->administrators);
}

void api_set_rights(struct api *api, const struct api_rights *rights, bool refuse_unstable_paths)
{
        const struct api_rights before = api->config.rights;

        api->config.refuse_unstable_paths = refuse_unstable_paths;
        api->config.rights = *rights;
        api->config.rights.policy = before.policy;
        if (rights_differ(&before, rights))
                connection_close_others(api);
        if (!rights->asks_polkit)
                authority_check_end_all(api);
}

static bool has_rules(const struct policy *policy)
{
        return policy && policy->rule_count > 0;
}

void api_set_policy(struct api *api, const struct policy *policy)
{
        const struct policy *before = api->config.rights.policy;

        api->config.rights.policy = policy;
        if (has_rules(before) || has_rules(policy)) /* they may say the same: that is not looked at */
                connection_close_others(api);
}

bool api_is_of_socket_group(const struct api *api)
{
        return server_is_of_group(api);
}

void api_host_seen(struct api *api)
{
        wait_host_seen(api);
}

void api_boot_pass_done(struct api *api)
{
        first_pass_done(api);
}

int api_listen_again(struct api *api)
{
        return server_listen_again(api);
}

struct api *api_free(struct api *api)
{
        if (!api)
                return NULL;
        if (api->subscribed)
                device_store_unsubscribe(api->config.store, on_store_event, api);
        hold_abandon_all(api);
        watch_stop(api);
        reader_turns_stop(api);
        server_close(api);
        sd_event_unref(api->event);
        free(api);
        return NULL;
}
