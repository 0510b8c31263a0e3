/* SPDX-License-Identifier: MIT */
/* Reads the configuration and the policy again while ublkd runs. */
#include "ublkd/tasks/config_reload.h"

#include "ublkd/base/log.h"
#include "ublkd/host/host.h"
#include "ublkd/offload/job_thread.h"
#include "ublkd/policy/policy_accounts.h"
#include "ublkd/tasks/access_groups.h"

#include <string.h>

struct config_reload {
        struct config_reload_config config;
        struct config *current;              /* the last one that was good; NULL: the one of the start */
        struct policy *policy;               /* the same; its memory */
        bool has_policy;                     /* one is in force */
        struct problem_list policy_problems; /* of the last one that was read */
        struct job_thread *thread;
        bool running, again;
        bool reads_subuids, reads_subuids_again;
};

/* The request is a copy: the thread may outlive ublkd's. Its texts are those of argv. */
struct job {
        struct thread_job job;
        struct config_reload *owner; /* for the loop */
        struct config_request request;
        struct config *config;
        struct api_rights rights;
        struct tenant_policy policy; /* read if the configuration is good */
        int error;
        struct config_option options[];
};

struct subuid_job {
        struct thread_job job;
        struct config_reload *owner; /* for the loop */
        struct uid_range *ranges;
        size_t count;
        int error;
};

DEFINE_CLEANUP(struct config_reload, config_reload_free);

static const struct config *current_of(const struct config_reload *reload)
{
        return reload->current ? reload->current : reload->config.started;
}

static void run_job(struct thread_job *thread_job)
{
        struct job *job = (struct job *)thread_job;

        job->error = config_load(&job->request, &job->config);
        if (job->error < 0)
                return;
        job->rights = access_groups_find(&job->config->values);
        if (job->config->problems.count == 0)
                tenant_policy_load(job->config->values.policy_directory, &job->policy);
}

static void drop_job(struct thread_job *thread_job)
{
        struct job *job = (struct job *)thread_job;

        config_free(job->config);
        tenant_policy_clear(&job->policy);
        free(job);
}

/* On ENOMEM a problem is in the log only. */
static void report_restarts(struct config_reload *reload)
{
        const struct config *started = reload->config.started, *current = current_of(reload);

        for (size_t i = 0; i < settings_count; i++) {
                if (settings[i].reloads || config_is_same(started, current, &settings[i]))
                        continue;
                log_warning(
                        NULL, "The new value of %s takes effect when ublkd is restarted", settings[i].key);
                (void)problem_add(&reload->config.host->settings, 0, "", "RestartNeeded",
                        "The new value of %s takes effect when ublkd is restarted; disks stay in service "
                        "meanwhile",
                        settings[i].key);
        }
}

static void refuse(struct config_reload *reload, const struct problem_list *problems)
{
        struct problem_list *shown = &reload->config.host->settings;

        for (size_t i = 0; i < problems->count; i++)
                log_warning(NULL, "%s", problems->items[i].detail);
        log_error(NULL,
                "Reloading the configuration failed: its files have problems (%zu); the values from before, "
                "and the policy, stay; "
                "correct the files, try 'ublkd --check-config', and reload again",
                problems->count + problems->dropped);
        (void)problem_add(shown, 0, "", "ConfigurationNotReloaded",
                "The files have problems, so the values and the policy from before the reload stay; correct "
                "the "
                "files, try "
                "'ublkd "
                "--check-config', and reload ublkd again");
        (void)problem_list_append(shown, problems);
}

/* The values that ublkd used so far are valid until the new ones are in force. */
static void accept(struct config_reload *reload, struct job *job)
{
        struct config *before = reload->current;

        reload->current = TAKE_PTR(job->config);
        reload->config.apply(reload->config.userdata, &reload->current->values, &job->rights);
        config_free(before);
        log_info(NULL, "The configuration was reloaded");
        access_groups_log(&job->rights);
}

/* One that has a fault is not in force: the last good one stays. */
static void accept_policy(struct config_reload *reload, struct job *job)
{
        struct policy *before = reload->policy;

        problem_list_clear(&reload->policy_problems);
        tenant_policy_check_runtime(&job->policy, reload->config.started->values.runtime_directory);
        tenant_policy_report(&job->policy, reload->has_policy, &reload->policy_problems);
        if (!job->policy.policy)
                return;
        reload->policy = TAKE_PTR(job->policy.policy);
        reload->has_policy = true;
        reload->config.apply_policy(reload->config.userdata, reload->policy);
        policy_free(before);
}

static void finish(struct config_reload *reload, struct job *job)
{
        problem_list_clear(&reload->config.host->settings);
        if (job->error < 0)
                log_errno(LOG_ERR, NULL, job->error,
                        "Reloading the configuration failed: %s; the values from before stay; reload again",
                        strerror(-job->error));
        else if (job->config->problems.count > 0)
                refuse(reload, &job->config->problems);
        else {
                accept(reload, job);
                accept_policy(reload, job);
        }
        (void)problem_list_append(&reload->config.host->settings, &reload->policy_problems);
        report_restarts(reload);
}

static void on_job_done(struct thread_job *thread_job)
{
        struct config_reload *reload = ((struct job *)thread_job)->owner;

        finish(reload, (struct job *)thread_job);
        drop_job(thread_job);
        reload->running = false;
        if (reload->again)
                config_reload_begin(reload);
        else
                reload->config.done(reload->config.userdata);
}

void config_reload_begin(struct config_reload *reload)
{
        const struct config_request *request = reload->config.request;
        struct job *job;

        reload->again = reload->running;
        if (reload->running)
                return;
        job = calloc(1, sizeof(*job) + request->option_count * sizeof(job->options[0]));
        if (!job) {
                log_error(NULL,
                        "Reloading the configuration failed: %s; the values from before stay; reload again",
                        strerror(ENOMEM));
                reload->config.done(reload->config.userdata);
                return;
        }
        job->job = (struct thread_job){.run = run_job, .done = on_job_done, .drop = drop_job};
        job->owner = reload;
        job->request = *request;
        for (size_t i = 0; i < request->option_count; i++)
                job->options[i] = request->options[i];
        job->request.options = job->options;
        reload->running = true;
        job_thread_add(reload->thread, &job->job);
}

/* ---- subordinate uids ---- */

/* A reload before has its policy in force, as the thread and the loop take one job after the other. NULL: none is. */
static struct policy *policy_in_force(const struct config_reload *reload)
{
        return reload->policy ? reload->policy : reload->config.policy->policy;
}

static void run_subuid_job(struct thread_job *thread_job)
{
        struct subuid_job *job = (struct subuid_job *)thread_job;

        job->error =
                policy_accounts_all_subuids(&(const struct policy_accounts){}, &job->ranges, &job->count);
}

static void drop_subuid_job(struct thread_job *thread_job)
{
        struct subuid_job *job = (struct subuid_job *)thread_job;

        free(job->ranges);
        free(job);
}

static void on_subuid_job_done(struct thread_job *thread_job)
{
        struct subuid_job *job = (struct subuid_job *)thread_job;
        struct config_reload *reload = job->owner;
        struct policy *policy = policy_in_force(reload);

        if (job->error < 0)
                log_error(NULL,
                        "Reading /etc/subuid failed: %s; the ranges from before count; correct the file",
                        strerror(-job->error));
        else if (policy && job->count > 0) /* an editor may have taken the file away for a moment */
                policy_set_subuids(policy, TAKE_PTR(job->ranges), job->count);
        drop_subuid_job(thread_job);
        reload->reads_subuids = false;
        if (reload->reads_subuids_again)
                config_reload_subuids(reload);
}

void config_reload_subuids(struct config_reload *reload)
{
        struct subuid_job *job;

        reload->reads_subuids_again = reload->reads_subuids;
        if (reload->reads_subuids)
                return;
        if (!reload->running && !policy_asks_groups(policy_in_force(reload)))
                return;
        job = calloc(1, sizeof(*job));
        if (!job) {
                log_error(NULL, "Reading /etc/subuid failed: %s; reload ublkd", strerror(ENOMEM));
                return;
        }
        job->job = (struct thread_job){
                .run = run_subuid_job, .done = on_subuid_job_done, .drop = drop_subuid_job};
        job->owner = reload;
        reload->reads_subuids = true;
        job_thread_add(reload->thread, &job->job);
}

int config_reload_new(const struct config_reload_config *config, struct config_reload **ret)
{
        _cleanup_(config_reload_free_pointer) struct config_reload *reload = calloc(1, sizeof(*reload));
        int r;

        if (!reload)
                return -ENOMEM;
        reload->config = *config;
        r = job_thread_new(config->event, &reload->thread);
        if (r >= 0)
                r = problem_list_append(&config->host->settings, &config->started->problems);
        if (r < 0)
                return r;
        reload->has_policy = config->policy->policy != NULL;
        tenant_policy_report(config->policy, false, &reload->policy_problems);
        r = problem_list_append(&config->host->settings, &reload->policy_problems);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(reload);
        return 0;
}

struct config_reload *config_reload_free(struct config_reload *reload)
{
        if (!reload)
                return NULL;
        job_thread_free(reload->thread);
        config_free(reload->current);
        policy_free(reload->policy);
        problem_list_clear(&reload->policy_problems);
        free(reload);
        return NULL;
}
