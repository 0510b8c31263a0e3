/* SPDX-License-Identifier: MIT */
/* The description of a disk for container engines. */
#include "ublkd/reconcile/disk/device_cdi.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/disks/disk_node.h"

#include "ublkd/reconcile/disk/device_node.h"

#include <string.h>
#include <sys/stat.h>

/* The names in it stay those of the record, and `path` that of the caller. */
static struct cdi_spec spec_of(const struct device_record *record)
{
        struct cdi_spec spec = {.name = record->name, .uid = record->uid};

        (void)tenant_user(record->tenant, &spec.tenant); /* else it belongs to the administrators */
        return spec;
}

static int write_file(struct managed_device *device, const struct device_record *record)
{
        struct disk_node node = device_node_of(device, record);
        struct cdi_spec spec = spec_of(record);
        char disk[32], private[PRIVATE_NODE_PATH_SIZE];
        struct stat st;

        snprintf(disk, sizeof(disk), "/dev/ublkb%d", record->number);
        if (stat(disk, &st) < 0)
                return -errno;
        if (!S_ISBLK(st.st_mode))
                return -ENOTBLK;
        if (spec.tenant != 0)
                private_node_path(record->uid, private);
        spec.node = spec.tenant != 0 ? private : disk;
        spec.dev = st.st_rdev;
        spec.owner_uid = node.uid;
        spec.owner_gid = node.gid;
        spec.read_only = record->spec->options.read_only;
        return cdi_spec_write(device->env->config.cdi_specs, &spec);
}

void device_cdi_write(struct managed_device *device, const struct device_record *record)
{
        int r;

        if (!device->env->config.cdi_specs || device->cdi.written == record->generation
                || (tenant_is_set(record->tenant) && !record->spec->options.private_node))
                return;
        r = write_file(device, record);
        if (r < 0 && r != device->cdi.error)
                device_emit(device, EVENT_WARNING, REASON_CDI_SPEC_NOT_WRITTEN,
                        "The description of /dev/ublkb%d for container engines cannot be written: %s; ublkd "
                        "serves the disk nevertheless, and tries again.",
                        record->number, strerror(-r));
        device->cdi.error = r < 0 ? r : 0;
        if (r >= 0)
                device->cdi.written = record->generation;
}

/* Also without a file of ours: an earlier ublkd may have left one that could not be removed at the start. */
static int remove_file(struct managed_device *device, const struct device_record *record)
{
        struct cdi_spec spec = spec_of(record);
        int r;

        if (!device->env->config.cdi_specs)
                return 0;
        r = cdi_spec_remove(device->env->config.cdi_specs, &spec);
        if (r >= 0)
                device->cdi = (struct device_cdi){};
        return r;
}

int device_cdi_remove(struct managed_device *device, const struct device_record *record)
{
        int r = remove_file(device, record);

        if (r < 0)
                device_note(device, REASON_CDI_SPEC_NOT_REMOVED,
                        "The description of /dev/ublkb%d for container engines cannot be removed: %s; ublkd "
                        "keeps the disk until then.",
                        record->number, strerror(-r));
        return r;
}

void device_cdi_follow(struct managed_device *device, const struct device_record *record)
{
        int r;

        if (device->view.facts.kernel != KERNEL_ABSENT && device->view.facts.kernel != KERNEL_ADDED)
                return;
        r = remove_file(device, record);
        if (r < 0 && r != device->cdi.error)
                device_emit(device, EVENT_WARNING, REASON_CDI_SPEC_NOT_REMOVED,
                        "The disk is gone, and its description for container engines cannot be removed: %s; "
                        "remove it, as a container may get another disk by it. The device is not deleted "
                        "before.",
                        strerror(-r));
        if (r < 0)
                device->cdi.error = r;
}

bool device_cdi_is_left(const struct managed_device *device)
{
        return device->cdi.error < 0;
}
