/* SPDX-License-Identifier: MIT */
/* The threads that serve: one per hardware queue. They signal the main thread through an eventfd. */
#include "targets/worker/queue/queue_threads.h"
#include "targets/worker/disk/disk_start.h"
#include "targets/worker/queue/action_port.h"
#include "targets/worker/queue/durability.h"
#include "targets/worker/os/queue_place.h"
#include "targets/worker/queue/room.h"
#include "targets/worker/os/sandbox.h"
#include "targets/worker/queue/ublk_queue.h"
#include "ublkd/base/log.h"
#include "ublkd/base/ram.h"
#include "ublkd/proto/region_errors.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

enum { THREAD_STACK_SIZE = 256 * 1024 };

/* As in walls.c: the reports of a sanitizer need stderr. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* The phases of one thread's life, in words for a sentence. */
static const char *const phases[] = {
        "set up its queue",
        "give up its privileges",
        "offer its requests to the driver",
        "serve its queue",
};
enum phase { PHASE_OPEN, PHASE_DROP, PHASE_FETCH, PHASE_RUN, _PHASE_MAX };
_Static_assert(ARRAY_SIZE(phases) == _PHASE_MAX, "every phase has words");

struct queue_thread {
        struct queue_threads *all;
        pthread_t thread;
        unsigned index;
        bool started;
        bool has_table; /* of descriptors, of its own */
        enum phase phase;
        int error; /* why it ended; 0: the driver took its queue away, or it runs */
};

struct queue_threads {
        struct disk *disk;
        struct shared shared;
        struct data_route route;
        int device_fd, event_fd;
        cpu_set_t cpus;
        bool cpus_given;
        const char *queue_cpus; /* of GO; NULL: anywhere, or where `cpus` says */
        unsigned count;
        struct leave_call leave;
        struct work_pool *work; /* NULL: the target declares no threads */
        sem_t left;             /* posted by each thread that has its table, or goes on without */
        sem_t all_opened;       /* of a disk with kept memory: posted for each thread but the last */
        atomic_uint opened, fetched, gone;
        atomic_bool served;
        _Atomic(const struct queue_thread *) failed; /* the first that failed; NULL: none */
        struct queue_thread threads[];
};

static void wake_main(struct queue_threads *all)
{
        (void)eventfd_write(all->event_fd, 1); /* cannot fail but by being full of news already */
}

/* Report that the thread has failed; its `phase` and `error` do not change any more. */
static void failed(struct queue_thread *self)
{
        const struct queue_thread *none = NULL;

        atomic_compare_exchange_strong(&self->all->failed, &none, self);
        wake_main(self->all);
}

static void name_thread(unsigned index)
{
        char name[16];

        snprintf(name, sizeof(name), "queue-%u", index);
        (void)pthread_setname_np(pthread_self(), name); /* only for people */
}

/* From here on the thread has a table of descriptors of its own. The kernel then looks a descriptor up without a
 * reference (fdget(), fs/file.c), and the links to supervisors end with the main thread. Where it cannot have one
 * (ENOMEM), it serves with that of the main thread, which costs instructions and nothing else. */
static void leave_table(struct queue_thread *self)
{
        struct queue_threads *all = self->all;

        self->has_table = unshare(CLONE_FILES) >= 0;
        for (size_t i = 0; self->has_table && i < ARRAY_SIZE(all->shared.links); i++)
                close_fd(all->shared.links[i]);
        (void)sem_post(&all->left); /* cannot fail: there are fewer threads than SEM_VALUE_MAX */
}

/* For the table of the main thread main.c and walls_close() do the same before READY. */
static int leave_files(const struct queue_thread *self, const struct ublk_queue_setup *setup)
{
        if (!self->has_table)
                return 0;
        if (!ublk_queue_needs_node(setup->device, &setup->route))
                close_fd(setup->command_fd);
        return SANITIZED ? 0 : log_leave_outputs();
}

/* After a death the driver hands requests to a queue as soon as that queue has fetched. Whatever the target acknowledges of
 * them, with kept memory alone, the next worker has to find; and it finds nothing before all queues have started. If one
 * cannot start, the others wait for the end of the process. */
static void wait_for_all(struct queue_threads *all)
{
        if (!all->disk->kept.base)
                return;
        if (atomic_fetch_add(&all->opened, 1) + 1 < all->count) {
                while (sem_wait(&all->all_opened) < 0) /* EINTR */
                        ;
                return;
        }
        disk_started(all->disk);
        for (unsigned i = 1; i < all->count; i++)
                (void)sem_post(&all->all_opened);
}

static int serve(struct queue_thread *self)
{
        struct queue_threads *all = self->all;
        _cleanup_(ublk_queue_close_pointer) struct ublk_queue *queue = NULL;
        const struct ublk_queue_setup setup = {
                .device = &all->disk->device,
                .witnesses = all->disk->witnesses,
                .witness_count = all->disk->witness_count,
                .index = self->index,
                .depth = all->disk->params.queue_depth,
                .max_io_size = all->disk->params.max_io_size,
                .route = all->route,
                .command_fd = all->device_fd,
                .shares_table = !self->has_table,
                .cpus = all->cpus_given ? &all->cpus : NULL,
                .served = &all->served,
                .shared = &all->shared,
                .leave = &all->leave,
                .work = all->work,
        };
        int r;

        self->phase = PHASE_OPEN;
        r = ublk_queue_open(&setup, &queue);
        if (r < 0)
                return r;
        self->phase = PHASE_DROP;
        r = leave_files(self, &setup);
        if (r >= 0)
                r = sandbox_drop_capabilities();
        if (r >= 0) {
                wait_for_all(all);
                self->phase = PHASE_FETCH;
                r = ublk_queue_fetch(queue);
        }
        if (r >= 0) {
                atomic_fetch_add(&all->fetched, 1);
                wake_main(all);
                self->phase = PHASE_RUN;
                r = ublk_queue_run(queue);
        }
        /* With requests in flight it cannot be closed: the end of the process does that. */
        if (r < 0)
                (void)TAKE_PTR(queue);
        return r;
}

/* A thread of await_work() begins. Its table of descriptors holds /dev/ublkcN until its last system call has returned: so
 * a call of this process that blocks in such a thread, and may write, is over before the disk has another worker. */
static int enter_work(void *argument)
{
        struct queue_threads *all = argument;

        if (unshare(CLONE_FILES) < 0)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(all->shared.links); i++)
                close_fd(all->shared.links[i]);
        if (!SANITIZED && log_leave_outputs() < 0)
                return -errno;
        (void)ram_wait_for_no_io(); /* as thread_main() */
        return sandbox_drop_capabilities();
}

/* Before the threads, which have its descriptor in their tables. */
static int open_actions(struct queue_threads *all)
{
        if (!all->disk->device.target->act)
                return 0;
        return action_port_new(
                device_region_control(all->shared.region), all->event_fd, &all->shared.actions);
}

static int start_work(struct queue_threads *all)
{
        unsigned threads = all->disk->device.target->desc->waits.work_threads;

        return threads > 0 ? work_pool_new(threads, all->count, enter_work, all, &all->work) : 0;
}

static void *thread_main(void *argument)
{
        struct queue_thread *self = argument;
        struct queue_threads *all = self->all;

        name_thread(self->index);
        queue_place_take(all->queue_cpus, self->index);
        leave_table(self);
        (void)ram_wait_for_no_io(); /* without the privilege, the worker was started by hand */
        self->error = serve(self);
        if (self->error < 0) {
                failed(self);
                return NULL;
        }
        atomic_fetch_add(&all->gone, 1);
        wake_main(all);
        return NULL;
}

/* What the main thread opens or accepts later is in no table but its own. */
static void wait_for_tables(struct queue_threads *all)
{
        for (unsigned i = 0; i < all->count;)
                i += sem_wait(&all->left) >= 0; /* else EINTR */
}

static int start_all(struct queue_threads *all)
{
        struct queue_place place;
        pthread_attr_t attributes;
        bool moves;
        int r;

        r = -pthread_attr_init(&attributes);
        if (r < 0)
                return r;
        r = -pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
        moves = queue_place_save(&place);
        for (unsigned i = 0; r >= 0 && i < all->count; i++) {
                if (moves)
                        queue_place_take(all->queue_cpus, i);
                all->threads[i] = (struct queue_thread){.all = all, .index = i};
                r = -pthread_create(&all->threads[i].thread, &attributes, thread_main, &all->threads[i]);
                all->threads[i].started = r >= 0;
        }
        if (moves)
                queue_place_restore(&place);
        (void)pthread_attr_destroy(&attributes);
        if (r >= 0)
                wait_for_tables(all);
        return r;
}

int queue_threads_start(struct disk *disk, const struct shared *shared, const struct data_route *route,
        int device_fd, const cpu_set_t *cpus, const char *queue_cpus, struct queue_threads **ret)
{
        struct queue_threads *all;
        int r;

        all = calloc(1, sizeof(*all) + disk->params.queues * sizeof(all->threads[0]));
        if (!all)
                return -ENOMEM;
        all->disk = disk;
        all->shared = *shared;
        all->route = *route;
        all->device_fd = device_fd;
        all->count = disk->params.queues;
        (void)sem_init(&all->left, 0, 0); /* cannot fail with these arguments */
        (void)sem_init(&all->all_opened, 0, 0);
        all->queue_cpus = cpus ? NULL : queue_cpus;
        if (cpus) {
                all->cpus = *cpus;
                all->cpus_given = true;
        }
        all->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        all->shared.news = all->event_fd;
        room_begin(&all->shared);
        region_errors_begin(device_region_control(all->shared.region));
        durability_ask(&(struct durability){
                .shared = &all->shared, .witnesses = disk->witnesses, .witness_count = disk->witness_count});
        r = all->event_fd < 0 ? -errno : leave_call_open(&all->leave, all->event_fd);
        if (r >= 0)
                r = open_actions(all);
        if (r >= 0)
                r = start_work(all);
        if (r >= 0)
                r = start_all(all);
        if (r < 0)
                return r; /* threads may be running with it: it is left to the end of the process */
        *ret = all;
        return 0;
}

struct queue_threads *queue_threads_free(struct queue_threads *threads)
{
        if (!threads)
                return NULL;
        for (unsigned i = 0; i < threads->count; i++)
                if (threads->threads[i].started)
                        (void)pthread_join(threads->threads[i].thread, NULL);
        (void)work_pool_free(threads->work);
        (void)action_port_free(threads->shared.actions);
        (void)sem_destroy(&threads->left);
        (void)sem_destroy(&threads->all_opened);
        leave_call_close(&threads->leave);
        close_fd(threads->event_fd);
        free(threads);
        return NULL;
}

struct action_port *queue_threads_actions(const struct queue_threads *threads)
{
        return threads->shared.actions;
}

int queue_threads_fd(const struct queue_threads *threads)
{
        return threads->event_fd;
}

enum queue_threads_state queue_threads_state(
        struct queue_threads *threads, int *ret_error, const char **ret_what)
{
        const struct queue_thread *failure;
        eventfd_t news;

        (void)eventfd_read(threads->event_fd, &news); /* before looking: what comes later wakes us again */
        failure = atomic_load(&threads->failed);
        if (failure) {
                *ret_error = failure->error;
                *ret_what = phases[failure->phase];
                return failure->phase == PHASE_DROP ? QUEUE_THREADS_PRIVILEGED : QUEUE_THREADS_FAILED;
        }
        if (atomic_load(&threads->gone) == threads->count)
                return QUEUE_THREADS_GONE;
        if (atomic_load(&threads->leave.left) == threads->count)
                return QUEUE_THREADS_LEFT;
        return atomic_load(&threads->fetched) == threads->count ? QUEUE_THREADS_FETCHED
                                                                : QUEUE_THREADS_STARTING;
}

void queue_threads_leave(struct queue_threads *threads)
{
        leave_call_send(&threads->leave, threads->count);
}

bool queue_threads_served(const struct queue_threads *threads)
{
        return atomic_load_explicit(&threads->served, memory_order_relaxed);
}
