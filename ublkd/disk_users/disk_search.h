/* SPDX-License-Identifier: MIT */
/* Searches the users of a disk: a separate process reads /proc and /sys, and the loop gets the answer as an
 * event.
 *
 * One search runs at a time. It serves every question that was asked before it began; a later question waits for
 * the next search. So no answer is older than its question, and many questions at once cost few searches. A
 * search that exceeds its time is killed, and the answer is "unknown". One that cannot be killed (it hangs in the
 * kernel) is left alone; with several of those no search starts until one of them has exited. */
#pragma once

#include "ublkd/disk_users/disk_users.h"

#include <stdint.h>
#include <systemd/sd-event.h>

/* Zero is unknown: only a complete search answers DISK_UNUSED. */
enum disk_use {
        DISK_USE_UNKNOWN = 0, /* then do not touch the disk */
        DISK_UNUSED,
        DISK_USED,
};

struct disk_answer {
        int number;
        enum disk_use use;
        /* Used: the users ("process 4211 (fio), mounted at /mnt and 3 more"). Unknown: the cause, as a clause
         * without a full stop. Else "". Contains any bytes, as names of processes do. */
        const char *text;
        unsigned kinds;    /* of its users: enum disk_user_kind */
        const char *owned; /* its users that are known to be of a user: for disk_answer_of() */
};

enum { DISK_ANSWER_TEXT_MAX = 4096 };

/* Write the users of the disk that are of that user, as in `text`; "": none. */
void disk_answer_of(const struct disk_answer *answer, uid_t uid, char text[static DISK_ANSWER_TEXT_MAX]);

/* Return what ends the use, as the beginning of a sentence. */
static inline const char *disk_users_advice(unsigned kinds)
{
        if (!(kinds & DISK_USER_DEVICE))
                return "Unmount it, end those processes or remove those devices";
        return kinds & DISK_USER_PROCESS ? "Unmount it, end the other processes or remove those devices"
                                         : "Unmount it or remove those devices";
}

struct disk_search_options {
        struct disk_users_roots roots; /* `place`, `supervisor` and `keeper` are not used */
        uint64_t patience_usec;        /* for one search; 0: DISK_SEARCH_USEC */
        /* The function that the process calls; NULL: disk_users_find(). */
        int (*find)(const struct disk_users_roots *roots, struct disk_users *disks, size_t count);
};

enum { DISK_SEARCH_USEC = 10 * 1000 * 1000 };

struct disk_search;
struct disk_question;

/* Create a search. The strings of the options outlive it. Return 0 or -errno. */
int disk_search_new(sd_event *event, const struct disk_search_options *options, struct disk_search **ret);
/* Kill a search under way and free it. Open questions get no answer, and the caller still frees them. NULL is
 * fine. Return NULL. */
struct disk_search *disk_search_free(struct disk_search *search);

/* Called once, from the loop, never by disk_search_ask() itself. It may free the question and ask others. */
typedef void (*disk_answered)(void *userdata, const struct disk_answer *answer);

enum disk_depth {
        DISK_NAMES,   /* the users that /proc and /sys show */
        DISK_VERDICT, /* and a check by the kernel: an exclusive open that is closed at once. Only for a disk
                         that a worker serves: opening another disk could wait for I/O. */
};

/* Ask for the users of /dev/ublkbN. Return 0 and a question, which the caller frees before or after its answer;
 * or -errno. */
int disk_search_ask(struct disk_search *search, int number, enum disk_depth depth, disk_answered answered,
        void *userdata, struct disk_question **ret);
/* Free a question; if it is open, `answered` is not called. NULL is fine. Return NULL. */
struct disk_question *disk_question_free(struct disk_question *question);
