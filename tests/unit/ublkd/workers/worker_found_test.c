/* SPDX-License-Identifier: MIT */
/* Which process the next ublkd takes for the worker of a disk: the one that listens at its socket, if it is the process
 * of the note or has a control group of its own. A worker that was taken over could leave its socket to a child. */
#include "ublkd/workers/worker_proc.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/workers/worker_fake.h"
#include "tests/unit/ublkd/workers/worker_watch.h"
#include "ublkd/workers/worker_mark.h"

#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

static pid_t in_group;

struct worker_groups *__wrap_worker_start_groups(const struct worker_start *start);
struct worker_groups *__wrap_worker_start_groups(const struct worker_start *start)
{
        return (struct worker_groups *)(uintptr_t)start; /* whatever is not NULL */
}

bool __wrap_worker_groups_has(const struct worker_groups *groups, pid_t pid);
bool __wrap_worker_groups_has(const struct worker_groups *groups, pid_t pid)
{
        CHECK(groups);
        return pid == in_group;
}

static pid_t start_idle(void)
{
        pid_t pid = fork();

        if (pid == 0) {
                pause();
                _exit(0);
        }
        return pid;
}

/* Start a process that listens and serves. */
static pid_t start_listener(struct watch *watch)
{
        pid_t pid;
        int ready[2];
        char byte;

        CHECK_INT(pipe(ready), 0);
        pid = fork();
        if (pid == 0)
                watch_listen_and_serve(watch, ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        return pid;
}

static void note(struct watch *watch, pid_t pid)
{
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);

        CHECK_INT(worker_mark_write(watch->dir, worker_fake_uid, pid, pidfd), 0);
}

/* Return the process of the note; 0: none that lives. */
static pid_t noted(struct watch *watch)
{
        pid_t pid = 0;
        _cleanup_close_ int pidfd = worker_mark_find(watch->dir, NULL, worker_fake_uid, &pid);

        return pidfd >= 0 ? pid : 0;
}

static void end(pid_t pid)
{
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static void check_adopted(struct watch *watch, pid_t pid, bool unreachable)
{
        if (!CHECK_INT(watch_adopt(watch), 0))
                return;
        CHECK_INT(worker_proc_pid(watch->worker), pid);
        CHECK(worker_proc_is_unreachable(watch->worker) == unreachable);
        CHECK_INT(noted(watch), pid);
        watch_let_go(watch);
}

static void test_the_process_of_the_note_is_the_worker_while_it_lives(struct watch *watch)
{
        pid_t listener = start_listener(watch), worker = start_idle();

        note(watch, worker);
        check_adopted(watch, worker, true);
        end(worker);
        end(listener);
        runtime_dir_remove_worker(watch->dir, worker_fake_uid);
}

static void test_what_a_dead_worker_has_left_does_not_count(struct watch *watch)
{
        pid_t listener = start_listener(watch), worker = start_idle();

        note(watch, worker);
        end(worker);
        CHECK_INT(watch_adopt(watch), -ENOENT);
        CHECK(!watch->worker);
        CHECK_INT(waitpid(listener, NULL, WNOHANG), 0); /* the sweep of the control groups ends it */
        end(listener);
}

static void test_a_process_with_a_group_of_its_own_is_the_worker(struct watch *watch)
{
        pid_t listener = start_listener(watch), worker = start_idle();

        note(watch, worker);
        end(worker);
        in_group = listener;
        check_adopted(watch, listener, false);
        in_group = 0;
        end(listener);
        runtime_dir_remove_worker(watch->dir, worker_fake_uid);
}

/* An older ublkd has started it. */
static void test_without_a_note_the_listener_is_the_worker(struct watch *watch)
{
        pid_t listener = start_listener(watch);

        check_adopted(watch, listener, false);
        check_adopted(watch, listener, false); /* with the note that it got */
        end(listener);
        runtime_dir_remove_worker(watch->dir, worker_fake_uid);
}

int main(int argc, char *argv[])
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/worker_found_test.XXXXXX", command[64];
        struct watch watch = {};

        if (argc == 2 && strcmp(argv[0], "ublkd-worker") == 0)
                return worker_fake(argv[1]);
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK(mkdtemp(base)) || !CHECK_INT(sd_event_new(&watch.event), 0)
                || !CHECK_INT(runtime_dir_open(base, &watch.dir, &problems), 0)
                || !CHECK_INT(worker_start_new(watch.event, "/proc/self/exe", NULL, &watch.starter), 0))
                return check_report();
        test_the_process_of_the_note_is_the_worker_while_it_lives(&watch);
        test_what_a_dead_worker_has_left_does_not_count(&watch);
        test_a_process_with_a_group_of_its_own_is_the_worker(&watch);
        test_without_a_note_the_listener_is_the_worker(&watch);
        worker_start_free(watch.starter);
        runtime_dir_free(watch.dir);
        sd_event_unref(watch.event);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
