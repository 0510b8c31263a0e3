/* SPDX-License-Identifier: MIT */
/* The spare worker, with real processes. This program is the worker, too: see worker_fake.h. */
#include "ublkd/workers/worker_start.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/workers/worker_fake.h"
#include "ublkd/cgroups/worker_groups.h"
#include "ublkd/plan/backoff.h"
#include "ublkd/workers/worker_log.h"
#include "ublkd/workers/worker_network.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_USEC = 60 * 1000 * 1000, PATIENCE_MSEC = PATIENCE_USEC / 1000, CALM_USEC = 1000 * 1000 };

struct test {
        sd_event *event;
        char directory[64], program[96]; /* a copy of this program, to be replaced */
        struct worker_start *start;
};

/* ---- control groups ---- */

static struct {
        int object; /* its address is the groups of workers */
        pid_t prepared, ended;
        pid_t spare; /* the process that was prepared last; 0: it was taken for a device */
        unsigned postponed, opened;
} groups;

static struct {
        sd_event *event;
        struct {
                pid_t pid;
                uint64_t at; /* µs, of the event that it was started in */
        } born[64];
        unsigned births;
        unsigned failures,
                failures_max; /* in a row: the last ones, and the most since a test set this to 0 */
        unsigned configs;     /* that were sent, or should be */
} spares;

/* Not one that a process can be born in: it has ours then. */
int __wrap_worker_groups_open_rest(const struct worker_groups *all);
int __wrap_worker_groups_open_rest(const struct worker_groups *all)
{
        CHECK((const void *)all == &groups);
        groups.opened++;
        return groups.opened % 2 ? -ENOENT : open("/", O_PATH | O_CLOEXEC);
}

/* It gets no answer: worker_bounds_test.c has what follows from one. */
int __wrap_worker_groups_prepare(struct worker_groups *all, pid_t pid, int pidfd,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret);
int __wrap_worker_groups_prepare(struct worker_groups *all, pid_t pid, int pidfd,
        void (*done)(void *userdata, const struct group_result *result) _unused_, void *userdata _unused_,
        struct group_request **ret _unused_)
{
        CHECK((void *)all == &groups && pidfd >= 0);
        groups.prepared = groups.spare = pid;
        if (!CHECK(spares.births < ARRAY_SIZE(spares.born)))
                return -EAGAIN;
        spares.born[spares.births].pid = pid;
        sd_event_now(spares.event, CLOCK_MONOTONIC, &spares.born[spares.births].at);
        spares.births++;
        return -EAGAIN;
}

/* The test does not wait for it. */
uint64_t __wrap_backoff_delay(unsigned failures);
uint64_t __wrap_backoff_delay(unsigned failures)
{
        spares.failures = failures;
        if (failures > spares.failures_max)
                spares.failures_max = failures;
        return 0;
}

int __real_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds);
int __wrap_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds);
int __wrap_worker_msg_send_fds(int channel, const struct worker_msg *msg, const int *fds)
{
        spares.configs++;
        return __real_worker_msg_send_fds(channel, msg, fds);
}

void __wrap_worker_groups_end(struct worker_groups *all, pid_t pid);
void __wrap_worker_groups_end(struct worker_groups *all, pid_t pid)
{
        CHECK((void *)all == &groups);
        groups.ended = pid;
}

void __wrap_worker_groups_postpone(struct worker_groups *all);
void __wrap_worker_groups_postpone(struct worker_groups *all)
{
        CHECK((void *)all == &groups);
        groups.postponed++;
}

/* ---- the starter ---- */

/* Return the pid of the process that waits for a device; 0: none does. */
static pid_t spare_now(void)
{
        siginfo_t info = {};

        if (groups.spare > 0
                && (waitid(P_PID, (id_t)groups.spare, &info, WEXITED | WNOWAIT | WNOHANG) < 0
                        || info.si_pid != 0))
                groups.spare = 0;
        return groups.spare;
}

static bool has_spare(const struct test *test _unused_)
{
        return spare_now() > 0;
}

static bool has_none(const struct test *test)
{
        return !has_spare(test);
}

static bool has_ended_a_group(const struct test *test _unused_)
{
        return groups.ended > 0;
}

static bool run_until(struct test *test, bool (*done)(const struct test *test))
{
        uint64_t start, now;

        sd_event_now(test->event, CLOCK_MONOTONIC, &start);
        now = start;
        while (!done(test) && now < start + PATIENCE_USEC) {
                sd_event_run(test->event, 100 * 1000);
                sd_event_now(test->event, CLOCK_MONOTONIC, &now);
        }
        return done(test);
}

/* A program of this path that is another file than before. */
static void install_copy(const struct test *test, const char *of)
{
        char command[512];

        snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", of, test->program, test->program,
                test->program);
        CHECK_INT(system(command), 0);
}

static void install(const struct test *test)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
        install_copy(test, path);
}

static int run_with(struct test *test, const char *name, const char *spec, struct worker_process *ret)
{
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        const struct worker_msg config = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t)name,
                           .uid = (char *)(uintptr_t)worker_fake_uid,
                           .epoch = WORKER_FAKE_EPOCH,
                           .spec = (char *)(uintptr_t)spec,
                           .queues = 1,
                           .queue_depth = 8},
        };
        int r;

        r = worker_start_run(test->start, &config,
                (const int[]){[CONFIG_FD_LISTENER] = null,
                        [CONFIG_FD_REGION] = null,
                        [CONFIG_FD_STORE... _CONFIG_FD_MAX - 1] = -1},
                NULL, ret);
        if (r >= 0 && ret->pid == groups.spare)
                groups.spare = 0;
        return r;
}

/* Starts one that fails as soon as it has its CONFIG, and expects what it says. */
static pid_t run(struct test *test)
{
        _cleanup_worker_msg_ struct worker_msg hello = {.type = WORKER_MSG_LIVE};
        struct worker_process process = {.pidfd = -1, .channel = -1};
        siginfo_t info = {};

        if (!CHECK_INT(run_with(test, "failing", "{}", &process), 0))
                return -1;
        CHECK_INT(poll(&(struct pollfd){.fd = process.channel, .events = POLLIN}, 1, PATIENCE_MSEC), 1);
        if (CHECK_INT(worker_msg_receive(process.channel, &hello), 1)
                && CHECK_INT(hello.type, WORKER_MSG_HELLO))
                CHECK_INT(hello.hello.pid, process.pid);
        CHECK_INT(waitid(P_PIDFD, (id_t)process.pidfd, &info, WEXITED), 0);
        CHECK_INT(info.si_status, 1);
        worker_log_free(process.log);
        close(process.channel);
        close(process.pidfd);
        return process.pid;
}

/* The process is not reaped yet, and only its supervisor may reap it. */
static bool leaves(pid_t pid)
{
        struct pollfd process = {.fd = pidfd_open(pid, 0), .events = POLLIN};
        bool left = process.fd < 0 || poll(&process, 1, PATIENCE_MSEC) == 1;

        close_fd(process.fd);
        return left;
}

static void test_only_while_there_are_workers(struct test *test)
{
        pid_t spare;

        CHECK(run(test) > 0);
        worker_start_count(test->start, 1);
        CHECK(has_none(test));          /* not at once */
        CHECK_INT(groups.postponed, 1); /* no process is moved while one starts */
        CHECK(run_until(test, has_spare));
        spare = spare_now();
        CHECK_INT(groups.prepared, spare);
        worker_start_count(test->start, -1);
        CHECK_INT(spare_now(), spare);
        CHECK(run_until(test, has_none));
        CHECK(leaves(spare));
        while (waitpid(spare, NULL, WNOHANG | WNOWAIT) >= 0) /* until it is reaped */
                sd_event_run(test->event, 100 * 1000);
        CHECK(has_none(test));
        CHECK(run_until(test, has_ended_a_group));
        CHECK_INT(groups.ended, spare);
        worker_start_count(test->start, 1);
}

static void test_the_first_gets_it(struct test *test)
{
        pid_t spare;

        CHECK(run_until(test, has_spare));
        spare = spare_now();
        groups.prepared = groups.ended = 0;
        CHECK_INT(run(test), spare);
        CHECK(has_none(test));
        CHECK(run(test) != spare);
        CHECK_INT(groups.prepared, 0); /* only ahead of need */
        CHECK_INT(groups.ended, 0);
        CHECK(run_until(test, has_spare));
        CHECK(spare_now() != spare);
}

/* A CONFIG that cannot be sent does not lose the process. */
static void test_configuration_that_is_too_long(struct test *test)
{
        _cleanup_free_ char *spec = malloc(WORKER_MSG_SIZE_MAX + 1);
        struct worker_process process;
        pid_t spare = spare_now();

        memset(spec, 'x', WORKER_MSG_SIZE_MAX);
        spec[WORKER_MSG_SIZE_MAX] = '\0';
        CHECK_INT(run_with(test, "failing", spec, &process), -EMSGSIZE);
        CHECK_INT(spare_now(), spare);
}

/* Dead, but not reaped yet. */
static void test_dead(struct test *test)
{
        pid_t spare = spare_now();

        CHECK_INT(kill(spare, SIGKILL), 0);
        CHECK(leaves(spare));
        spares.configs = 0;
        CHECK(run(test) != spare);
        CHECK_INT(spares.configs, 1); /* none is written for the dead one */
        CHECK(run_until(test, has_none));
        CHECK(run_until(test, has_spare));
        CHECK(spare_now() != spare);
}

/* What an upgrade has replaced is not to be run any more. It leaves when all is calm. */
static void test_replaced(struct test *test)
{
        pid_t spare = spare_now();

        install(test);
        CHECK(run(test) != spare);
        CHECK_INT(spare_now(), spare);
        CHECK(run_until(test, has_none));
        CHECK(leaves(spare));
        CHECK(run_until(test, has_spare));
        spare = spare_now();
        CHECK_INT(run(test), spare);
}

static void test_program_that_is_missing(struct test *test)
{
        struct worker_process process;
        pid_t spare;

        CHECK(run_until(test, has_spare));
        spare = spare_now();
        CHECK_INT(unlink(test->program), 0);
        CHECK_INT(run_with(test, "failing", "{}", &process), -ENOENT);
        CHECK_INT(spare_now(), spare);
        CHECK(run_until(test, has_none));
        CHECK(leaves(spare));
        install(test);
        CHECK(run_until(test, has_spare));
}

/* Return how many children of this program wait for a device. */
static unsigned spares_now(void)
{
        char path[64], name[WORKER_NAME_MAX + 64];
        unsigned count = 0;
        _cleanup_fclose_ FILE *children = NULL;
        pid_t pid;

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
        children = fopen(path, "re");
        while (CHECK(children) && fscanf(children, "%d", &pid) == 1) {
                _cleanup_close_ int fd = -1;
                ssize_t size;

                snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                size = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);
                name[size < 0 ? 0 : size] = '\0';
                if (size > 0 && strstr(name + strlen(name) + 1, WORKER_SPARE_NAME))
                        count++;
        }
        return count;
}

static bool has_three(const struct test *test _unused_)
{
        return spares_now() == 3;
}

static bool has_one(const struct test *test _unused_)
{
        return spares_now() == 1;
}

static bool has_no_spares(const struct test *test _unused_)
{
        return spares_now() == 0;
}

/* Return the spare that was started last (0), or the one before it (1), … */
static pid_t born(unsigned before)
{
        return spares.births > before ? spares.born[spares.births - 1 - before].pid : -1;
}

/* Each of the first three gets one, the one that has waited longest first; then there are as many as before. */
static void test_several(struct test *test)
{
        pid_t first = spare_now(), dead;

        worker_start_keep_spares(test->start, 3); /* nothing else happens that could start them */
        CHECK(run_until(test, has_three));
        CHECK_INT(born(2), first);
        dead = born(0);
        CHECK_INT(run(test), first);
        CHECK_INT(run(test), born(1));
        CHECK_INT(spares_now(), 1);
        CHECK_INT(kill(dead, SIGKILL), 0);
        CHECK(leaves(dead));
        CHECK(run(test) != dead); /* a new one */
        CHECK(run_until(test, has_three));
}

/* No recovery waits for their end. */
static void test_several_that_are_replaced(struct test *test)
{
        const pid_t old[] = {born(2), born(1), born(0)};
        pid_t pid;

        install(test);
        pid = run(test);
        CHECK(pid > 0 && pid != old[0] && pid != old[1] && pid != old[2]);
        CHECK_INT(spares_now(), 3);
        CHECK(run_until(test, has_no_spares));
        for (size_t i = 0; i < ARRAY_SIZE(old); i++)
                CHECK(leaves(old[i]));
        CHECK(run_until(test, has_three));
        CHECK_INT(run(test), born(2));
        CHECK(run_until(test, has_three));
        CHECK_INT(spares.failures, 0); /* they were dismissed */
}

/* Each time one failure, and none is left when there are as many as before. */
static void test_several_that_die_at_once(struct test *test)
{
        spares.failures_max = 0;
        for (unsigned round = 0; round < 3; round++) {
                const pid_t old[] = {born(2), born(1), born(0)};

                for (size_t i = 0; i < ARRAY_SIZE(old); i++)
                        CHECK_INT(kill(old[i], SIGKILL), 0);
                for (size_t i = 0; i < ARRAY_SIZE(old); i++)
                        CHECK(leaves(old[i]));
                if (round == 2)
                        CHECK(run(test) > 0); /* before they are reaped */
                CHECK(run_until(test, has_three));
                CHECK_INT(spares.failures_max, 1);
        }
        CHECK_INT(run(test), born(2));
        CHECK_INT(spares.failures, 0);
        CHECK(run_until(test, has_three));
}

static bool has_failed_three_times(const struct test *test _unused_)
{
        return spares.failures == 3;
}

/* After the first failure one is tried after the other, until one lasts; then the others are started. */
static void test_program_that_ends_at_once(struct test *test)
{
        unsigned births = spares.births;

        install_copy(test, "/bin/false");
        worker_start_keep_spares(test->start, 3); /* looks after them */
        CHECK(run_until(test, has_no_spares));    /* what it has replaced is dismissed */
        CHECK(run_until(test, has_failed_three_times));
        if (CHECK(spares.births >= births + 3)) /* more until the first of them has ended */
                for (unsigned i = spares.births - 2; i < spares.births; i++)
                        CHECK(spares.born[i].at - spares.born[i - 1].at >= CALM_USEC);
        install(test);
        births = spares.births;
        CHECK(run_until(test, has_three));
        if (CHECK_INT(spares.births, births + 3))
                CHECK(spares.born[births + 1].at - spares.born[births].at >= CALM_USEC);
        CHECK_INT(run(test), born(2));
        CHECK_INT(spares.failures, 0);
        CHECK(run_until(test, has_three));
}

static bool is_closed(int reader)
{
        return poll(&(struct pollfd){.fd = reader, .events = POLLIN}, 1, 0) == 1;
}

static int watched; /* the reader of a network's pipe */

static bool is_calm(const struct test *test _unused_)
{
        return is_closed(watched);
}

/* 0: those that are there are taken, and no other one is started. */
static void test_none(struct test *test)
{
        unsigned births = spares.births;
        int network[2];

        worker_start_keep_spares(test->start, 0);
        CHECK_INT(spares_now(), 3);
        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(run(test), spares.born[births - 3 + i].pid);
        if (!CHECK_INT(pipe2(network, O_CLOEXEC), 0))
                return;
        watched = network[0];
        worker_start_keep_network(test->start, network[1]);
        CHECK(run_until(test, is_calm));
        CHECK_INT(spares.births, births);
        CHECK_INT(spares_now(), 0);
        close(network[0]);
        worker_start_keep_spares(test->start, 1);
        CHECK(run_until(test, has_one));
}

/* Several devices may be recovered at once: their namespaces go when the last one has started. */
static void test_networks_of_dead_workers_are_kept_until_all_is_calm(struct test *test)
{
        int kept[2], late[2];
        pid_t spare = spare_now();

        if (!CHECK_INT(pipe2(kept, O_CLOEXEC), 0) || !CHECK_INT(pipe2(late, O_CLOEXEC), 0))
                return;
        worker_start_keep_network(test->start, kept[1]);
        for (unsigned i = 1; i < WORKER_NETWORKS_MAX; i++)
                worker_start_keep_network(test->start, fcntl(kept[1], F_DUPFD_CLOEXEC, 0));
        worker_start_keep_network(test->start, late[1]);
        CHECK(is_closed(late[0])); /* there is no room for it */
        CHECK_INT(run(test), spare);
        CHECK(!is_closed(kept[0]));
        CHECK(run_until(test, has_spare)); /* the same timer */
        CHECK(is_closed(kept[0]));
        worker_start_keep_network(test->start, -1);
        close(kept[0]);
        close(late[0]);
}

/* It does not outlive its supervisor. */
static void test_end(struct test *test)
{
        pid_t spare = spare_now();

        test->start = worker_start_free(test->start);
        CHECK(leaves(spare));
        CHECK_INT(waitpid(spare, NULL, 0), spare);
}

static void run_tests(struct test *test)
{
        test_only_while_there_are_workers(test);
        test_the_first_gets_it(test);
        test_configuration_that_is_too_long(test);
        test_dead(test);
        test_replaced(test);
        test_program_that_is_missing(test);
        test_several(test);
        test_several_that_are_replaced(test);
        test_several_that_die_at_once(test);
        test_program_that_ends_at_once(test);
        test_none(test);
        test_networks_of_dead_workers_are_kept_until_all_is_calm(test);
        test_end(test);
}

static void test_users(sd_event *event)
{
        const struct worker_confinement confinement = {.first_user = 70000, .users = 2};
        struct worker_start *start = NULL;
        uint32_t user = 7;

        if (!CHECK_INT(worker_start_new(event, "/nonexistent", NULL, &start), 0))
                return;
        CHECK_INT(worker_start_user(start, 5, &user), 0);
        CHECK_INT(user, 0);
        start = worker_start_free(start);
        if (!CHECK_INT(worker_start_new(event, "/nonexistent", &confinement, &start), 0))
                return;
        CHECK_INT(worker_start_user(start, 0, &user), 0);
        CHECK_INT(user, 70000);
        CHECK_INT(worker_start_user(start, 1, &user), 0);
        CHECK_INT(user, 70001);
        CHECK_INT(worker_start_user(start, 2, &user), -ERANGE);
        CHECK_INT(user, 70001);
        worker_start_free(start);
}

int main(int argc, char *argv[])
{
        struct test test = {.directory = "/tmp/worker_start_test.XXXXXX"};
        char command[96];

        if (argc == 2 && strcmp(argv[0], "ublkd-worker") == 0)
                return worker_fake(argv[1]);
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK(mkdtemp(test.directory)))
                return check_report();
        snprintf(test.program, sizeof(test.program), "%s/worker", test.directory);
        install(&test);
        if (CHECK_INT(sd_event_new(&test.event), 0)
                && CHECK_INT(worker_start_new(test.event, test.program, NULL, &test.start), 0)) {
                spares.event = test.event;
                worker_start_use_groups(test.start, (struct worker_groups *)&groups);
                run_tests(&test);
        }
        if (test.event)
                test_users(test.event);
        sd_event_unref(test.event);
        snprintf(command, sizeof(command), "rm -r %s", test.directory);
        CHECK_INT(system(command), 0);
        return check_report();
}
