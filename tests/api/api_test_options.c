/* SPDX-License-Identifier: MIT */
/* Values of the options of api_test_server. */
#include "tests/api/api_test_options.h"

#include "ublkd/policy/policy_load.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void parse_times(const char *text, struct api_times *ret)
{
        unsigned idle = 0, head = 0, body = 0, reply = 0, token = 0;

        (void)sscanf(text, "%u,%u,%u,%u,%u", &idle, &head, &body, &reply, &token);
        *ret = (struct api_times){.idle = idle * UINT64_C(1000),
                .head = head * UINT64_C(1000),
                .body = body * UINT64_C(1000),
                .reply = reply * UINT64_C(1000),
                .token = token * UINT64_C(1000)};
}

static struct api_group group_of(const char *text, const char *name)
{
        struct api_group group = {.gid = (gid_t)strtoul(text, NULL, 10), .name = name};

        group.exists = group.gid != 0;
        return group;
}

static void parse_readers(const char *text, struct api_rights *ret)
{
        ret->everyone_reads = strcmp(text, "everyone") == 0;
        ret->readers = ret->everyone_reads ? (struct api_group){} : group_of(text, "ublk");
}

int api_test_load_policy(const char *directory, struct api_rights *rights)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct policy *policy = NULL;
        char subuid[PATH_MAX];
        int r;

        snprintf(subuid, sizeof(subuid), "%s/../subuid", directory);
        r = policy_load(directory,
                &(const struct policy_accounts){.subuid = access(subuid, F_OK) == 0 ? subuid : NULL}, &policy,
                &problems);

        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s\n", problems.items[i].detail);
        if (r >= 0)
                rights->policy = policy;
        return r;
}

bool api_test_parse(int argc, char *argv[], struct api_config *config, struct api_test_options *ret)
{
        for (int i = 1; i < argc; i++) {
                const char *value = i + 1 < argc ? argv[i + 1] : NULL;

                if (strcmp(argv[i], "--sqlite") == 0) {
                        ret->sqlite = true;
                        continue;
                }
                if (value && strcmp(argv[i], "--state-dir") == 0)
                        config->state_dir = value;
                else if (value && strcmp(argv[i], "--listen") == 0
                         && config->listen_count < API_TEST_LISTEN_MAX)
                        ret->listen[config->listen_count++] = value;
                else if (value && strcmp(argv[i], "--times") == 0)
                        parse_times(value, &config->times);
                else if (value && strcmp(argv[i], "--policy") == 0)
                        ret->policy_dir = value;
                else if (value && strcmp(argv[i], "--patience") == 0)
                        ret->patience = strtoull(value, NULL, 10) * 1000;
                else if (value && strcmp(argv[i], "--unstable-paths") == 0)
                        config->refuse_unstable_paths = strcmp(value, "refuse") == 0;
                else if (value && strcmp(argv[i], "--allow-fault-target") == 0)
                        config->allow_fault_target = strcmp(value, "yes") == 0;
                else if (value && strcmp(argv[i], "--sandbox") == 0)
                        config->best_effort = strcmp(value, "best-effort") == 0;
                else if (value && strcmp(argv[i], "--readers") == 0)
                        parse_readers(value, &config->rights);
                else if (value && strcmp(argv[i], "--administrators") == 0)
                        config->rights.administrators = group_of(value, "ublk-admin");
                else if (value && strcmp(argv[i], "--socket-group") == 0)
                        config->socket_group = group_of(value, "sockets");
                else if (value && strcmp(argv[i], "--passed") == 0)
                        config->passed_sockets = (unsigned)atoi(value);
                else
                        return false;
                i++;
        }
        return true;
}
