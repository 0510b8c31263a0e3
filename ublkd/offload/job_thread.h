/* SPDX-License-Identifier: MIT */
/* A thread that carries out jobs that may block for a while, one after the other, while the loop continues. Unlike a
 * process of its own (apart.h) it starts no process for each job; a job that hangs delays the later ones. */
#pragma once

#include <systemd/sd-event.h>

struct job_thread;

/* A job: the first member of a struct from malloc(), which owns nothing that free() does not free. */
struct thread_job {
        /* In the thread. It may touch the job and nothing that belongs to the loop. */
        void (*run)(struct thread_job *job);
        /* From the loop, after `run`; it owns the job now. Not called for a job that is left at job_thread_free(). */
        void (*done)(struct thread_job *job);
        /* Frees the job where `done` is not called; NULL: free(). In the thread, or from the loop. */
        void (*drop)(struct thread_job *job);
        struct thread_job *next; /* private to job_thread.c */
};

/* Create a thread that waits for jobs. Return 0 or -errno. */
int job_thread_new(sd_event *event, struct job_thread **ret);
/* End the thread after the job under way, without waiting for it. NULL is fine. Return NULL. */
struct job_thread *job_thread_free(struct job_thread *thread);
/* Hand over a job, which comes after all earlier ones. Never waits for a job. */
void job_thread_add(struct job_thread *thread, struct thread_job *job);
