/* SPDX-License-Identifier: MIT */
/* filesystem_unmount(): the disk goes meanwhile, and its number is that of another disk, which another user has. */
#include "ublkd/filesystems/filesystem_claim.h"
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/mount_users.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/mount_world.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { TRIES = 8 };

/* What comes after the end of the mount of the host, and before the look at what is left; NULL: nothing. */
static void (*between)(void);

/* What claims the disk after it: by default it cannot be asked, so the looks decide. */
static enum filesystem_claim claim = FILESYSTEM_CLAIM_UNSEEN;

enum filesystem_claim __wrap_filesystem_claim_find(dev_t of, const char *node);

enum filesystem_claim __wrap_filesystem_claim_find(dev_t of _unused_, const char *node _unused_)
{
        if (between)
                between();
        between = NULL;
        return claim;
}

static int unmount_here(bool *ret_left)
{
        struct filesystem_go go = {.point = "volume", .flags = FILESYSTEM_COPIES_TOO};
        struct filesystem_hold hold = filesystem_hold_begin("", number);

        snprintf(go.top, sizeof(go.top), "%s", top);
        snprintf(go.number, sizeof(go.number), "%s", number);
        return filesystem_unmount(&hold, &go, ret_left);
}

/* Again if this host has given the containers too little time. */
static int unmount_in_time(bool *ret_left)
{
        int r = unmount_here(ret_left);

        for (unsigned i = 0; i < TRIES && r == -ETIMEDOUT; i++)
                r = unmount_here(ret_left);
        return r;
}

static void write_number(const char *path, dev_t of)
{
        FILE *file = fopen(path, "we");

        CHECK(file && fprintf(file, "%u:%u\n", major(of), minor(of)) > 0 && fclose(file) == 0);
}

/* ---- another disk ---- */

/* The container of the other user, and where it gets the next disk. */
static const struct container *next_container;
static char next_path[128];

/* The kernel gives the number of a tmpfs that has ended to the next one, as that of a disk. The copy in the container is idle. */
static void mount_the_next_disk(void)
{
        struct delivery_request request = request_of(next_container, next_path);
        char next[72], next_number[80];
        struct stat st;

        snprintf(next, sizeof(next), "%s/next", top);
        snprintf(next_number, sizeof(next_number), "%s.next", top);
        if (!CHECK(mkdir(next, 0700) == 0) || !CHECK(mount("tmpfs", next, "tmpfs", 0, "mode=0755") == 0)
                || !CHECK(stat(next, &st) == 0))
                return;
        write_number(next_number, st.st_dev);
        request.uid = request.gid = ANOTHER;
        request.mount = next;
        request.number = next_number;
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        CHECK_INT(umount2(next, 0), 0); /* the container has it alone */
        CHECK_INT(rmdir(next), 0);
        CHECK_INT(unlink(next_number), 0);
}

/* The last copy has ended, and the disk has gone: its number may belong to the disk of another user. */
static void test_an_unmount_touches_no_disk_that_got_the_number(void)
{
        struct container container = container_start(enter_rootless_of_another);
        bool left;

        next_container = &container;
        path_there("next", next_path);
        if (!CHECK(mount_world_mount())) /* the container has no copy of this one */
                return;
        between = mount_the_next_disk;
        CHECK_INT(unmount_in_time(&left), 0);
        CHECK(!between && !left && access(base, F_OK) < 0);
        CHECK_INT(run_inside(&container, unmount, next_path), 0); /* it was still there */
        container_end(&container);
}

/* ---- after the end of the mount of the host ---- */

static void renumber(void)
{
        write_number(number, makedev(4095, 7));
}

/* A copy of the mount of the host keeps the number, and claims the disk, which is not in use by that. */
static void test_the_copy_that_keeps_the_number_is_not_in_the_way(void)
{
        struct filesystem_go go = {.point = "volume"};
        struct filesystem_hold hold = {.fd = open("/", O_PATH | O_CLOEXEC), .claims = true};
        bool left;

        if (!CHECK(mount_world_mount()))
                return;
        hold.disk = disk;
        snprintf(go.top, sizeof(go.top), "%s", top);
        snprintf(go.number, sizeof(go.number), "%s", number);
        claim = FILESYSTEM_CLAIM_TAKEN;
        CHECK_INT(filesystem_unmount(&hold, &go, &left), 0);
        CHECK(!left && hold.fd == -1 && access(base, F_OK) < 0);
        claim = FILESYSTEM_CLAIM_UNSEEN;
}

/* Nothing keeps the disk open there, if its node cannot be opened. */
static void test_no_container_is_looked_at_for_a_disk_that_has_gone(void)
{
        struct container container;
        char path[128];
        bool left;
        int user;

        if (!CHECK(mount_world_mount()))
                return;
        container = container_start(enter_rootless);
        path_there("data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_DONE, 0);
        mount_users_begin(base); /* as if a user of the list had passed it on */
        user = open_inside(&container, path);
        CHECK(user >= 0);
        claim = FILESYSTEM_CLAIM_TAKEN;
        CHECK_INT(unmount_in_time(&left), -EBUSY);
        CHECK(left);
        close_fd(user);
        claim = FILESYSTEM_CLAIM_UNSEEN;
        between = renumber; /* what was left may be there still */
        CHECK_INT(unmount_in_time(&left), -ESTALE);
        CHECK(!between && left && access(base, F_OK) == 0);
        CHECK_INT(run_inside(&container, unmount, path), 0); /* as if it were another user's */
        CHECK_INT(unlink(number), 0);
        CHECK_INT(unmount_in_time(&left), 0);
        CHECK(!left && access(base, F_OK) < 0);
        container_end(&container);
}

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = world_open() && mount_world_open();
        if (can) {
                CHECK_INT(umount2(base, MNT_DETACH), 0);
                CHECK_INT(rmdir(base), 0);
                test_an_unmount_touches_no_disk_that_got_the_number();
                test_the_copy_that_keeps_the_number_is_not_in_the_way();
                test_no_container_is_looked_at_for_a_disk_that_has_gone();
        }
        mount_world_close();
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
