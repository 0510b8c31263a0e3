/* SPDX-License-Identifier: MIT */
/* A thread that carries out jobs.
 *
 * Thread and loop share two lists under one lock, which neither of them holds while a job runs. The thread may hang in
 * a job when the loop has no use for it any more, so the one that leaves last frees what they share. */
#include "ublkd/offload/job_thread.h"

#include "ublkd/base/cleanup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>

struct job_list {
        struct thread_job *first, **end;
};

struct shared {
        pthread_mutex_t lock; /* of all below but `users` */
        pthread_cond_t added;
        struct job_list waiting, ended;
        bool over; /* no loop reads `ended` any more */
        int ready; /* eventfd: `ended` has something */
        atomic_int users;
};

struct job_thread {
        struct shared *shared;
        sd_event_source *source;
};

/* ---- lists ---- */

static void list_init(struct job_list *list)
{
        *list = (struct job_list){.end = &list->first};
}

static void list_add(struct job_list *list, struct thread_job *job)
{
        job->next = NULL;
        *list->end = job;
        list->end = &job->next;
}

static struct thread_job *list_take(struct job_list *list)
{
        struct thread_job *job = list->first;

        if (!job)
                return NULL;
        list->first = job->next;
        if (!list->first)
                list->end = &list->first;
        return job;
}

static void list_drop(struct job_list *list)
{
        for (struct thread_job *job = list_take(list); job; job = list_take(list)) {
                if (job->drop)
                        job->drop(job);
                else
                        free(job);
        }
}

/* ---- what both share ---- */

static void shared_leave(struct shared *shared)
{
        if (atomic_fetch_sub(&shared->users, 1) > 1)
                return;
        list_drop(&shared->waiting);
        list_drop(&shared->ended);
        close_fd(shared->ready);
        (void)pthread_cond_destroy(&shared->added);
        (void)pthread_mutex_destroy(&shared->lock);
        free(shared);
}

static int shared_new(struct shared **ret)
{
        struct shared *shared = calloc(1, sizeof(*shared));

        if (!shared)
                return -ENOMEM;
        shared->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (shared->ready < 0) {
                int r = -errno;

                free(shared);
                return r;
        }
        (void)pthread_mutex_init(
                &shared->lock, NULL); /* with default attributes these cannot fail on Linux */
        (void)pthread_cond_init(&shared->added, NULL);
        list_init(&shared->waiting);
        list_init(&shared->ended);
        atomic_init(&shared->users, 1);
        *ret = shared;
        return 0;
}

/* ---- in the thread ---- */

/* Wait for a job. Return NULL when it is over. */
static struct thread_job *next_job(struct shared *shared)
{
        struct thread_job *job = NULL;

        (void)pthread_mutex_lock(&shared->lock);
        while (!shared->over && !shared->waiting.first)
                (void)pthread_cond_wait(&shared->added, &shared->lock);
        if (!shared->over)
                job = list_take(&shared->waiting);
        (void)pthread_mutex_unlock(&shared->lock);
        return job;
}

static void hand_back(struct shared *shared, struct thread_job *job)
{
        (void)pthread_mutex_lock(&shared->lock);
        list_add(&shared->ended, job);
        (void)pthread_mutex_unlock(&shared->lock);
        (void)eventfd_write(shared->ready, 1);
}

static void *carry_out(void *argument)
{
        struct shared *shared = argument;

        for (struct thread_job *job = next_job(shared); job; job = next_job(shared)) {
                job->run(job);
                hand_back(shared, job);
        }
        shared_leave(shared);
        return NULL;
}

/* ---- on the loop ---- */

static int on_ready(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct job_thread *thread = userdata;
        struct shared *shared = thread->shared;
        struct thread_job *job;
        eventfd_t count;

        (void)eventfd_read(fd, &count);
        (void)pthread_mutex_lock(&shared->lock);
        job = list_take(&shared->ended);
        if (shared->ended.first)
                (void)eventfd_write(fd, 1); /* one job in a turn of the loop */
        (void)pthread_mutex_unlock(&shared->lock);
        if (job)
                job->done(job); /* may free the thread */
        return 0;
}

void job_thread_add(struct job_thread *thread, struct thread_job *job)
{
        struct shared *shared = thread->shared;

        (void)pthread_mutex_lock(&shared->lock);
        list_add(&shared->waiting, job);
        (void)pthread_cond_signal(&shared->added);
        (void)pthread_mutex_unlock(&shared->lock);
}

static int start_thread(struct shared *shared)
{
        pthread_t thread;
        int error;

        atomic_fetch_add(&shared->users, 1);
        error = pthread_create(&thread, NULL, carry_out, shared);
        if (error)
                atomic_fetch_sub(&shared->users, 1);
        else
                (void)pthread_detach(thread);
        return -error;
}

struct job_thread *job_thread_free(struct job_thread *thread)
{
        struct shared *shared;

        if (!thread)
                return NULL;
        shared = thread->shared;
        sd_event_source_disable_unref(thread->source);
        (void)pthread_mutex_lock(&shared->lock);
        shared->over = true;
        (void)pthread_cond_signal(&shared->added);
        (void)pthread_mutex_unlock(&shared->lock);
        shared_leave(shared);
        free(thread);
        return NULL;
}
DEFINE_CLEANUP(struct job_thread, job_thread_free);

int job_thread_new(sd_event *event, struct job_thread **ret)
{
        _cleanup_(job_thread_free_pointer) struct job_thread *thread = NULL;
        struct shared *shared = NULL;
        int r = shared_new(&shared);

        if (r < 0)
                return r;
        thread = calloc(1, sizeof(*thread));
        if (!thread) {
                shared_leave(shared);
                return -ENOMEM;
        }
        thread->shared = shared;
        r = sd_event_add_io(event, &thread->source, shared->ready, EPOLLIN, on_ready, thread);
        if (r >= 0)
                r = start_thread(shared);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(thread);
        return 0;
}
