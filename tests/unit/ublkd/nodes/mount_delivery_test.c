/* SPDX-License-Identifier: MIT */
/* node_delivery and recall_mounts(): a file system comes into real namespaces and out again, by the real processes. It is a
 * tmpfs. Needs root, and Linux 6.3 for a tmpfs with the ids of a container. */
#include "ublkd/filesystems/filesystem_mount.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/mount_clone.h"
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/container_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static char top[] = "/tmp/ublkd-test-base-XXXXXX"; /* the directory of all mounts */
static char base[64];                              /* where the file system is mounted */
static char number[64];                            /* the file with its device number */
static dev_t disk;

/* ---- in a container ---- */

/* A second process of the container, as its root. */
static int run_inside(const struct container *container, int (*work)(const char *path), const char *path)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (setns(container->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0 || setresgid(0, 0, 0) < 0
                        || setresuid(0, 0, 0) < 0)
                        _exit(255);
                _exit(work(path) < 0 ? errno : 0);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

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

static int see_owner(const char *path)
{
        struct stat st;
        char name[160];

        snprintf(name, sizeof(name), "%s/roots", path);
        if (stat(name, &st) < 0)
                return -1;
        errno = ERANGE;
        return st.st_uid == 0 && st.st_gid == 0 ? 0 : -1;
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

static int unmount(const char *path)
{
        return umount2(path, 0);
}

static int cover(const char *path)
{
        return mount("tmpfs", path, "tmpfs", 0, NULL);
}

/* ---- deliveries ---- */

static void on_done(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

static struct delivery_report deliver_request(struct delivery_request *request)
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

static struct delivery_request request_of(const struct container *container, const char *path)
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

static struct delivery_report deliver_mount(const struct container *container, const char *path)
{
        struct delivery_request request = request_of(container, path);

        return deliver_request(&request);
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

/* ---- out of the containers again ---- */

enum { TRIES = 8 };

/* Again if this host has given the containers too little time. */
static int recall_in_time(dev_t of, enum recall_what what)
{
        int r = recall_mounts(of, what);

        for (unsigned i = 0; i < TRIES && r == -ETIMEDOUT; i++)
                r = recall_mounts(of, what);
        return r;
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

/* Open it in the container, until the descriptor is closed. */
static int open_inside(const struct container *container, const char *path)
{
        char name[160];

        snprintf(name, sizeof(name), "/proc/%d/root%s", (int)container->pid, path);
        return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void test_one_that_a_process_uses_stays(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];
        int user;

        path_there("data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_DONE, 0);
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
        struct container container = container_start(enter_rootless);
        char path[128];

        path_there("data", path);
        check_report_is(deliver_mount(&container, path), DELIVERY_DONE, 0);
        CHECK_INT(recall_in_time(makedev(7, 0), RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&container, cover, path), 0);
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0); /* the container has covered it */
        CHECK_INT(run_inside(&container, unmount, path), 0);
        CHECK_INT(run_inside(&container, see_owner, path), 0);
        container_end(&container);
}

/* The container whose root stops the search at the worst time; 0: none. */
static uid_t stopping;

int __real_umount2(const char *target, int flags);
int __wrap_umount2(const char *target, int flags);

int __wrap_umount2(const char *target, int flags)
{
        unsigned inside, outside = 0;
        FILE *map = stopping ? fopen("/proc/self/uid_map", "re") : NULL;

        if (map) {
                if (fscanf(map, "%u %u", &inside, &outside) == 2 && outside == stopping)
                        (void)raise(SIGSTOP);
                (void)fclose(map);
        }
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
        CHECK_INT(recall_mounts(disk, RECALL_MOUNTS), -ETIMEDOUT);
        stopping = 0;
        CHECK_INT(run_inside(&other, unmount, path), EINVAL); /* it is gone there */
        CHECK_INT(recall_in_time(disk, RECALL_MOUNTS), 0);
        CHECK_INT(run_inside(&stops, unmount, path), EINVAL);
        container_end(&stops);
        container_end(&other);
}

/* ---- the unmount ---- */

static int unmount_here(uint32_t flags)
{
        struct filesystem_go go = {.point = "volume", .flags = flags};

        snprintf(go.top, sizeof(go.top), "%s", top);
        return filesystem_unmount(&go);
}

/* As recall_in_time(). */
static int unmount_in_time(uint32_t flags)
{
        int r = unmount_here(flags);

        for (unsigned i = 0; i < TRIES && r == -ETIMEDOUT; i++)
                r = unmount_here(flags);
        return r;
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

static bool open_base(void)
{
        _cleanup_close_ int fd = -1;
        struct stat st;
        char text[128];
        int size;

        if (!CHECK(mkdtemp(top)))
                return false;
        snprintf(base, sizeof(base), "%s/volume", top);
        if (!CHECK(mkdir(base, 0700) == 0) || !CHECK(mount("tmpfs", base, "tmpfs", 0, "mode=0755") == 0)
                || !CHECK(stat(base, &st) == 0))
                return false;
        disk = st.st_dev;
        size = snprintf(text, sizeof(text), "%u:%u\n", major(disk), minor(disk));
        snprintf(number, sizeof(number), "%s.number", top);
        fd = open(number, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, (size_t)size), size);
        snprintf(text, sizeof(text), "%s/roots", base);
        fd = close_fd(fd);
        fd = open(text, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        return CHECK(fd >= 0);
}

static void close_base(void)
{
        (void)umount2(base, MNT_DETACH);
        (void)rmdir(base);
        (void)rmdir(top);
        (void)unlink(number);
}

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

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = world_open() && open_base() && can_translate();
        if (can) {
                test_the_ids_are_those_of_the_container();
                test_the_process_that_is_named_acts_with_its_own_ids();
                test_the_container_cannot_change_the_options();
                test_only_an_empty_directory_of_the_client_is_covered();
                test_what_is_not_the_mount_of_the_disk_is_refused();
                test_the_host_and_its_root_get_nothing();
                test_it_is_unmounted_in_each_container();
                test_one_that_a_process_uses_stays();
                test_only_that_disk_is_unmounted();
                test_a_container_that_stops_the_search_hinders_no_other();
                test_an_unmount_takes_it_from_all_or_from_none(); /* the last one */
        }
        close_base();
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
