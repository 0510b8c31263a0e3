/* SPDX-License-Identifier: MIT */
/* config_reload: files may hang, and reloads may come one upon the other. What clients see of a reload is in
 * tests/api/daemon_config_test.py. */
#include "ublkd/tasks/config_reload.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/base/log.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/stat.h>

static sem_t entered, go_on; /* the thread is in config_load(); it may go on */
static atomic_bool holds;    /* the thread waits there */
static int load_error;

int __real_config_load(const struct config_request *request, struct config **ret);
int __wrap_config_load(const struct config_request *request, struct config **ret);
int __wrap_config_load(const struct config_request *request, struct config **ret)
{
        if (holds) {
                (void)sem_post(&entered);
                while (sem_wait(&go_on) < 0)
                        ;
        }
        return load_error < 0 ? load_error : __real_config_load(request, ret);
}

static struct uid_range subuids = {.first = 100000, .last = 165535}; /* of the host */
static size_t subuid_count = 1;
static int subuids_error;
static atomic_uint subuids_read;

int __wrap_policy_accounts_all_subuids(
        const struct policy_accounts *accounts, struct uid_range **ranges, size_t *count);
int __wrap_policy_accounts_all_subuids(
        const struct policy_accounts *accounts _unused_, struct uid_range **ranges, size_t *count)
{
        subuids_read++;
        if (subuids_error < 0)
                return subuids_error;
        *ranges = malloc(sizeof(**ranges));
        if (!CHECK(*ranges))
                return -ENOMEM;
        **ranges = subuids;
        *count = subuid_count;
        return 0;
}

static unsigned errors;

void __wrap_log_record(int level, const struct log_fields *fields, const char *format, ...) _printf_(3, 4);
void __wrap_log_record(int level, const struct log_fields *fields _unused_, const char *format _unused_, ...)
{
        errors += level == LOG_ERR;
}

struct world {
        sd_event *event;
        struct host host;
        struct config *started;
        struct config_request request;
        struct config_reload *reload;
        struct tenant_policy policy; /* of the start */
        char *policy_dir;
        unsigned applied, done, policies;
        const struct policy *last_policy; /* that was applied last */
        size_t rules;                     /* of it */
        bool refuses;                     /* the values that were applied last */
};

static void on_apply(void *userdata, const struct setting_values *values, const struct api_rights *rights)
{
        struct world *world = userdata;

        CHECK(rights->everyone_reads);
        world->applied++;
        world->refuses = values->refuse_unstable_paths;
}

static void on_policy(void *userdata, const struct policy *policy)
{
        struct world *world = userdata;

        world->policies++;
        world->last_policy = policy;
        world->rules = policy->rule_count;
}

static void on_done(void *userdata)
{
        ((struct world *)userdata)->done++;
}

static const struct config_option *options(const char *policy_dir)
{
        static struct config_option list[3];

        list[0] = (struct config_option){setting_find("UnstablePaths"), "refuse"};
        list[1] = (struct config_option){setting_find("Readers"), "everyone"};
        list[2] = (struct config_option){setting_find("PolicyDirectory"), policy_dir};
        return list;
}

static const char first_policy[] = "{\"rules\":[{\"name\":\"a\",\"who\":{\"users\":[1000]}}]}";
static const char broken_policy[] = "{\"rules\":[{\"name\":\"a\"}]}";

static void write_policy(const struct world *world, const char *text)
{
        char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/50.json", world->policy_dir);
        file = fopen(path, "we");
        if (!CHECK(file))
                return;
        CHECK(fputs(text, file) >= 0);
        CHECK_INT(fchmod(fileno(file), 0644), 0);
        CHECK_INT(fclose(file), 0);
}

/* A thread that is not waited for still reads the texts of the command line: each world has its own, to the end. */
static char *new_policy_dir(void)
{
        static char directories[16][64];
        static unsigned used;
        char *directory = directories[used];

        if (!CHECK(used < ARRAY_SIZE(directories) - 1))
                return directory;
        used++;
        strcpy(directory, "/tmp/config-reload-XXXXXX");
        CHECK(mkdtemp(directory));
        return directory;
}

static void open_world(struct world *world)
{
        *world = (struct world){
                .request = {.root = "/nonexistent", .option_count = 3},
                .policy_dir = new_policy_dir(),
        };
        write_policy(world, first_policy);
        world->request.options = options(world->policy_dir);
        tenant_policy_load(world->policy_dir, &world->policy);
        CHECK_INT(__real_config_load(&world->request, &world->started), 0);
        CHECK(sd_event_new(&world->event) >= 0);
        CHECK_INT(config_reload_new(
                          &(struct config_reload_config){
                                  .event = world->event,
                                  .request = &world->request,
                                  .started = world->started,
                                  .policy = &world->policy,
                                  .host = &world->host,
                                  .apply = on_apply,
                                  .apply_policy = on_policy,
                                  .done = on_done,
                                  .userdata = world,
                          },
                          &world->reload),
                0);
        errors = 0;
}

static void close_world(struct world *world)
{
        config_reload_free(world->reload);
        config_free(world->started);
        tenant_policy_clear(&world->policy);
        CHECK_INT(remove_tree(world->policy_dir), 0);
        host_clear(&world->host);
        sd_event_unref(world->event);
}

static void wait_until_done(struct world *world, unsigned times)
{
        while (world->done < times && sd_event_run(world->event, 10 * 1000 * 1000) > 0)
                ;
        CHECK_INT(world->done, times);
}

static void test_a_reload(void)
{
        struct world world;

        open_world(&world);
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        CHECK_INT(world.applied, 1);
        CHECK(world.refuses);
        CHECK_INT(world.host.settings.count, 0);
        close_world(&world);
}

/* The loop runs meanwhile, and the reloads that come are one more. */
static void test_while_a_file_hangs(void)
{
        struct world world;

        open_world(&world);
        holds = true;
        config_reload_begin(world.reload);
        CHECK_INT(sem_wait(&entered), 0);
        CHECK_INT(sd_event_run(world.event, 0), 0);
        for (unsigned i = 0; i < 3; i++)
                config_reload_begin(world.reload);
        holds = false;
        CHECK_INT(sem_post(&go_on), 0);
        wait_until_done(&world, 1);
        CHECK_INT(world.applied, 2);
        CHECK_INT(sd_event_run(world.event, 0), 0);
        close_world(&world);
}

/* ublkd stops without waiting; the thread still has a request when ublkd's is gone. */
static void test_free_while_a_file_hangs(void)
{
        struct world world;

        open_world(&world);
        holds = true;
        config_reload_begin(world.reload);
        CHECK_INT(sem_wait(&entered), 0);
        close_world(&world);
        memset(&world, 0xff, sizeof(world));
        holds = false;
        CHECK_INT(sem_post(&go_on), 0);
}

static void test_out_of_memory(void)
{
        struct world world;

        open_world(&world);
        load_error = -ENOMEM;
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        CHECK_INT(world.applied, 0);
        CHECK_INT(errors, 1);
        load_error = 0;
        config_reload_begin(world.reload);
        wait_until_done(&world, 2);
        CHECK_INT(world.applied, 1);
        close_world(&world);
}

/* Its memory is gone with the next one, so the callback has to come first. */
static void test_a_policy_is_read_again(void)
{
        struct world world;

        open_world(&world);
        CHECK(world.policy.policy);
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        CHECK_INT(world.policies, 1);
        CHECK_INT(world.rules, 1);
        write_policy(&world, "{}");
        config_reload_begin(world.reload);
        wait_until_done(&world, 2);
        CHECK_INT(world.policies, 2);
        CHECK_INT(world.rules, 0);
        CHECK_INT(world.host.settings.count, 0);
        close_world(&world);
}

static void test_a_policy_with_faults_changes_nothing(void)
{
        struct world world;

        open_world(&world);
        write_policy(&world, broken_policy);
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        CHECK_INT(world.policies, 0);
        CHECK_INT(world.applied, 1); /* the configuration is another matter */
        CHECK_INT(errors, 1);
        if (CHECK_INT(world.host.settings.count, 2)) {
                CHECK_STR(world.host.settings.items[0].reason, "PolicyNotReloaded");
                CHECK_STR(world.host.settings.items[1].reason, "PolicyInvalid");
        }
        write_policy(&world, first_policy);
        config_reload_begin(world.reload);
        wait_until_done(&world, 2);
        CHECK_INT(world.policies, 1);
        CHECK_INT(world.host.settings.count, 0);
        close_world(&world);
}

/* What is wrong with the policy stays visible when the configuration cannot be read. */
static void test_problems_of_the_policy_stay(void)
{
        struct world world;

        open_world(&world);
        write_policy(&world, broken_policy);
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        load_error = -ENOMEM;
        config_reload_begin(world.reload);
        wait_until_done(&world, 2);
        load_error = 0;
        CHECK_INT(world.host.settings.count, 2);
        close_world(&world);
}

static bool has_rule(const struct policy *policy, uid_t uid)
{
        return policy_rule_for(
                policy, &(const struct policy_client){.uid = uid, .gid = 50, .home = POLICY_HOME_HOST});
}

/* A user who is added after the load has a range, too, and needs no reload to be in a group. */
static void test_subordinate_uids_are_read_again(void)
{
        static const char policy[] = "{\"rules\":[{\"name\":\"a\",\"who\":{\"groups\":[50]}}]}";
        struct world world;

        open_world(&world);
        subuids_read = 0;
        config_reload_subuids(world.reload); /* no rule is for a group */
        CHECK(sd_event_run(world.event, 0) >= 0);
        CHECK_INT(subuids_read, 0);
        write_policy(&world, policy);
        config_reload_begin(world.reload);
        wait_until_done(&world, 1);
        CHECK_INT(subuids_read, 1);
        CHECK(!has_rule(world.last_policy, 100000) && has_rule(world.last_policy, 200000));

        subuids = (struct uid_range){.first = 200000, .last = 265535};
        config_reload_subuids(world.reload);
        config_reload_subuids(world.reload); /* it changes while it is read */
        while (subuids_read < 3 && sd_event_run(world.event, 10 * 1000 * 1000) > 0)
                ;
        while (sd_event_run(world.event, 100 * 1000) > 0)
                ;
        CHECK_INT(subuids_read, 3);
        CHECK(has_rule(world.last_policy, 100000) && !has_rule(world.last_policy, 200000));
        CHECK_INT(world.policies, 1); /* no client loses its connection */

        subuid_count = 0; /* an editor writes the next file in a moment */
        config_reload_subuids(world.reload);
        while (subuids_read < 4 && sd_event_run(world.event, 10 * 1000 * 1000) > 0)
                ;
        while (sd_event_run(world.event, 100 * 1000) > 0)
                ;
        CHECK_INT(subuids_read, 4);
        CHECK(!has_rule(world.last_policy, 200000));
        subuid_count = 1;

        errors = 0;
        subuids_error = -EIO;
        config_reload_subuids(world.reload);
        while (errors == 0 && sd_event_run(world.event, 10 * 1000 * 1000) > 0)
                ;
        CHECK_INT(errors, 1);
        CHECK(!has_rule(world.last_policy, 200000));
        subuids_error = 0;
        close_world(&world);
}

int main(void)
{
        CHECK_INT(sem_init(&entered, 0, 0), 0);
        CHECK_INT(sem_init(&go_on, 0, 0), 0);
        test_a_reload();
        test_while_a_file_hangs();
        test_free_while_a_file_hangs();
        test_out_of_memory();
        test_a_policy_is_read_again();
        test_a_policy_with_faults_changes_nothing();
        test_problems_of_the_policy_stay();
        test_subordinate_uids_are_read_again();
        return check_report();
}
