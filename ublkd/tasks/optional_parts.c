/* SPDX-License-Identifier: MIT */
/* Opens the parts of the supervisor that disks are served without. */
#include "ublkd/tasks/optional_parts.h"

#include "ublkd/base/log.h"
#include "ublkd/nodes/cdi_directory.h"

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

struct partition_scanner *optional_partition_scanner(sd_event *event, const char *program)
{
        struct partition_scanner *scanner = NULL;
        int r = partition_scanner_new(event,
                &(const struct partition_scanner_options){.program = program, .unwatched = on_unwatched},
                &scanner);

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Preparing to read partition tables failed: %s; partitions stay as they are; restart "
                        "ublkd",
                        strerror(-r));
        return scanner;
}

static bool is_of_tenant(void *userdata, const char *uid, uid_t owner _unused_)
{
        const struct device_record *record = device_store_find_uid(userdata, uid);

        return record && tenant_is_set(record->tenant);
}

struct private_nodes *optional_private_nodes(const struct device_store *store, const struct runtime_dir *dir)
{
        struct private_nodes *nodes = NULL;
        int r = private_nodes_open(
                &(const struct private_nodes_config){
                        .dev = "/dev", .sys = "/sys", .instance = runtime_dir_path(dir)},
                &nodes);

        if (r < 0) {
                log_errno(LOG_WARNING, NULL, r,
                        "Opening /dev/ublk/private failed: %s; disks of tenants get no private nodes, and an "
                        "old node may lead to another disk later; remove the files in it, check that /dev is "
                        "writable for the service, and restart ublkd",
                        strerror(-r));
                return NULL;
        }
        r = private_nodes_sweep(nodes, is_of_tenant, (void *)store);
        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Removing private nodes of earlier disks failed: %s; they may open other disks; "
                        "remove what is in /dev/ublk/private, and restart ublkd",
                        strerror(-r));
        return nodes;
}

static void on_recall_failed(void *userdata _unused_, int error)
{
        log_errno(LOG_WARNING, NULL, error,
                "Unmounting the nodes of removed disks in %s failed: %s; they open nothing there, root of "
                "the container can unmount them, and ublkd tries again",
                error == -ETIMEDOUT ? "a container, which has hindered it or given it too little time,"
                                    : "containers",
                strerror(-error));
}

/* What an earlier ublkd has taken back, and could not unmount any more, is unmounted now. */
struct node_recall *optional_node_recall(sd_event *event, struct private_nodes *nodes, const char *program)
{
        struct node_recall *recall = NULL;
        int r = nodes ? node_recall_new(event, nodes,
                                &(const struct node_recall_options){
                                        .program = program, .failed = on_recall_failed},
                                &recall)
                      : -ENOENT;

        if (r >= 0)
                node_recall_ask(recall);
        else if (nodes)
                log_errno(LOG_WARNING, NULL, r,
                        "Preparing to unmount the nodes of removed disks failed: %s; they stay in "
                        "containers, "
                        "and open nothing; restart ublkd",
                        strerror(-r));
        return recall;
}

static struct cdi_specs *open_cdi_specs(const char *directory, const char *state_dir, const char *instance)
{
        struct cdi_specs *specs = NULL;
        int left = 0, r = cdi_directory_use(state_dir, directory, instance, &left);

        if (left < 0)
                log_errno(LOG_WARNING, NULL, left,
                        "Removing files for container engines from an earlier CdiDirectory= failed: %s; "
                        "containers may get other disks by them; remove ublkd-*.json in the directories that "
                        "%s/" CDI_DIRECTORIES_FILE " names, and restart ublkd",
                        strerror(-left), state_dir);
        if (r < 0) {
                log_errno(LOG_WARNING, NULL, r,
                        "Keeping the list %s/" CDI_DIRECTORIES_FILE
                        " failed: %s; container engines do not find the disks, and files in an earlier "
                        "CdiDirectory= stay; check that ublkd can read and write that file, and restart "
                        "ublkd",
                        state_dir, strerror(-r));
                return NULL;
        }
        r = directory ? cdi_specs_open(directory, instance, &specs) : 0;
        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Opening %s failed: %s; container engines do not find the disks; have root own the "
                        "directory, let no other user write to it, and restart ublkd",
                        directory, strerror(-r));
        return specs;
}

/* The files of earlier disks go also from a directory that may not be used: nothing follows the disks there. */
struct cdi_specs *optional_cdi_specs(
        const char *directory, const char *state_dir, const struct runtime_dir *dir)
{
        const char *instance = runtime_dir_path(dir);
        struct cdi_specs *specs = open_cdi_specs(directory, state_dir, instance);
        int r = specs ? cdi_specs_clear(specs) : directory ? cdi_directory_clear(directory, instance) : 0;

        if (r < 0)
                log_errno(LOG_WARNING, NULL, r,
                        "Removing the files of earlier disks from %s failed: %s; containers may get other "
                        "disks by them; remove ublkd-*.json there, and restart ublkd",
                        directory, strerror(-r));
        return specs;
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
