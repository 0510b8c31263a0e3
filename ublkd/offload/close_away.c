/* SPDX-License-Identifier: MIT */
/* Closing a descriptor that may take its time. The thread touches nothing but that descriptor. */
#include "ublkd/offload/close_away.h"

#include "ublkd/base/cleanup.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { PATIENCE_NSEC = 20 * 1000 * 1000 };

/* Shared by the thread and its caller; the last of them frees it. */
struct closing {
        int fd;
        sem_t done;
        atomic_int users;
};

static void leave(struct closing *closing)
{
        if (atomic_fetch_sub(&closing->users, 1) > 1)
                return;
        (void)sem_destroy(&closing->done);
        free(closing);
}

static void *close_it(void *argument)
{
        struct closing *closing = argument;

        (void)close(closing->fd);
        (void)sem_post(&closing->done);
        leave(closing);
        return NULL;
}

static int start_thread(struct closing *closing)
{
        pthread_t thread;
        int error = pthread_create(&thread, NULL, close_it, closing);

        if (!error)
                (void)pthread_detach(thread);
        return -error;
}

static void wait_a_moment(struct closing *closing)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PATIENCE_NSEC;
        if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                until.tv_sec++;
        }
        while (sem_clockwait(&closing->done, CLOCK_MONOTONIC, &until) < 0 && errno == EINTR)
                continue;
}

static bool start_closing(int fd)
{
        struct closing *closing = calloc(1, sizeof(*closing));

        if (!closing)
                return false;
        closing->fd = fd;
        atomic_init(&closing->users, 2);
        if (sem_init(&closing->done, 0, 0) < 0 || start_thread(closing) < 0) {
                free(closing);
                return false;
        }
        wait_a_moment(closing);
        leave(closing);
        return true;
}

int close_away(int fd)
{
        int saved = errno;

        if (fd >= 0 && !start_closing(fd))
                close_fd(fd);
        errno = saved;
        return -1;
}
