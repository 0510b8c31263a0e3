/* SPDX-License-Identifier: MIT */
/* When a worker gets its control group and its limits, what a client sees of that, and how an OOM kill is reported.
 * The groups are pretended; /sys is a tree of files. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

enum { LATE_MS = 20 * 1000, CALM_MS = 1000 };

#define LIMITS                                                                                               \
        ",\"id\":0,\"resources\":{\"memoryMax\":\"64MiB\",\"ioMax\":{\"read\":{\"iops\":10},"                \
        "\"write\":{\"bytesPerSec\":4096}}}"
#define KEY "file:8:1:5"

static char tree[] = "/tmp/reconciler-resources-XXXXXX";
static const struct progress_places places = {.sys = tree, .proc = tree};
static const char *const names[] = {"data"};
static int nothing; /* its address is a worker_groups, or a group_request */

/* ---- the groups ---- */

static struct {
        unsigned holds, ends, opened;
        struct group_limits limits; /* of the last hold */
        void (*done)(void *userdata, const struct group_result *result);
        void *userdata; /* NULL: no request is open */
        int oom;
} groups;

int __wrap_worker_groups_hold(struct worker_groups *all, pid_t pid, int pidfd, const char *start,
        const struct group_limits *limits, void (*done)(void *userdata, const struct group_result *result),
        void *userdata, struct group_request **ret);
int __wrap_worker_groups_hold(struct worker_groups *all, pid_t pid, int pidfd, const char *start,
        const struct group_limits *limits, void (*done)(void *userdata, const struct group_result *result),
        void *userdata, struct group_request **ret)
{
        CHECK((void *)all == &nothing && pid == FAKE_PID && pidfd >= 0);
        CHECK(!groups.userdata); /* one at a time */
        CHECK(!start == !group_limits_any(limits));
        groups.holds++;
        groups.limits = *limits;
        groups.done = done;
        groups.userdata = userdata;
        *ret = (struct group_request *)&nothing;
        return 0;
}

struct group_request *__wrap_group_request_free(struct group_request *request);
struct group_request *__wrap_group_request_free(struct group_request *request)
{
        if (request)
                groups.userdata = NULL;
        return NULL;
}

void __wrap_worker_groups_end(struct worker_groups *all, pid_t pid);
void __wrap_worker_groups_end(struct worker_groups *all, pid_t pid)
{
        CHECK((void *)all == &nothing && pid == FAKE_PID);
        groups.ends++;
}

int __wrap_worker_groups_open_events(const struct worker_groups *all, pid_t pid);
int __wrap_worker_groups_open_events(const struct worker_groups *all, pid_t pid)
{
        CHECK((const void *)all == &nothing && pid == FAKE_PID);
        groups.opened++;
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_worker_groups_oom_kills(int events);
int __wrap_worker_groups_oom_kills(int events)
{
        CHECK(events == -ENOENT || fcntl(events, F_GETFD) >= 0);
        return events < 0 ? events : groups.oom;
}

int __wrap_worker_groups_open_start_events(const struct worker_groups *all, const char *uid);
int __wrap_worker_groups_open_start_events(const struct worker_groups *all, const char *uid)
{
        CHECK((const void *)all == &nothing && *uid);
        return -ENOENT;
}

void __wrap_worker_groups_drop_start(struct worker_groups *all, const char *uid);
void __wrap_worker_groups_drop_start(struct worker_groups *all, const char *uid)
{
        CHECK((void *)all == &nothing && *uid);
}

static void answer(struct world *world, const struct group_result *result)
{
        if (!CHECK(groups.userdata))
                return;
        groups.done(groups.userdata, result);
        world_settle(world, 20);
}

/* ---- the device ---- */

static void bring_up(struct world *world, const char *more)
{
        groups.holds = groups.ends = groups.opened = 0;
        groups.oom = 0;
        world_new(world);
        world_stop_reconciler(world);
        world->progress_places = &places;
        world->worker_groups = (struct worker_groups *)&nothing;
        world_start_reconciler(world);
        world_put_loop(world, "data", more);
        world_bring_up(world, "data", KEY);
}

static void wait_for_hold(struct world *world, unsigned count)
{
        for (unsigned waited = 0; waited < LATE_MS && groups.holds < count; waited += 10)
                world_settle(world, 10);
        CHECK_INT(groups.holds, count);
}

static void check_resources(
        const struct world *world, enum condition_status status, enum condition_reason reason)
{
        const struct device_condition *condition =
                &world_record(world, "data")->status.conditions.of[CONDITION_RESOURCES];

        CHECK_INT(condition->status, status);
        CHECK_INT(condition->reason, reason);
}

static void kill_worker(struct world *world)
{
        fake_worker("data")->killed = true;
        fake_worker_die(fake_worker("data"));
        world_settle(world, 5);
}

/* ---- tests ---- */

static void a_worker_is_limited_after_it_serves(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        CHECK_INT(groups.holds, 0); /* not on the way to Live */
        check_resources(&world, CONDITION_UNKNOWN, REASON_RESOURCES_PENDING);
        wait_for_hold(&world, 1);
        CHECK_INT(groups.limits.memory_max, 64 << 20);
        CHECK_INT(groups.limits.io.read_ios, 10);
        CHECK_INT(groups.limits.io.write_bytes, 4096);
        CHECK_INT(groups.limits.disk, makedev(8, 0)); /* of the partition 8:1 */
        CHECK_INT(groups.limits.cpu_weight, 0);
        check_resources(&world, CONDITION_UNKNOWN, REASON_RESOURCES_PENDING);
        answer(&world, &(const struct group_result){});
        check_resources(&world, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE);
        CHECK_INT(world_count_events(&world, REASON_RESOURCES_IN_FORCE), 0); /* it is what was asked for */
        world_settle(&world, 2 * CALM_MS);
        CHECK_INT(groups.holds, 1);
        world_free(&world);
        CHECK(!groups.userdata);
}

static void limits_change_under_the_disk(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        wait_for_hold(&world, 1);
        world_put_loop(&world, "data", ",\"id\":0,\"resources\":{\"pidsMax\":100}"); /* before the answer */
        wait_for_hold(&world, 2);
        CHECK_INT(groups.limits.pids_max, 100);
        CHECK_INT(groups.limits.memory_max, 0);
        CHECK_INT(groups.limits.disk, 0);
        answer(&world, &(const struct group_result){});
        check_resources(&world, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE);
        world_put_loop(&world, "data", ",\"id\":0");
        wait_for_hold(&world, 3);
        CHECK(!group_limits_any(&groups.limits));
        answer(&world, &(const struct group_result){});
        check_resources(&world, CONDITION_ABSENT, REASON_NONE);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(fake_kills, 0);
        world_free(&world);
}

static void limits_that_are_not_in_force_are_reported_once(void)
{
        struct world world;
        struct group_result bad = {};

        bring_up(&world, LIMITS);
        wait_for_hold(&world, 1);
        bad.limits[GROUP_IO_MAX] = -ENOENT;
        answer(&world, &bad);
        check_resources(&world, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        CHECK_INT(world_count_events(&world, REASON_RESOURCES_NOT_IN_FORCE), 1);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        world_put_loop(
                &world, "data", LIMITS ",\"labels\":{\"a\":\"b\"}"); /* another spec, the same limits */
        world_settle(&world, 50);
        CHECK_INT(groups.holds, 1);
        check_resources(&world, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        world_put_loop(&world, "data", ",\"id\":0,\"resources\":{\"cpuWeight\":7}");
        wait_for_hold(&world, 2);
        answer(&world, &(const struct group_result){.trouble = GROUP_NO_UNIT, .error = -2});
        CHECK_INT(world_count_events(&world, REASON_RESOURCES_NOT_IN_FORCE), 1);
        world_put_loop(&world, "data", ",\"id\":0,\"resources\":{\"cpuWeight\":8}");
        wait_for_hold(&world, 3);
        answer(&world, &(const struct group_result){});
        CHECK_INT(world_count_events(&world, REASON_RESOURCES_IN_FORCE), 1);
        check_resources(&world, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE);
        world_free(&world);
}

/* No limits, no groups here: that is as it always was. */
static void a_worker_without_limits_needs_no_group(void)
{
        struct world world;

        bring_up(&world, ",\"id\":0");
        wait_for_hold(&world, 1);
        CHECK(!group_limits_any(&groups.limits));
        answer(&world, &(const struct group_result){.trouble = GROUP_NO_HIERARCHY, .error = -6});
        check_resources(&world, CONDITION_ABSENT, REASON_NONE);
        CHECK_INT(world_count_events(&world, REASON_RESOURCES_NOT_IN_FORCE), 0);
        world_free(&world);
}

/* ublkd could not prepare for control groups: it serves, and says that the limits are not in force. */
static void without_groups_limits_are_not_in_force(void)
{
        struct world world;

        groups.holds = 0;
        world_new(&world);
        world_put_loop(&world, "data", LIMITS);
        world_bring_up(&world, "data", KEY);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        check_resources(&world, CONDITION_FALSE, REASON_RESOURCES_NOT_IN_FORCE);
        world_put_loop(&world, "data", ",\"id\":0");
        world_settle(&world, 20);
        check_resources(&world, CONDITION_ABSENT, REASON_NONE);
        CHECK_INT(groups.holds, 0);
        world_free(&world);
}

/* While the disk is recovered nothing waits for a group, and the next worker gets the same limits. */
static void the_next_worker_is_limited_too(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        wait_for_hold(&world, 1);
        answer(&world, &(const struct group_result){});
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(groups.ends, 1);
        check_resources(&world, CONDITION_UNKNOWN, REASON_RESOURCES_PENDING);
        world_churn(&world, names, 1, KEY);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_count_events(&world, REASON_RECOVERED), 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_OUT_OF_MEMORY), 0);
        CHECK_INT(groups.holds, 1);
        wait_for_hold(&world, 2);
        CHECK_INT(groups.limits.memory_max, 64 << 20);
        answer(&world, &(const struct group_result){});
        check_resources(&world, CONDITION_TRUE, REASON_RESOURCES_IN_FORCE);
        world_free(&world);
}

static void a_death_by_the_oom_killer_is_reported_as_that(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        groups.oom = 1;
        kill_worker(&world);
        CHECK_INT(world_count_events(&world, REASON_WORKER_OUT_OF_MEMORY), 1);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 0);
        CHECK_INT(groups.ends, 1);
        world_churn(&world, names, 1, KEY);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK_INT(world_count_events(&world, REASON_RECOVERED), 1);
        groups.oom = -2; /* unknown: there is no memory controller */
        kill_worker(&world);
        CHECK_INT(world_count_events(&world, REASON_WORKER_OUT_OF_MEMORY), 1);
        CHECK(world_count_events(&world, REASON_WORKER_DIED)
                > 0); /* and of the status: it waits for its turn */
        world_free(&world);
}

/* memory.events takes a while to open: that is done before the worker dies. */
static void the_question_for_the_oom_killer_is_prepared(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        wait_for_hold(&world, 1);
        answer(&world, &(const struct group_result){});
        CHECK_INT(groups.opened, 1);
        groups.oom = 1;
        kill_worker(&world);
        CHECK_INT(world_count_events(&world, REASON_WORKER_OUT_OF_MEMORY), 1);
        CHECK_INT(groups.opened, 1);
        world_free(&world);
}

/* The OOM killer has taken a process that the worker had forked; the worker itself has failed. */
static void an_exit_is_not_reported_as_an_oom_kill(void)
{
        struct world world;

        bring_up(&world, LIMITS);
        groups.oom = 1;
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(world_count_events(&world, REASON_WORKER_OUT_OF_MEMORY), 0);
        CHECK_INT(world_count_events(&world, REASON_WORKER_DIED), 1);
        world_free(&world);
}

int main(void)
{
        char command[512];

        CHECK(mkdtemp(tree));
        snprintf(command, sizeof(command),
                "cd %s && mkdir -p dev/block devices/sda/sda1 && echo 8:0 >devices/sda/dev && echo 1 "
                ">devices/sda/sda1/partition && ln -s ../../devices/sda/sda1 dev/block/8:1",
                tree);
        CHECK_INT(system(command), 0);
        a_worker_is_limited_after_it_serves();
        limits_change_under_the_disk();
        limits_that_are_not_in_force_are_reported_once();
        a_worker_without_limits_needs_no_group();
        without_groups_limits_are_not_in_force();
        the_next_worker_is_limited_too();
        a_death_by_the_oom_killer_is_reported_as_that();
        the_question_for_the_oom_killer_is_prepared();
        an_exit_is_not_reported_as_an_oom_kill();
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        return check_report();
}
