/* SPDX-License-Identifier: MIT */
/* The process that looks at a disk, and makes a file system on it.
 *
 * It holds the disk open all the time: so the number of the disk stays that of this disk. mkfs has the disk for itself
 * (O_EXCL), as it wants to: so the look has it for itself, too, but no longer. */
#include "ublkd/filesystems/filesystem_process.h"
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/filesystems/filesystem_open.h"
#include "ublkd/filesystems/filesystem_program.h"
#include "ublkd/filesystems/filesystem_sight.h"
#include "ublkd/filesystems/filesystem_wire.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SECONDS_MAX = 300 };

/* number: as in the order; NULL: the disk was checked. Return 0; -ESTALE: the node is not that of the disk; other -errno. */
static int check_node(int fd, const char *number)
{
        struct stat node;
        dev_t device;
        int r;

        if (fstat(fd, &node) < 0)
                return -errno;
        if (!number || !*number)
                return S_ISBLK(node.st_mode) || S_ISREG(node.st_mode) ? 0 : -ENOTBLK;
        r = read_device_at(AT_FDCWD, number, &device);
        if (r < 0)
                return r;
        return S_ISBLK(node.st_mode) && node.st_rdev == device ? 0 : -ESTALE;
}

static int open_disk(const char *path, const char *number, int flags)
{
        _cleanup_close_ int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? -errno : check_node(fd, number);

        return r < 0 ? r : TAKE_FD(fd);
}

static struct filesystem_look seen(enum filesystem_sight sight, int error)
{
        return (struct filesystem_look){.sight = sight, .error = error};
}

/* Another program may have the disk for itself: that matters only where a file system is to be made. */
static struct filesystem_look look(int disk, enum filesystem_kind kind, const char *uuid)
{
        _cleanup_close_ int exclusive = -1;
        int r;

        exclusive = open_disk(fd_path(disk).text, NULL, O_RDONLY | O_EXCL);
        if (exclusive < 0 && exclusive != -EBUSY)
                return seen(FILESYSTEM_SEES_ERROR, exclusive);
        r = filesystem_sight(disk, kind, uuid);
        if (r < 0)
                return seen(FILESYSTEM_SEES_ERROR, r);
        return seen(
                exclusive < 0 && r != FILESYSTEM_SEES_IT ? FILESYSTEM_SEES_USE : (enum filesystem_sight)r, 0);
}

/* A program that has ended well has made what can be found there, and the disk has it. */
static void confirm(int disk, const struct filesystem_go *go, struct filesystem_report *report)
{
        int synced = fsync(disk) < 0 ? -errno : 0;
        struct filesystem_look after = look(disk, (enum filesystem_kind)go->kind, go->uuid);

        report->sight = after.sight;
        if (report->outcome != FILESYSTEM_DONE || (synced >= 0 && after.sight == FILESYSTEM_SEES_IT))
                return;
        report->outcome = FILESYSTEM_FAILED;
        report->error = synced < 0 ? synced : after.error < 0 ? after.error : -EIO;
}

static bool is_good(const struct filesystem_go *go)
{
        return go->task > FILESYSTEM_LEAVES && go->task < _FILESYSTEM_TASK_MAX
               && go->kind < _FILESYSTEM_KIND_MAX && memchr(go->uuid, '\0', sizeof(go->uuid))
               && memchr(go->top, '\0', sizeof(go->top)) && memchr(go->point, '\0', sizeof(go->point))
               && memchr(go->store, '\0', sizeof(go->store)) && memchr(go->number, '\0', sizeof(go->number))
               && memchr(go->node, '\0', sizeof(go->node));
}

static bool send_all(const void *message, size_t size)
{
        return send(FILESYSTEM_LINK_FD, message, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* Look again: mkfs.ext4 does not look for data itself, and mkfs.xfs only for those that it knows. Both refuse a disk that
 * another program has for itself. */
static void make(int disk, const struct filesystem_go *go, struct filesystem_report *report)
{
        struct filesystem_look again = look(disk, (enum filesystem_kind)go->kind, "");

        report->outcome = FILESYSTEM_KEPT;
        report->sight = again.sight;
        report->error = again.error;
        if (again.sight != FILESYSTEM_SEES_BLANK)
                return;
        filesystem_program_run(disk, go, report);
        confirm(disk, go, report);
}

/* Return whether no other program has the disk for itself; else there is a report. A look at the file system of the order
 * does not ask that. */
static bool has_disk_alone(int disk, struct filesystem_report *report)
{
        _cleanup_close_ int exclusive = -1;

        exclusive = open_disk(fd_path(disk).text, NULL, O_RDONLY | O_EXCL);
        if (exclusive >= 0)
                return true;
        report->outcome = FILESYSTEM_KEPT;
        report->sight = exclusive == -EBUSY ? FILESYSTEM_SEES_USE : FILESYSTEM_SEES_ERROR;
        report->error = exclusive;
        return false;
}

/* Return whether the check has found a file system that is not whole, and has not failed itself: e2fsck(8) has a bit for
 * each, and xfs_repair(8) one status for both. */
static bool is_broken(const struct filesystem_report *report, enum filesystem_kind kind)
{
        enum { E2FSCK_FIXED = 1 | 2, E2FSCK_LEFT = 4, XFS_REPAIR_BROKEN = 1 };
        int status;

        if (report->outcome != FILESYSTEM_FAILED || !WIFEXITED(report->status))
                return false;
        status = WEXITSTATUS(report->status);
        return kind == FILESYSTEM_XFS ? status == XFS_REPAIR_BROKEN : (status & ~E2FSCK_FIXED) == E2FSCK_LEFT;
}

/* What is whole stays, and so does what could not be checked, or may have been used. A file system with another UUID was made
 * by another program since. */
static void remake(int disk, const struct filesystem_go *go, struct filesystem_report *report)
{
        struct filesystem_go check = *go;
        struct filesystem_look before = look(disk, (enum filesystem_kind)go->kind, go->uuid);

        check.task = FILESYSTEM_CHECKS;
        if (!has_disk_alone(disk, report))
                return;
        if (before.sight == FILESYSTEM_SEES_ERROR
                || (before.sight == FILESYSTEM_SEES_OTHER && filesystem_is_there(disk) != 0)) {
                *report = (struct filesystem_report){
                        .outcome = FILESYSTEM_KEPT, .error = before.error, .sight = before.sight};
                return;
        }
        if (before.sight == FILESYSTEM_SEES_IT) {
                filesystem_program_run(disk, &check, report);
                confirm(disk, &check, report);
                if (!is_broken(report, (enum filesystem_kind)go->kind)
                        || filesystem_is_unused(disk, (enum filesystem_kind)go->kind) <= 0)
                        return;
                *report = (struct filesystem_report){};
                if (!has_disk_alone(disk, report))
                        return;
        }
        filesystem_program_run(disk, go, report);
        confirm(disk, go, report);
}

static void carry_out(const struct filesystem_order *order, int disk, struct filesystem_hold *hold,
        const struct filesystem_go *go, struct filesystem_report *report)
{
        bool left = false;
        int r = 0;

        if (go->task == FILESYSTEM_MAKES) {
                make(disk, go, report);
                return;
        }
        if (go->task == FILESYSTEM_REMAKES) {
                remake(disk, go, report);
                return;
        }
        if (go->task == FILESYSTEM_CHECKS) {
                filesystem_program_run(disk, go, report);
                confirm(disk, go, report);
                return;
        }
        if (go->task == FILESYSTEM_MOUNTS)
                r = filesystem_store_is_open(go->store);
        if (r > 0) {
                report->outcome = FILESYSTEM_KEPT;
                return;
        }
        if (r >= 0)
                r = go->task == FILESYSTEM_MOUNTS ? filesystem_mount(disk, order->path, go)
                                                  : filesystem_unmount(hold, go, &left);
        report->outcome = left ? FILESYSTEM_LEFT : r < 0 ? FILESYSTEM_FAILED : FILESYSTEM_DONE;
        report->error = r;
        report->sight = FILESYSTEM_SEES_IT;
}

/* Return the exit status. */
static int work(const struct filesystem_order *order)
{
        struct filesystem_report report = {};
        struct filesystem_go go;
        bool needs_disk = *order->path;
        _cleanup_close_ int disk = needs_disk ? open_disk(order->path, order->number, O_RDONLY) : -1;
        struct filesystem_hold hold = filesystem_hold_begin(order->hold, order->number); /* until the exit */
        struct filesystem_look first = seen(FILESYSTEM_SEES_IT, 0);

        if (needs_disk)
                first = disk < 0 ? seen(FILESYSTEM_SEES_ERROR, disk)
                                 : look(disk, (enum filesystem_kind)order->kind, order->uuid);

        if (!send_all(&first, sizeof(first)))
                return EXIT_FAILURE;
        if (needs_disk && disk < 0)
                return EXIT_SUCCESS;
        if (recv(FILESYSTEM_LINK_FD, &go, sizeof(go), 0) != sizeof(go) || !is_good(&go)
                || (disk < 0 && go.task != FILESYSTEM_UNMOUNTS))
                return EXIT_SUCCESS; /* there is nothing to do */
        carry_out(order, disk, &hold, &go, &report);
        report.lingers = filesystem_open_lingers();
        if (!send_all(&report, sizeof(report)))
                return EXIT_FAILURE;
        if (report.lingers) { /* the supervisor counts this process until then */
                (void)alarm(0);
                filesystem_open_wait();
        }
        return EXIT_SUCCESS;
}

int filesystem_process_main(void)
{
        static struct filesystem_order order;
        pid_t parent = getppid();

        (void)prctl(PR_SET_NAME, "ublkd-mkfs");
        (void)alarm(SECONDS_MAX); /* the supervisor kills it earlier, unless that is stopped */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent
                || setrlimit(RLIMIT_CORE, &(const struct rlimit){}) < 0)
                return EXIT_FAILURE;
        if (recv(FILESYSTEM_LINK_FD, &order, sizeof(order), 0) != sizeof(order)
                || order.kind >= _FILESYSTEM_KIND_MAX || !memchr(order.path, '\0', sizeof(order.path))
                || !memchr(order.hold, '\0', sizeof(order.hold))
                || !memchr(order.number, '\0', sizeof(order.number))
                || !memchr(order.uuid, '\0', sizeof(order.uuid)))
                return EXIT_FAILURE;
        return work(&order);
}
