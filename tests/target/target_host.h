/* SPDX-License-Identifier: MIT */
/* Serves a target without a driver: the real callbacks, coroutines and io_uring, with requests made up by a
 * test. */
#pragma once

#include "targets/worker/disk/disk.h"
#include "targets/worker/queue/durability.h"
#include "targets/worker/queue/queue_action.h"
#include "targets/worker/io/io_loop.h"

enum { HOST_DEPTH = 64, HOST_DATA_SIZE = 64 * 1024, HOST_QUEUES_MAX = 4 };

struct target_host {
        struct worker_config config;
        struct disk disk;
        struct io_loop loop;                        /* of the first queue */
        struct io_loop others[HOST_QUEUES_MAX - 1]; /* of the queues behind it, on the same thread */
        unsigned queues, started;                   /* how many are open; with start_queue() done */
        struct work_pool *work;
        int failure;                 /* of the wait room, and of the coroutine of actions */
        struct throttle throttle;    /* without limits, until the test sets some */
        struct action_port *actions; /* NULL: the target has no verbs */
        struct queue_action action;
        struct shared shared;
        struct durability durability;
        char *data; /* HOST_DEPTH times HOST_DATA_SIZE bytes: each tag's */
        bool open;
};

struct host_request {
        enum io_op op;
        unsigned flags;
        uint64_t offset;
        uint32_t length; /* at most HOST_DATA_SIZE for reads and writes */
        char *data;      /* set by the host: where to put or find the bytes */
        int result;
        const struct durability *durability; /* likewise */
        struct target_io io;                 /* the host's */
};

/* Opens the device of a spec, as the worker would. 0, or -errno with problems; close it in any case. */
int target_host_open(struct target_host *host, const char *spec, struct problem_list *problems);
/* The same with up to HOST_QUEUES_MAX queues, or one if the target cannot serve several. */
int target_host_open_queues(
        struct target_host *host, const char *spec, unsigned queues, struct problem_list *problems);
/* The same with the kept memory of a region that stays the caller's (region_kept_format()), and with as many queues as that
 * is for, up to HOST_QUEUES_MAX. */
int target_host_open_kept(
        struct target_host *host, const char *spec, int region, struct problem_list *problems);
/* Parse a spec as the worker would, for target_host_start(): set `config` for so many queues, and all else to zero. Return 0,
 * or -errno with problems; in both cases target_host_close() frees it. */
int target_host_configure(
        struct target_host *host, const char *spec, unsigned queues, struct problem_list *problems);
/* The same as target_host_open() with a host whose `config` is set and all else zero. */
int target_host_start(struct target_host *host, struct problem_list *problems);
/* Make a region for target_host_open_kept(), with the kept memory of the target of a spec, which is new: for so many queues, or
 * one if the target cannot serve several. The caller closes *ret, and is given the bytes of that memory, heads and alignment
 * included. Return 0; with *ret = -1: the target keeps nothing; -errno. */
int target_host_new_region(const char *spec, unsigned queues, int *ret, uint64_t *ret_size);
void target_host_close(struct target_host *host);

static inline struct io_loop *target_host_loop(struct target_host *host, unsigned queue)
{
        return queue == 0 ? &host->loop : &host->others[queue - 1];
}

/* Carries out an action with parsed arguments, from its beginning to its end. 0 or -errno of the ring; what became of it is in
 * the region. */
int target_host_act(struct target_host *host, uint64_t id, unsigned verb, const void *arguments, size_t size);

/* The memory that request number `index` of the next target_host_perform() has. */
char *target_host_data(const struct target_host *host, unsigned index);
/* Performs up to HOST_DEPTH requests at the same time and returns when all are answered. 0 or -errno of the
 * ring. */
int target_host_perform(struct target_host *host, struct host_request *requests, unsigned count);
/* One request alone: its result. */
int target_host_one(
        struct target_host *host, enum io_op op, unsigned flags, uint64_t offset, uint32_t length);
