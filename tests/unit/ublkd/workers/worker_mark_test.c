/* SPDX-License-Identifier: MIT */
/* The note of a worker's process: found as long as that very process lives, and never another one of its pid. */
#include "ublkd/workers/worker_mark.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

/* Start a process with this pid, or any (0); return -1 if that is not permitted. */
static pid_t start(pid_t pid)
{
        struct clone_args arguments = {
                .exit_signal = SIGCHLD, .set_tid = pid ? (uintptr_t)&pid : 0, .set_tid_size = pid ? 1 : 0};
        long r = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (r == 0) {
                pause();
                _exit(0);
        }
        return (pid_t)r;
}

static void end(pid_t pid)
{
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static int note(struct runtime_dir *dir, pid_t pid)
{
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);

        CHECK(pidfd >= 0);
        return worker_mark_write(dir, uid, pid, pidfd);
}

static void test_the_process_is_found_while_it_lives(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;
        int pidfd;

        CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT);
        CHECK_INT(note(dir, pid), 0);
        pidfd = worker_mark_find(dir, uid, &found);
        if (CHECK(pidfd >= 0)) {
                CHECK_INT(found, pid);
                CHECK_INT(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
                CHECK_INT(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), 0);
                close(pidfd);
        }
        CHECK_INT(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
        CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT); /* dead, and not reaped */
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT);
}

static void test_another_process_with_the_pid_is_not_found(struct runtime_dir *dir)
{
        pid_t pid = start(0), stranger, found = 0;

        CHECK_INT(note(dir, pid), 0);
        end(pid);
        stranger = start(pid);
        if (stranger < 0) {
                printf("no process can be given a pid here: %s\n", strerror(errno));
                return;
        }
        CHECK_INT(stranger, pid);
        CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT);
        end(stranger);
}

static void test_the_note_goes_with_the_worker(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;

        CHECK_INT(note(dir, pid), 0);
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT);
        end(pid);
}

static void test_other_texts_name_no_process(struct runtime_dir *dir)
{
        static const char *const texts[] = {"", "\n", "1\n", "x 1\n", "-1 5\n", "0 5\n", "1 5", "1 5 7\n"};
        pid_t found = 0;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                CHECK_INT(runtime_dir_write(dir, uid, RUNTIME_WORKER, texts[i]), 0);
                CHECK_INT(worker_mark_find(dir, uid, &found), -ENOENT);
        }
        CHECK_INT(found, 0);
}

int main(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/worker_mark_test.XXXXXX", command[64];
        struct runtime_dir *dir;

        if (!CHECK(mkdtemp(base)) || !CHECK_INT(runtime_dir_open(base, &dir, &problems), 0))
                return check_report();
        if (note(dir, getpid()) == -EOPNOTSUPP) {
                printf("this kernel has one inode for all pidfds\n");
                return CHECK_SKIP;
        }
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        test_the_process_is_found_while_it_lives(dir);
        test_another_process_with_the_pid_is_not_found(dir);
        test_the_note_goes_with_the_worker(dir);
        test_other_texts_name_no_process(dir);
        runtime_dir_free(dir);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
