/* SPDX-License-Identifier: MIT */
/* Who uses a disk, as an event. A process of its own looks at /proc and /sys, and the loop goes on meanwhile.
 *
 * One search runs at a time, for all who had asked when it began; who asks later waits for the next one, so
 * no answer is older than its question, and many questions at once cost few searches. A search that does not
 * end in time is killed, and then nobody knows. One that cannot be killed (it hangs in the kernel) is left
 * alone; with several of those nothing is searched any more until one of them is gone. */
#pragma once

#include "ublkd/disk_users/disk_users.h"

#include <stdint.h>
#include <systemd/sd-event.h>

/* What was never set is not known: only a search that has looked at everything writes DISK_UNUSED. */
enum disk_use {
        DISK_USE_UNKNOWN = 0, /* then better not touch it */
        DISK_UNUSED,
        DISK_USED,
};

struct disk_answer {
        int number;
        enum disk_use use;
        /* Used: by whom ("process 4211 (fio), mounted at /mnt and 3 more"). Unknown: why, as a clause that a
         * full stop can follow. Else "". Bytes of any kind, as names of processes are. */
        const char *text;
};

struct disk_search_options {
        struct disk_users_roots roots; /* without a place */
        uint64_t patience_usec;        /* for one search; 0: DISK_SEARCH_USEC */
        /* What the process calls; NULL: disk_users_find(). */
        int (*find)(const struct disk_users_roots *roots, struct disk_users *disks, size_t count);
};

enum { DISK_SEARCH_USEC = 10 * 1000 * 1000 };

struct disk_search;
struct disk_question;

/* 0 or -errno. The strings of the options outlive it. */
int disk_search_new(sd_event *event, const struct disk_search_options *options, struct disk_search **ret);
/* Kills a search under way. Questions that are left get no answer, and are still to be freed. NULL is fine.
 * Returns NULL. */
struct disk_search *disk_search_free(struct disk_search *search);

/* Called once, from the loop, and not by disk_search_ask(). It may free the question and ask others. */
typedef void (*disk_answered)(void *userdata, const struct disk_answer *answer);

enum disk_depth {
        DISK_NAMES,   /* who uses it, as far as /proc and /sys show */
        DISK_VERDICT, /* and whether anybody does: the kernel is asked as well, by an exclusive open that is
                         closed at once. Only for a disk that a worker serves: opening another could wait for
                         I/O. */
};

/* Asks who uses /dev/ublkbN. 0 and a question, to be freed by the caller, before or after its answer; or
 * -errno. */
int disk_search_ask(struct disk_search *search, int number, enum disk_depth depth, disk_answered answered,
        void *userdata, struct disk_question **ret);
/* There will be no answer. NULL is fine. Returns NULL. */
struct disk_question *disk_question_free(struct disk_question *question);

/* How many searches were started so far. */
uint64_t disk_search_count(const struct disk_search *search);
