/* SPDX-License-Identifier: MIT */
/* recall_mounts() and filesystem_unmount(): a file system comes out of real namespaces again, by the real processes. */
#include "ublkd/filesystems/filesystem_claim.h"
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/mount_users.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/mount_world.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static int cover(const char *path)
{
        return mount("tmpfs", path, "tmpfs", 0, NULL);
}

/* ---- out of the containers again ---- */

enum {
        TRIES = 8,
        ASKED_BEFORE_MAX = 21, /* a disk, before the look at all containers: each 10 ms, for 200 ms */
};

/* Again if this host has given the containers too little time. */
static int recall_in_time(dev_t of, enum recall_what what)
{
        int r = recall_mounts(of, base, what);

        for (unsigned i = 0; i < TRIES && r == -ETIMEDOUT; i++)
                r = recall_mounts(of, base, what);
        return r;
}

/* Start a container of the tenant to which the file system is delivered; its place there is written to `path`. */
static struct container start_with_copy(char path[static 128])
{
        struct container container = container_start(enter_rootless);

        path_there("data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_DONE, 0);
        return container;
}

static void test_it_is_unmounted_in_each_container(void)
{
        struct container first = container_start(enter_rootless),
                         second = container_start(enter_rootless_of_another);
        char path[128];
        struct delivery_request request = request_of(&second, path);

        request.uid = request.gid = ANOTHER;
        path_there("data", path);
        check_report_is(deliver_mount(&first, path), DELIVERY_DONE, 0);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&first, unmount, path), EINVAL);
        CHECK_INT(run_inside(&second, unmount, path), EINVAL);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0);              /* again */
        check_report_is(deliver_mount(&first, path), DELIVERY_DONE, 0); /* on what was left */
        container_end(&first);
        container_end(&second);
}

static void test_one_that_a_process_uses_stays(void)
{
        char path[128];
        struct container container = start_with_copy(path);
        int user;

        user = open_inside(&container, path);
        CHECK(user >= 0);
        CHECK_INT(recall_in_time(disk, RECALL_TRY_MOUNTS), -EBUSY);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), -EBUSY);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        close_fd(user);
        CHECK_INT(recall_in_time(disk, RECALL_TRY_MOUNTS), 0);
        CHECK_INT(recall_in_time(disk, RECALL_TRY_MOUNTS),
                0); /* nothing is unmounted, also by the second one */
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0);
        CHECK_INT(recall_in_time(disk, RECALL_FIND_MOUNTS), 0);
        container_end(&container);
}

static void test_only_that_disk_is_unmounted(void)
{
        char path[128];
        struct container container = start_with_copy(path);

        CHECK_INT(recall_in_time(makedev(7, 0), RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&container, cover, path), 0);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0); /* the container has covered it */
        CHECK_INT(run_inside(&container, unmount, path), 0);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        container_end(&container);
}

/* The container whose root stops the search at the worst time; 0: none. */
static uid_t stopping;
static bool stopping_the_end; /* not a search that only tries */

int __real_umount2(const char *target, int flags);
int __wrap_umount2(const char *target, int flags);

/* Where the end of the mount of the host waits for what comes meanwhile; -1: it does not. */
static int meanwhile = -1;

int __wrap_umount2(const char *target, int flags)
{
        unsigned inside, outside = 0;
        char byte = 0;
        bool stops = stopping && !(stopping_the_end && (flags & MNT_EXPIRE));
        FILE *map = stops ? fopen("/proc/self/uid_map", "re") : NULL;

        if (map) {
                if (fscanf(map, "%u %u", &inside, &outside) == 2 && outside == stopping)
                        (void)raise(SIGSTOP);
                (void)fclose(map);
        }
        if (meanwhile >= 0 && strcmp(target, base) == 0 && !(flags & MNT_EXPIRE))
                CHECK(write(meanwhile, &byte, 1) == 1 && read(meanwhile, &byte, 1) == 1);
        return __real_umount2(target, flags);
}

static void test_a_container_that_stops_the_search_hinders_no_other(void)
{
        struct container stops = container_start(enter_rootless),
                         other = container_start(enter_rootless_of_another);
        char path[128];
        struct delivery_request request = request_of(&other, path);

        request.uid = request.gid = ANOTHER;
        path_there("data", path);
        check_report_is(deliver_mount(&stops, path), DELIVERY_DONE, 0);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        stopping = TENANT;
        CHECK_INT(recall_mounts(disk, base, RECALL_MOUNTS), -ETIMEDOUT);
        stopping = 0;
        CHECK_INT(run_inside(&other, unmount, path), EINVAL); /* it is gone there */
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&stops, unmount, path), EINVAL);
        container_end(&stops);
        container_end(&other);
}

/* ---- the users ---- */

static struct mount_users users_of_base(void)
{
        struct mount_users users = {};

        CHECK_INT(mount_users_read(base, &users), 1);
        return users;
}

/* Of a container that has the file system no copy is left behind, and of another user's none is looked for. */
static void test_only_containers_of_users_who_were_given_it_are_looked_at(void)
{
        struct container first = container_start(enter_rootless),
                         second = container_start(enter_rootless_of_another);
        struct mount_users users;
        char path[128];
        struct delivery_request request = request_of(&second, path);

        request.uid = request.gid = ANOTHER;
        path_there("data", path);
        mount_users_begin(base);
        check_report_is(deliver_mount(&first, path), DELIVERY_DONE, 0);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        users = users_of_base();
        CHECK_INT(users.count, 2);
        CHECK(mount_users_has(&users, TENANT));
        CHECK(mount_users_has(&users, ANOTHER));
        mount_users_clear(&users);
        CHECK_INT(recall_mounts(disk, base, RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&first, unmount, path), EINVAL);
        CHECK_INT(run_inside(&second, unmount, path), EINVAL);
        mount_users_end(base);
        CHECK_INT(mount_users_read(base, &users), 0);
        container_end(&first);
        container_end(&second);
}

/* Without a list it has to be looked for there. */
static void test_the_containers_of_other_users_hinder_nothing(void)
{
        struct container stops = container_start(enter_rootless),
                         other = container_start(enter_rootless_of_another);
        char path[128];
        struct delivery_request request = request_of(&other, path);

        request.uid = request.gid = ANOTHER;
        path_there("data", path);
        check_report_is(
                deliver_mount(&stops, path), DELIVERY_DONE, 0); /* as one that another user has given it */
        mount_users_begin(base);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        stopping = TENANT;
        CHECK_INT(recall_mounts(disk, base, RECALL_TRY_MOUNTS), 0);
        CHECK_INT(recall_mounts(disk, base, RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&other, unmount, path), EINVAL);
        mount_users_end(base);
        CHECK_INT(recall_mounts(disk, base, RECALL_TRY_MOUNTS), -ETIMEDOUT);
        stopping = 0;
        CHECK_INT(recall_mounts(disk, base, RECALL_MOUNTS), 0);
        container_end(&stops);
        container_end(&other);
}

/* ---- the unmount ---- */

/* Whether a copy may be left that the unmount has not ended. */
static bool left;

/* Where the disk would be. */
static const char the_node[] = "/dev/of-the-test";

static int unmount_here(uint32_t flags)
{
        struct filesystem_go go = {.point = "volume", .flags = flags};
        struct filesystem_hold hold = filesystem_hold_begin(the_node, number);

        snprintf(go.top, sizeof(go.top), "%s", top);
        snprintf(go.number, sizeof(go.number), "%s", number);
        snprintf(go.node, sizeof(go.node), "%s", the_node);
        return filesystem_unmount(&hold, &go, &left);
}

/* As recall_in_time(). */
static int unmount_in_time(uint32_t flags)
{
        int r = unmount_here(flags);

        for (unsigned i = 0; i < TRIES && r == -ETIMEDOUT; i++)
                r = unmount_here(flags);
        return r;
}

/* What claims the disk after the end of the mount of the host: a tmpfs has none. */
static enum filesystem_claim claim;

/* How often it is taken before that, and how often it was asked. */
static unsigned late, asked;

enum filesystem_claim __wrap_filesystem_claim_find(dev_t of, const char *node);

enum filesystem_claim __wrap_filesystem_claim_find(dev_t of, const char *node)
{
        CHECK_INT(of, disk);
        CHECK_STR(node, the_node);
        return asked++ < late ? FILESYSTEM_CLAIM_TAKEN : claim;
}

static void set_claim(enum filesystem_claim then, unsigned after)
{
        claim = then;
        late = after;
        asked = 0;
}

/* Unmount, and deliver it after the last look at containers, as a delivery does that was begun before. Return what came of the
 * unmount; ret_user: a process of the container uses it. */
static int unmount_and_deliver(
        const struct container *container, const char *path, uint32_t flags, int *ret_user)
{
        int link[2], status = -1;
        char byte = 0;
        pid_t pid;

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
        pid = fork();
        if (pid == 0) {
                meanwhile = link[1];
                _exit(-unmount_here(flags));
        }
        link[1] = close_fd(link[1]);
        CHECK(read(link[0], &byte, 1) == 1);
        check_report_is(deliver_mount(container, path), DELIVERY_DONE, 0);
        *ret_user = open_inside(container, path);
        CHECK(write(link[0], &byte, 1) == 1);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        close_fd(link[0]);
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPIPE;
}

/* The container could write to it after the end. */
static void test_an_unmount_is_not_over_while_a_copy_is_used_that_came_meanwhile(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        int user;

        path_there("data", path);
        set_claim(FILESYSTEM_CLAIM_UNSEEN, 0); /* the looks decide */
        CHECK_INT(unmount_and_deliver(&container, path, FILESYSTEM_COPIES_TOO, &user), -EBUSY);
        CHECK(user >= 0);
        CHECK_INT(
                unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY); /* nothing is mounted on the host any more */
        close_fd(user);
        CHECK_INT(unmount_in_time(0), -EEXIST);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        CHECK_INT(run_inside(&container, unmount, path), EINVAL);
        CHECK(access(base, F_OK) < 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&container);
}

/* As every copy does, without the order to end them. */
static void test_a_copy_that_came_meanwhile_stays_without_that_order(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        int user;

        path_there("data", path);
        set_claim(FILESYSTEM_CLAIM_UNSEEN, 0); /* the looks decide */
        CHECK_INT(unmount_and_deliver(&container, path, 0, &user), -EEXIST);
        close_fd(user);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        CHECK_INT(run_inside(&container, unmount, path), EINVAL);
        CHECK(access(base, F_OK) < 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&container);
}

/* It is where no list leads: as when a user has passed it on to a container of another user. Its processes could write to it after
 * the end. */
static void test_a_copy_that_was_passed_on_to_another_user_is_found(void)
{
        char path[128];
        struct container container = start_with_copy(path);
        int user;

        mount_users_begin(base);
        CHECK_INT(mount_users_add(base, ANOTHER), 0);
        user = open_inside(&container, path);
        CHECK(user >= 0);
        set_claim(FILESYSTEM_CLAIM_TAKEN, 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        CHECK(left && access(base, F_OK) == 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY); /* the mount of the host has ended */
        close_fd(user);
        CHECK_INT(unmount_in_time(0), -EEXIST);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        stopping = TENANT;
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), -ETIMEDOUT);
        CHECK(access(base, F_OK) == 0);
        stopping = 0;
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY); /* and something else has the disk */
        CHECK_INT(run_inside(&container, unmount, path), EINVAL);
        CHECK(left && access(base, F_OK) == 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        CHECK(access(base, F_OK) < 0);
        container_end(&container);
}

/* A process has taken the copy out of its container, and keeps it open: it could mount it again, and write. */
static void test_an_unmount_is_not_over_while_something_that_no_look_finds_has_the_disk(void)
{
        mount_users_begin(base);
        set_claim(FILESYSTEM_CLAIM_TAKEN, 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        CHECK(left && access(base, F_OK) == 0);
        CHECK_INT(unmount_in_time(0), -EBUSY); /* the mount of the host has ended */
        CHECK(left && access(base, F_OK) == 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        CHECK_INT(unmount_in_time(0), 0);
        CHECK(!left && access(base, F_OK) < 0);
}

/* It has gone, or the host has no node of it: the look at all containers is what there is. */
static void test_a_disk_that_cannot_be_asked_has_all_containers_looked_at(void)
{
        char path[128];
        struct container container = start_with_copy(path);

        mount_users_begin(base);
        set_claim(FILESYSTEM_CLAIM_UNSEEN, 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        CHECK(!left && access(base, F_OK) < 0);
        CHECK_INT(run_inside(&container, unmount, path), EINVAL);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&container);
}

/* The kernel has the disk for a moment after the end of the mount: no container of others is looked at for that. */
static void test_a_disk_that_is_free_a_moment_later_is_free(void)
{
        char path[128];
        struct container stops = start_with_copy(path);

        mount_users_begin(base);
        stopping = TENANT;
        set_claim(FILESYSTEM_CLAIM_FREE, 1);
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), 0);
        stopping = 0;
        CHECK_INT(asked, 2);
        CHECK(access(base, F_OK) < 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&stops);
}

/* The kernel writes for the end of the last copy, longer than a look waits: the disk is free after that, and nothing is left. */
static void test_a_disk_that_is_free_after_a_late_look_is_free(void)
{
        char path[128];
        struct container stops = start_with_copy(path);

        mount_users_begin(base);
        stopping = TENANT;
        set_claim(FILESYSTEM_CLAIM_FREE, ASKED_BEFORE_MAX + 1);
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), 0);
        stopping = 0;
        CHECK_INT(asked, ASKED_BEFORE_MAX + 2);
        CHECK(!left && access(base, F_OK) < 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&stops);
}

/* The mount of the host has ended, and the container of a user of the list has a copy. */
static struct container leave_a_copy(void)
{
        char path[128];
        struct container container = start_with_copy(path);
        int user;

        mount_users_begin(base);
        user = open_inside(&container, path);
        set_claim(FILESYSTEM_CLAIM_TAKEN, 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        CHECK(left && access(base, F_OK) == 0);
        close_fd(user);
        CHECK_INT(mount_users_add(base, TENANT), 0);
        return container;
}

static void test_no_container_is_looked_at_once_the_disk_is_free(void)
{
        struct container stops = leave_a_copy();

        stopping = TENANT;
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), 0);
        stopping = 0;
        CHECK(!left && access(base, F_OK) < 0);
        container_end(&stops);
}

/* The kernel writes at the end of the last copy, longer than a look waits. */
static void test_a_disk_that_is_free_after_a_late_look_at_the_list_is_free(void)
{
        struct container stops = leave_a_copy();

        stopping = TENANT;
        stopping_the_end = true;
        set_claim(FILESYSTEM_CLAIM_FREE, ASKED_BEFORE_MAX + 2);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        stopping = 0;
        stopping_the_end = false;
        CHECK(!left && access(base, F_OK) < 0);
        set_claim(FILESYSTEM_CLAIM_FREE, 0);
        container_end(&stops);
}

/* Else every user could hinder the unmount of a file system that no container has. */
static void test_no_container_is_looked_at_for_a_disk_that_nothing_claims(void)
{
        char path[128];
        struct container stops = start_with_copy(path);

        mount_users_begin(base);
        stopping = TENANT;
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), 0);
        stopping = 0;
        CHECK(access(base, F_OK) < 0);
        container_end(&stops);
}

/* Both containers have it as before, whatever one of them does. */
static void test_an_unmount_takes_it_from_all_or_from_none(void)
{
        struct container first = container_start(enter_rootless),
                         second = container_start(enter_rootless_of_another);
        char path[128];
        struct delivery_request request = request_of(&second, path);
        int user;

        request.uid = request.gid = ANOTHER;
        path_there("data", path);
        check_report_is(deliver_mount(&first, path), DELIVERY_DONE, 0);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        CHECK_INT(unmount_in_time(0), -EEXIST); /* another holder does not end it there */
        CHECK(!left);
        user = open_inside(&second, path);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        stopping = TENANT;
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        close_fd(user);
        CHECK_INT(unmount_here(FILESYSTEM_COPIES_TOO), -ETIMEDOUT);
        stopping = 0;
        user = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), -EBUSY);
        close_fd(user);
        CHECK_INT(run_inside(&first, see_owner, path), 0);
        CHECK_INT(run_inside(&second, see_owner, path), 0);
        CHECK_INT(unmount_in_time(FILESYSTEM_COPIES_TOO), 0);
        CHECK_INT(run_inside(&first, unmount, path), EINVAL);
        CHECK_INT(run_inside(&second, unmount, path), EINVAL);
        CHECK(access(base, F_OK) < 0);
        container_end(&first);
        container_end(&second);
}

/* ---- the whole ---- */

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = world_open() && mount_world_open();
        if (can) {
                test_it_is_unmounted_in_each_container();
                test_one_that_a_process_uses_stays();
                test_only_that_disk_is_unmounted();
                test_a_container_that_stops_the_search_hinders_no_other();
                test_only_containers_of_users_who_were_given_it_are_looked_at();
                test_the_containers_of_other_users_hinder_nothing();
                test_an_unmount_takes_it_from_all_or_from_none();
                if (CHECK(mount_world_mount()))
                        test_a_copy_that_was_passed_on_to_another_user_is_found();
                if (CHECK(mount_world_mount()))
                        test_no_container_is_looked_at_for_a_disk_that_nothing_claims();
                if (CHECK(mount_world_mount()))
                        test_an_unmount_is_not_over_while_something_that_no_look_finds_has_the_disk();
                if (CHECK(mount_world_mount()))
                        test_a_disk_that_cannot_be_asked_has_all_containers_looked_at();
                if (CHECK(mount_world_mount()))
                        test_a_disk_that_is_free_a_moment_later_is_free();
                if (CHECK(mount_world_mount()))
                        test_a_disk_that_is_free_after_a_late_look_is_free();
                if (CHECK(mount_world_mount()))
                        test_no_container_is_looked_at_once_the_disk_is_free();
                if (CHECK(mount_world_mount()))
                        test_a_disk_that_is_free_after_a_late_look_at_the_list_is_free();
                if (CHECK(mount_world_mount()))
                        test_a_copy_that_came_meanwhile_stays_without_that_order();
                if (CHECK(mount_world_mount()))
                        test_an_unmount_is_not_over_while_a_copy_is_used_that_came_meanwhile(); /* the last one */
        }
        mount_world_close();
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
