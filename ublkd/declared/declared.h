/* SPDX-License-Identifier: MIT */
/* Applies the files that describe devices to the store: at the start, when the administrator asks (reload), and once a
 * minute to devices whose file is gone while their disk is in use. A process apart reads the files. Runs on the loop; a
 * device is a turn of the loop. */
#pragma once

#include "ublkd/declared/declared_check.h"

#include <systemd/sd-event.h>

struct policy;

/* All pointers outlive it. */
struct declared_config {
        sd_event *event;
        struct device_store *store;
        const char *const *dirs; /* the most important first */
        size_t dir_count;        /* DEVICE_DIRS_MAX at most */
        bool refuse_unstable_paths;
        bool allow_fault_target;             /* do not refuse targets for tests */
        struct declared_check_config checks; /* all but `answered` */
        /* A disk of a device of this name can be adopted (POST /devices/adopt), so no other may be made. NULL: none. */
        bool (*is_adoptable)(void *userdata, const char *name);
        /* Return the policy, which names the pools in which a file may have an image; valid during the turn. NULL: there are
         * none. */
        const struct policy *(*policy)(void *policy_userdata);
        void *policy_userdata;
        /* Whether there may be a disk of this number, before the first pass over all devices. */
        bool (*disk_exists)(void *userdata, int number);
        /* The files were applied. problems: of the files, and of what could not be applied; each has a reason and a
         * sentence. */
        void (*applied)(void *userdata, const struct problem_list *problems);
        void *userdata;
        uint64_t retry_usec; /* 0: a minute */
};

struct declared;

/* Create it; nothing is read yet. Return 0 or -errno. */
int declared_new(const struct declared_config *config, struct declared **ret);
/* Free it. NULL is fine. Return NULL. */
struct declared *declared_free(struct declared *declared);

/* Whether a spec with a path that may change is refused, from the next file on. */
void declared_set_policy(struct declared *declared, bool refuse_unstable_paths);
/* Read the files and apply them; `applied` follows. During an earlier call: once more after it. asked: the administrator
 * asked for it; before that no device is removed. */
void declared_apply(struct declared *declared, bool asked);
/* The first pass over all devices is done, so their disks are known. Changes and removals wait for that, unless the
 * device has no disk. */
void declared_disks_are_known(struct declared *declared);
