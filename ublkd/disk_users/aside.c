/* SPDX-License-Identifier: MIT */
/* Calls that may hang behind another process, in a thread that is left behind when one does. */
#include "ublkd/disk_users/aside.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum job_state { JOB_RUNS, JOB_DONE, JOB_GIVEN_UP };

/* The thread frees it: at the end, or after a job that was given up. */
struct aside {
        sem_t asked, done;
        struct aside_job *job; /* NULL: end */
        atomic_int state;      /* enum job_state; the one that changes it second owns the job */
        atomic_int tid;        /* of the thread; 0: it has not begun */
};

static void end(struct aside *aside)
{
        (void)sem_destroy(&aside->asked);
        (void)sem_destroy(&aside->done);
        free(aside);
}

static void *serve(void *argument)
{
        struct aside *aside = argument;

        atomic_store(&aside->tid, gettid());
        for (;;) {
                while (sem_wait(&aside->asked) < 0)
                        continue; /* EINTR */
                if (!aside->job)
                        break;
                aside->job->run(aside->job);
                if (atomic_exchange(&aside->state, JOB_DONE) == JOB_GIVEN_UP) {
                        aside->job->free(aside->job);
                        break;
                }
                (void)sem_post(&aside->done);
        }
        end(aside);
        return NULL;
}

static int start(struct aside **ret)
{
        struct aside *aside = calloc(1, sizeof(*aside));
        pthread_t thread;
        int error;

        if (!aside)
                return -ENOMEM;
        (void)sem_init(&aside->asked, 0, 0); /* fails for a value only that is too large */
        (void)sem_init(&aside->done, 0, 0);
        error = pthread_create(&thread, NULL, serve, aside);
        if (error) {
                end(aside);
                return -error;
        }
        (void)pthread_detach(thread);
        *ret = aside;
        return 0;
}

/* Return whether the thread waits for something else than the CPU. */
static bool is_blocked(const struct aside *aside)
{
        char path[64], text[256], *state;
        int tid = atomic_load(&aside->tid);

        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
        if (tid == 0 || read_text_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
                return false;
        state = strrchr(text, ')'); /* the name of the program comes before it */
        return state && (state[1] == ' ') && state[2] != 'R';
}

/* Return whether the job has ended within the time. */
static bool wait_for(struct aside *aside, uint64_t usec)
{
        uint64_t until = monotonic_now() + usec;
        struct timespec time = {.tv_sec = (time_t)(until / USEC_PER_SEC),
                .tv_nsec = (long)(until % USEC_PER_SEC * (NSEC_PER_SEC / USEC_PER_SEC))};
        int r;

        do
                r = sem_clockwait(&aside->done, CLOCK_MONOTONIC, &time);
        while (r < 0 && errno == EINTR);
        return r == 0;
}

int aside_run(struct aside **aside, struct aside_job *job, uint64_t usec)
{
        int r = *aside ? 0 : start(aside);

        if (r < 0)
                return r;
        (*aside)->job = job;
        atomic_store(&(*aside)->state, JOB_RUNS);
        (void)sem_post(&(*aside)->asked);
        do
                if (wait_for(*aside, usec))
                        return 0;
        while (!is_blocked(*aside));
        if (atomic_exchange(&(*aside)->state, JOB_GIVEN_UP) != JOB_DONE) {
                *aside = NULL;
                return -ETIME;
        }
        while (sem_wait(&(*aside)->done) < 0) /* it has ended just now */
                continue;
        return 0;
}

struct aside *aside_free(struct aside *aside)
{
        if (!aside)
                return NULL;
        aside->job = NULL;
        (void)sem_post(&aside->asked);
        return NULL;
}
