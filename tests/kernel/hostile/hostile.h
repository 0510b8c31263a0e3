/* SPDX-License-Identifier: MIT */
/* A worker that an attacker took over: the real program, with attacks that run in its process. */
#pragma once

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

enum { HOSTILE_CLAIM_SIZE = 256, HOSTILE_PATH_SIZE = 108 /* as in struct sockaddr_un */ };

/* What an attack knows of the machine; the test has written it. */
struct victims {
        int32_t supervisor, worker; /* pids: of ublkd, and of another disk's worker */
        int32_t shm_key;            /* of System V shared memory of root's */
        int32_t tcp_port;           /* where root listens on 127.0.0.1 */
        char region[HOSTILE_PATH_SIZE], socket[HOSTILE_PATH_SIZE]; /* of another disk, and of its worker */
        char api[HOSTILE_PATH_SIZE];                               /* the socket of ublkd */
};

/* Tries one thing. 0: it was done; -errno: it was refused. What it did, it undoes. */
typedef int attack_function(const struct victims *victims);

/* Return what a call returned as an attack does. */
static inline int outcome(long r)
{
        return r < 0 ? -errno : 0;
}

/* The same of a call that opens something; close it. */
static inline int opened(long fd)
{
        int r = outcome(fd);

        if (fd >= 0)
                close((int)fd);
        return r;
}

struct named_attack {
        const char *name;
        attack_function *try;
};

/* From the main thread. Each table ends with an entry without a name. */
extern const struct named_attack process_attacks[], machine_attacks[], descriptor_attacks[], rare_attacks[];

/* From the thread of a queue: with its ring, which no other thread may use. */
struct ring_attack {
        const char *name;
        uint8_t opcode, flags;
        int fd;
        uint64_t off, address;
        uint32_t length, more;
};
extern const struct ring_attack ring_attacks[];
/* Sends one entry. 0: the ring allows it, whatever became of it; -EACCES: it does not; other -errno. */
int ring_attack_try(struct io_uring *ring, const struct ring_attack *attack);
/* Have the ring ask the socket between worker and supervisor for a pidfd of the supervisor, or change an option of it. As
 * attacks: 0: it was done; -errno. */
int ring_attack_peer(struct io_uring *ring);
int ring_attack_option(struct io_uring *ring);
/* Sends an entry of each other operation, with nothing in it. -EACCES: the ring allows none; 0: it allows one. */
int ring_attack_all(struct io_uring *ring);

enum { HOSTILE_FDS = 128 }; /* that are looked at */

/* What the main thread does instead of its work; tests/kernel/harness/hostile.py has the same numbers. */
enum deed {
        DEED_NONE,
        DEED_READY,
        DEED_NEWS,
        DEED_LARGEST,
        DEED_GROWN,
        DEED_CLOSE_LISTENER,
        DEED_CLOSE_CHANNEL,
        DEED_NOTICE,
        DEED_SPIN,
        DEED_END_MAIN,
        DEED_CALL_32,
        DEED_STAY,
        DEED_EAT,
        DEED_NOTICE_AND_EXIT,
        DEED_SPIN_ALL,
        _DEED_MAX
};
/* Does it; does not return if it is a flood. */
void hostile_deed_do(uint32_t deed);
/* Fork a process that stays, with all that the main thread has open. */
void hostile_stay(void);
/* The next thread of a queue that takes completions spins from then on; the others serve on. */
void hostile_spin_one(void);
/* The calling thread spins, and each thread of a queue that takes completions from then on. */
void hostile_spin_all(void);

/* Claims, as JSON, that the worker sends in place of its own; "": it sends its own. */
const char *hostile_claims(void);

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
