/* SPDX-License-Identifier: MIT */
/* A tmpfs that is mounted as the file system of a disk is, and comes into real containers. */
#include "tests/unit/ublkd/nodes/mount_world.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

char top[] = "/tmp/ublkd-test-base-XXXXXX";
char base[64], number[64];
dev_t disk;

/* ---- in a container ---- */

int see_owner(const char *path)
{
        struct stat st;
        char name[160];

        snprintf(name, sizeof(name), "%s/roots", path);
        if (stat(name, &st) < 0)
                return -1;
        errno = ERANGE;
        return st.st_uid == 0 && st.st_gid == 0 ? 0 : -1;
}

int unmount(const char *path)
{
        return umount2(path, 0);
}

/* ---- deliveries ---- */

static void on_done(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

struct delivery_report deliver_request(struct delivery_request *request)
{
        struct node_deliveries *deliveries = NULL;
        struct delivery_report report = {.outcome = _DELIVERY_OUTCOME_MAX};
        struct node_delivery *delivery;

        CHECK_INT(node_deliveries_new(event, NULL, &deliveries), 0);
        CHECK_INT(node_delivery_begin(deliveries, request, on_done, &report, &delivery), 0);
        (void)wait_for_report(&report);
        node_deliveries_free(deliveries);
        return report;
}

struct delivery_request request_of(const struct container *container, const char *path)
{
        return (struct delivery_request){
                .pid = container->pid,
                .pidfd = container->pidfd,
                .uid = TENANT,
                .gid = TENANT,
                .path = path,
                .tree = -1,
                .mount = base,
                .number = number,
        };
}

struct delivery_report deliver_mount(const struct container *container, const char *path)
{
        struct delivery_request request = request_of(container, path);

        return deliver_request(&request);
}

/* ---- the whole ---- */

/* Return whether this kernel gives a tmpfs the ids of a container. */
static bool can_translate(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        struct delivery_report report;

        path_there("probe", path);
        report = deliver_mount(&container, path);
        container_end(&container);
        return report.outcome != DELIVERY_NOT_CLONED || report.error != -EINVAL;
}

bool mount_world_mount(void)
{
        _cleanup_close_ int fd = -1;
        struct stat st;
        char text[128];
        int size;

        if (!CHECK(mkdir(base, 0700) == 0) || !CHECK(mount("tmpfs", base, "tmpfs", 0, "mode=0755") == 0)
                || !CHECK(stat(base, &st) == 0))
                return false;
        disk = st.st_dev;
        size = snprintf(text, sizeof(text), "%u:%u\n", major(disk), minor(disk));
        fd = open(number, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, (size_t)size), size);
        snprintf(text, sizeof(text), "%s/roots", base);
        fd = close_fd(fd);
        fd = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        return CHECK(fd >= 0);
}

bool mount_world_open(void)
{
        if (!CHECK(mkdtemp(top)))
                return false;
        snprintf(base, sizeof(base), "%s/volume", top);
        snprintf(number, sizeof(number), "%s.number", top);
        return mount_world_mount() && can_translate();
}

void mount_world_close(void)
{
        (void)umount2(base, MNT_DETACH);
        (void)rmdir(base);
        (void)rmdir(top);
        (void)unlink(number);
}
