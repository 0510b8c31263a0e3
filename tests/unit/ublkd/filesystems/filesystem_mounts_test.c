/* SPDX-License-Identifier: MIT */
/* filesystem_mounts: where the mounts are, and what the record shows of them. Needs root, for mounts of its own. */
#include "ublkd/filesystems/filesystem_mounts.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEADLINE_USEC = 60 * 1000 * 1000 };

static char place[] = "/tmp/filesystem-mounts-XXXXXX";
static char top[FILESYSTEM_PATH_SIZE];
static sd_event *event;
static struct device_store *store;

/* ---- the place ---- */

static const char *below(const char *name)
{
        static char path[512];

        snprintf(path, sizeof(path), "%s/%s", place, name);
        return path;
}

static void test_the_place_is_beside_the_runtime_directory(void)
{
        char found[FILESYSTEM_PATH_SIZE], wanted[FILESYSTEM_PATH_SIZE];

        snprintf(wanted, sizeof(wanted), "%s/run-mounts", place);
        CHECK_INT(mkdir(below("run"), 0700), 0);
        CHECK_INT(symlink("run", below("link")), 0);
        CHECK_INT(filesystem_mounts_place(below("run"), found), 0);
        CHECK_STR(found, wanted);
        CHECK_INT(filesystem_mounts_place(below("run/"), found), 0);
        CHECK_STR(found, wanted);
        CHECK_INT(filesystem_mounts_place(below("link"), found), 0);
        CHECK_STR(found, wanted);
        CHECK_INT(filesystem_mounts_place(below("none"), found), -ENOENT);
}

static void test_a_place_that_is_too_long(void)
{
        char name[FILESYSTEM_PATH_SIZE] = "", found[FILESYSTEM_PATH_SIZE];

        memset(name, 'x', FILESYSTEM_PATH_SIZE - strlen(place) - strlen("/-mounts") - 1);
        CHECK_INT(mkdir(below(name), 0700), 0);
        CHECK_INT(filesystem_mounts_place(below(name), found), 0);
        CHECK_INT(strlen(found), FILESYSTEM_PATH_SIZE - 1);
        strcat(name, "x");
        CHECK_INT(mkdir(below(name), 0700), 0);
        CHECK_INT(filesystem_mounts_place(below(name), found), -ENAMETOOLONG);
}

/* ---- the watch ---- */

static const char *shown(const char *name)
{
        return device_store_get(store, name)->mount;
}

static void point_of(const char *name, char ret[static MOUNT_PATH_SIZE])
{
        snprintf(ret, MOUNT_PATH_SIZE, "%s/%s", top, device_store_get(store, name)->uid);
}

static void mount_at(const char *point)
{
        CHECK(mkdir(point, 0700) == 0 || errno == EEXIST);
        CHECK_INT(mount("none", point, "tmpfs", 0, NULL), 0);
}

static void wait_for(const char *name, const char *wanted)
{
        while (strcmp(shown(name), wanted) != 0)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
}

static void test_what_is_mounted_is_shown(void)
{
        struct filesystem_mounts *mounts;
        char one[MOUNT_PATH_SIZE], two[MOUNT_PATH_SIZE], other[MOUNT_PATH_SIZE], list[MOUNT_PATH_SIZE];

        point_of("one", one);
        point_of("two", two);
        snprintf(other, sizeof(other), "%s/other", top);
        CHECK_INT(filesystem_mounts_new(event, store, top, &mounts), 0); /* the directory is not there yet */
        CHECK_STR(shown("one"), "");
        CHECK_INT(mkdir(top, 0700), 0);
        mount_at(one);
        wait_for("one", one);
        mount_at(other);
        CHECK_INT(mkdir(two, 0700), 0); /* nothing is mounted there */
        filesystem_mounts_look(mounts);
        CHECK_STR(shown("two"), "");
        filesystem_mounts_free(mounts);

        mount_at(two);
        CHECK_INT(umount2(one, 0), 0);
        snprintf(list, sizeof(list), "%s/gone.users", top);
        CHECK_INT(mkdir(list, 0700), 0);
        CHECK_INT(filesystem_mounts_new(event, store, top, &mounts), 0); /* as after a restart */
        CHECK(access(list, F_OK) < 0);
        CHECK_STR(shown("one"), "");
        CHECK_STR(shown("two"), two);
        CHECK_INT(umount2(two, 0), 0);
        wait_for("two", "");
        CHECK_INT(umount2(other, 0), 0);
        filesystem_mounts_free(mounts);
}

int main(void)
{
        const struct device_backend *backend;
        void *context;

        if (getuid() != 0 || unshare(CLONE_NEWNS) < 0
                || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return CHECK_SKIP;
        CHECK(mkdtemp(place) != NULL);
        snprintf(top, sizeof(top), "%s/top", place);
        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        put_device(store, "{\"name\":\"one\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}");
        put_device(store, "{\"name\":\"two\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}");
        test_the_place_is_beside_the_runtime_directory();
        test_a_place_that_is_too_long();
        test_what_is_mounted_is_shown();
        device_store_free(store);
        sd_event_unref(event);
        CHECK_INT(remove_tree(place), 0);
        return check_report();
}
