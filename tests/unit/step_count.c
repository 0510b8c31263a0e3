/* SPDX-License-Identifier: MIT */
/* Counts instructions, with ptrace(2). The child marks the begin and the end of a piece by a SIGSTOP. */
#include "tests/unit/step_count.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

void step_count_begin(void)
{
        (void)raise(SIGSTOP);
}

void step_count_end(void)
{
        (void)raise(SIGSTOP);
}

static int follow(pid_t pid, void (*stepped)(void *userdata),
        void (*counted)(void *userdata, unsigned piece, uint64_t instructions), void *userdata)
{
        uint64_t instructions = 0;
        unsigned piece = 0;
        bool counts = false;
        int status;

        for (;;) {
                long signal = 0;

                while (waitpid(pid, &status, 0) < 0)
                        if (errno != EINTR)
                                return -errno;
                if (WIFEXITED(status))
                        return WEXITSTATUS(status);
                if (WIFSIGNALED(status))
                        return -ECHILD;
                if (WSTOPSIG(status) == SIGTRAP) {
                        instructions++;
                        if (stepped)
                                stepped(userdata);
                } else if (WSTOPSIG(status) != SIGSTOP)
                        signal = WSTOPSIG(status);
                else {
                        if (counts)
                                counted(userdata, piece++, instructions);
                        counts = !counts;
                        instructions = 0;
                }
                if (ptrace(counts ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, signal) < 0)
                        return -errno;
        }
}

/* Each instruction is two changes of processes. On one CPU these take no wake-up of another one; and on a busy machine each would
 * wait for its turn. Without the privilege, it only takes longer. */
static void hurry(void)
{
        cpu_set_t cpu;
        int number = sched_getcpu();

        (void)setpriority(PRIO_PROCESS, 0, -15);
        if (number < 0)
                return;
        CPU_ZERO(&cpu);
        CPU_SET(number, &cpu);
        (void)sched_setaffinity(0, sizeof(cpu), &cpu);
}

int step_watch(void (*run)(void *userdata), void (*stepped)(void *userdata),
        void (*counted)(void *userdata, unsigned piece, uint64_t instructions), void *userdata)
{
        pid_t pid;

        hurry();
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                        _exit(77);
                run(userdata);
                _exit(0);
        }
        return follow(pid, stepped, counted, userdata);
}

int step_count(void (*run)(void *userdata),
        void (*counted)(void *userdata, unsigned piece, uint64_t instructions), void *userdata)
{
        return step_watch(run, NULL, counted, userdata);
}
