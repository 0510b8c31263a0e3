/* SPDX-License-Identifier: MIT */
/* Jobs run in a thread in their order, while the loop goes on; one that hangs delays nothing but later jobs. */
#include "ublkd/offload/job_thread.h"

#include "ublkd/base/cleanup.h"
#include "tests/unit/check.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { JOBS = 100, PATIENCE = 20000 };

static sem_t may_run; /* a job takes one */
static sem_t dropped;
static atomic_int ran;
static int done_count, done_last = -1;

struct numbered {
        struct thread_job job;
        int number;
};

static void run(struct thread_job *job)
{
        while (sem_wait(&may_run) < 0)
                continue;
        CHECK_INT(atomic_fetch_add(&ran, 1), ((struct numbered *)job)->number);
}

static void done(struct thread_job *job)
{
        int number = ((struct numbered *)job)->number;

        CHECK_INT(number, done_last + 1);
        done_last = number;
        done_count++;
        free(job);
}

static void drop(struct thread_job *job)
{
        free(job);
        (void)sem_post(&dropped);
}

static void add(struct job_thread *thread, int number)
{
        struct numbered *job = calloc(1, sizeof(*job));

        if (!CHECK(job))
                return;
        *job = (struct numbered){
                .job = {.run = run, .done = done, .drop = drop},
                .number = number,
        };
        job_thread_add(thread, &job->job);
}

static void run_loop(sd_event *event, int until)
{
        for (int i = 0; i < PATIENCE && done_count < until; i++)
                CHECK(sd_event_run(event, 1000) >= 0);
}

static bool wait_for(sem_t *sem)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 20;
        return sem_timedwait(sem, &until) == 0;
}

int main(void)
{
        struct job_thread *thread = NULL;
        sd_event *event = NULL;

        CHECK_INT(sem_init(&may_run, 0, 0), 0);
        CHECK_INT(sem_init(&dropped, 0, 0), 0);
        CHECK(sd_event_new(&event) >= 0);
        if (!CHECK_INT(job_thread_new(event, &thread), 0))
                return check_report();
        for (int i = 0; i < JOBS; i++)
                add(thread, i);
        CHECK_INT(sd_event_run(event, 0), 0); /* nothing: the first one hangs */
        for (int i = 0; i < JOBS; i++)
                CHECK_INT(sem_post(&may_run), 0);
        run_loop(event, JOBS);
        CHECK_INT(done_count, JOBS);

        add(thread, JOBS); /* hangs while the loop leaves */
        add(thread, JOBS + 1);
        CHECK(!job_thread_free(thread));
        CHECK_INT(sem_post(&may_run), 0);
        CHECK(wait_for(&dropped));
        CHECK(wait_for(&dropped));
        CHECK_INT(done_count, JOBS);
        CHECK(!job_thread_free(NULL));
        sd_event_unref(event);
        return check_report();
}
