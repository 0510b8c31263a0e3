/* SPDX-License-Identifier: MIT */
/* What the API needs of the supervisor, and the addresses and times of the server. */
#pragma once

#include "api/http/access.h"
#include "ublkd/authority/authority_answer.h"
#include "ublkd/host/adoptable.h"
#include "ublkd/model/backing_reach.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/model/device_stats.h"
#include "ublkd/store/device_store.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/host/host.h"
#include "ublkd/filesystems/filesystem_maker.h"
#include "ublkd/nodes/delivery_wire.h"

#include <systemd/sd-event.h>

/* How long a client may take, in microseconds. 0: the time that docs/api.md documents. */
struct api_times {
        uint64_t idle, head, body, reply;
        uint64_t
                token; /* over TCP, from the connection until the head of a request with the token has come */
};

struct node_delivery;
struct peer_paths;
struct spec_preflight;

/* All pointers must outlive the api. The API calls the callbacks from the loop; none of them may block. */
struct api_config {
        struct device_store *store;
        const struct host *host;
        const char *state_dir;           /* holds the bearer token (api-token) if one address is TCP */
        struct disk_search *disk_search; /* finds the openers of a disk; NULL: no disk has any */
        struct peer_paths *peer_paths;   /* finds paths of containers; NULL: none is on the host */
        /* Return 0 and the counters of the device's worker, which the caller frees. -ENOENT, -ENODATA: no
         * worker has served the device; -EPROTO: a worker of another version counted them; -ESTALE: they were removed; other -errno.
         * NULL: no worker has served any device. */
        int (*read_stats)(void *userdata, const struct device_record *record, struct device_stats **ret);
        /* Fill `ret` with the supervisor's counters of its own work. NULL: there are none. */
        void (*read_counters)(void *userdata, struct daemon_counters *ret);
        /* Return whether ublkd can reach the backing stores of the device without its disk. next: a later spec, of which only
         * the paths that it leaves as they are count; NULL: all count. NULL: unknown. */
        enum backing_reach (*read_reach)(
                void *userdata, const struct device_record *record, const struct device_spec *next);
        /* Try whether a worker could serve the device with `spec`, before ublkd removes its present disk.
         * Return 0 and a preflight; it calls `then` once, from the loop. `refusal` is the cause, NULL if a
         * worker can serve the device, and valid during the call; `tried` is false if the caller must ask
         * again. -EBUSY: the store of an earlier preflight does not answer; other -errno. NULL: ublkd tries
         * nothing. */
        int (*try_spec)(void *userdata, const struct device_record *record, const struct device_spec *spec,
                void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
                void *then_userdata, struct spec_preflight **ret);
        /* Cancel a preflight that has not called `then` yet. Return NULL. Set together with try_spec. */
        struct spec_preflight *(*end_preflight)(struct spec_preflight *preflight);
        /* Ask polkit whether the process that connected to the Unix socket `client` may change devices; interactive: its
         * user may be asked for a password. Return 0 and a question; it calls `then` once, from the loop, and is gone
         * then. -EBUSY: one of the same user is under way; -EUSERS: too many are; other -errno: there is no answer. NULL:
         * no request asks. */
        int (*ask_authority)(void *userdata, int client, bool interactive,
                void (*then)(void *userdata, enum authority_answer answer), void *then_userdata,
                struct authority_question **ret);
        /* Withdraw a question that has not called `then` yet. Return NULL. Set together with ask_authority. */
        struct authority_question *(*withdraw_question)(struct authority_question *question);
        /* Bring the private node of the device, or the file system that ublkd has mounted, to a path in the mount namespace of
         * the process that connected to the Unix socket `client`, or of wish->pid. Return 0 and a delivery; it calls `then`
         * once, from the loop, and is gone then. -ENOENT: there is no node; -ESRCH: the process has ended; -EOPNOTSUPP: no
         * Unix socket; -EINVAL, -ENAMETOOLONG: of the path; -E2BIG: too many groups; -EBUSY: two of the same user are under
         * way; -EAGAIN: too many are; other -errno. NULL: there are no nodes. */
        int (*deliver)(void *userdata, int client, const struct device_record *record,
                const struct delivery_wish *wish,
                void (*then)(void *userdata, const struct delivery_report *report), void *then_userdata,
                struct node_delivery **ret);
        /* Cancel a delivery that has not called `then` yet. Set together with deliver. */
        void (*cancel_delivery)(struct node_delivery *delivery);
        /* Make the file system on the disk of the device, mount it, or end the mount. Return 0 and a making; it calls `then`
         * once, from the loop, and is gone then. -ENODEV: the disk is not in service; -EBUSY: one is under way on this
         * disk; -EAGAIN: too many are; other -errno. NULL: there are no disks. */
        int (*make_filesystem)(void *userdata, const struct device_record *record,
                const struct filesystem_wish *wish,
                void (*then)(void *userdata, const struct filesystem_answer *answer), void *then_userdata,
                struct filesystem_making **ret);
        /* Do not call `then` of a making that has not called it yet. Set together with make_filesystem. */
        void (*abandon_filesystem)(struct filesystem_making *making);
        /* Refresh what `host` describes. Return true if api_host_seen() follows; false if the view is already
         * fresh, or cannot be refreshed. NULL: it never changes. */
        bool (*look_at_host)(void *userdata);
        /* Begin to refresh host->database, without an answer. NULL: it never changes. */
        void (*look_at_state)(void *userdata);
        /* Take the record of a disk without a device from the runtime directory, and store it as `name`
         * (NULL: the name in the record). NULL: ublkd adopts nothing. */
        struct adoption (*adopt)(void *userdata, const char *uid, const char *name);
        /* Fill `ret` (empty) with the records in the runtime directory that a client can adopt. 0 or -errno.
         * Set together with adopt. */
        int (*list_adoptable)(void *userdata, struct adoptables *ret);
        /* Return whether the first pass over all devices is done. NULL: it is. */
        bool (*is_ready)(void *userdata);
        void *userdata;
        const char *const *listen; /* "/path/of.sock" or "tcp://127.0.0.1:PORT", "tcp://[::1]:PORT" */
        size_t listen_count;
        struct api_times times;
        struct api_rights rights;
        struct api_group socket_group; /* of Unix sockets in `listen` */
        bool refuse_unstable_paths;    /* refuse paths with kernel_name_may_change(), do not warn */
        bool allow_fault_target;       /* do not refuse targets for tests */
        bool best_effort;              /* a worker serves with the walls that it can have */
        unsigned passed_sockets; /* listening sockets from systemd, from descriptor 3 on; the API owns them */
};
