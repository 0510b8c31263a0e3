/* SPDX-License-Identifier: MIT */
/* Processes that are held to limits before they know their device, and spares that one disk cannot keep away from others.
 * Real processes; the control groups are calls that the test answers. This program is the worker, too: see worker_fake.h. */
#include "ublkd/workers/worker_start.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/workers/worker_fake.h"
#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/workers/worker_log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_USEC = 60 * 1000 * 1000, PATIENCE_MSEC = PATIENCE_USEC / 1000, MEMORY_MAX = 64 << 20 };

static struct {
        sd_event *event;
        struct worker_start *start;
        pid_t spare; /* that waits for a device; 0: none */
        void (*done)(void *userdata, const struct group_result *result);
        void *userdata;          /* of `done`, for the group of the spare */
        unsigned configs;        /* that were sent to the device that is being started */
        unsigned bound, started; /* calls for it */
        bool unbound;            /* no limit can be in force */
} test;

/* ---- control groups ---- */

int __wrap_worker_groups_open_rest(const struct worker_groups *groups);
int __wrap_worker_groups_open_rest(const struct worker_groups *groups _unused_)
{
        return -ENOENT;
}

int __wrap_worker_groups_prepare(struct worker_groups *groups, pid_t pid, int pidfd,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret);
int __wrap_worker_groups_prepare(struct worker_groups *groups _unused_, pid_t pid, int pidfd _unused_,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret)
{
        *ret = NULL;
        test.spare = pid;
        test.done = done;
        test.userdata = userdata;
        return 0;
}

int __wrap_worker_groups_open_own(const struct worker_groups *groups, pid_t pid);
int __wrap_worker_groups_open_own(const struct worker_groups *groups _unused_, pid_t pid)
{
        CHECK_INT(pid, test.spare);
        return open("/proc/self", O_PATH | O_CLOEXEC);
}

bool __wrap_worker_groups_bound(int group, const struct group_limits *limits);
bool __wrap_worker_groups_bound(int group, const struct group_limits *limits)
{
        CHECK(group >= 0);
        CHECK_INT(limits->memory_max, MEMORY_MAX);
        CHECK_INT(test.configs, 0); /* before it knows anything */
        test.bound++;
        return !test.unbound;
}

int __wrap_worker_groups_open_start(
        const struct worker_groups *groups, const char *uid, const struct group_limits *limits);
int __wrap_worker_groups_open_start(
        const struct worker_groups *groups _unused_, const char *uid, const struct group_limits *limits)
{
        CHECK_STR(uid, worker_fake_uid);
        CHECK_INT(limits->memory_max, MEMORY_MAX);
        test.started++;
        return test.unbound ? -ENOENT : open("/", O_PATH | O_CLOEXEC);
}

void __wrap_worker_groups_end(struct worker_groups *groups, pid_t pid);
void __wrap_worker_groups_end(struct worker_groups *groups _unused_, pid_t pid _unused_)
{
}

void __wrap_worker_groups_postpone(struct worker_groups *groups);
void __wrap_worker_groups_postpone(struct worker_groups *groups _unused_)
{
}

int __real_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds);
int __wrap_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds);
int __wrap_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds)
{
        test.configs++;
        return __real_worker_msg_send_fds(channel, msg, fds);
}

/* ---- the starter ---- */

static pid_t wait_for_spare(void)
{
        uint64_t began, now;

        sd_event_now(test.event, CLOCK_MONOTONIC, &began);
        now = began;
        while (test.spare == 0 && now < began + PATIENCE_USEC) {
                sd_event_run(test.event, 100 * 1000);
                sd_event_now(test.event, CLOCK_MONOTONIC, &now);
        }
        CHECK(test.spare > 0);
        return test.spare;
}

/* Start a worker that fails as soon as it has its CONFIG. */
static pid_t run(const struct group_limits *limits)
{
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        const struct worker_msg config = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "failing",
                           .uid = (char *)(uintptr_t)worker_fake_uid,
                           .epoch = WORKER_FAKE_EPOCH,
                           .spec = (char *)(uintptr_t) "{}",
                           .queues = 1,
                           .queue_depth = 8},
        };
        struct worker_process process = {.pidfd = -1, .channel = -1};

        test.bound = test.started = test.configs = 0;
        if (!CHECK_INT(worker_start_run(test.start, &config,
                               (const int[]){[CONFIG_FD_LISTENER] = null,
                                       [CONFIG_FD_REGION] = null,
                                       [CONFIG_FD_STORE... _CONFIG_FD_MAX - 1] = -1},
                               limits, &process),
                    0))
                return -1;
        if (process.pid == test.spare)
                test.spare = 0;
        CHECK_INT(waitid(P_PIDFD, (id_t)process.pidfd, &(siginfo_t){}, WEXITED), 0);
        worker_log_free(process.log);
        close(process.channel);
        close(process.pidfd);
        return process.pid;
}

static void give_group(void)
{
        test.done(test.userdata, &(const struct group_result){.trouble = GROUP_FINE});
}

static const struct group_limits some = {.memory_max = MEMORY_MAX};

/* A spare that has its group is held to the limits before its CONFIG. One that has none yet is left for others: what it
 * allocates would count elsewhere. */
static void test_limits_hold_from_the_first_moment(void)
{
        pid_t spare = wait_for_spare();

        CHECK(run(&some) != spare);
        CHECK_INT(test.bound, 0);
        CHECK_INT(test.started, 1);
        give_group();
        CHECK_INT(run(&some), spare);
        CHECK_INT(test.bound, 1);
        CHECK_INT(test.started, 0);
}

/* Then a disk is served as soon as one without limits. */
static void test_limits_that_cannot_be_in_force(void)
{
        pid_t spare = wait_for_spare();

        test.unbound = true;
        CHECK_INT(run(&some), spare);
        CHECK_INT(test.started, 1);
        spare = wait_for_spare();
        give_group();
        CHECK_INT(run(&some), spare);
        CHECK_INT(test.bound, 1);
        CHECK_INT(test.started, 1);
        test.unbound = false;
}

/* Nothing is asked of the control groups. */
static void test_without_limits(void)
{
        static const struct group_limits later = {.cpu_weight = 5, .io = {.read_ios = 7}};
        pid_t spare = wait_for_spare();

        give_group();
        CHECK_INT(run(NULL), spare);
        CHECK_INT(test.bound + test.started, 0);
        spare = wait_for_spare();
        give_group();
        CHECK_INT(run(&later), spare);
        CHECK_INT(test.bound + test.started, 0);
        CHECK(run(&later) > 0);
        CHECK_INT(test.bound + test.started, 0);
}

/* Workers of one disk that die ten times a second. */
static void test_starts_keep_no_spare_away(void)
{
        uint64_t began, now;

        CHECK_INT(run(NULL), wait_for_spare());
        sd_event_now(test.event, CLOCK_MONOTONIC, &began);
        now = began;
        while (test.spare == 0 && now < began + PATIENCE_USEC) {
                worker_start_count(test.start, 1); /* which puts spares off, as a start does */
                worker_start_count(test.start, -1);
                sd_event_run(test.event, 100 * 1000);
                sd_event_now(test.event, CLOCK_MONOTONIC, &now);
        }
        CHECK(test.spare > 0);
        CHECK(now - began >= 9 * 1000 * 1000);
}

int main(int argc, char *argv[])
{
        int object; /* its address is the groups of workers */

        if (argc == 2 && strcmp(argv[0], "ublkd-worker") == 0)
                return worker_fake(argv[1]);
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK_INT(sd_event_new(&test.event), 0)
                || !CHECK_INT(worker_start_new(test.event, "/proc/self/exe", NULL, &test.start), 0))
                return check_report();
        worker_start_use_groups(test.start, (struct worker_groups *)(void *)&object);
        worker_start_count(test.start, 1);
        test_limits_hold_from_the_first_moment();
        test_limits_that_cannot_be_in_force();
        test_without_limits();
        test_starts_keep_no_spare_away();
        worker_start_free(test.start);
        sd_event_unref(test.event);
        return check_report();
}
