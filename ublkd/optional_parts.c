/* SPDX-License-Identifier: MIT */
/* Opens the parts of the supervisor that disks are served without. */
#include "ublkd/optional_parts.h"

#include "ublkd/base/log.h"

#include <errno.h>
#include <string.h>

struct worker_groups *optional_worker_groups(sd_event *event)
{
        struct worker_groups *groups = NULL;
        int r = worker_groups_new(event, &group_sources_of_host, &groups);

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Preparing the control groups of workers failed: %s; workers have none, and "
                        "\"resources\" are not in force; free memory, threads or descriptors, and restart "
                        "ublkd",
                        strerror(-r));
        return groups;
}

static void on_unwatched(void *userdata _unused_, int error)
{
        log_errno(LOG_WARNING, NULL, error,
                "Watching disks for new partition tables failed: %s; raise fs.inotify.%s (sysctl), and "
                "restart "
                "ublkd; until then ublkd reads a table when the disk starts or grows, and when ublkd starts",
                strerror(-error), error == -EMFILE ? "max_user_instances" : "max_user_watches");
}

struct partition_scanner *optional_partition_scanner(sd_event *event)
{
        struct partition_scanner *scanner = NULL;
        int r = partition_scanner_new(
                event, &(const struct partition_scanner_options){.unwatched = on_unwatched}, &scanner);

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Preparing to read partition tables failed: %s; partitions stay as they are; restart "
                        "ublkd",
                        strerror(-r));
        return scanner;
}

struct disk_watch *optional_disk_watch(sd_event *event, disk_watch_handler changed, void *userdata)
{
        struct disk_watch *watch = NULL;
        int r = disk_watch_new(event, changed, userdata, &watch);

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Listening to udev failed: %s; without the udev rule of ublkd, new disks may belong "
                        "to root:disk",
                        strerror(-r));
        return watch;
}

struct disk_marks *optional_disk_marks(struct device_store *store, struct runtime_dir *dir)
{
        struct disk_marks *marks = NULL;
        int r = disk_marks_new(store, dir, &marks);

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Preparing the marks of disks in the runtime directory failed: %s; the units "
                        "ublk-disk@ do "
                        "not follow the disks; restart ublkd",
                        strerror(-r));
        return marks;
}
