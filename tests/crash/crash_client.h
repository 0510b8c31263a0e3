/* SPDX-License-Identifier: MIT */
/* The requests of a disk before the crash: random ones, several at a time, noted in the model. */
#pragma once

#include "tests/crash/crash_model.h"
#include "tests/target/host_plain.h"

/* How reads and writes without FUA come in. */
enum client_entry {
        CLIENT_BY_CALLBACKS,
        CLIENT_PLAIN, /* on the plain way, where a request is plain (targets/worker/queue/plain.h) */
        /* For a test of the judge: the same, but a write is answered when the ring has it. */
        CLIENT_PLAIN_EARLY,
};

struct client_habits {
        unsigned requests, depth;
        uint64_t seed;
        enum client_entry entry;
};

struct client {
        struct target_host *host;
        struct record *record;
        struct model *model;
        struct crash_random random;
        unsigned depth;
        uint64_t hot_first, hot_count; /* blocks: where most requests go, so that they meet */
        bool overlaps;                 /* requests that are under way may touch the same blocks */
        uint64_t block;                /* bytes */
        enum client_entry entry;
        unsigned begun, ended;
        unsigned plain; /* requests that no callback has seen */
        struct client_slot {
                struct host_plain plain; /* first */
                struct client *client;
                bool busy, early; /* early: answered, but not done */
                unsigned version;
                struct target_io io;
        } slots[HOST_DEPTH];
        struct model_finding finding; /* of the first wrong answer to a read */
        bool lied;
        int error; /* -errno of a request that may not fail, or of the ring */
};

/* Fill a part of the disk, chosen by the seed, with what the model calls version 0, and flush it. Return 0 or -errno. */
int client_fill(struct target_host *host, struct model *model, uint64_t seed);
/* Send requests until all are answered, or one has a wrong answer: client->lied, client->error. The record must have
 * begun. */
void client_run(struct client *client, const struct client_habits *habits);
/* Read the whole disk to `data`. Return 0 or -errno. */
int client_read_disk(struct target_host *host, char *data);
