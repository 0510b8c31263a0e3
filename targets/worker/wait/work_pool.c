/* SPDX-License-Identifier: MIT */
/* Threads that run what would hold up a queue. One lock guards the line and all ports; it is held for a few
 * instructions. */
#include "targets/worker/wait/work_pool.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/eventfd.h>

enum { THREAD_STACK_SIZE = 256 * 1024 };

struct work_list {
        struct work_item *first, *last;
};

struct work_port {
        struct work_pool *pool;
        struct work_list done;
        int event_fd;
};

struct work_pool {
        pthread_mutex_t lock;
        pthread_cond_t news; /* for the threads */
        struct work_list line;
        bool ends;
        int (*enter)(void *argument);
        void *argument;
        sem_t entered;
        int error; /* of a thread that could not enter */
        pthread_t *threads;
        unsigned thread_count, port_count;
        struct work_port ports[];
};

static void append(struct work_list *list, struct work_item *item)
{
        item->next = NULL;
        if (list->last)
                list->last->next = item;
        else
                list->first = item;
        list->last = item;
}

/* previous: the item before it, or NULL. */
static void take_out(struct work_list *list, struct work_item *previous, struct work_item *item)
{
        if (previous)
                previous->next = item->next;
        else
                list->first = item->next;
        if (list->last == item)
                list->last = previous;
}

/* ---- the threads ---- */

/* Of the line, or NULL: the pool ends. With the lock held. */
static struct work_item *next_item(struct work_pool *pool)
{
        struct work_item *item;

        while (!pool->line.first && !pool->ends)
                (void)pthread_cond_wait(&pool->news, &pool->lock);
        item = pool->line.first;
        if (!item)
                return NULL;
        take_out(&pool->line, NULL, item);
        item->state = WORK_RUNS;
        return item;
}

/* With the lock held. */
static void run_item(struct work_pool *pool, struct work_item *item)
{
        struct work_port *port = item->port;
        bool first;
        int result;

        (void)pthread_mutex_unlock(&pool->lock);
        result = item->run(item->argument);
        (void)pthread_mutex_lock(&pool->lock);
        item->result = result;
        item->state = WORK_DONE;
        first = !port->done.first;
        append(&port->done, item);
        if (first) /* else the queue has not taken the one before */
                (void)eventfd_write(port->event_fd, 1);
}

static void *thread_main(void *argument)
{
        struct work_pool *pool = argument;
        struct work_item *item;
        int r;

        (void)pthread_setname_np(pthread_self(), "work"); /* only for people */
        r = pool->enter ? pool->enter(pool->argument) : 0;
        (void)pthread_mutex_lock(&pool->lock);
        if (r < 0 && pool->error == 0)
                pool->error = r;
        (void)sem_post(&pool->entered);
        while (r >= 0 && (item = next_item(pool)))
                run_item(pool, item);
        (void)pthread_mutex_unlock(&pool->lock);
        return NULL;
}

static int start_threads(struct work_pool *pool, unsigned threads)
{
        pthread_attr_t attributes;
        int r = -pthread_attr_init(&attributes);

        if (r < 0)
                return r;
        r = -pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
        while (r >= 0 && pool->thread_count < threads) {
                r = -pthread_create(&pool->threads[pool->thread_count], &attributes, thread_main, pool);
                pool->thread_count += r >= 0;
        }
        (void)pthread_attr_destroy(&attributes);
        for (unsigned i = 0; i < pool->thread_count;)
                i += sem_wait(&pool->entered) >= 0; /* else EINTR */
        return r < 0 ? r : pool->error;
}

/* ---- the pool ---- */

static int open_ports(struct work_pool *pool, unsigned ports)
{
        for (unsigned i = 0; i < ports; i++) {
                struct work_port *port = &pool->ports[i];

                /* One that blocks: the ring waits for it only then. */
                *port = (struct work_port){.pool = pool, .event_fd = eventfd(0, EFD_CLOEXEC)};
                if (port->event_fd < 0)
                        return -errno;
                pool->port_count++;
        }
        return 0;
}

int work_pool_new(unsigned threads, unsigned ports, int (*enter)(void *argument), void *argument,
        struct work_pool **ret)
{
        _cleanup_(work_pool_free_pointer) struct work_pool *pool =
                calloc(1, sizeof(*pool) + ports * sizeof(pool->ports[0]));
        int r;

        if (!pool)
                return -ENOMEM;
        pool->enter = enter;
        pool->argument = argument;
        (void)pthread_mutex_init(&pool->lock, NULL); /* none of these can fail with such arguments */
        (void)pthread_cond_init(&pool->news, NULL);
        (void)sem_init(&pool->entered, 0, 0);
        pool->threads = calloc(threads, sizeof(*pool->threads));
        if (!pool->threads)
                return -ENOMEM;
        r = open_ports(pool, ports);
        if (r >= 0)
                r = start_threads(pool, threads);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(pool);
        return 0;
}

struct work_pool *work_pool_free(struct work_pool *pool)
{
        if (!pool)
                return NULL;
        (void)pthread_mutex_lock(&pool->lock);
        assert(!pool->line.first);
        pool->ends = true;
        (void)pthread_cond_broadcast(&pool->news);
        (void)pthread_mutex_unlock(&pool->lock);
        for (unsigned i = 0; i < pool->thread_count; i++)
                (void)pthread_join(pool->threads[i], NULL);
        for (unsigned i = 0; i < pool->port_count; i++)
                close_fd(pool->ports[i].event_fd);
        (void)sem_destroy(&pool->entered);
        (void)pthread_cond_destroy(&pool->news);
        (void)pthread_mutex_destroy(&pool->lock);
        free(pool->threads);
        free(pool);
        return NULL;
}

/* ---- a port ---- */

struct work_port *work_pool_port(struct work_pool *pool, unsigned index)
{
        assert(index < pool->port_count);
        return &pool->ports[index];
}

int work_port_fd(const struct work_port *port)
{
        return port->event_fd;
}

void work_port_submit(struct work_port *port, struct work_item *item)
{
        struct work_pool *pool = port->pool;

        item->port = port;
        item->state = WORK_WAITS;
        (void)pthread_mutex_lock(&pool->lock);
        append(&pool->line, item);
        (void)pthread_cond_signal(&pool->news);
        (void)pthread_mutex_unlock(&pool->lock);
}

bool work_port_withdraw(struct work_port *port, struct work_item *item)
{
        struct work_pool *pool = port->pool;
        struct work_item *previous = NULL;
        bool waits;

        (void)pthread_mutex_lock(&pool->lock);
        waits = item->state == WORK_WAITS;
        if (waits) {
                for (struct work_item *each = pool->line.first; each != item; each = each->next)
                        previous = each;
                take_out(&pool->line, previous, item);
        }
        (void)pthread_mutex_unlock(&pool->lock);
        return waits;
}

struct work_item *work_port_take(struct work_port *port)
{
        struct work_item *first;

        (void)pthread_mutex_lock(&port->pool->lock);
        first = port->done.first;
        port->done = (struct work_list){};
        (void)pthread_mutex_unlock(&port->pool->lock);
        return first;
}
