/* SPDX-License-Identifier: MIT */
/* The node of a disk: its owner, mode and link. The disk is served even if setting them fails. */
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/disks/disk_node.h"

#include "ublkd/base/clock.h"

#include <string.h>
#include <sys/stat.h>

enum { UDEV_USEC = 5 * 1000 * 1000 };

struct disk_node device_node_of(const struct managed_device *device, const struct device_record *record)
{
        const struct device_options *options = &record->spec->options;
        bool is_public = !tenant_is_set(record->tenant);
        mode_t mode = (mode_t)strtoul(options->owner.mode, NULL, 8);

        /* A group, unless the spec names one, gets no access to the disk of a tenant. */
        return (struct disk_node){
                .name = record->name,
                .serial = record->uid,
                .number = record->number,
                .uid = (uid_t)options->owner.uid,
                .gid = options->owner.gid >= 0 ? (gid_t)options->owner.gid
                       : is_public             ? device->env->config.host->disk_group
                                               : 0,
                .mode = is_public || options->owner.gid >= 0 ? mode : mode & S_IRWXU,
                .hidden = !is_public,
        };
}

int device_announce_node(const struct managed_device *device, const struct device_record *record)
{
        struct disk_node node = device_node_of(device, record);
        _cleanup_close_ int disks = runtime_dir_open_disks(device->env->config.runtime_dir);

        return disks < 0 ? disks : disk_node_announce(disks, &node);
}

bool device_node_changed(struct managed_device *device)
{
        bool was_shown = device->node.shown_generation != 0;

        device->node.shown_generation = 0;
        return was_shown;
}

void device_show_node(struct managed_device *device, const struct device_record *record)
{
        struct disk_node node;
        int r, announced;

        if (device->node.shown_generation == record->generation)
                return;
        device->node.shown_generation = record->generation;
        node = device_node_of(device, record);
        r = announced = device_announce_node(device, record);
        if (r >= 0)
                r = disk_node_publish(&node);
        if (announced > 0 && r >= 0)
                r = disk_node_notify(node.number);
        if (r < 0)
                device_emit(device, EVENT_WARNING, REASON_NODE_NOT_SET,
                        "Owner, mode or link of /dev/ublkb%d cannot be set: %s; ublkd serves the disk "
                        "nevertheless.",
                        record->number, strerror(-r));
}

void device_node_await_udev(struct managed_device *device)
{
        if (disk_watch_has_udev(device->env->config.disk_watch))
                device->node.udev_deadline = monotonic_now() + UDEV_USEC;
}

void device_node_appeared(struct managed_device *device, bool success)
{
        if (device->node.udev_deadline != 0)
                device->node.udev_deadline = success ? monotonic_now() + UDEV_USEC : 0;
}

bool device_node_awaits_udev(const struct managed_device *device)
{
        return device->node.udev_deadline != 0;
}

bool device_node_udev_done(struct managed_device *device)
{
        bool waited = device->node.udev_deadline != 0;

        device->node.udev_deadline = 0;
        return waited;
}

uint64_t device_node_wait(struct managed_device *device, uint64_t now)
{
        if (device->node.udev_deadline > now)
                return device->node.udev_deadline;
        if (device->node.udev_deadline == 0)
                return UINT64_MAX;
        device->node.udev_deadline = 0;
        disk_watch_missed_udev(device->env->config.disk_watch);
        device_emit(device, EVENT_WARNING, REASON_UDEV_LATE,
                "udev has not handled the new disk within %d s; its links and properties may be missing "
                "until "
                "then.",
                UDEV_USEC / 1000000);
        return UINT64_MAX;
}

static int withdraw(const struct managed_device *device, const struct device_record *record)
{
        _cleanup_close_ int disks = runtime_dir_open_disks(device->env->config.runtime_dir);

        return disk_node_withdraw(disks, record->name, record->number);
}

void device_hide_node(struct managed_device *device, const struct device_record *record)
{
        int r = record->number < 0 ? 0 : withdraw(device, record);

        if (r < 0)
                device_emit(device, EVENT_WARNING, REASON_LINK_NOT_REMOVED,
                        "The link in /dev/ublk/by-name cannot be removed: %s; remove it by hand.",
                        strerror(-r));
}
