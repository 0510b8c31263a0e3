/* SPDX-License-Identifier: MIT */
/* The messages between supervisor and worker, over a SOCK_SEQPACKET, one JSON object each, so that a newer
 * supervisor can read an older worker (unknown fields are skipped, unknown types are an error).
 *
 *   supervisor → worker:  CONFIG  GO  LIVE  GROW  ACTION  LEAVE
 *   worker → supervisor:  HELLO  BACKING  PARAMS  READY  FAILED  GROWN  NOTICE  NEWS
 *
 * A worker is started with one end of a socket pair, perhaps before it is known for which device. CONFIG
 * names it, and brings the descriptors of that device. Without a CONFIG it leaves when its supervisor does.
 *
 * A worker sends HELLO first on every connection (it is adopted by a later supervisor over its listening
 * socket) and then repeats BACKING, PARAMS and READY if it has got that far. BACKING brings a descriptor of
 * the store, which the supervisor keeps for the life of the disk and hands to the next worker with its
 * CONFIG. A worker that has not received GO leaves when its connection closes; after GO it stays, and waits
 * for the next supervisor. It leaves by itself once the kernel takes its queues away (-ENODEV). To replace one,
 * send LEAVE: it leaves when it has answered what it had begun. To stop one, kill it: by contract that loses nothing. */
#pragma once

#include "ublkd/backing/backing.h"
#include "ublkd/backing/backing_claims.h"
#include "ublkd/base/problem.h"
#include "ublkd/kernel/data_path.h"
#include "ublkd/proto/store_list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
        WORKER_STABLE_PATH_MAX = 1023, /* bytes */
        WORKER_PROTOCOL = 1,
        WORKER_MSG_SIZE_MAX = 128 * 1024,   /* bytes, of CONFIG: a spec */
        WORKER_REPORT_SIZE_MAX = 64 * 1024, /* bytes, of what a worker sends: claims and problems */
        WORKER_SHORT_SIZE_MAX = 4 * 1024,   /* bytes, of those of its messages that have neither */
        WORKER_VERB_MAX = 63,               /* bytes, of the name of an action */
        WORKER_ARGUMENTS_MAX = 1024,        /* bytes, of its arguments */
        /* The descriptors that a worker is started with, beside stdio. */
        WORKER_CHANNEL_FD = 3,
        WORKER_LOG_FD = 4, /* a pipe, which becomes its stdout and stderr; an older ublkd gives none */
        WORKER_VERSION_SIZE = 129
};

/* What travels with CONFIG, and makes a process the worker of one device. */
enum worker_config_fd {
        CONFIG_FD_LISTENER, /* the device's socket, bound; the worker is to listen on it */
        CONFIG_FD_REGION,   /* proto/device_region.h */
        CONFIG_FD_STORE, /* the store that the disk is on, from BACKING of a worker before; or -1. With a list of stores: the
                               first of those that have one */
        _CONFIG_FD_MAX = CONFIG_FD_STORE + STORE_LIST_MAX
};

/* The NAME of a process that has no device yet. */
#define WORKER_SPARE_NAME "(spare)"

/* The NAME that a worker of a tenant's device shows. */
#define WORKER_HIDDEN_NAME "(tenant)"

/* After the NAME: --sandbox best-effort of ublkd. */
#define WORKER_BEST_EFFORT "best-effort"

enum { WORKER_NAME_MAX = 63 }; /* bytes of a NAME, without the end */

enum worker_msg_type {
        WORKER_MSG_CONFIG,
        WORKER_MSG_GO,
        WORKER_MSG_LIVE,
        WORKER_MSG_HELLO,
        WORKER_MSG_PARAMS,
        WORKER_MSG_READY,
        WORKER_MSG_FAILED,
        WORKER_MSG_GROW,    /* only to one that has sent a size_max: others do not know it */
        WORKER_MSG_GROWN,   /* the answer to each GROW, whether it grew or not */
        WORKER_MSG_BACKING, /* which store it has opened, or has refused to; with its descriptor unless
                               refused */
        WORKER_MSG_NOTICE,  /* what the administrator should know; the worker serves on */
        /* Something in the region has changed that the supervisor shows: see region_faults.h. An older
         * supervisor does not know it, and replaces the worker. */
        WORKER_MSG_NEWS,
        /* Begin an action of the target: only to one whose HELLO says that it knows these. What becomes of it is in the
         * region (region_action.h), and NEWS reports its end. */
        WORKER_MSG_ACTION,
        /* Finish the requests that have begun, begin no others, and exit: only to one whose HELLO says that it knows this.
         * Its stage is LEAVING from then on. */
        WORKER_MSG_LEAVE,
        _WORKER_MSG_MAX
};

/* How far a worker has got, as it reports itself. */
enum worker_stage {
        WORKER_STAGE_OPENING,  /* has no backend open yet */
        WORKER_STAGE_OPEN,     /* PARAMS known, waits for GO */
        WORKER_STAGE_FETCHING, /* GO came, not every queue has fetched */
        WORKER_STAGE_READY,    /* every queue has fetched, waits for START_DEV or END_USER_RECOVERY */
        WORKER_STAGE_SERVING,  /* LIVE came, or I/O did */
        WORKER_STAGE_LEAVING,  /* its queues were taken away, or LEAVE came */
        _WORKER_STAGE_MAX
};

/* When a worker is to lock its backing store against other servers. */
enum worker_lock {
        WORKER_LOCK_TO_OPEN,  /* before PARAMS: what another worker serves is not opened */
        WORKER_LOCK_TO_SERVE, /* after GO: until then the requests of a dead worker may hold the lock */
        WORKER_LOCK_NEVER,    /* it will not serve */
        _WORKER_LOCK_MAX
};

/* The store that a worker has opened. Strings are owned by the message. */
struct worker_backing {
        char *boot, *lasting; /* struct backing_identity; "": none */
        int basis;            /* enum backing_basis */
        bool is_disk;
        uint32_t major, minor; /* of the disk, or of the file system that has the file */
        uint64_t inode;        /* of the file; 0: a disk */
        bool claimed;          /* the descriptor is an exclusive open of a block device */
        /* The answer to a CONFIG with a list, and then all above is empty: each store, with the descriptors of those that are open. */
        struct store_list stores;
};

/* The disk that the kernel is to show. Bytes, unless named otherwise; 0 means "cannot". */
struct disk_params {
        uint64_t size;
        uint32_t logical_block_size, physical_block_size, io_min, io_opt;
        uint32_t max_io_size;
        uint32_t discard_granularity, max_discard_size;
        uint32_t max_write_zeroes_size;
        bool read_only, rotational, volatile_cache, fua;
        uint16_t queues, queue_depth;
        /* What one request of zero copy may look like to fit the backing store as it is; 0: no matter. */
        uint32_t dma_alignment, max_segment_size; /* bytes */
        uint16_t max_segments;
        struct backing_claims claims; /* an older worker names one at most */
        /* Other users of the backing store (error EBUSY, reason BackingInUse), and what cannot be known of
         * that (another error); an older worker does not look. */
        struct problem_list sharing;
        bool path_may_change; /* the path in the spec may lead to another store after the next boot */
        char *stable_path;    /* the same store by a name that stays; NULL: it has none */
        uint64_t size_max; /* that the backing store had room for when it was looked at last; UINT64_MAX: it
                              has no limit; 0: an older worker, which cannot grow */
        enum data_path
                fastest; /* for this backing store, as measured; an older program does not send it: AUTO */
};

struct worker_msg {
        enum worker_msg_type type;
        union {
                struct {
                        int protocol;
                        char *uid;           /* of the device it was made for */
                        char *version;       /* of the program */
                        uint16_t epoch;      /* see device_record */
                        uint32_t restart;    /* from CONFIG; an older program does not send it: 0 */
                        uint64_t started_at; /* likewise */
                        pid_t pid;
                        int number; /* from GO, or -1 */
                        enum worker_stage stage;
                        bool acts;   /* it takes ACTION; an older program does not send it: false */
                        bool leaves; /* it takes LEAVE; likewise */
                } hello;
                struct {
                        char *name, *uid;
                        bool hide_name; /* not in the command line, which every user reads; an older program shows it */
                        uint16_t epoch;
                        uint32_t restart;    /* how many restarts were asked for; repeated in HELLO */
                        uint64_t started_at; /* CLOCK_REALTIME, microseconds; repeated in HELLO */
                        char *spec;          /* the device's spec, JSON text; checked by the supervisor */
                        uint16_t queues, queue_depth;
                        uint32_t max_io_size; /* bytes */
                        bool reissue; /* requests in flight will be replayed by the kernel after a death */
                        enum worker_lock lock; /* an older program does not send it: TO_OPEN */
                        bool exists; /* the kernel has the disk: its I/O waits for this worker, or another worker
                                        serves it during a preflight */
                        /* The store that it was made on, as BACKING had it; NULL: any store will do. */
                        char *expected_boot, *expected_lasting;
                        int expected_basis;
                        bool expected_is_disk, expected_in_this_boot;
                        bool expected_served; /* the disk was served from it last: the administrator has accepted
                                                 no other store since */
                        bool shared;          /* another disk of this ublkd has claimed the block device */
                        bool has_data; /* the store may be that of a disk with data, which `exists` need not show:
                                          advise nothing that loses it */
                        uint32_t store_user; /* whose rights the worker opens the store with; 0: its own */
                        /* Of a disk that does not lie in one store as it is, in place of `expected_*`, `shared` and `store_user`: one for
                         * each store of the tree. A worker refuses a list of another length. An older worker does not know it, and
                         * refuses such a tree. */
                        struct store_list stores;
                } config;
                struct {
                        int number;              /* serve /dev/ublkcN */
                        struct data_route route; /* an older program does not send it: AUTO, which is copy */
                        char *queue_cpus;        /* where each queue is to run: "0-1;2-3"; NULL: anywhere */
                        uint32_t user;           /* the uid and gid to serve with; 0: those that it has */
                } go;
                struct disk_params params;
                struct {
                        struct problem_list problems;
                        int holder; /* pid of the process that keeps the store locked; 0: not known, or not so */
                } failed;
                struct {
                        uint64_t size;
                } grow;
                struct {
                        uint64_t size, size_max;      /* as in struct disk_params, now */
                        struct problem_list problems; /* why it did not grow; empty when it did */
                } grown;
                struct {
                        uint64_t id;     /* above 0; of this device, no other action had it */
                        char *verb;      /* of the target */
                        char *arguments; /* JSON text, an object; checked by the supervisor */
                } action;
                struct worker_backing backing;
                struct problem_list notice;
        };
};

/* Send one message. Never blocks. Return 0; -EAGAIN: the peer does not read; -EPIPE: it is gone; -EMSGSIZE;
 * -ENOMEM. */
int worker_msg_send(int fd, const struct worker_msg *msg);
/* Send one message with descriptors beside it, which stay the caller's: those before the first -1. Return as
 * worker_msg_send(). */
int worker_msg_send_fds(int fd, const struct worker_msg *msg, const int fds[static _CONFIG_FD_MAX]);
/* Receive one message of either side. Never blocks. Return 1 and a message, which the caller clears; 0: the peer closed;
 * -EAGAIN: none there; -EBADMSG: not a message of this protocol; other -errno. */
int worker_msg_receive(int fd, struct worker_msg *ret);
/* Receive one message, as worker_msg_receive(), with the descriptors beside it, which the caller closes; -1
 * where nothing came. */
int worker_msg_receive_fds(int fd, struct worker_msg *ret, int ret_fds[static _CONFIG_FD_MAX]);
/* Receive one message of a worker, as worker_msg_receive(): one that is larger than a worker may send is
 * -EBADMSG, and is not parsed. ret_fds: as in worker_msg_receive_fds(), but `room` of them, at most _CONFIG_FD_MAX: the kernel
 * closes what the worker sends beyond. */
int worker_report_receive(int fd, struct worker_msg *ret, int *ret_fds, unsigned room);
/* Return the size of the largest message of the type, in bytes. */
size_t worker_msg_size_max(enum worker_msg_type type);
/* Convert text to a message, or back; for fuzzing and tests. Of problems too many for a message, those at the
 * end are cut off. Return 0, -EBADMSG or -ENOMEM. */
int worker_msg_decode(const char *text, size_t size, struct worker_msg *ret);
int worker_msg_encode(const struct worker_msg *msg, char **ret_text);
void worker_msg_clear(struct worker_msg *msg);
#define _cleanup_worker_msg_ _cleanup_(worker_msg_clear)

const char *worker_stage_to_string(enum worker_stage stage);
