/* SPDX-License-Identifier: MIT */
/* node_delivery: a file system comes into real namespaces, by the real processes. */
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/node_delivery.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/mount_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* ---- in a container ---- */

static int make_directory(const char *path)
{
        return mkdir(path, 0755);
}

static int write_file(const char *path)
{
        char name[160];
        int fd;

        snprintf(name, sizeof(name), "%s/theirs", path);
        fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        return fd < 0 ? -1 : close(fd);
}

static int see_options(const char *path)
{
        struct statvfs info;
        const unsigned long wanted = ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_RDONLY;

        errno = ERANGE;
        return statvfs(path, &info) == 0 && (info.f_flag & wanted) == wanted ? 0 : -1;
}

/* Try to take each option away, and leave the others. */
static int remount(const char *path)
{
        static const unsigned long options[] = {MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY};
        unsigned long all = MS_REMOUNT | MS_BIND;

        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                all |= options[i];
        if (mount(NULL, path, NULL, all, NULL) < 0)
                return 0; /* then a refusal below shows nothing */
        for (size_t i = 0; i < ARRAY_SIZE(options); i++)
                if (mount(NULL, path, NULL, all & ~options[i], NULL) == 0 || errno != EPERM)
                        return 0;
        errno = EPERM;
        return -1;
}

/* ---- what is delivered ---- */

static void test_the_ids_are_those_of_the_container(void)
{
        struct container container = container_start(enter_rootless);
        char path[128], name[160];
        struct stat st;

        path_there("data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_DONE, 0);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        CHECK_INT(run_inside(&container, write_file, path), 0);
        snprintf(name, sizeof(name), "%s/theirs", base);
        CHECK_INT(stat(name, &st), 0);
        CHECK_INT(st.st_uid, 0);
        CHECK_INT(st.st_gid, 0);
        CHECK(access(path, F_OK) < 0); /* not here */
        container_end(&container);
}

static void test_the_process_that_is_named_acts_with_its_own_ids(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        struct delivery_request request = request_of(&container, path);

        request.uid = DELIVERY_IDS_OF_PROCESS;
        path_there("closed/data", path);
        check_report_is(deliver_request(&request), DELIVERY_NO_FILE, -EACCES);
        path_there("data", path);
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        container_end(&container);
}

static void test_the_container_cannot_change_the_options(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        struct delivery_request request = request_of(&container, path);

        path_there("data", path);
        request.read_only = request.no_exec = true;
        check_report_is(deliver_request(&request), DELIVERY_DONE, 0);
        CHECK_INT(run_inside(&container, see_options, path), 0);
        CHECK_INT(run_inside(&container, write_file, path), EROFS);
        CHECK_INT(run_inside(&container, remount, path), EPERM);
        CHECK_INT(run_inside(&container, see_options, path), 0);
        CHECK_INT(run_inside(&container, unmount, path), 0);
        container_end(&container);
}

/* ---- what is refused ---- */

static void test_only_an_empty_directory_of_the_client_is_covered(void)
{
        struct container container = container_start(enter_rootless);
        char path[128], below[128];

        path_there("file", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_NO_FILE, -EEXIST);
        path_there("link", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_NO_FILE, -EEXIST);
        path_there("link/data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_NO_FILE, -ELOOP);
        path_there("full", path);
        path_there("full/data", below);
        CHECK_INT(run_inside(&container, make_directory, path), 0);
        CHECK_INT(run_inside(&container, make_directory, below), 0);
        check_report_is(deliver_mount(&container, path), DELIVERY_NO_FILE, -EEXIST);
        check_report_is(deliver_mount(&container, below), DELIVERY_DONE, 0);
        check_report_is(deliver_mount(&container, below), DELIVERY_NO_FILE, -EEXIST);  /* again */
        check_report_is(deliver_mount(&container, "/usr"), DELIVERY_NO_FILE, -EEXIST); /* not the client's */
        container_end(&container);
}

static void test_what_is_not_the_mount_of_the_disk_is_refused(void)
{
        struct container container = container_start(enter_rootless);
        char path[128], other[] = "/tmp/ublkd-test-number-XXXXXX";
        struct delivery_request request = request_of(&container, path);
        int fd = mkostemp(other, O_CLOEXEC);

        path_there("data", path);
        CHECK_INT(write(fd, "7:0\n", 4), 4);
        close_fd(fd);
        request.number = other;
        check_report_is(deliver_request(&request), DELIVERY_NO_MOUNT, -ESTALE);
        request.mount = "/usr/bin";
        request.number = number;
        check_report_is(deliver_request(&request), DELIVERY_NO_MOUNT, -ENXIO);
        request.mount = "/no/such/directory";
        check_report_is(deliver_request(&request), DELIVERY_NO_MOUNT, -ENXIO);
        (void)unlink(other);
        container_end(&container);
}

static void test_the_host_and_its_root_get_nothing(void)
{
        struct container container = container_start(enter_nothing);

        check_report_is(deliver_mount(&container, "/tmp/data"), DELIVERY_AT_HOME, 0);
        container_end(&container);
        container = container_start(enter_mounts);
        check_report_is(deliver_mount(&container, "/tmp/data"), DELIVERY_WITHOUT_USERS, 0);
        container_end(&container);
}

static void test_nothing_is_delivered_that_cannot_be_noted(void)
{
        struct container container = container_start(enter_rootless);
        char path[128], list[128];

        path_there("data", path);
        snprintf(list, sizeof(list), "%s.users", base);
        CHECK_INT(symlink("/", list), 0);
        check_report_is(deliver_mount(&container, path), DELIVERY_NO_MOUNT, -ENOTDIR);
        CHECK_INT(unlink(list), 0);
        CHECK_INT(run_inside(&container, unmount, path), ENOENT);
        container_end(&container);
}

/* ---- the whole ---- */

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = world_open() && mount_world_open();
        if (can) {
                test_the_ids_are_those_of_the_container();
                test_the_process_that_is_named_acts_with_its_own_ids();
                test_the_container_cannot_change_the_options();
                test_only_an_empty_directory_of_the_client_is_covered();
                test_what_is_not_the_mount_of_the_disk_is_refused();
                test_the_host_and_its_root_get_nothing();
                test_nothing_is_delivered_that_cannot_be_noted();
        }
        mount_world_close();
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
