/* SPDX-License-Identifier: MIT */
/* What the note of a device says of a store that is not the one that the disk was created on. */
#include "ublkd/reconcile/backing/backing_changed.h"
#include "ublkd/reconcile/parts/device_note.h"

#include "ublkd/model/device_spec_store.h"

#include <stdio.h>

/* Write " of /target/children/1", with `before` in place of " of "; "" for the only store. */
static void name_place(const struct device_record *record, unsigned number, const char *before,
        char ret[static TARGET_POINTER_SIZE + 16])
{
        char pointer[TARGET_POINTER_SIZE];

        ret[0] = '\0';
        if (!record->spec || !device_spec_has_list(record->spec))
                return;
        device_spec_store_pointer(record->spec, number, pointer);
        snprintf(ret, TARGET_POINTER_SIZE + 16, "%s%s", before, pointer);
}

/* The names of two stores were exchanged: with the bytes of each in the place of the other the disk would be destroyed. */
static void note_exchanged(struct managed_device *device, const struct device_record *record, unsigned number,
        const struct backing_identity *found, const struct record_store *owner)
{
        const struct backing_identity *expected = device_record_backing(record, number, NULL);
        char of[TARGET_POINTER_SIZE + 16], other[TARGET_POINTER_SIZE + 16];

        name_place(record, number, " of ", of);
        name_place(record, owner->number, "", other);
        device_note(device, REASON_BACKING_CHANGED,
                "The store at the path%s is %s (%s), which this disk has as %s; the disk was created on %s "
                "(%s) there. Put each store back at its path, or set all paths in the spec, in one "
                "change, to where the stores are now.",
                of, backing_identity_text(found), backing_basis_to_string(found->basis), other,
                backing_identity_text(expected), backing_basis_to_string(expected->basis));
}

void backing_changed_note(struct managed_device *device, const struct device_record *record, unsigned number,
        const struct backing_identity *found)
{
        const struct backing_identity *expected = device_record_backing(record, number, NULL);
        const char *path = record->spec ? device_spec_store_path(record->spec, number) : NULL;
        const struct record_store *owner =
                path ? record_stores_elsewhere(record->stores, number, path, found) : NULL;
        char of[TARGET_POINTER_SIZE + 16], option[TARGET_POINTER_SIZE + 16];

        if (owner) {
                note_exchanged(device, record, number, found, owner);
                return;
        }
        name_place(record, number, " of ", of);
        name_place(record, number, " --store ", option);
        device_note(device, REASON_BACKING_CHANGED,
                "The store at the path%s is %s (%s), but the disk was created on %s (%s). Put that store "
                "back, and ublkd recovers the disk. Or unmount the disk, and set the path in the spec to "
                "where that store is. To give that store up, unmount the disk, then: ublkctl recover %s%s "
                "--accept-backing '%s' (in the API: accept-backing).",
                of, backing_identity_text(found), backing_basis_to_string(found->basis),
                backing_identity_text(expected), backing_basis_to_string(expected->basis), record->name,
                option, backing_identity_text(found));
}
