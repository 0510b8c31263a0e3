/* SPDX-License-Identifier: MIT */
/* The REST API over HTTP: Unix sockets, TCP on loopback, sockets from systemd. Runs on the supervisor's loop
 * and never waits. It sees the store and what the hooks tell, and nothing else of the supervisor. */
#pragma once

#include "ublkd/host/adoptable.h"
#include "ublkd/model/backing_reach.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/model/device_stats.h"
#include "ublkd/store/device_store.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/host/host.h"

#include <systemd/sd-event.h>

/* How long a client may take, in microseconds; 0: as documented in docs/api.md. */
struct api_times {
        uint64_t idle, head, body, reply;
};

struct spec_trial;

/* All pointers outlive the api. */
struct api_config {
        struct device_store *store;
        const struct host *host;
        const char *state_dir;           /* holds the bearer token (api-token) once TCP is asked for */
        struct disk_search *disk_search; /* who uses a disk; NULL: never anybody */
        /* What the device's worker has counted. 0 and new statistics; -ENOENT, -ENODATA: it was never served;
         * -EPROTO: counted by a worker of another version; other -errno. NULL: never served. */
        int (*read_stats)(void *userdata, const struct device_record *record, struct device_stats **ret);
        /* What the supervisor counts of its own work. NULL: nothing. */
        void (*read_counters)(void *userdata, struct daemon_counters *ret);
        /* Whether the store of the device's disk can be reached without the disk. NULL: that is not known. */
        enum backing_reach (*read_reach)(void *userdata, const struct device_record *record);
        /* Tries whether the device could be served with `spec`, before the disk that it has is taken away. 0
         * and a trial; `then` is told once, from the loop: why not, or NULL: it could; !tried: ask again. -EBUSY:
         * the store of an earlier trial does not answer; other -errno. NULL: nothing is tried. */
        int (*try_spec)(void *userdata, const struct device_record *record, const struct device_spec *spec,
                void (*then)(void *userdata, bool tried, const char *refusal), void *then_userdata,
                struct spec_trial **ret);
        /* Nobody is to be told any more; before `then` was. Returns NULL. Together with try_spec. */
        struct spec_trial *(*end_trial)(struct spec_trial *trial);
        /* Looks anew at what `host` tells; api_host_seen() is called when that is done. False: it is done
         * already, or cannot be. NULL: it never changes. */
        bool (*look_at_host)(void *userdata);
        /* Takes the record of a disk that no record here stands for from the runtime directory, under `name`
         * (NULL: its own). NULL: nothing can be adopted. */
        struct adoption (*adopt)(void *userdata, const char *uid, const char *name);
        /* Fills `ret` (empty) with what the runtime directory has for that. 0 or -errno. Together with adopt.
         */
        int (*list_adoptable)(void *userdata, struct adoptables *ret);
        /* The first pass over all devices is done. NULL: always. */
        bool (*is_ready)(void *userdata);
        void *userdata;
        const char *const *listen; /* "/path/of.sock" or "tcp://127.0.0.1:PORT", "tcp://[::1]:PORT" */
        size_t listen_count;
        struct api_times times;
        bool refuse_unstable_paths; /* kernel_name_may_change() in a spec is a fault, and no warning */
        unsigned passed_sockets;    /* listening sockets from systemd, from descriptor 3 on; taken over */
};

struct api;

/* Binds every address and starts to answer. Returns 0; -errno with one problem that says what is wrong and
 * what to do (address in use, not permitted, beyond loopback). Nothing is left behind on failure. */
int api_new(
        sd_event *event, const struct api_config *config, struct api **ret, struct problem_list *problems);

/* What config->host tells is as it is now: those who have waited for that get it. From the loop. */
void api_host_seen(struct api *api);

/* The first pass over all devices is done: config->is_ready() says so. From the loop. */
void api_settled(struct api *api);

/* Closes every connection, also those that wait, and removes the socket files. NULL is fine. Returns NULL. */
struct api *api_free(struct api *api);
