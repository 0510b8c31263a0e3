/* SPDX-License-Identifier: MIT */
/* disk_node: what udev reads of a disk. */
#include "ublkd/disks/disk_node.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const struct disk_node node = {
        .name = "data", .serial = "0-1-2", .number = 7, .uid = 1, .gid = 2, .mode = 0640};
static const char announced[] =
        "UBLKD_NAME=data\nUBLKD_SERIAL=0-1-2\nUBLKD_UID=1\nUBLKD_GID=2\nUBLKD_MODE=0640\n";

static void check_content(int folder, const char *name, const char *wanted)
{
        _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char text[256] = "";

        if (CHECK(fd >= 0) && CHECK(read(fd, text, sizeof(text) - 1) >= 0))
                CHECK_STR(text, wanted);
}

static void write_file(int folder, const char *name, const char *text)
{
        _cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void test_a_disk_is_announced_once(int folder)
{
        struct stat info;

        CHECK_INT(disk_node_announce(folder, &node), 1);
        check_content(folder, "ublkb7", announced);
        CHECK_INT(fstatat(folder, "ublkb7", &info, AT_SYMLINK_NOFOLLOW), 0);
        CHECK_INT(info.st_mode, S_IFREG | 0644);
        CHECK_INT(disk_node_announce(folder, &node), 0);
        CHECK_INT(disk_node_withdraw(folder, "no-such-device", 7), 0);
        CHECK(faccessat(folder, "ublkb7", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
        CHECK_INT(disk_node_withdraw(folder, "no-such-device", 7), 0);
}

/* Every user can read the file, and udev hands on what is in it. An earlier ublkd has announced the name. */
static void test_a_hidden_disk_is_announced_without_its_name(int folder)
{
        struct disk_node hidden = node;

        hidden.hidden = true;
        CHECK_INT(disk_node_announce(folder, &node), 1);
        CHECK_INT(disk_node_announce(folder, &hidden), 1);
        check_content(folder, "ublkb7", "UBLKD_UID=1\nUBLKD_GID=2\nUBLKD_MODE=0640\n");
        CHECK_INT(disk_node_announce(folder, &hidden), 0);
        CHECK_INT(disk_node_withdraw(folder, "no-such-device", 7), 0);
}

/* Another user could once write to the directory, and may have put links and pipes there. */
static void test_nothing_that_was_there_before_is_written_through(int folder)
{
        write_file(folder, "victim", "precious");
        CHECK_INT(symlinkat("victim", folder, ".ublkb7.new"), 0);
        CHECK_INT(symlinkat("victim", folder, "ublkb7"), 0);
        CHECK_INT(disk_node_announce(folder, &node), 1);
        check_content(folder, "victim", "precious");
        check_content(folder, "ublkb7", announced);
        CHECK_INT(unlinkat(folder, "ublkb7", 0), 0);
        CHECK_INT(mkfifoat(folder, "ublkb7", 0600), 0);
        alarm(60);
        CHECK_INT(disk_node_announce(folder, &node), 1);
        alarm(0);
        check_content(folder, "ublkb7", announced);
        CHECK_INT(unlinkat(folder, "ublkb7", 0), 0);
        CHECK_INT(unlinkat(folder, "victim", 0), 0);
}

/* A file may have five bytes, as on a full disk. */
static void test_a_short_write_is_not_reported_as_success(int folder)
{
        struct rlimit before, five;

        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        five = before;
        five.rlim_cur = 5;
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &five), 0);
        errno = EXDEV; /* of something that failed before */
        CHECK_INT(disk_node_announce(folder, &node), -ENOSPC);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK(faccessat(folder, "ublkb7", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
        CHECK(faccessat(folder, ".ublkb7.new", F_OK, AT_SYMLINK_NOFOLLOW) < 0);
}

int main(void)
{
        char path[] = "/tmp/disk_node_test.XXXXXX";
        int folder = CHECK(mkdtemp(path)) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (CHECK(folder >= 0)) {
                umask(0077);
                test_a_disk_is_announced_once(folder);
                test_a_hidden_disk_is_announced_without_its_name(folder);
                test_nothing_that_was_there_before_is_written_through(folder);
                test_a_short_write_is_not_reported_as_success(folder);
                CHECK_INT(rmdir(path), 0);
        }
        return check_report();
}
