/* SPDX-License-Identifier: MIT */
/* ublkd, the supervisor: reads its configuration, builds the manager, runs the loop. */
#include "ublkd/base/log.h"
#include "ublkd/base/ram.h"
#include "ublkd/cgroups/group_wait.h"
#include "ublkd/config/command_line.h"
#include "ublkd/config/config_print.h"
#include "ublkd/manager.h"
#include "ublkd/tasks/access_groups.h"
#include "ublkd/tasks/program_choice.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

static_assert((unsigned)SETTING_SPARES_MAX <= (unsigned)WORKER_SPARES_MAX, "as many as can be asked for");

enum { EXIT_USAGE = 2 }; /* a wrong command line, or a configuration that ublkd must not start with */

/* A disk has no recovery while this process waits for it. Return 0 or -errno. */
static int keep_in_ram(void)
{
        (void)ram_wait_for_no_io(); /* without that privilege no disk can be made */
        return ram_keep_all();
}

/* systemd logs every process that is left in the group of a service; those of ublkd end by themselves, a moment after
 * it. */
static int run_group_wait(void)
{
        return group_wait(&group_sources_of_host, GROUP_WAIT_USEC) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* For ExecStopPost= of ublkd.service only. */
static const struct command_role roles[] = {
        {"group-wait", run_group_wait},
};

static void log_problems(const struct problem_list *problems, int error)
{
        for (size_t i = 0; i < problems->count; i++)
                log_error(NULL, "%s", problems->items[i].detail);
        if (problems->count == 0)
                log_error(NULL, "ublkd cannot start: %s", strerror(-error));
}

static void log_memory(int locked)
{
        if (locked < 0)
                log_warning(NULL,
                        "The memory of ublkd cannot be locked: %s; with swap on one of its disks the machine "
                        "may hang, lift the limit on locked memory.",
                        strerror(-locked));
}

static int run(const struct manager_options *manager_options)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct manager *manager = NULL;
        int locked = keep_in_ram();
        int r = manager_new(manager_options, &manager, &problems);

        if (r < 0) {
                log_problems(&problems, r);
                return r;
        }
        log_memory(locked);
        access_groups_log(&manager_options->rights);
        r = manager_run(manager);
        if (r < 0)
                log_error(NULL, "The event loop failed: %s; workers continue to serve, start ublkd again",
                        strerror(-r));
        manager_free(manager);
        return r;
}

static void log_config(const struct config *config)
{
        for (size_t i = 0; i < config->problems.count; i++)
                log_line(config->refused ? LOG_ERR : LOG_WARNING, NULL, "%s",
                        config->problems.items[i].detail);
        if (config->refused)
                log_error(NULL,
                        "ublkd does not start: its configuration could mean another database or other "
                        "rights; correct it, and try 'ublkd --check-config'");
}

/* What the configuration says; the caller adds what it finds on this host. */
static struct manager_options options_of(const struct setting_values *values)
{
        return (struct manager_options){
                .state_dir = values->state_directory,
                .runtime_dir = values->runtime_directory,
                .cdi_dir = values->cdi_directory,
                .listen = values->listen,
                .listen_count = values->listen_count,
                .ignored_features = values->ignored_features,
                .devices_dirs = values->devices_dirs,
                .devices_dir_count = values->devices_dir_count,
                .refuse_unstable_paths = values->refuse_unstable_paths,
                .allow_fault_target = values->allow_fault_target,
                .replace_workers = values->replace_workers,
                .spare_workers = values->spare_workers,
                .confinement = {.best_effort = values->best_effort,
                                .first_user = values->first_uid,
                                .users = values->uids},
        };
}

static int start(const struct config_request *request, const struct config *config)
{
        const struct setting_values *values = &config->values;
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_(tenant_policy_clear) struct tenant_policy policy = {};
        _cleanup_(helper_program_clear) struct helper_program helper = {.fd = -1};
        struct manager_options options = options_of(values);
        char worker[PATH_MAX];

        log_set_level(values->log_level);
        log_config(config);
        if (config->refused)
                return EXIT_USAGE;
        if (worker_choose(values->worker, worker, sizeof(worker)) < 0 || helper_program_open(&helper) < 0)
                return EXIT_FAILURE;
        tenant_policy_load(values->policy_directory, &policy);
        tenant_policy_check_runtime(&policy, values->runtime_directory);
        options.config_request = request;
        options.config = config;
        options.policy = &policy;
        options.worker = worker;
        options.helper = helper.path;
        options.rights = access_groups_find(values);
        options.rights.policy = policy.policy;
        if (access_groups_of_socket(config, &options.socket_group, &problems) < 0) {
                log_problems(&problems, ENOENT);
                return EXIT_FAILURE;
        }
        return run(&options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Names that do not exist are printed, and do not fail the check: as at a start, the rest of the rule counts. Return whether
 * ublkd would start with this policy. */
static bool check_policy(const struct config *config)
{
        _cleanup_(tenant_policy_clear) struct tenant_policy policy;
        const struct problem_list *problems;

        tenant_policy_load(config->values.policy_directory, &policy);
        tenant_policy_check_runtime(&policy, config->values.runtime_directory);
        problems = policy.policy ? &policy.policy->notes : &policy.problems;
        for (size_t i = 0; i < problems->count; i++)
                fprintf(stderr, "%s\n", problems->items[i].detail);
        if (problems->dropped > 0)
                fprintf(stderr, "%zu more problems of the policy are not shown\n", problems->dropped);
        if (policy.error < 0 && policy.error != -EINVAL)
                fprintf(stderr, "Loading the policy failed: %s; try again\n", strerror(-policy.error));
        return policy.error >= 0;
}

static int check(struct config *config)
{
        struct api_group group;
        bool bad = access_groups_of_socket(config, &group, &config->problems) < 0;

        bad = bad || config->problems.count > 0;
        if (bad)
                config_print_problems(config, stderr);
        if (!check_policy(config) || bad)
                return EXIT_FAILURE;
        config_print_values(config, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int load_and_run(const struct command_line *line)
{
        _cleanup_(config_free_pointer) struct config *config = NULL;
        int r = config_load(&line->request, &config);

        if (r < 0) {
                log_error(NULL, "Reading the configuration failed: %s; start ublkd again", strerror(-r));
                return EXIT_FAILURE;
        }
        return line->mode == COMMAND_CHECK ? check(config) : start(&line->request, config);
}

int main(int argc, char *argv[])
{
        _cleanup_(command_line_clear) struct command_line line = {};

        if (command_line_parse(argc, argv, roles, ARRAY_SIZE(roles), &line) < 0)
                return EXIT_USAGE;
        if (line.mode == COMMAND_DONE)
                return EXIT_SUCCESS;
        if (line.mode == COMMAND_ROLE)
                return line.role->run();
        if (line.mode == COMMAND_RUN)
                log_open();
        return load_and_run(&line);
}
