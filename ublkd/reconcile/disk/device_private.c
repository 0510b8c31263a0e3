/* SPDX-License-Identifier: MIT */
/* The private node of a tenant's disk. */
#include "ublkd/reconcile/disk/device_private.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include <assert.h>
#include <string.h>

static_assert(
        PRIVATE_NODE_PATH_SIZE <= sizeof(((struct device_status *)NULL)->node), "a status has the path");

static bool has_node(const struct managed_device *device, const struct device_record *record, uid_t *ret)
{
        return device->env->config.private_nodes && tenant_user(record->tenant, ret);
}

/* The spec may ask for a node that the file system, which the kernel reads as root, forbids. */
static bool may_have_node(const struct device_record *record)
{
        return record->spec && record->spec->options.private_node && !*record->mount
               && record->mount_change == MOUNT_STAYS;
}

void device_private_give(struct managed_device *device, const struct device_record *record)
{
        uid_t owner;
        int r;

        if (!has_node(device, record, &owner) || device->private.state == PRIVATE_GIVEN
                || !may_have_node(record))
                return;
        device->private.state = PRIVATE_UNKNOWN; /* a failure may leave it */
        r = private_node_give(device->env->config.private_nodes,
                &(const struct private_node){.uid = record->uid, .number = record->number, .owner = owner});
        if (r < 0 && r != device->private.error)
                device_emit(device, EVENT_WARNING, REASON_PRIVATE_NODE_NOT_MADE,
                        "The private node of /dev/ublkb%d cannot be made: %s; ublkd serves the disk "
                        "nevertheless, and tries again.",
                        record->number, strerror(-r));
        device->private.error = r < 0 ? r : 0;
        if (r >= 0)
                device->private.state = PRIVATE_GIVEN;
}

static int note_kept(struct managed_device *device, const struct device_record *record, int error)
{
        device_note(device, REASON_PRIVATE_NODE_NOT_REMOVED,
                "The private node of /dev/ublkb%d cannot be removed: %s; ublkd keeps the disk until then.",
                record->number, strerror(-error));
        return error;
}

int device_private_shut(struct managed_device *device, const struct device_record *record)
{
        uid_t owner;
        int r;

        if (!has_node(device, record, &owner) || device->private.state == PRIVATE_NONE)
                return 0;
        r = private_node_shut(device->env->config.private_nodes, record->uid);
        if (r < 0)
                return note_kept(device, record, r);
        device->private.state = PRIVATE_SHUT;
        return 0;
}

static int remove_node(struct managed_device *device, const struct device_record *record)
{
        uid_t owner;
        int r;

        if (!has_node(device, record, &owner) || device->private.state == PRIVATE_NONE)
                return 0;
        r = private_node_remove(device->env->config.private_nodes, record->uid);
        if (r < 0)
                return r;
        device->private = (struct device_private){.state = PRIVATE_NONE};
        if (device->env->config.node_recall)
                node_recall_ask(device->env->config.node_recall);
        return 0;
}

int device_private_remove(struct managed_device *device, const struct device_record *record)
{
        int r = remove_node(device, record);

        return r < 0 ? note_kept(device, record, r) : 0;
}

void device_private_follow(struct managed_device *device, const struct device_record *record)
{
        int r;

        if (device->view.facts.kernel == KERNEL_ADDED && device->private.state != PRIVATE_SHUT)
                (void)device_private_shut(
                        device, record); /* another program may have stopped the disk, or the kernel */
        if (device->view.facts.kernel != KERNEL_ABSENT)
                return;
        r = remove_node(device, record);
        if (r < 0 && r != device->private.error)
                device_emit(device, EVENT_WARNING, REASON_PRIVATE_NODE_NOT_REMOVED,
                        "The disk is gone, and its private node cannot be removed: %s; remove "
                        "/dev/ublk/private/%s, as it may open another disk.",
                        strerror(-r), record->uid);
        if (r < 0)
                device->private.error = r;
}

void device_private_show(const struct managed_device *device, struct device_status *status)
{
        if (device->private.state == PRIVATE_GIVEN && status->disk)
                private_node_path(device->id.uid, status->node);
}
