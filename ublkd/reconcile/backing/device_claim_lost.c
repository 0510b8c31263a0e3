/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database had: the store lacks their records, but their waiting requests are still
 * to be written. The worker of such a disk has the lock on its bytes; a disk without a worker is protected only by
 * this file.
 *
 * ublkd finds these claims in the runtime directory when it starts: after that the database loses no record. The
 * scan for foreign disks is not enough: it ends some time after the first request, and its list is limited. */
#include "ublkd/reconcile/backing/device_claim_lost.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/runtime/claim_file.h"
#include "ublkd/model/device_cookie.h"
#include "ublkd/records/record_file.h"

#include <stdio.h>
#include <string.h>

struct search {
        struct managed_device *device;
        const struct backing_claims *claims;
};

static bool is_node_there(int number)
{
        char path[64];

        snprintf(path, sizeof(path), "/sys/class/ublk-char/ublkc%d", number);
        return access(path, F_OK) == 0;
}

/* Return whether the disk with that number is known to be of another uid. */
static bool is_of_another(const struct managed_device *device, int number, const char *uid)
{
        const struct reconciler_config *config = &device->env->config;
        const struct foreign_disks *foreign = &config->host->foreign;
        const struct device_record *record = device_store_of_number(config->store, number);

        if (record && device_record_disk_has_number(record))
                return true;
        for (size_t i = 0; i < foreign->count; i++)
                if (foreign->items[i].number == number)
                        return !device_cookie_matches(foreign->items[i].cookie, uid);
        return false;
}

/* Note that the disk of the record `name`, `uid` in the runtime directory has the store. */
static void note_lost(struct managed_device *device, const char *name, const char *uid)
{
        static const char danger[] = "Two disks that write to one store would destroy its data.";
        const struct device_record *of_name = device_store_get(device->env->config.store, name);

        if (!of_name || strcmp(of_name->uid, uid) == 0)
                device_note(device, REASON_BACKING_IN_USE,
                        "The backing store belongs to the disk of the device %s, whose record this database "
                        "has lost; 'ublkctl adopt %s' adopts that disk. %s",
                        name, name, danger);
        else if (strcmp(name, device->id.name) == 0 && device->view.facts.kernel == KERNEL_ABSENT)
                device_note(device, REASON_BACKING_IN_USE,
                        "The backing store belongs to the disk of an earlier device %s, whose record this "
                        "database has lost. 'ublkctl adopt --name NAME %s' adopts that disk under another "
                        "name. To keep the name, remove this device, which has no disk: 'ublkctl delete "
                        "%s', then 'ublkctl adopt %s'. %s",
                        name, uid, name, name, danger);
        else
                device_note(device, REASON_BACKING_IN_USE,
                        "The backing store belongs to the disk of an earlier device %s, whose record this "
                        "database has lost; 'ublkctl adopt --name NAME %s' adopts that disk under another "
                        "name. %s",
                        name, uid, danger);
}

void device_claim_name_lost_holder(struct managed_device *device, pid_t holder)
{
        const struct adoptables *lost = &device->env->config.host->adoptable;

        for (size_t i = 0; i < lost->count; i++) {
                const struct adoptable *item = &lost->items[i];

                if (item->pid == holder && *item->uid && item->name) {
                        note_lost(device, item->name, item->uid);
                        return;
                }
        }
}

static bool collides(const struct search *search, const char *uid)
{
        const struct reconciler_config *config = &search->device->env->config;
        _cleanup_claims_ struct backing_claims lost = {};

        return !device_store_find_uid(config->store, uid)
               && claim_file_read(config->runtime_dir, uid, &lost) >= 0
               && backing_claims_collide(search->claims, &lost);
}

/* Return -EBUSY with a note if the device `uid` has a disk with a colliding claim. */
static int check_uid(const struct search *search, const char *uid)
{
        struct managed_device *device = search->device;
        _cleanup_record_file_ struct record_file file = {};
        _cleanup_free_ char *text = NULL;

        if (!collides(search, uid)
                || runtime_dir_read_record(device->env->config.runtime_dir, uid, RECORD_FILE_SIZE_MAX, &text)
                           < 0)
                return 0;
        /* An unreadable record does not name its disk: assume that the disk exists. */
        if (record_file_parse(text, uid, &file) >= 0
                && (file.record.number < 0 || !is_node_there(file.record.number)
                        || is_of_another(device, file.record.number, uid)))
                return 0;
        note_lost(device, file.record.name ? file.record.name : uid, uid);
        return -EBUSY;
}

int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims)
{
        const struct reconciler_config *config = &device->env->config;
        struct search search = {.device = device, .claims = claims};

        /* A recovery skips this without such a disk: its own disk exists already. */
        if (device->view.facts.kernel == KERNEL_DOWN && config->host->foreign.count == 0)
                return 0;
        for (size_t i = 0; i < device->reconciler->lost.count; i++)
                if (check_uid(&search, device->reconciler->lost.uids[i]) == -EBUSY)
                        return -EBUSY;
        return 0;
}

/* ---- the start ---- */

static int add_lost(void *userdata, const char *uid)
{
        struct reconciler *reconciler = userdata;
        char **lost;

        if (device_store_find_uid(reconciler->env.config.store, uid))
                return 0;
        lost = reallocarray(reconciler->lost.uids, reconciler->lost.count + 1, sizeof(*lost));
        if (!lost)
                return -ENOMEM;
        reconciler->lost.uids = lost;
        lost[reconciler->lost.count] = strdup(uid);
        if (!lost[reconciler->lost.count])
                return -ENOMEM;
        reconciler->lost.count++;
        return 0;
}

int reconciler_find_lost(struct reconciler *reconciler)
{
        return runtime_dir_each_record(reconciler->env.config.runtime_dir, add_lost, reconciler);
}

void reconciler_drop_lost(struct reconciler *reconciler)
{
        for (size_t i = 0; i < reconciler->lost.count; i++)
                free(reconciler->lost.uids[i]);
        free(reconciler->lost.uids);
}
