/* SPDX-License-Identifier: MIT */
/* worker_threads: what the threads of a real process do. Its "queues": 0 waits, 1 spins; there is no 2. */
#include "ublkd/workers/worker_threads.h"

#include "tests/unit/check.h"

#include <pthread.h>
#include <signal.h>
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
        return check_report();
}
