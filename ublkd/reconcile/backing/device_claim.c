/* SPDX-License-Identifier: MIT */
/* Two writers on one backing store would destroy each other's data. So a disk claims its store from before
 * ADD_DEV until its removal, also without a worker, because the next worker will write the waiting requests.
 * A worker that has only opened the store writes nothing, and has no claim: of two such workers, the first
 * disk wins. */
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim_lost.h"
#include "ublkd/reconcile/backing/store_refusal.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/device_words.h"

#include "ublkd/base/sentence.h"
#include "ublkd/runtime/claim_file.h"
#include "ublkd/plan/claims.h"

#include <stdio.h>
#include <unistd.h>

/* Return the claims of a worker that writes: it does from GO on, even if it was adopted just now and sent nothing
 * yet. NULL: it does not, or ublkd has killed it for what it sent. */
static const struct backing_claims *writing_claims(const struct managed_device *device)
{
        const struct worker_proc *worker = device->process.worker;
        const struct disk_params *params = worker ? worker_proc_params(worker) : NULL;

        if (!params || worker_proc_number(worker) < 0 || worker_proc_is_refused(worker))
                return NULL;
        return &params->claims;
}

static struct runtime_dir *runtime_dir_of(const struct managed_device *device)
{
        return device->env->config.runtime_dir;
}

void claim_table_init(struct claim_table *table)
{
        claim_index_init(&table->index);
        LIST_INIT(&table->unclaimed);
}

const struct backing_claims *device_claim_written(const struct managed_device *device)
{
        return device->claim.is_written ? &device->claim.claims : NULL;
}

bool device_claim_is_of_another(const struct managed_device *device, const struct backing_claims *claims)
{
        size_t looks;

        return claim_index_collide(&device->reconciler->claims.index, claims, device, &looks);
}

void device_claim_note_worker(struct managed_device *device)
{
        const struct backing_claims *writing = device->claim.is_written ? NULL : writing_claims(device);

        if (!writing || writing->count == 0 || device->claim.is_unclaimed)
                return;
        LIST_INSERT_HEAD(&device->reconciler->claims.unclaimed, device, claim.of_unclaimed);
        device->claim.is_unclaimed = true;
}

static void leave_unclaimed(struct managed_device *device)
{
        if (device->claim.is_unclaimed)
                LIST_REMOVE(device, claim.of_unclaimed);
        device->claim.is_unclaimed = false;
}

/* Replace the claims in the device and in the index; takes over both arguments. */
static void replace_claims(
        struct managed_device *device, const struct backing_claims *claims, struct held_claims *held)
{
        held_claims_free(device->claim.held);
        backing_claims_clear(&device->claim.claims);
        device->claim.claims = *claims;
        device->claim.held = held;
        if (held)
                claim_index_add(&device->reconciler->claims.index, held);
}

/* Write the claims down before they are in force, so that the next supervisor knows them. */
static int claims_set(struct managed_device *device, const struct backing_claims *claims)
{
        _cleanup_claims_ struct backing_claims copy = {};
        _cleanup_(held_claims_free_pointer) struct held_claims *held = NULL;
        int r;

        if (device->claim.is_written
                && (claims->count == 0 || backing_claims_equal(&device->claim.claims, claims)))
                return 0;
        r = backing_claims_append(&copy, claims);
        if (r >= 0)
                held = held_claims_new(&copy, device);
        if (r < 0 || !held)
                return r < 0 ? r : -ENOMEM;
        r = claim_file_write(runtime_dir_of(device), device->id.uid, claims);
        if (r < 0) {
                device_note(device, REASON_RUNTIME_DIRECTORY, "%s cannot be written: %s.",
                        runtime_dir_path(runtime_dir_of(device)), strerror(-r));
                return r;
        }
        replace_claims(device, &copy, TAKE_PTR(held));
        copy = (struct backing_claims){};
        device->claim.is_written = true;
        return 0;
}

void device_claim_rewrite(const struct managed_device *device)
{
        if (device->claim.is_written)
                (void)claim_file_write(runtime_dir_of(device), device->id.uid, &device->claim.claims);
}

void device_claim_load(struct managed_device *device)
{
        _cleanup_claims_ struct backing_claims claims = {};
        struct held_claims *held;

        device_claim_drop(device);
        if (claim_file_read(runtime_dir_of(device), device->id.uid, &claims)
                < 0) /* no claims: the worker will send them */
                return;
        held = held_claims_new(&claims, device);
        if (!held)
                return;
        replace_claims(device, &claims, held);
        claims = (struct backing_claims){};
        device->claim.is_written = true;
}

/* Note which device has the store that `device` needs. others: "", or words for devices that may have it
 * instead. */
static void note_holders(
        struct managed_device *device, const struct managed_device *holder, const char *others)
{
        const struct device_record *record = device_store_get(holder->env->config.store, holder->id.name);
        const struct device_record *own = device_store_get(device->env->config.store, device->id.name);
        char node[32] = "";

        if (record && record->number >= 0) /* without a disk it may have no number yet */
                snprintf(node, sizeof(node), " (/dev/ublkb%d)", record->number);
        device_note(device, REASON_BACKING_IN_USE,
                "The backing store is in use by the device \"%s\"%s%s; two disks that write to one store "
                "would destroy its data. Use another range of the store, make both devices read-only, or use "
                "that device instead of this one.",
                holder->id.name, node, others);
        if (own && record && !*others && tenant_is(own->tenant, record->tenant))
                device_note_of_owner(device);
}

static void note_holder(struct managed_device *device, const struct managed_device *holder)
{
        note_holders(device, holder, "");
}

static bool is_served(const struct managed_device *device)
{
        return device->process.worker && worker_proc_stage(device->process.worker) == WORKER_STAGE_SERVING;
}

enum {
        OTHERS_SIZE = 128,
        SHARING_REPORTED_MAX = 16,
};

/* Add ` or "NAME"` to the words; " or others" if there is no room for it. Return whether the name was added. */
static bool add_other(char words[static OTHERS_SIZE], const char *name)
{
        static const char rest[] = " or others";
        size_t used = strlen(words);

        if (used + strlen(" or \"\"") + strlen(name) + sizeof(rest) > OTHERS_SIZE) {
                strcpy(words + used, rest);
                return false;
        }
        snprintf(words + used, OTHERS_SIZE - used, " or \"%s\"", name);
        return true;
}

/* ublkd itself has the lock: it keeps the store of a disk without a worker. A worker that serves would be named instead.
 * Several devices can lie on other ranges of
 * that store; the worker does not report the locked range. */
static void name_keeper(struct managed_device *device)
{
        const struct worker_store *store = store_refusal_place(device);
        const struct managed_device *keeper = NULL;
        char others[OTHERS_SIZE] = "";

        if (!store)
                return;
        DEVICE_ON_STORE_FOREACH (key, device->reconciler, store) {
                const struct managed_device *other = key->device;

                if (other == device || other == keeper || is_served(other)
                        || !device_backing_holds(&other->backing, store))
                        continue;
                if (!keeper)
                        keeper = other;
                else if (!add_other(others, other->id.name))
                        break;
        }
        if (keeper)
                note_holders(device, keeper, others);
}

void device_claim_name_holder(struct managed_device *device, pid_t holder)
{
        const struct managed_device *other;

        if (holder == 0)
                return;
        if (holder == getpid()) {
                name_keeper(device);
                return;
        }
        other = device_keys_find_pid(device, holder);
        if (other)
                note_holder(device, other);
        else
                device_claim_name_lost_holder(device, holder);
}

/* Few devices have claims that are not written down yet; their next turn writes them. */
static struct managed_device *find_unclaimed_holder(
        struct managed_device *device, const struct backing_claims *claims)
{
        struct managed_device *other = LIST_FIRST(&device->reconciler->claims.unclaimed), *next;

        for (; other; other = next) {
                const struct backing_claims *writing = other->claim.is_written ? NULL : writing_claims(other);

                next = LIST_NEXT(other, claim.of_unclaimed);
                if (!writing)
                        leave_unclaimed(other);
                else if (other != device && backing_claims_collide(claims, writing))
                        return other;
        }
        return NULL;
}

/* Return -EBUSY with a note if another device of this ublkd has a colliding claim. */
static int check_others(struct managed_device *device, const struct backing_claims *claims)
{
        size_t looks;
        const struct managed_device *holder =
                claim_index_collide(&device->reconciler->claims.index, claims, device, &looks);

        if (!holder)
                holder = find_unclaimed_holder(device, claims);
        if (!holder)
                return device_claim_check_lost(device, claims) < 0 ? -EBUSY : 0;
        note_holder(device, holder);
        return -EBUSY;
}

/* If another process writes to the store, or that is unknown, refuse a new disk. Do not keep an existing disk
 * from its recovery, because its I/O waits. */
static int check_sharing(struct managed_device *device, const struct problem_list *sharing)
{
        for (size_t i = 0; device->view.facts.kernel == KERNEL_ABSENT && i < sharing->count; i++)
                if (sharing->items[i].error != 0) {
                        device_note(device, device_words_reason(&device->words, sharing->items[i].reason),
                                "%s", sharing->items[i].detail);
                        return -EBUSY;
                }
        return 0;
}

static bool is_reported(const struct managed_device *device, const struct problem *problem)
{
        for (size_t i = 0; i < device->claim.sharing_reported.count; i++)
                if (sentence_equal(device->claim.sharing_reported.items[i].detail, problem->detail))
                        return true;
        return false;
}

/* Report each problem once in the life of a disk, and only so many: the worker may make them up. */
static void report_sharing(struct managed_device *device, const struct problem_list *sharing)
{
        for (size_t i = 0; i < sharing->count; i++) {
                const struct problem *problem = &sharing->items[i];

                if (device->claim.sharing_reported.count >= SHARING_REPORTED_MAX
                        || is_reported(device, problem))
                        continue;
                device_emit(device, EVENT_WARNING, device_words_reason(&device->words, problem->reason),
                        "%s%s", problem->detail,
                        problem->error != 0 ? " The disk exists already, and ublkd continues to serve it."
                                            : "");
                (void)problem_add(&device->claim.sharing_reported, problem->error, problem->pointer,
                        problem->reason, "%s", problem->detail); /* on ENOMEM it is reported once more */
        }
}

int device_claim_take(struct managed_device *device)
{
        const struct disk_params *params = worker_proc_params(device->process.worker);
        int r = check_others(device, &params->claims);

        if (r >= 0)
                r = check_sharing(device, &params->sharing);
        if (r >= 0)
                r = claims_set(device, &params->claims);
        if (r >= 0)
                report_sharing(device, &params->sharing);
        return r;
}

int device_claim_extend(struct managed_device *device, uint64_t size)
{
        _cleanup_claims_ struct backing_claims claims = {};
        /* The claims of the disk, not of the worker: an adopted worker may name none. */
        const struct backing_claims *now = device->claim.claims.count > 0
                                                   ? &device->claim.claims
                                                   : &worker_proc_params(device->process.worker)->claims;
        int r = backing_claims_append(&claims, now);

        if (r < 0)
                return r;
        if (!device->backing.is_list) /* else they reach as far as the tree can grow */
                backing_claims_resize(&claims, size);
        r = check_others(device, &claims);
        return r < 0 ? r : claims_set(device, &claims);
}

void device_claim_follow(struct managed_device *device)
{
        const struct backing_claims *writing = writing_claims(device);
        bool is_gone =
                device->view.facts.kernel == KERNEL_ABSENT && device->view.facts.worker == PLAN_WORKER_NONE;

        if (is_gone
                && !device_backing_is_held(&device->backing)) /* the next disk gets a store that is held */
                device_claim_release(device);
        else if (!device->claim.is_written && writing)
                (void)claims_set(device, writing); /* on ENOMEM: in the next turn */
}

void device_claim_drop(struct managed_device *device)
{
        problem_list_clear(&device->claim.sharing_reported);
        replace_claims(device, &(const struct backing_claims){}, NULL);
        device->claim.is_written = false;
        leave_unclaimed(device);
}

void device_claim_release(struct managed_device *device)
{
        if (!device->claim.is_written)
                return;
        (void)claim_file_remove(runtime_dir_of(device),
                device->id.uid); /* a file that is left is released after the next start */
        device_claim_drop(device);
        device_claim_note_worker(device); /* of a dead worker that is not reaped yet */
}
