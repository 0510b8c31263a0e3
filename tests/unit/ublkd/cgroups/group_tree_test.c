/* SPDX-License-Identifier: MIT */
/* Groups on a directory of plain files: what is written where. worker_groups_test.c has the kernel's own. */
#include "ublkd/cgroups/group_tree.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { PID = 4711 };

static char tree[] = "/tmp/group-tree-XXXXXX";
static struct group_place place;
static const struct group_place nowhere = {.path = "/nowhere"};
static bool has_controllers = true;
static int remove_error; /* of the kernel */

static void put(const char *name, const char *text)
{
        _cleanup_fclose_ FILE *file = NULL;
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", tree, name);
        file = fopen(path, "we");
        CHECK(file && fputs(text, file) >= 0);
}

static void check_file(const char *name, const char *wanted)
{
        char path[160], text[256];

        snprintf(path, sizeof(path), "%s/%s", tree, name);
        CHECK(read_text_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
        CHECK_STR(text, wanted);
}

static bool exists(const char *name)
{
        char path[160];

        snprintf(path, sizeof(path), "%s/%s", tree, name);
        return access(path, F_OK) == 0;
}

static void put_in(const char *group, const char *file, const char *text)
{
        char name[96];

        snprintf(name, sizeof(name), "%s/%s", group, file);
        put(name, text);
}

/* ---- the kernel ---- */

int __real_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdirat(int dir, const char *name, mode_t mode)
{
        static const char *const files[] = {
                "cpu.weight", "memory.max", "memory.oom.group", "io.max", "pids.max"};

        if (__real_mkdirat(dir, name, mode) < 0)
                return -1;
        put_in(name, "cgroup.procs", "");
        put_in(name, "cgroup.kill", "");
        put_in(name, "cgroup.pressure", "1");
        for (size_t i = 0; has_controllers && i < ARRAY_SIZE(files); i++)
                put_in(name, files[i], "");
        if (has_controllers)
                put_in(name, "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n");
        return 0;
}

int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir _unused_, const char *name, int flags)
{
        char command[256];

        CHECK_INT(flags, AT_REMOVEDIR);
        if (remove_error) {
                errno = remove_error;
                return -1;
        }
        snprintf(command, sizeof(command), "rm -r %s/%s", tree, name);
        CHECK_INT(system(command), 0);
        return 0;
}

/* ---- tests ---- */

static void test_controllers(const struct group_tree *groups)
{
        const struct group_limits limits = {.cpu_weight = 1, .pids_max = 99, .io = {.read_ios = 1}};

        put("cgroup.procs", "");
        put("cgroup.subtree_control", "");
        put("cgroup.pressure", "1");
        group_tree_enable(groups, &(const struct group_limits){}, false);
        check_file("cgroup.pressure", "0");
        check_file("cgroup.subtree_control", "+pidsry"); /* +memory, then +pids: the kernel adds */
        put("cgroup.subtree_control", "cpuset cpu memory\n");
        group_tree_enable(groups, &limits, false);
        check_file("cgroup.subtree_control", "+pidst cpu memory\n"); /* +io, then +pids: the kernel adds */
        CHECK(!exists("rest"));
        put("cgroup.subtree_control", "cpu io memory pids\n");
        put("cgroup.procs", "0\n"); /* of another pid namespace; "0" would move this process */
        group_tree_enable(groups, &limits, false);
        CHECK(!exists("rest"));
        put("cgroup.procs", "815\n");
        group_tree_enable(groups, &limits, false);
        check_file("cgroup.subtree_control", "cpu io memory pids\n");
        check_file("rest/cgroup.procs", "815"); /* the process of the unit */
        group_tree_enable(groups, &limits, false);
        check_file("rest/cgroup.procs", "815");
}

static void test_hold(const struct group_tree *groups)
{
        CHECK_INT(group_tree_hold(groups, PID), 1);
        check_file("worker-4711/cgroup.procs", "4711");
        check_file("worker-4711/memory.oom.group", "1");
        check_file("worker-4711/cgroup.pressure", "0");
        put("worker-4711/cgroup.procs", "4711\n4712\n");
        put("worker-4711/memory.oom.group", "");
        CHECK_INT(group_tree_hold(groups, PID), 0); /* with what it has forked */
        check_file("worker-4711/cgroup.procs", "4711\n4712\n");
        check_file("worker-4711/cgroup.kill", "");
}

static void test_remains_have_the_name(const struct group_tree *groups)
{
        put("worker-4711/cgroup.procs", ""); /* of an earlier process */
        put("worker-4711/memory.events", "oom_kill 3\n");
        CHECK_INT(group_tree_hold(groups, PID), 1);
        CHECK(exists("worker-4711/memory.events"));
        check_file(
                "worker-4711/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 0\noom_group_kill 0\n");
        put("worker-4711/cgroup.procs", "47110\n"); /* a child of it lives */
        remove_error = EBUSY;
        CHECK_INT(group_tree_hold(groups, PID), -EBUSY);
        check_file("worker-4711/cgroup.kill", "1");
        remove_error = 0;
        put("worker-4711/cgroup.kill", "");
        put("worker-4711/cgroup.procs", "4711\n");
}

static void check_limits(const struct group_tree *groups, const struct group_limits *limits,
        const int wanted[_GROUP_LIMIT_MAX])
{
        int results[_GROUP_LIMIT_MAX];

        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                results[i] = 1;
        CHECK_INT(group_tree_limit(groups, PID, limits, results), 0);
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++)
                CHECK_INT(results[i], wanted[i]);
}

static void clear_limits(void)
{
        put("worker-4711/cpu.weight", "");
        put("worker-4711/memory.max", "");
        put("worker-4711/pids.max", "");
        put("worker-4711/io.max", "");
}

static void test_limits(const struct group_tree *groups)
{
        static const int good[_GROUP_LIMIT_MAX] = {};
        const struct group_limits limits = {
                .cpu_weight = 10,
                .memory_max = 1 << 25,
                .pids_max = 99,
                .io = {.write_bytes = 4096},
                .disk = makedev(8, 16),
        };

        clear_limits();
        check_limits(groups, &limits, good);
        check_file("worker-4711/cpu.weight", "10");
        check_file("worker-4711/memory.max", "33554432");
        check_file("worker-4711/pids.max", "99");
        check_file("worker-4711/io.max", "8:16 rbps=max wbps=4096 riops=max wiops=max");
        clear_limits();
        put("worker-4711/io.max", "8:32 rbps=1 wbps=max riops=max wiops=max\n");
        check_limits(groups, &(const struct group_limits){}, good);
        check_file("worker-4711/cpu.weight", "100");
        check_file("worker-4711/memory.max", "max");
        check_file("worker-4711/pids.max", "max");
        check_file("worker-4711/io.max", "8:32 rbps=max wbps=max riops=max wiops=max");
        check_limits(groups, &(const struct group_limits){.io = {.read_ios = 1}},
                (const int[_GROUP_LIMIT_MAX]){[GROUP_IO_MAX] = -ENODEV});
}

/* The disk of the store has changed: the old one, which may serve others now, has no limit any more. */
static void test_another_disk(const struct group_tree *groups)
{
        static const int good[_GROUP_LIMIT_MAX] = {};

        clear_limits();
        put("worker-4711/io.max", "8:32 rbps=1 wbps=max riops=max wiops=max\n");
        check_limits(
                groups, &(const struct group_limits){.io = {.read_ios = 5}, .disk = makedev(8, 0)}, good);
        /* A plain file has both texts, one over the other. */
        check_file("worker-4711/io.max", "8:0 rbps=max wbps=max riops=5 wiops=maxmax");
}

static void test_without_controllers(const struct group_tree *groups)
{
        const struct group_limits limits = {.cpu_weight = 10, .io = {.read_ios = 5}, .disk = makedev(8, 0)};

        has_controllers = false;
        CHECK_INT(group_tree_hold(groups, PID + 1), 1);
        has_controllers = true;
        put("worker-4712/cgroup.procs", "4712\n");
        for (unsigned i = 0; i < 2; i++) {
                int results[_GROUP_LIMIT_MAX] = {};

                CHECK_INT(group_tree_limit(
                                  groups, PID + 1, i ? &limits : &(const struct group_limits){}, results),
                        0);
                CHECK_INT(results[GROUP_CPU_WEIGHT], i ? -ENOENT : 0);
                CHECK_INT(results[GROUP_IO_MAX], i ? -ENOENT : 0);
                CHECK_INT(results[GROUP_MEMORY_MAX], 0);
        }
        CHECK(!exists("worker-4712/cpu.weight"));
}

static void test_oom_kills(void)
{
        _cleanup_close_ int events = group_tree_open_events(&place, PID);
        uint64_t kills = 77;

        CHECK_INT(group_tree_oom_kills(events, &kills), 0);
        CHECK_INT(kills, 0);
        put("worker-4711/memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n");
        CHECK_INT(group_tree_oom_kills(events, &kills), 0);
        CHECK_INT(kills, 2);
        put("worker-4711/memory.events", "low 0\n");
        CHECK_INT(group_tree_oom_kills(events, &kills), -EBADMSG);
        CHECK_INT(group_tree_open_events(&place, PID + 1), -ENOENT);
        CHECK_INT(group_tree_open_events(&nowhere, PID), -ENOENT);
}

static void test_end(const struct group_tree *groups)
{
        put("worker-4711/cgroup.procs", "4711\n4713\n");
        CHECK_INT(group_tree_end(groups, PID), 1); /* it lives */
        check_file("worker-4711/cgroup.kill", "");
        put("worker-4711/cgroup.procs", "4713\n");
        remove_error = EBUSY;
        CHECK_INT(group_tree_end(groups, PID), -EBUSY);
        check_file("worker-4711/cgroup.kill", "1");
        remove_error = 0;
        put("worker-4711/cgroup.kill", "");
        put("worker-4711/cgroup.procs", "4711\n"); /* dead, and not out of its group yet */
        CHECK_INT(group_tree_kill(groups, PID), 1);
        check_file("worker-4711/cgroup.kill", "");
        put("worker-4711/cgroup.procs", "4711\n4713\n");
        CHECK_INT(group_tree_kill(groups, PID), 1);
        check_file("worker-4711/cgroup.kill", "1");
        CHECK(exists("worker-4711"));
        put("worker-4711/cgroup.procs", "");
        CHECK_INT(group_tree_end(groups, PID), 0);
        CHECK(!exists("worker-4711"));
        CHECK_INT(group_tree_end(groups, PID), 0);
        CHECK_INT(group_tree_kill(groups, PID), 0);
}

/* The worker was dead when it was to be moved, and another process had its pid. */
static void test_undo(const struct group_tree *groups)
{
        CHECK_INT(group_tree_hold(groups, PID), 1);
        put("rest/cgroup.procs", "");
        group_tree_undo(groups, PID);
        check_file("rest/cgroup.procs", "4711");
        CHECK(!exists("worker-4711"));
        CHECK_INT(group_tree_hold(groups, PID), 1);
        put("worker-4711/cgroup.procs", ""); /* no process had it */
        put("rest/cgroup.procs", "");
        group_tree_undo(groups, PID);
        check_file("rest/cgroup.procs", "");
        CHECK(!exists("worker-4711"));
}

/* What a ublkd leaves that dies at any point: a group that is empty, one whose worker is dead. */
static void test_sweep(const struct group_tree *groups)
{
        CHECK_INT(group_tree_hold(groups, 1), 1);
        CHECK_INT(group_tree_hold(groups, 2), 1);
        CHECK_INT(group_tree_hold(groups, 3), 1);
        put("worker-1/cgroup.procs", "1\n5\n");
        put("worker-2/cgroup.procs", "");
        put("worker-3/cgroup.procs", "6\n");
        CHECK_INT(mkdirat(groups->fd, "worker-3x", 0700), 0);
        CHECK_INT(mkdirat(groups->fd, "other", 0700), 0);
        CHECK_INT(group_tree_sweep(groups), 0);
        CHECK_INT(group_tree_has(&place, 1), 1);
        CHECK_INT(group_tree_has(&place, 2), 0);
        CHECK_INT(group_tree_has(&nowhere, 1), 0);
        CHECK(exists("worker-1") && exists("worker-3x") && exists("other") && exists("worker-4712"));
        CHECK(!exists("worker-2") && !exists("worker-3"));
        check_file("worker-1/cgroup.kill", "");
        put("worker-1/cgroup.procs", "5\n");
        remove_error = EBUSY;
        CHECK_INT(group_tree_sweep(groups), 1);
        check_file("worker-1/cgroup.kill", "1");
}

/* A ublkd in a container has its groups in the same directory: the pids in their names mean other processes here. */
static void test_names_of_another_pid_namespace(const struct group_tree *groups)
{
        const struct group_place below = {.pid_namespace = 4026532000};
        struct group_tree container = {.fd = groups->fd, .pid_namespace = below.pid_namespace};

        put("worker-1/cgroup.procs", "1\n");
        put("worker-1/cgroup.kill", "");
        remove_error = 0;
        CHECK_INT(group_tree_hold(&container, 1), 1);
        check_file("worker-1-4026532000/cgroup.procs", "1");
        put("worker-1-4026532000/cgroup.procs", "815\n"); /* as the machine sees it */
        CHECK_INT(group_tree_sweep(groups), 0);
        check_file("worker-1-4026532000/cgroup.kill", "");
        put("worker-1-4026532000/cgroup.procs", "");
        CHECK_INT(group_tree_sweep(groups), 0);
        CHECK(exists("worker-1-4026532000"));
        put("worker-1/cgroup.procs", "0\n"); /* as the container sees it */
        CHECK_INT(group_tree_sweep(&container), 0);
        CHECK(!exists("worker-1-4026532000"));
        check_file("worker-1/cgroup.kill", "");
        CHECK(exists("worker-1") && exists("worker-4712"));
}

static void test_where_a_process_is_born(const struct group_tree *groups)
{
        char command[96];
        struct stat made, rest;
        int fd;

        snprintf(command, sizeof(command), "rm -r %s/rest", tree);
        CHECK_INT(system(command), 0);
        for (int i = 0; i < 2; i++) {
                fd = group_tree_open_rest(&place);
                CHECK(fd >= 0 && fcntl(fd, F_GETFL) & O_PATH && fcntl(fd, F_GETFD) & FD_CLOEXEC);
                CHECK(fstat(fd, &made) == 0 && fstatat(groups->fd, "rest", &rest, 0) == 0);
                CHECK_INT(made.st_ino, rest.st_ino);
                close_fd(fd);
        }
        CHECK_INT(group_tree_open_rest(&nowhere), -ENOENT);
}

int main(void)
{
        struct group_tree groups = {.fd = -1};
        char command[96];

        CHECK(mkdtemp(tree));
        snprintf(place.path, sizeof(place.path), "%s/none", tree);
        CHECK_INT(group_tree_open(&place, false, &groups), -ENOENT);
        snprintf(place.path, sizeof(place.path), "%s", tree);
        if (!CHECK_INT(group_tree_open(&place, true, &groups), 0))
                return check_report();
        test_controllers(&groups);
        test_hold(&groups);
        test_remains_have_the_name(&groups);
        test_limits(&groups);
        test_another_disk(&groups);
        test_without_controllers(&groups);
        test_oom_kills();
        test_end(&groups);
        test_undo(&groups);
        test_sweep(&groups);
        test_names_of_another_pid_namespace(&groups);
        test_where_a_process_is_born(&groups);
        group_tree_close(&groups);
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        return check_report();
}
