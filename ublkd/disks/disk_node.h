/* SPDX-License-Identifier: MIT */
/* What others see of a live disk: the owner and mode of its block node, and its link /dev/ublk/by-name/NAME. The disk of
 * a tenant has no link, and its name and UID are not announced: every user can list the links, read the announcements and
 * ask udev.
 *
 * Where udev runs, it sets owner and mode again at every event, so the rule in units/ must know them: they
 * stand in RUNTIME_DIR/disks/ublkbN as KEY=value lines before the disk appears. Where it does not, publish()
 * does all. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct disk_node {
        const char *name;   /* of the device */
        const char *serial; /* uid of the device, by which udev names the disk below /dev/disk/by-id */
        int number;         /* N of /dev/ublkbN */
        uid_t uid;
        gid_t gid;
        mode_t mode;
        bool hidden; /* the disk of a tenant: name and UID are for its owner and administrators */
};

/* Write ublkbN in the directory `disks` (runtime_dir_open_disks()), atomically. Call before START_DEV. Return
 * 1; 0: it had this content before; -errno. */
int disk_node_announce(int disks, const struct disk_node *node);

/* Ask udev to apply its rules to a live disk and its partitions once more ("change"), after what it does now: a rule
 * that still handles the disk's "add" may have read an older announcement, and would be the last to change the node.
 * Return 0 or -errno. */
int disk_node_notify(int number);

/* Set owner, mode and link where they differ. The link of a hidden disk is removed. Return 0 or -errno
 * (-ENOENT: the node is not there yet). */
int disk_node_publish(const struct disk_node *node);

/* Remove the link (if it still leads to this disk) and the file. Missing ones are fine. `disks` may be the
 * -errno of runtime_dir_open_disks(), which is then returned. Return 0 or -errno. */
int disk_node_withdraw(int disks, const char *name, int number);
