/* SPDX-License-Identifier: MIT */
/* filesystem_mount: the directory of the mounts. Needs root. */
#include "ublkd/filesystems/filesystem_mount.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[] = "/tmp/filesystem-mount-XXXXXX";

static int try_mount(const char *top)
{
        struct filesystem_go go = {.point = "point"};
        int disk = open("/dev/null", O_RDONLY | O_CLOEXEC), r;

        snprintf(go.top, sizeof(go.top), "%s", top);
        r = filesystem_mount(disk, "/dev/null", &go);
        close(disk);
        return r;
}

static unsigned mode_of(const char *path)
{
        struct stat info;

        return stat(path, &info) < 0 ? 0 : info.st_mode & 07777;
}

/* Others must not enter it: what is mounted there has the owners that a user may have chosen. */
static void test_the_directory_is_for_root_alone(void)
{
        char top[128];

        snprintf(top, sizeof(top), "%s/top", place);
        CHECK_INT(try_mount(top), -ENOTBLK); /* no disk, and the directory was made */
        CHECK_INT(mode_of(top), 0700);
        CHECK_INT(chmod(top, 0755), 0);
        CHECK_INT(try_mount(top), -ENOTBLK);
        CHECK_INT(mode_of(top), 0700);
        CHECK_INT(chmod(top, 0775), 0);
        CHECK_INT(try_mount(top), -EPERM);
        CHECK_INT(mode_of(top), 0775);
        CHECK_INT(chown(top, 1000, 0), 0);
        CHECK_INT(chmod(top, 0700), 0);
        CHECK_INT(try_mount(top), -EPERM);
}

static void test_a_store_that_users_may_write_to(void)
{
        static const struct {
                uid_t owner;
                mode_t mode;
                int open;
        } cases[] = {
                {0,    0600, 0},
                {0,    0644, 0},
                {0,    0664, 1},
                {0,    0602, 1},
                {1000, 0600, 1},
        };
        char path[128];

        snprintf(path, sizeof(path), "%s/store", place);
        CHECK_INT(filesystem_store_is_open(""), 0);
        CHECK_INT(filesystem_store_is_open("/dev/null"), 0);
        CHECK_INT(filesystem_store_is_open(path), -ENOENT);
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CHECK_INT(chown(path, cases[i].owner, 0), 0);
                CHECK_INT(chmod(path, cases[i].mode), 0);
                if (!CHECK_INT(filesystem_store_is_open(path), cases[i].open))
                        fprintf(stderr, "in case %zu\n", i);
        }
}

int main(void)
{
        if (getuid() != 0)
                return CHECK_SKIP;
        CHECK(mkdtemp(place) != NULL);
        test_the_directory_is_for_root_alone();
        test_a_store_that_users_may_write_to();
        CHECK_INT(remove_tree(place), 0);
        return check_report();
}
