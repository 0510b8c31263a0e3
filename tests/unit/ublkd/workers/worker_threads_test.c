/* SPDX-License-Identifier: MIT */
/* worker_threads: what the threads of a real process do. Its "queues": 0 waits, 1 spins; there is no 2. */
#include "ublkd/workers/worker_threads.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 2000 };

__attribute__((noreturn)) static void *wait_for_ever(void *name)
{
        (void)prctl(PR_SET_NAME, name);
        for (;;)
                pause();
}

__attribute__((noreturn)) static void *spin(void *name)
{
        static volatile unsigned long turns;

        (void)prctl(PR_SET_NAME, name);
        for (;;)
                turns++;
}

/* A name that looks like the end of a name, and one that is not a queue's. */
static void be_a_worker(void)
{
        pthread_t thread;

        (void)prctl(PR_SET_NAME, "a) R 1 (b");
        (void)pthread_create(&thread, NULL, wait_for_ever, (char *)"queue-0");
        (void)pthread_create(&thread, NULL, spin, (char *)"queue-1");
        (void)pthread_create(&thread, NULL, spin, (char *)"queue-1x");
        (void)pthread_create(&thread, NULL, spin, (char *)"queue-9");
        for (;;)
                pause();
}

static void nap(void)
{
        (void)nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
}

/* Look until both threads do that. */
static bool shows(
        pid_t pid, struct progress_queue queues[3], enum progress_thread first, enum progress_thread second)
{
        for (unsigned i = 0; i < TRIES; i++) {
                CHECK_INT(worker_threads_look("/proc", pid, queues, 3), 0);
                if (queues[0].thread == first && queues[1].thread == second)
                        return true;
                nap();
        }
        return false;
}

static void wait_until_stopped(pid_t pid, int wanted)
{
        for (unsigned i = 0; i < TRIES && worker_process_stopped("/proc", pid) != wanted; i++)
                nap();
        CHECK_INT(worker_process_stopped("/proc", pid), wanted);
}

/* The first thread of the process ends; another one runs on until the test writes to it. */
__attribute__((noreturn)) static void *end_when_written(void *fd)
{
        char byte;

        (void)!read(*(int *)fd, &byte, 1);
        _exit(0);
}

static void test_which_process_is_exiting(void)
{
        pthread_t thread;
        int orders[2];
        pid_t pid;

        CHECK_INT(pipe(orders), 0);
        pid = fork();
        if (pid == 0) {
                (void)pthread_create(&thread, NULL, end_when_written, &orders[0]);
                pthread_exit(NULL);
        }
        for (unsigned i = 0; i < 20; i++) {
                CHECK_INT(worker_process_exiting("/proc", pid), 0);
                nap();
        }
        CHECK_INT(write(orders[1], "x", 1), 1);
        CHECK_INT(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
        CHECK_INT(worker_process_exiting("/proc", pid), 1); /* until it is reaped */
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK(worker_process_exiting("/proc", pid) < 0);
        close(orders[0]);
        close(orders[1]);
}

static void write_stat(const char *proc, int thread, const char *rest)
{
        char path[PATH_MAX], text[256];

        snprintf(path, sizeof(path), "%s/7/task/%d", proc, thread);
        CHECK_INT(make_dirs(path, 0700), 0);
        strcat(path, "/stat");
        snprintf(text, sizeof(text), "%d (queue-0) %s\n", thread, rest);
        CHECK_INT(replace_text_at(AT_FDCWD, path, 0600, text), 0);
}

/* The main thread has ended. Another one is in a call that nothing interrupts: if it was killed, it exits after that.
 * The last but one field here is its pending signals, a bit for each; the 7th is its flags. SIGKILL is no longer pending
 * once the thread has taken it: then a flag shows it while the kernel ends the I/O of the thread. */
static void test_a_thread_in_a_call_that_was_killed(void)
{
        static const struct {
                const char *in_a_call;
                int exiting;
        } rows[] = {
                {"D 1 7 7 0 -1 64 0 0 0 0 5 6 0 0 20 0 2 0 9 4096 3 18446744073709551615 1 1 1 0 0 0 256",   0},
                {"D 1 7 7 0 -1 64 0 0 0 0 5 6 0 0 20 0 2 0 9 4096 3 18446744073709551615 1 1 1 0 0 128 256",
                 0                                                                                            },
                {"D 1 7 7 0 -1 64 0 0 0 0 5 6 0 0 20 0 2 0 9 4096 3 18446744073709551615 1 1 1 0 0 256 0",   1},
                {"D 1 7 7 0 -1 1088 0 0 0 0 5 6 0 0 20 0 2 0 9 4096 3 18446744073709551615 1 1 1 0 0 0 0",   1},
        };
        char proc[] = "/tmp/worker_threads_test.XXXXXX";

        if (!CHECK(mkdtemp(proc)))
                return;
        write_stat(
                proc, 7, "Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 9 0 0 18446744073709551615 0 0 0 0 0 0 0");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                write_stat(proc, 8, rows[i].in_a_call);
                CHECK_INT(worker_process_exiting(proc, 7), rows[i].exiting);
        }
        CHECK_INT(remove_tree(proc), 0);
}

int main(void)
{
        struct progress_queue queues[3] = {};
        pid_t pid = fork();
        uint64_t used;

        if (pid == 0)
                be_a_worker();
        CHECK(shows(pid, queues, THREAD_SLEEPS, THREAD_RUNS));
        CHECK_INT(queues[2].thread, THREAD_UNKNOWN);
        CHECK_INT(worker_process_stopped("/proc", pid), 0);
        used = queues[1].cpu_usec;
        for (unsigned i = 0; i < TRIES && queues[1].cpu_usec < used + 50 * 1000; i++) {
                nap();
                CHECK_INT(worker_threads_look("/proc", pid, queues, 3), 0);
        }
        CHECK(queues[1].cpu_usec >= used + 50 * 1000);
        CHECK(queues[0].cpu_usec < 50 * 1000);
        CHECK_INT(kill(pid, SIGSTOP), 0);
        wait_until_stopped(pid, 1);
        CHECK(shows(pid, queues, THREAD_STOPPED, THREAD_STOPPED));
        CHECK_INT(kill(pid, SIGCONT), 0);
        wait_until_stopped(pid, 0);
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK(worker_process_stopped("/proc", pid) < 0);
        CHECK(worker_threads_look("/proc", pid, queues, 3) < 0);
        test_which_process_is_exiting();
        test_a_thread_in_a_call_that_was_killed();
        return check_report();
}
