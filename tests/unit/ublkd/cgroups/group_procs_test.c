/* SPDX-License-Identifier: MIT */
/* group_procs: the list of a group that is a directory with a file. */
#include "ublkd/cgroups/group_procs.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

static char tree[] = "/tmp/group-procs-XXXXXX";
static int dir = -1;

static void put(const char *text)
{
        _cleanup_close_ int fd =
                openat(dir, "one/" GROUP_PROCS, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void test_each_process_is_read(void)
{
        static const long wanted[] = {0, 17, 4194304};
        _cleanup_fclose_ FILE *stream = NULL;
        long pid = -1;

        put("0\n17\n4194304\n");
        if (!CHECK_INT(group_procs_open(dir, "one", &stream), 0))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                CHECK_INT(group_procs_next(stream, &pid), 1);
                CHECK_INT(pid, wanted[i]);
        }
        CHECK_INT(group_procs_next(stream, &pid), 0);
}

static void test_an_empty_group(void)
{
        _cleanup_fclose_ FILE *stream = NULL;
        char path[128];

        put("");
        snprintf(path, sizeof(path), "%s/one", tree);
        if (CHECK_INT(group_procs_open(AT_FDCWD, path, &stream), 0))
                CHECK_INT(group_procs_next(stream, &(long){0}), 0);
}

static void test_a_list_that_cannot_be_read(void)
{
        _cleanup_fclose_ FILE *stream = NULL;

        CHECK_INT(group_procs_open(dir, "missing", &stream), -ENOENT);
        CHECK(!stream);
        CHECK_INT(mkdirat(dir, "two", 0700), 0);
        CHECK_INT(mkdirat(dir, "two/" GROUP_PROCS, 0700), 0);
        if (CHECK_INT(group_procs_open(dir, "two", &stream), 0))
                CHECK_INT(group_procs_next(stream, &(long){0}), -EIO);
}

int main(void)
{
        char command[64];

        dir = CHECK(mkdtemp(tree)) ? open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (CHECK(dir >= 0) && CHECK_INT(mkdirat(dir, "one", 0700), 0)) {
                test_each_process_is_read();
                test_an_empty_group();
                test_a_list_that_cannot_be_read();
        }
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        close_fd(dir);
        return check_report();
}
