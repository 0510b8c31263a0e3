/* SPDX-License-Identifier: MIT */
/* Worker processes: real children that speak the protocol, or do not. This program is the worker, too:
 * started as "ublkd-worker NAME" it behaves as NAME says. */
#include "ublkd/workers/worker_proc.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/workers/worker_fake.h"
#include "tests/unit/ublkd/workers/worker_watch.h"
#include "ublkd/base/clock.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static void test_life(struct watch *watch)
{
        uint64_t now = (uint64_t)time(NULL) * 1000000;

        watch_spawn(watch, "good");
        CHECK(worker_proc_started_at(watch->worker) / 1000000 - now / 1000000 < 2);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_epoch(watch->worker), WORKER_FAKE_EPOCH);
        CHECK_INT(worker_proc_params(watch->worker)->size, 1 << 20);
        CHECK_INT(watch->changes, 1); /* PARAMS; its HELLO says nothing that was not known */
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_FETCHING);
        CHECK_INT(worker_proc_number(watch->worker), WORKER_FAKE_NUMBER);
        CHECK_INT(watch->changes, 1);
        CHECK(watch_run_until(watch, watch_is_ready));
        CHECK_INT(watch->changes, 2);
        CHECK_INT(worker_proc_live(watch->worker), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_SERVING);
        worker_proc_kill(watch->worker);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_LEAVING);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "was killed by SIGKILL");
        CHECK(worker_proc_death(watch->worker)->by_signal);
        CHECK_INT(worker_proc_death(watch->worker)->code, SIGKILL);
        CHECK_INT(watch->changes, 3);
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), -EPIPE);
        watch_let_go(watch);
}

static void test_adoption(struct watch *watch)
{
        pid_t pid;

        watch_spawn(watch, "good");
        pid = worker_proc_pid(watch->worker);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK(watch_run_until(watch, watch_is_ready));
        CHECK_INT(worker_proc_live(watch->worker), 0);
        for (unsigned round = 0; round < 3; round++) {
                int r;

                watch_let_go(watch);
                r = watch_adopt(watch);
                if (!CHECK_INT(r, 0))
                        return;
                CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_OPENING);
                CHECK(worker_proc_adopted(watch->worker));
                CHECK_INT(worker_proc_pid(watch->worker), pid);
                CHECK_INT(worker_proc_started_at(watch->worker), 0); /* its HELLO has the time */
                CHECK(watch_run_until(watch, watch_is_serving));
                CHECK_INT(worker_proc_started_at(watch->worker), WORKER_FAKE_STARTED);
                CHECK_INT(worker_proc_number(watch->worker), WORKER_FAKE_NUMBER);
                CHECK_INT(worker_proc_epoch(watch->worker), WORKER_FAKE_EPOCH);
                CHECK(worker_proc_params(watch->worker));
        }
        CHECK_INT(worker_proc_live(watch->worker), 0);
        kill(pid, SIGKILL);
        CHECK(watch_run_until(watch, watch_is_dead)); /* it is our child after all, so the cause is known */
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "was killed by SIGKILL");
        watch_let_go(watch);
}

/* One that gets no descriptor has to pass its own: a disk over several stores has all of them. */
static void test_a_list_of_which_the_worker_passes_nothing(struct watch *watch)
{
        struct listed_store stores[2] = {};

        CHECK_INT(watch_spawn_listed(watch, "good", (struct store_list){stores, 2}), 0);
        if (CHECK(watch_run_until(watch, watch_is_dead)))
                CHECK_STR(worker_proc_death(watch->worker)->sentence,
                        "was killed by ublkd: it sent PARAMS without a descriptor of each store");
        watch_let_go(watch);
}

/* As after a downgrade: it serves what this ublkd could not begin, and must go on. */
static void test_adoption_of_a_worker_with_a_list_of_stores(struct watch *watch)
{
        watch_spawn(watch, "listing-stores-later");
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK(watch_run_until(watch, watch_is_ready));
        CHECK_INT(worker_proc_live(watch->worker), 0);
        watch_let_go(watch);
        if (!CHECK_INT(watch_adopt(watch), 0))
                return;
        CHECK(watch_run_until(watch, watch_is_serving));
        CHECK(worker_proc_stores(watch->worker) && worker_proc_stores(watch->worker)->is_list);
        kill(worker_proc_pid(watch->worker), SIGKILL);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "was killed by SIGKILL");
        watch_let_go(watch);
}

/* Adopt a worker that is not a child of the test: a process that has exited started it. */
static void test_adoption_of_a_stranger(struct watch *watch)
{
        pid_t go_between;
        int ready[2];
        char byte;

        CHECK_INT(pipe(ready), 0);
        go_between = fork();
        if (go_between == 0) {
                if (fork() > 0)
                        _exit(0);
                watch_listen_and_serve(watch, ready[1]);
        }
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        CHECK_INT(waitpid(go_between, NULL, 0), go_between);
        if (!CHECK_INT(watch_adopt(watch), 0))
                return;
        CHECK(watch_run_until(watch, watch_is_serving));
        worker_proc_kill(watch->worker);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "is gone (it was not our child)");
        CHECK_INT(worker_proc_death(watch->worker)->code, -1);
        watch_let_go(watch);
}

/* Start a process with this pid; return -1 if that is not permitted, or another process has the pid. */
static pid_t fork_as(pid_t pid)
{
        struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
        long r = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (r == 0) {
                pause();
                _exit(0);
        }
        return (pid_t)r;
}

/* A process calls listen(), leaves the socket to a child that serves on, and dies. Returns its pid. */
static pid_t leave_listener(struct watch *watch, int *ret_serving)
{
        int ready[2];
        pid_t dead;

        CHECK_INT(pipe(ready), 0);
        dead = fork();
        if (dead == 0) {
                int listener = runtime_dir_bind_worker(watch->dir, worker_fake_uid);
                pid_t child;

                if (listen(listener, 4) < 0)
                        _exit(92);
                child = fork();
                if (child == 0) {
                        prctl(PR_SET_PDEATHSIG, 0);
                        worker_fake_serve(listener);
                }
                _exit(write(ready[1], &child, sizeof(child)) == sizeof(child) ? 0 : 93);
        }
        CHECK_INT(read(ready[0], ret_serving, sizeof(*ret_serving)), sizeof(*ret_serving));
        close(ready[0]);
        close(ready[1]);
        CHECK_INT(waitpid(dead, NULL, 0), dead);
        return dead;
}

/* The worker that called listen() is dead, and another process has its pid: whatever the socket says then,
 * that process must not be killed for it. */
static void test_adoption_does_not_kill_a_process_with_the_pid_of_a_dead_worker(struct watch *watch)
{
        pid_t serving, dead = leave_listener(watch, &serving), stranger = fork_as(dead);

        if (stranger < 0) {
                printf("no process can be given a pid here: %s\n", strerror(errno));
        } else {
                CHECK_INT(stranger, dead);
                if (watch_adopt(watch) >= 0) { /* Linux 6.16 and later have a pidfd also of the dead */
                        CHECK(watch_run_until(watch, watch_is_dead));
                        watch_let_go(watch);
                }
                CHECK_INT(waitpid(stranger, NULL, WNOHANG), 0);
                kill(stranger, SIGKILL);
                CHECK_INT(waitpid(stranger, NULL, 0), stranger);
        }
        kill(serving, SIGKILL);
        runtime_dir_remove_worker(watch->dir, worker_fake_uid);
}

static void test_adoption_without_a_worker(struct watch *watch)
{
        int listener;

        CHECK_INT(watch_adopt(watch), -ENOENT);
        listener = runtime_dir_bind_worker(watch->dir, worker_fake_uid);
        CHECK_INT(watch_adopt(watch), -ENOENT);
        close(listener);
        CHECK_INT(watch_adopt(watch), -ENOENT);
        CHECK(!watch->worker);
        runtime_dir_remove_worker(watch->dir, worker_fake_uid);
}

/* Start a worker that closes its socket, let it serve, and drop it as a ublkd that dies. Return its pid. */
static pid_t leave_unreachable(struct watch *watch)
{
        pid_t pid;

        watch_spawn(watch, "unreachable");
        pid = worker_proc_pid(watch->worker);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK(watch_run_until(watch, watch_is_ready));
        watch_let_go(watch);
        return pid;
}

static void test_a_worker_that_closed_its_socket_is_found(struct watch *watch)
{
        pid_t pid = leave_unreachable(watch);

        for (unsigned round = 0; round < 2; round++) { /* a ublkd may die before it has decided */
                if (!CHECK_INT(watch_adopt(watch), 0))
                        return;
                CHECK(worker_proc_is_unreachable(watch->worker));
                CHECK_INT(worker_proc_pid(watch->worker), pid);
                CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_OPENING);
                CHECK_INT(worker_proc_live(watch->worker), -EPIPE);
                if (round == 0)
                        watch_let_go(watch);
        }
        worker_proc_refuse(watch->worker, "it does not listen at its socket");
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence,
                "was killed by ublkd: it does not listen at its socket");
        watch_let_go(watch);
        CHECK_INT(watch_adopt(watch), -ENOENT);
}

/* A worker cannot remove the name: it was removed on the host, and the worker may serve well. */
static void test_a_worker_whose_socket_was_removed_is_not_looked_for(struct watch *watch)
{
        pid_t pid = leave_unreachable(watch);
        char path[256];

        snprintf(path, sizeof(path), "%s/workers/%s.sock", runtime_dir_path(watch->dir), worker_fake_uid);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(watch_adopt(watch), -ENOENT);
        CHECK_INT(waitpid(pid, NULL, WNOHANG), 0);
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(runtime_dir_remove_worker(watch->dir, worker_fake_uid), 0);
}

static void test_failed(struct watch *watch)
{
        const struct problem_list *problems;

        watch_spawn(watch, "failing");
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "exited with status 1");
        CHECK(!worker_proc_death(watch->worker)->by_signal);
        problems = worker_proc_problems(watch->worker);
        if (CHECK_INT(problems->count, 2)) {
                CHECK_STR(problems->items[0].reason, "BackingFileMissing");
                CHECK_STR(problems->items[1].pointer, "/size");
        }
        CHECK_INT(worker_proc_holder(watch->worker), 47);
        watch_let_go(watch);
}

static void serve(struct watch *watch, const char *name)
{
        watch_spawn(watch, name);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_go(watch->worker, WORKER_FAKE_NUMBER, &watch_copy, NULL), 0);
        CHECK(watch_run_until(watch, watch_is_ready));
        CHECK_INT(worker_proc_live(watch->worker), 0);
}

/* It has sent more than a supervisor reads at once. */
static void test_failed_behind_much_else(struct watch *watch)
{
        serve(watch, "failing-late");
        CHECK_INT(waitid(P_PID, (id_t)worker_proc_pid(watch->worker), &(siginfo_t){}, WEXITED | WNOWAIT), 0);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_INT(worker_proc_problems(watch->worker)->count, 2);
        CHECK_INT(worker_proc_death(watch->worker)->fault, WORKER_FAULT_NONE);
        watch_let_go(watch);
}

static unsigned buffer_scale = 1;

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
        int scaled = *(const int *)value * (int)buffer_scale;

        return __real_setsockopt(fd, level, name, &scaled, size);
}

/* What it has sent while the supervisor did not read does not make a flood, however much the socket takes. */
static void test_a_large_socket_that_was_not_read(struct watch *watch)
{
        buffer_scale = 2;
        serve(watch, "full");
        buffer_scale = 1;
        /* It fills its socket, and waits for room. */
        CHECK_INT(
                poll(&(struct pollfd){.fd = worker_proc_pidfd(watch->worker), .events = POLLIN}, 1, 1000), 0);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_INT(worker_proc_problems(watch->worker)->count, 2);
        CHECK_INT(worker_proc_death(watch->worker)->fault, WORKER_FAULT_NONE);
        watch_let_go(watch);
}

static bool has_grown(const struct watch *watch)
{
        return worker_proc_params(watch->worker)->size == 2 << 20;
}

/* Asks to grow to 2 MiB, and expects this death. */
static void check_death_of_grown(struct watch *watch, const char *name, const char *sentence)
{
        watch_spawn(watch, name);
        CHECK(watch_run_until(watch, watch_is_open));
        CHECK_INT(worker_proc_grow(watch->worker, INT64_MAX + UINT64_C(1)), -EFBIG);
        CHECK_INT(worker_proc_grow(watch->worker, 2 << 20), 0);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, sentence);
        CHECK_INT(has_grown(watch), strcmp(name, "growing-twice") == 0);
        watch_let_go(watch);
}

/* A size that was not asked for would go to the kernel, past the claim on the backing store. */
static void test_growth_counts_only_as_asked(struct watch *watch)
{
        watch_check_death(watch, "growing-unasked", "was killed by ublkd: it sent GROWN without a GROW");
        check_death_of_grown(watch, "growing-twice", "was killed by ublkd: it sent GROWN without a GROW");
        check_death_of_grown(
                watch, "overgrowing", "was killed by ublkd: it grew beyond what it was asked for");
        check_death_of_grown(watch, "shrinking", "was killed by ublkd: it sent GROWN with a smaller size");
        check_death_of_grown(
                watch, "without-end", "was killed by ublkd: it sent GROWN with an impossible size");
        watch_check_death(watch, "boundless", "was killed by ublkd: it sent PARAMS with an impossible size");
        watch_check_death(watch, "wrapping", "was killed by ublkd: it sent PARAMS with an impossible size");
        watch_check_death(watch, "forging", "was killed by ublkd: it sent PARAMS with an impossible path");
}

static void test_a_worker_that_is_refused_dies_of_that(struct watch *watch)
{
        watch_spawn(watch, "silent");
        worker_proc_refuse(watch->worker, "it claims another backing store than its disk has");
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_LEAVING);
        CHECK(watch_run_until(watch, watch_is_dead));
        CHECK_INT(worker_proc_death(watch->worker)->fault, WORKER_FAULT_PROTOCOL);
        CHECK_STR(worker_proc_death(watch->worker)->sentence,
                "was killed by ublkd: it claims another backing store than its disk has");
        watch_let_go(watch);
}

/* A flood ends, and until then the loop has time for others: a turn of the device costs more than a message. */
static void test_a_flood_costs_a_bounded_share_and_ends(struct watch *watch)
{
        uint64_t began = monotonic_now(), cpu = clock_usec(CLOCK_PROCESS_CPUTIME_ID), took;

        watch_check_death_of_serving(watch, "flood-of-news", "was killed by ublkd: it sent NEWS too often");
        took = monotonic_now() - began;
        cpu = clock_usec(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("the flood ended after %llu ms, %llu ms of the CPU, %u changes\n",
                (unsigned long long)took / 1000, (unsigned long long)cpu / 1000, watch->changes);
        CHECK(took > 1000 * 1000); /* it is not the first NEWS that ends a worker */
        CHECK(cpu < took / 4);
        CHECK(watch->changes < 20 + took / (100 * 1000));
        watch_check_death_of_serving(
                watch, "flood-of-notices", "was killed by ublkd: it sent NOTICE too often");
}

static void test_messages_that_come_too_often_or_are_too_long(struct watch *watch)
{
        watch_check_death(watch, "failing-twice", "was killed by ublkd: it sent a message after FAILED");
        watch_check_death(watch, "huge", "was killed by ublkd: it sent an invalid message");
        watch_check_death_of_serving(
                watch, "notice-of-two", "was killed by ublkd: it sent a NOTICE that is not about one thing");
        watch_check_death_of_serving(watch, "ready-twice", "was killed by ublkd: it sent READY twice");
        watch_check_death_of_serving(watch, "long-winded", "was killed by ublkd: it sent an invalid message");
}

static bool has_left_channel(const struct watch *watch)
{
        return worker_proc_left_channel(watch->worker);
}

/* It would serve on without growing, and without its faults being reported. */
static void test_a_worker_that_closes_its_channel_and_stays(struct watch *watch)
{
        uint64_t began = monotonic_now();

        watch_spawn_live(watch, "closing-and-stay");
        CHECK(watch_run_until(watch, has_left_channel));
        CHECK(monotonic_now() - began > 1000 * 1000); /* one that exits has time */
        CHECK_INT(watch->changes, 3);                 /* PARAMS, READY, that it has left */
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_SERVING);
        worker_proc_refuse(watch->worker, "it closed its channel, and did not exit");
        CHECK(!has_left_channel(watch));
        watch_check_breach(watch, "was killed by ublkd: it closed its channel, and did not exit");
}

static void check_program(struct watch *watch, const char *program, int error)
{
        struct worker_start *starter = NULL;

        CHECK_INT(worker_start_new(watch->event, program, NULL, &starter), 0);
        CHECK_INT(watch_try_spawn(watch, starter, "good", "{}"), error);
        worker_start_free(starter);
}

static void test_spawn_that_cannot_be(struct watch *watch)
{
        char *spec = malloc(WORKER_MSG_SIZE_MAX + 1);

        memset(spec, ' ', WORKER_MSG_SIZE_MAX);
        spec[WORKER_MSG_SIZE_MAX] = '\0';
        check_program(watch, "/nonexistent", -ENOENT);
        check_program(watch, "/etc/passwd", -EACCES);
        CHECK_INT(watch_try_spawn(watch, watch->starter, "good", spec), -EMSGSIZE);
        spec[WORKER_MSG_SIZE_MAX - 400] = '\0';
        CHECK_INT(watch_try_spawn(watch, watch->starter, "silent", spec),
                0); /* the worker does not read it, but it fits into the socket */
        worker_proc_kill(watch->worker);
        CHECK(watch_run_until(watch, watch_is_dead));
        watch_let_go(watch);
        CHECK_INT(runtime_dir_connect_worker(watch->dir, worker_fake_uid), -ENOENT);
        free(spec);
}

static void free_it(void *userdata, struct worker_proc *worker)
{
        struct watch *watch = userdata;

        worker_proc_free(worker);
        watch->worker = NULL;
}

static bool is_freed(const struct watch *watch)
{
        return !watch->worker;
}

/* At the first message, and at the death. */
static void test_freed_within_the_callback(struct watch *watch)
{
        static const char *const names[] = {"killed", "silent", "garbage", "closing"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct worker_msg config = {
                        .type = WORKER_MSG_CONFIG,
                        .config = {.name = (char *)names[i],
                                   .uid = (char *)worker_fake_uid,
                                   .epoch = WORKER_FAKE_EPOCH,
                                   .spec = (char *)"{}",
                                   .queues = 1,
                                   .queue_depth = 1}
                };
                pid_t pid;

                CHECK_INT(worker_proc_spawn(watch->event, watch->dir, watch->starter, &config, NULL, NULL,
                                  free_it, watch, &watch->worker),
                        0);
                pid = worker_proc_pid(watch->worker);
                if (strcmp(names[i], "silent") == 0)
                        worker_proc_kill(watch->worker);
                CHECK(watch_run_until(watch, is_freed));
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
                runtime_dir_remove_worker(watch->dir, worker_fake_uid);
        }
}

/* Between the request and the exec: it is a part of every recovery. */
static void report_speed(struct watch *watch)
{
        struct timespec before, after;

        clock_gettime(CLOCK_MONOTONIC, &before);
        watch_spawn(watch, "silent");
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("spawn took %ld us\n",
                (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
        worker_proc_kill(watch->worker);
        CHECK(watch_run_until(watch, watch_is_dead));
        watch_let_go(watch);
}

static void run_tests(struct watch *watch)
{
        test_life(watch);
        test_adoption(watch);
        test_a_list_of_which_the_worker_passes_nothing(watch);
        test_adoption_of_a_worker_with_a_list_of_stores(watch);
        test_adoption_of_a_stranger(watch);
        test_adoption_without_a_worker(watch);
        test_a_worker_that_closed_its_socket_is_found(watch);
        test_a_worker_whose_socket_was_removed_is_not_looked_for(watch);
        test_adoption_does_not_kill_a_process_with_the_pid_of_a_dead_worker(watch);
        test_growth_counts_only_as_asked(watch);
        test_a_worker_that_is_refused_dies_of_that(watch);
        test_a_flood_costs_a_bounded_share_and_ends(watch);
        test_messages_that_come_too_often_or_are_too_long(watch);
        test_a_worker_that_closes_its_channel_and_stays(watch);
        test_failed(watch);
        test_failed_behind_much_else(watch);
        test_a_large_socket_that_was_not_read(watch);
        test_spawn_that_cannot_be(watch);
        test_freed_within_the_callback(watch);
        watch_check_death(watch, "inspecting", "exited with status 0");
        watch_check_death(watch, "killed", "was killed by SIGTERM");
        watch_check_death(watch, "garbage", "was killed by ublkd: it sent an invalid message");
        watch_check_death(watch, "ready-first", "was killed by ublkd: it did not send HELLO first");
        watch_check_death(watch, "ready-before-go", "was killed by ublkd: it sent READY before GO");
        watch_check_death(
                watch, "commanding", "was killed by ublkd: it sent a message that only ublkd may send");
        watch_check_death(watch, "wrong-uid", "was killed by ublkd: it serves another device");
        watch_check_death(watch, "wrong-pid", "was killed by ublkd: it claims to be another process");
        watch_check_death(watch, "twice", "was killed by ublkd: it sent HELLO twice");
        watch_check_death(
                watch, "listing-stores", "was killed by ublkd: it sent 2 stores in a list, and was given 0");
        watch_check_death(watch, "bragging", "was killed by ublkd: it claims to serve before GO");
        watch_check_death(watch, "closing", "exited with status 7");
        watch_check_death(watch, "failing-and-stay", "was killed by ublkd: it did not leave by itself");
        report_speed(watch);
}

int main(int argc, char *argv[])
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/worker_proc_test.XXXXXX", command[64];
        struct watch watch = {};

        if (argc == 2 && strcmp(argv[0], "ublkd-worker") == 0)
                return worker_fake(argv[1]);
        setenv("NOTIFY_SOCKET", "/nowhere", 1);
        setenv("KEPT", "1", 1);
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK(mkdtemp(base)) || !CHECK_INT(sd_event_new(&watch.event), 0)
                || !CHECK_INT(runtime_dir_open(base, &watch.dir, &problems), 0)
                || !CHECK_INT(worker_start_new(watch.event, "/proc/self/exe", NULL, &watch.starter), 0))
                return check_report();
        run_tests(&watch);
        worker_start_free(watch.starter);
        runtime_dir_free(watch.dir);
        sd_event_unref(watch.event);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
