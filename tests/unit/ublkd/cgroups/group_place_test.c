/* SPDX-License-Identifier: MIT */
/* Where the groups of workers lie, on trees of files. */
#include "ublkd/cgroups/group_place.h"

#include "ublkd/base/cleanup.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/stat.h>

static char tree[] = "/tmp/group-place-XXXXXX";
static char mount[64], own[64], systemd[64], pid_namespace[64];
static const struct group_sources sources = {
        .mount = mount, .own = own, .systemd = systemd, .pid_namespace = pid_namespace};

static void in_tree(const char *command)
{
        char text[512];

        snprintf(text, sizeof(text), "cd %s && %s", tree, command);
        CHECK_INT(system(text), 0);
}

static void put_own(const char *text)
{
        _cleanup_fclose_ FILE *file = fopen(own, "we");

        CHECK(file && fputs(text, file) >= 0);
}

/* wanted: below the tree. */
static void check_place(const char *wanted, bool delegated)
{
        struct group_place place = {};
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", tree, wanted);
        CHECK_INT(group_place_find(&sources, &place), 0);
        CHECK_STR(place.path, path);
        CHECK_INT(place.delegated, delegated);
}

static void test_own_group(void)
{
        char path[PATH_MAX], wanted[256];

        put_own("9:name=systemd:/a\n0::/system.slice/ublkd.service\n");
        snprintf(wanted, sizeof(wanted), "%s/system.slice/ublkd.service", mount);
        CHECK_INT(group_place_find_own(&sources, path), 0);
        CHECK_STR(path, wanted);
        put_own("0::/\n");
        snprintf(wanted, sizeof(wanted), "%s/", mount);
        CHECK_INT(group_place_find_own(&sources, path), 0);
        CHECK_STR(path, wanted);
        put_own("9:name=systemd:/a\n");
        CHECK_INT(group_place_find_own(&sources, path), -ENXIO);
        CHECK_INT(unlink(own), 0);
}

static void test_without_systemd(void)
{
        struct group_place place;

        put_own("0::/system/ublkd\n");
        CHECK_INT(group_place_find(&sources, &place), -ENXIO); /* only the first version is mounted */
        in_tree("mkdir cgroup/unified && touch cgroup/unified/cgroup.controllers");
        check_place("cgroup/unified/system/ublkd-workers", false);
        in_tree("touch cgroup/cgroup.controllers");
        check_place("cgroup/system/ublkd-workers", false);
        put_own("9:name=systemd:/a\n8:pids:/b\n0::/ublkd\n");
        check_place("cgroup/ublkd-workers", false);
        put_own("0::/\n"); /* the root, or that of a namespace */
        check_place("cgroup/ublkd-workers", false);
        put_own("0::/../other\n");
        CHECK_INT(group_place_find(&sources, &place), -EXDEV);
        put_own("9:name=systemd:/a\n");
        CHECK_INT(group_place_find(&sources, &place), -ENXIO);
        put_own("0::/cut-o");
        CHECK_INT(group_place_find(&sources, &place), -ENAMETOOLONG);
        CHECK_INT(unlink(own), 0);
        CHECK_INT(group_place_find(&sources, &place), -ENOENT);
}

static void test_with_systemd(void)
{
        in_tree("mkdir systemd");
        check_place("cgroup/ublkd.slice/ublkd-workers.service", true); /* whatever group ublkd is in */
}

static uint64_t find_pid_namespace(const char *path)
{
        const struct group_sources others = {
                .mount = mount, .own = own, .systemd = systemd, .pid_namespace = path};
        struct group_place place = {.pid_namespace = 1};

        CHECK_INT(group_place_find(&others, &place), 0);
        return place.pid_namespace;
}

/* A plain file has an inode number that is not that of the machine's namespace. */
static void test_pid_namespace(void)
{
        static const char here[] = "/proc/self/ns/pid";
        struct stat st;

        CHECK_INT(stat(pid_namespace, &st), 0);
        CHECK_INT(find_pid_namespace(pid_namespace), st.st_ino);
        CHECK_INT(stat(here, &st), 0);
        CHECK_INT(find_pid_namespace(here), st.st_ino == 4026531836 ? 0 : st.st_ino);
        CHECK_INT(unlink(pid_namespace), 0);
        CHECK_INT(group_place_find(&sources, &(struct group_place){}), -ENOENT);
}

int main(void)
{
        CHECK(mkdtemp(tree));
        snprintf(mount, sizeof(mount), "%s/cgroup", tree);
        snprintf(own, sizeof(own), "%s/own", tree);
        snprintf(systemd, sizeof(systemd), "%s/systemd", tree);
        snprintf(pid_namespace, sizeof(pid_namespace), "%s/pid", tree);
        in_tree("mkdir cgroup && touch pid");
        test_without_systemd();
        test_own_group();
        test_with_systemd();
        test_pid_namespace();
        in_tree("rm -r cgroup systemd");
        in_tree("rmdir $PWD");
        return check_report();
}
