/* SPDX-License-Identifier: MIT */
/* Start groups on a directory of plain files, and what a worker is bound by at once. */
#include "ublkd/cgroups/group_start.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/cgroups/group_write.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define DEVICE "0b8c1e52-6f0e-4a3e-9f0f-2f6d1c9f4a11"
#define OTHER "0b8c1e52-6f0e-4a3e-9f0f-2f6d1c9f4a12"

static char tree[] = "/tmp/group-start-XXXXXX";
static bool has_controllers = true;
static const char *busy = ""; /* the group that a process is in */

static void put(const char *group, const char *file)
{
        _cleanup_fclose_ FILE *stream = NULL;
        char path[256];

        snprintf(path, sizeof(path), "%s/%s/%s", tree, group, file);
        stream = fopen(path, "we");
        CHECK(stream);
}

static void check_file(const char *name, const char *wanted)
{
        char path[256], text[256];

        snprintf(path, sizeof(path), "%s/%s", tree, name);
        CHECK(read_text_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
        CHECK_STR(text, wanted);
}

static bool exists(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", tree, name);
        return access(path, F_OK) == 0;
}

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
        static const char *const files[] = {
                "cpu.weight", "memory.max", "memory.oom.group", "io.max", "pids.max"};

        if (__real_mkdirat(dir, name, mode) < 0)
                return -1;
        put(name, "cgroup.pressure");
        for (size_t i = 0; has_controllers && i < ARRAY_SIZE(files); i++)
                put(name, files[i]);
        return 0;
}

int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir _unused_, const char *name, int flags)
{
        char command[256];

        CHECK_INT(flags, AT_REMOVEDIR);
        if (!exists(name) || strcmp(name, busy) == 0) {
                errno = exists(name) ? EBUSY : ENOENT;
                return -1;
        }
        snprintf(command, sizeof(command), "rm -r %s/%s", tree, name);
        CHECK_INT(system(command), 0);
        return 0;
}

/* ---- tests ---- */

static void test_made_once(const struct group_tree *groups)
{
        int group;

        CHECK_INT(group_start_open(groups, DEVICE), -ENOENT);
        group = group_start_make(groups, DEVICE);
        CHECK(group >= 0);
        close_fd(group);
        check_file("start-" DEVICE "/memory.oom.group", "1");
        check_file("start-" DEVICE "/cgroup.pressure", "0");
        group = group_start_make(groups, DEVICE);
        CHECK(group >= 0);
        close_fd(group);
        group = group_start_open(groups, DEVICE);
        CHECK(group >= 0);
        close_fd(group);
}

/* What is not set stays as it is, and a share of the CPUs can wait. */
static void test_bounds(const struct group_tree *groups)
{
        _cleanup_close_ int group = group_start_open(groups, DEVICE);
        struct group_limits limits = {.cpu_weight = 5, .memory_max = 1 << 25, .io = {.read_ios = 7}};

        CHECK(group_limits_bound(&limits));
        CHECK_INT(group_write_bounds(group, &limits), 1);
        check_file("start-" DEVICE "/memory.max", "33554432");
        check_file("start-" DEVICE "/cpu.weight", "");
        check_file("start-" DEVICE "/pids.max", "");
        check_file("start-" DEVICE "/io.max", ""); /* of which disk? */
        limits = (struct group_limits){.pids_max = 99, .io = {.read_ios = 7}, .disk = makedev(8, 16)};
        CHECK_INT(group_write_bounds(group, &limits), 1);
        check_file("start-" DEVICE "/pids.max", "99");
        check_file("start-" DEVICE "/io.max", "");
        check_file("start-" DEVICE "/memory.max", "33554432");
        group_write_no_more_bounds(group, &limits);
        check_file("start-" DEVICE "/memory.max", "max54432"); /* a plain file keeps the end of what it had */
        check_file("start-" DEVICE "/pids.max", "99");
        CHECK(!group_limits_bound(&(const struct group_limits){.cpu_weight = 5, .io = {.read_ios = 7}}));
}

static void test_without_controllers(const struct group_tree *groups)
{
        const struct group_limits limits = {.memory_max = 1 << 25, .pids_max = 99};
        int group;

        has_controllers = false;
        group = group_start_make(groups, OTHER);
        has_controllers = true;
        CHECK_INT(group_write_bounds(group, &limits), 0);
        close_fd(group);
        CHECK_INT(group_start_remove(groups, OTHER), 0);
        CHECK(!exists("start-" OTHER));
        CHECK_INT(group_start_remove(groups, OTHER), 0);
}

/* Only what is empty, and of this pid namespace. */
static void test_sweep(const struct group_tree *groups)
{
        const struct group_tree container = {.fd = groups->fd, .pid_namespace = 4026533000};
        int group = group_start_make(&container, DEVICE);

        close_fd(group);
        close_fd(group_start_make(groups, OTHER));
        CHECK_INT(mkdirat(groups->fd, "worker-5", 0755), 0);
        busy = "start-" OTHER;
        CHECK_INT(group_start_remove(groups, OTHER), -EBUSY);
        group_start_sweep(groups);
        CHECK(!exists("start-" DEVICE));
        CHECK(exists("start-" OTHER) && exists("worker-5") && exists("start-" DEVICE ".4026533000"));
        busy = "";
        group_start_sweep(&container);
        CHECK(exists("start-" OTHER) && !exists("start-" DEVICE ".4026533000"));
        group_start_sweep(groups);
        CHECK(!exists("start-" OTHER) && exists("worker-5"));
}

int main(void)
{
        struct group_tree groups = {.fd = -1};
        char command[64];

        if (!CHECK(mkdtemp(tree)))
                return check_report();
        groups.fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        test_made_once(&groups);
        test_bounds(&groups);
        test_without_controllers(&groups);
        test_sweep(&groups);
        close_fd(groups.fd);
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        return check_report();
}
