/* SPDX-License-Identifier: MIT */
/* Whether the disk of a device may be removed or replaced for a file: the checks that DELETE, PUT and PATCH make
 * without `force` and without consent to a loss. One device at a time, on the loop. */
#pragma once

#include "ublkd/disk_users/disk_search.h"
#include "ublkd/model/backing_reach.h"
#include "ublkd/store/device_change.h"
#include "ublkd/store/device_store.h"

struct spec_preflight;

struct declared_check_config {
        struct disk_search *disk_search; /* NULL: no disk is in use */
        /* As reconciler_reach(). */
        enum backing_reach (*read_reach)(
                void *userdata, const struct device_record *record, const struct device_spec *next);
        /* As spec_preflight_begin() and _end(). NULL: every spec passes. */
        int (*try_spec)(void *userdata, const struct device_record *record, const struct device_spec *spec,
                void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
                void *then_userdata, struct spec_preflight **ret);
        struct spec_preflight *(*end_preflight)(struct spec_preflight *preflight);
        void *userdata;
        void (*answered)(void *userdata); /* from the loop: ask again */
        void *answered_userdata;
};

enum declared_verdict {
        DECLARED_WAITS, /* `answered` follows */
        DECLARED_MAY,
        DECLARED_MAY_NOT,
};

struct declared_check;

/* Make a check that has asked nothing yet. The pointers of `config` outlive it. Return 0 or -ENOMEM. */
int declared_check_new(const struct declared_check_config *config, struct declared_check **ret);
/* Free it; `answered` is not called any more. NULL is fine. Return NULL. */
struct declared_check *declared_check_free(struct declared_check *check);

/* Check whether ublkd may remove the disk of `record` (spec NULL), or do what the change to `spec` does to it. *ret: for
 * DECLARED_MAY_NOT, the cause: sentences that say what to do, which the caller frees; NULL on ENOMEM. An answer for
 * another device or generation does not count. */
enum declared_verdict declared_check_ask(struct declared_check *check, const struct device_record *record,
        const struct device_spec *spec, char **ret);
/* Drop what is known: the next question is about the present. */
void declared_check_drop(struct declared_check *check);
