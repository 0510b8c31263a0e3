/* SPDX-License-Identifier: MIT */
/* Groups of real processes, with the kernel's cgroup v2 where this machine has one that can be written. The "worker" is
 * a process that forks one of its own, which has a session of its own and ignores what it can. */
#include "ublkd/cgroups/worker_groups.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/offload/proc_spawn.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ROUNDS = 2000, ROUND_USEC = 10 * 1000 };

static char own[] = "/tmp/worker-groups-XXXXXX"; /* in place of /proc/self/cgroup */
static char above[128], tree[160], rest[176];
static struct group_sources sources = {
        .mount = "/sys/fs/cgroup",
        .own = own,
        .systemd = "/nowhere",
        .pid_namespace = own, /* as in a container: names have an inode number */
};

/* In the thread: how often a process that is alive is seen so; -1: always. */
static atomic_int seen_alive = -1;
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
        if (gettid() == getpid() || seen_alive < 0)
                return __real_poll(fds, count, timeout);
        if (seen_alive == 0)
                return 1;
        seen_alive--;
        return 0;
}

struct test {
        sd_event *event;
        struct worker_groups *groups;
        struct group_request *request;
        struct group_result result;
        bool answered;
        const char *start; /* of hold() */
};

struct process {
        pid_t pid, child;
        int pidfd, child_fd;
};

/* ---- a worker ---- */

static void be_a_worker(int out)
{
        pid_t child = fork();

        if (child == 0) {
                (void)setsid();
                for (;;)
                        pause();
        }
        (void)!write(out, &child, sizeof(child));
        for (;;)
                pause();
}

static struct process start(void)
{
        struct process process = {.pidfd = -1, .child_fd = -1};
        int pair[2];

        CHECK_INT(pipe(pair), 0);
        process.pid = fork();
        if (process.pid == 0)
                be_a_worker(pair[1]);
        CHECK_INT(read(pair[0], &process.child, sizeof(process.child)), sizeof(process.child));
        process.pidfd = pidfd_open(process.pid, 0);
        process.child_fd = pidfd_open(process.child, 0);
        CHECK(process.pidfd >= 0 && process.child_fd >= 0);
        close(pair[0]);
        close(pair[1]);
        return process;
}

static bool is_dead(int pidfd)
{
        return poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 1;
}

static void kill_worker(struct process *process)
{
        CHECK_INT(kill(process->pid, SIGKILL), 0);
        CHECK_INT(waitpid(process->pid, NULL, 0), process->pid);
        CHECK(is_dead(process->pidfd));
}

/* ---- waiting ---- */

/* file: NULL: the group itself. */
static const char *group_path(pid_t pid, const char *file)
{
        static char path[256];
        struct stat st;

        CHECK_INT(stat(own, &st), 0);
        snprintf(path, sizeof(path), "%s/worker-%d-%ju/%s", tree, (int)pid, (uintmax_t)st.st_ino, file);
        return path;
}

static bool has_group(pid_t pid)
{
        return access(group_path(pid, ""), F_OK) == 0;
}

static void run_once(struct test *test)
{
        CHECK(sd_event_run(test->event, ROUND_USEC) >= 0);
}

static void wait_for_end(struct test *test, const struct process *process)
{
        for (int i = 0; i < ROUNDS && !is_dead(process->child_fd); i++)
                run_once(test);
        worker_groups_end(test->groups, process->pid); /* its group can be removed now */
        for (int i = 0; i < ROUNDS && has_group(process->pid); i++)
                run_once(test);
        CHECK(is_dead(process->child_fd));
        CHECK(!has_group(process->pid));
        close(process->pidfd);
        close(process->child_fd);
}

static void on_answer(void *userdata, const struct group_result *result)
{
        struct test *test = userdata;

        test->request = group_request_free(test->request);
        test->result = *result;
        test->answered = true;
}

static void hold(struct test *test, const struct process *process, const struct group_limits *limits)
{
        test->answered = false;
        CHECK_INT(worker_groups_hold(test->groups, process->pid, process->pidfd, test->start, limits,
                          on_answer, test, &test->request),
                0);
        CHECK(!test->answered);
        for (int i = 0; i < ROUNDS && !test->answered; i++)
                run_once(test);
        CHECK(test->answered && !test->request);
}

static void begin(struct test *test)
{
        CHECK(sd_event_new(&test->event) >= 0);
        CHECK_INT(worker_groups_new(test->event, &sources, &test->groups), 0);
}

static void end(struct test *test)
{
        CHECK(!worker_groups_free(test->groups));
        sd_event_unref(test->event);
        *test = (struct test){};
}

/* ---- tests ---- */

/* Put the child where it would be if it had been forked later. */
static void join_group(const struct process *process)
{
        _cleanup_fclose_ FILE *file = NULL;

        file = fopen(group_path(process->pid, "cgroup.procs"), "we");
        CHECK(file && fprintf(file, "%d", (int)process->child) > 0);
}

static void test_a_forked_process_ends_with_its_worker(struct test *test)
{
        struct process process = start();

        begin(test);
        hold(test, &process, &(const struct group_limits){});
        join_group(&process);
        hold(test, &process, &(const struct group_limits){});
        CHECK_INT(test->result.trouble, GROUP_FINE);
        CHECK(!is_dead(process.child_fd) && !is_dead(process.pidfd));
        kill_worker(&process);
        CHECK(!is_dead(process.child_fd));
        worker_groups_end(test->groups, process.pid);
        wait_for_end(test, &process);
        end(test);
}

/* The supervisor and the worker die at the same time; the next supervisor begins with a sweep. */
static void test_the_next_supervisor_ends_remains(struct test *test)
{
        struct process process = start(), other = start();

        begin(test);
        hold(test, &process, &(const struct group_limits){});
        hold(test, &other, &(const struct group_limits){});
        join_group(&process);
        end(test);
        kill_worker(&process);
        begin(test);
        wait_for_end(test, &process);
        CHECK(!is_dead(other.pidfd) && has_group(other.pid));
        CHECK_INT(kill(other.child, SIGKILL), 0);
        kill_worker(&other);
        worker_groups_end(test->groups, other.pid);
        wait_for_end(test, &other);
        end(test);
}

/* Only its group says whether the OOM killer was there. */
static void test_a_sweep_leaves_the_group_of_a_worker_that_is_not_reaped(struct test *test)
{
        struct process process = start(), other = start();

        begin(test);
        hold(test, &process, &(const struct group_limits){});
        hold(test, &other, &(const struct group_limits){});
        end(test);
        CHECK_INT(kill(process.child, SIGKILL), 0);
        CHECK_INT(kill(process.pid, SIGKILL), 0);
        CHECK_INT(kill(other.child, SIGKILL), 0);
        kill_worker(&other);
        CHECK_INT(poll(&(struct pollfd){.fd = process.pidfd, .events = POLLIN}, 1, -1), 1);
        begin(test);
        for (int i = 0; i < ROUNDS && has_group(other.pid); i++)
                run_once(test);
        CHECK(!has_group(other.pid) && has_group(process.pid));
        CHECK_INT(waitpid(process.pid, NULL, 0), process.pid);
        worker_groups_end(test->groups, process.pid);
        wait_for_end(test, &process);
        wait_for_end(test, &other);
        end(test);
}

static void test_a_dead_process_gets_no_group(struct test *test)
{
        struct process process = start();

        begin(test);
        CHECK_INT(kill(process.child, SIGKILL), 0);
        kill_worker(&process);
        hold(test, &process, &(const struct group_limits){});
        CHECK_INT(test->result.trouble, GROUP_FAILED);
        CHECK_INT(test->result.error, -ESRCH);
        CHECK(!has_group(process.pid));
        CHECK_INT(worker_groups_open_events(test->groups, process.pid), -ENOENT);
        wait_for_end(test, &process);
        end(test);
}

/* A device may be removed before the answer. */
static void test_a_request_can_be_freed_early(struct test *test)
{
        struct process process = start();

        begin(test);
        CHECK_INT(worker_groups_hold(test->groups, process.pid, process.pidfd, NULL,
                          &(const struct group_limits){}, on_answer, test, &test->request),
                0);
        test->request = group_request_free(test->request);
        for (int i = 0; i < ROUNDS && !has_group(process.pid); i++)
                run_once(test);
        CHECK(has_group(process.pid));
        CHECK(!test->answered);
        CHECK_INT(kill(process.child, SIGKILL), 0);
        kill_worker(&process);
        worker_groups_end(test->groups, process.pid);
        wait_for_end(test, &process);
        end(test);
}

/* While workers start or die, no process is moved: that would hold up their recovery. */
static void test_moves_wait_for_a_calm_moment(struct test *test)
{
        struct process process = start();
        uint64_t began, moved;

        begin(test);
        worker_groups_postpone(test->groups);
        CHECK(sd_event_now(test->event, CLOCK_MONOTONIC, &began) >= 0);
        hold(test, &process, &(const struct group_limits){});
        CHECK(sd_event_now(test->event, CLOCK_MONOTONIC, &moved) >= 0);
        CHECK(moved >= began + 900 * 1000);
        CHECK_INT(test->result.trouble, GROUP_FINE);
        CHECK_INT(kill(process.child, SIGKILL), 0);
        kill_worker(&process);
        worker_groups_end(test->groups, process.pid);
        wait_for_end(test, &process);
        end(test);
}

static void end_worker(struct test *test, struct process *process)
{
        CHECK_INT(kill(process->child, SIGKILL), 0);
        kill_worker(process);
        worker_groups_end(test->groups, process->pid);
        wait_for_end(test, process);
}

/* The worker has died, and another process got its pid, before the kernel was asked to move it. */
static void test_another_process_with_the_pid_is_not_held(struct test *test)
{
        struct process process = start();

        begin(test);
        seen_alive = 1;
        hold(test, &process, &(const struct group_limits){});
        CHECK_INT(test->result.error, -ESRCH);
        CHECK(!has_group(process.pid));
        CHECK(!worker_groups_has(test->groups, process.pid));
        worker_groups_end(test->groups, process.pid);
        hold(test, &process, &(const struct group_limits){}); /* after that */
        CHECK(!is_dead(process.pidfd) && !is_dead(process.child_fd));
        seen_alive = -1;
        end_worker(test, &process);
        for (int i = 0; i < ROUNDS && rmdir(rest) < 0; i++)
                run_once(test);
        end(test);
}

/* cgroup v2 is mounted while ublkd runs. */
static void test_what_was_missing_is_found_later(struct test *test)
{
        struct process process = start();
        char moved[sizeof(own) + 8];

        snprintf(moved, sizeof(moved), "%s.moved", own);
        CHECK_INT(rename(own, moved), 0);
        begin(test);
        hold(test, &process, &(const struct group_limits){});
        CHECK_INT(test->result.trouble, GROUP_NO_HIERARCHY);
        CHECK(!worker_groups_has(test->groups, process.pid));
        CHECK_INT(rename(moved, own), 0);
        hold(test, &process, &(const struct group_limits){});
        CHECK_INT(test->result.trouble, GROUP_FINE);
        CHECK(worker_groups_has(test->groups, process.pid));
        end_worker(test, &process);
        end(test);
}

/* So it is in the group of ublkd at no time, and has its own later. */
static void test_a_process_is_born_beside_the_groups(struct test *test)
{
        struct process process = start();
        char path[64], text[512], *line;
        pid_t pid = 0;
        int pidfd = -1, group;

        begin(test);
        CHECK_INT(worker_groups_open_rest(test->groups), -ENOENT);
        hold(test, &process, &(const struct group_limits){}); /* makes the directory of all groups */
        group = worker_groups_open_rest(test->groups);
        CHECK(group > 0);
        CHECK_INT(proc_spawn(
                          &(struct proc_spawn){
                                  .program = "/bin/sleep",
                                  .argv = (const char *[]){"sleep", "infinity", NULL},
                                  .group = group
        },
                          &pid, &pidfd),
                0);
        close(group);
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
        CHECK(read_text_at(AT_FDCWD, path, text, sizeof(text)) > 0);
        line = strstr(text, "0::");
        CHECK(line
                && strncmp(strchrnul(line, '\n') - strlen("/ublkd-workers/rest"), "/ublkd-workers/rest",
                           strlen("/ublkd-workers/rest"))
                           == 0);
        hold(test, &(struct process){.pid = pid, .pidfd = pidfd}, &(const struct group_limits){});
        CHECK_INT(test->result.trouble, GROUP_FINE);
        CHECK(worker_groups_has(test->groups, pid));
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        close(pidfd);
        worker_groups_end(test->groups, pid);
        end_worker(test, &process);
        for (int i = 0; i < ROUNDS && (has_group(pid) || rmdir(rest) < 0); i++)
                run_once(test);
        CHECK(!has_group(pid));
        end(test);
}

static int count_descriptors(void)
{
        _cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
        int count = 0;

        while (CHECK(dir) && readdir(dir))
                count++;
        return count;
}

/* Each has a descriptor of its process. */
static void test_moves_that_wait_are_bounded(struct test *test)
{
        struct process process = start();
        struct group_request *requests[64] = {};
        int before;

        begin(test);
        hold(test, &process, &(const struct group_limits){});
        worker_groups_postpone(test->groups);
        before = count_descriptors();
        for (int i = 0; i < 100; i++) {
                CHECK_INT(worker_groups_hold(test->groups, process.pid, process.pidfd, NULL,
                                  &(const struct group_limits){}, on_answer, test, &test->request),
                        0);
                test->request = group_request_free(test->request);
        }
        CHECK_INT(count_descriptors(), before);
        for (int i = 0; i < 100; i++) {
                int r = worker_groups_prepare(test->groups, process.pid, process.pidfd, on_answer, test,
                        i < 64 ? &requests[i] : &test->request);

                CHECK_INT(r, i < 64 ? 0 : -EAGAIN);
        }
        CHECK_INT(count_descriptors(), before + 64);
        for (int i = 0; i < 64; i++)
                group_request_free(requests[i]);
        CHECK_INT(count_descriptors(), before);
        end_worker(test, &process);
        end(test);
}

static bool has_start(const char *uid)
{
        char path[256];
        struct stat st;

        CHECK_INT(stat(own, &st), 0);
        snprintf(path, sizeof(path), "%s/start-%s.%ju", tree, uid, (uintmax_t)st.st_ino);
        return access(path, F_OK) == 0;
}

/* It stays as long as the device needs it; the next supervisor does not know whether any device does. */
static void test_a_start_group_stays_until_it_is_dropped(struct test *test)
{
        const struct group_limits limits = {.memory_max = 64 << 20};
        struct process process = start();

        begin(test);
        CHECK(worker_groups_open_own(test->groups, process.pid) < 0);
        hold(test, &process, &limits);
        CHECK(!has_start("one"));
        test->start = "one";
        hold(test, &process, &limits);
        test->start = "two";
        hold(test, &process, &limits);
        CHECK(has_start("one") && has_start("two"));
        close_fd(worker_groups_open_own(test->groups, process.pid));
        worker_groups_drop_start(test->groups, "one");
        for (int i = 0; i < ROUNDS && has_start("one"); i++)
                run_once(test);
        CHECK(!has_start("one") && has_start("two"));
        end(test);
        CHECK(has_start("two"));
        begin(test);
        for (int i = 0; i < ROUNDS && has_start("two"); i++)
                run_once(test);
        CHECK(!has_start("two"));
        end_worker(test, &process);
        end(test);
}

/* The first worker of a device is started before any group is there. Where the kernel has the controller elsewhere, as under
 * the first version of the hierarchy, no limit is in force, and the caller gets no group. */
static void test_a_start_group_is_made_where_it_is_missing(struct test *test)
{
        const struct group_limits limits = {.memory_max = 64 << 20};
        struct process process = start();
        char text[256], path[256];
        bool has_memory;
        int group;

        snprintf(path, sizeof(path), "%s/cgroup.controllers", above);
        has_memory = CHECK(read_text_at(AT_FDCWD, path, text, sizeof(text)) >= 0) && strstr(text, "memory");
        begin(test);
        group = worker_groups_open_start(test->groups, "one", &limits);
        CHECK(has_start("one"));
        CHECK(has_memory ? group >= 0 : group == -ENOENT);
        close_fd(group);
        worker_groups_drop_start(test->groups, "one");
        for (int i = 0; i < ROUNDS && has_start("one"); i++)
                run_once(test);
        CHECK(!has_start("one"));
        hold(test, &process, &(const struct group_limits){});
        end_worker(test, &process);
        end(test);
}

/* Without any of it, a caller gets an answer that says why. */
static void test_troubles(struct test *test)
{
        static const struct {
                struct group_sources sources;
                enum group_trouble trouble;
        } cases[] = {
                {{.mount = "/nowhere", .own = own, .systemd = "/nowhere", .pid_namespace = own},
                 GROUP_NO_HIERARCHY                                                                                },
                {{.mount = above, .own = own, .systemd = "/proc", .pid_namespace = own},              GROUP_NO_UNIT},
                {{.mount = "/sys/fs/cgroup", .own = "/nowhere", .systemd = "", .pid_namespace = own},
                 GROUP_NO_HIERARCHY                                                                                },
        };
        const struct group_sources before = sources;
        struct process process = start();

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                sources = cases[i].sources;
                begin(test);
                hold(test, &process, &(const struct group_limits){.cpu_weight = 5});
                CHECK_INT(test->result.trouble, cases[i].trouble);
                CHECK(test->result.error < 0);
                CHECK(worker_groups_open_events(test->groups, process.pid) < 0);
                end(test);
        }
        sources = before;
        CHECK_INT(kill(process.child, SIGKILL), 0);
        kill_worker(&process);
        close(process.pidfd);
        close(process.child_fd);
}

/* ---- the hierarchy of this machine ---- */

static bool make_above(void)
{
        static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                char controllers[64];

                snprintf(controllers, sizeof(controllers), "%s/cgroup.controllers", roots[i]);
                snprintf(above, sizeof(above), "%s/ublkd-test-%d", roots[i], getpid());
                if (access(controllers, F_OK) == 0)
                        return mkdir(above, 0755) == 0;
        }
        return false;
}

static bool prepare(void)
{
        _cleanup_fclose_ FILE *file = NULL;
        int fd = mkstemp(own);

        if (!CHECK(fd >= 0) || !make_above())
                return false;
        snprintf(tree, sizeof(tree), "%s/ublkd-workers", above);
        snprintf(rest, sizeof(rest), "%s/rest", tree);
        file = fdopen(fd, "we");
        return CHECK(file && fprintf(file, "0::/ublkd-test-%d/ublkd\n", getpid()) > 0);
}

int main(void)
{
        struct test test = {};

        if (!prepare()) {
                fprintf(stderr, "cgroup v2 is not mounted here, or not writable\n");
                (void)unlink(own);
                return check_failures > 0 ? check_report() : CHECK_SKIP;
        }
        test_a_process_is_born_beside_the_groups(&test);
        test_a_forked_process_ends_with_its_worker(&test);
        test_the_next_supervisor_ends_remains(&test);
        test_a_sweep_leaves_the_group_of_a_worker_that_is_not_reaped(&test);
        test_a_dead_process_gets_no_group(&test);
        test_a_request_can_be_freed_early(&test);
        test_moves_wait_for_a_calm_moment(&test);
        test_another_process_with_the_pid_is_not_held(&test);
        test_what_was_missing_is_found_later(&test);
        test_moves_that_wait_are_bounded(&test);
        test_a_start_group_stays_until_it_is_dropped(&test);
        test_a_start_group_is_made_where_it_is_missing(&test);
        test_troubles(&test);
        CHECK_INT(rmdir(tree), 0);
        CHECK_INT(rmdir(above), 0);
        CHECK_INT(unlink(own), 0);
        return check_report();
}
