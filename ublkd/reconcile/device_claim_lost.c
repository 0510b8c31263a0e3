/* SPDX-License-Identifier: MIT */
/* The claims of disks that a lost database knew: their records are gone from the store, but what waits in
 * them is still to be written. A worker that serves such a disk has the lock on its bytes; one that has none
 * is protected by this alone. */
#include "ublkd/reconcile/managed_device.h"

#include "ublkd/runtime/claim_file.h"
#include "ublkd/plan/claims.h"

#include <stdio.h>

/* What was found at the last look may be gone by now. */
static bool disk_is_there(int number)
{
        char path[64];

        snprintf(path, sizeof(path), "/sys/class/ublk-char/ublkc%d", number);
        return access(path, F_OK) == 0;
}

static bool collides(
        const struct managed_device *device, const char *uid, const struct backing_claims *claims)
{
        const struct reconciler_config *config = &device->reconciler->config;
        _cleanup_claims_ struct backing_claims lost = {};
        const struct backing_claims *others[] = {&lost};

        return !device_store_find_uid(config->store, uid)
               && claim_file_read(runtime_dir_path(config->runtime_dir), uid, &lost) >= 0
               && claims_collide(claims, others, ARRAY_SIZE(others)) >= 0;
}

int device_claim_check_lost(struct managed_device *device, const struct backing_claims *claims)
{
        const struct host *host = device->reconciler->config.host;

        for (size_t i = 0; i < host->foreign.count; i++) {
                const struct foreign_disk *disk = &host->foreign.items[i];
                const struct adoptable *item = adoptables_find_cookie(&host->adoptable, disk->cookie);

                if (!item || !disk_is_there(disk->number) || !collides(device, item->uid, claims))
                        continue;
                device_note(device, "BackingInUse",
                        "The backing store belongs to /dev/ublkb%d, of which this database has lost the "
                        "record: "
                        "'ublkctl adopt %s' takes that disk over. Two disks that write to one store would "
                        "destroy its data.",
                        disk->number, item->name ? item->name : item->uid);
                return -EBUSY;
        }
        return 0;
}
