/* SPDX-License-Identifier: MIT */
/* file_io: what is read of a small file, and that a file is replaced as a whole or not at all. */
#include "ublkd/base/file_io.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static char folder[] = "/tmp/file_io_test.XXXXXX";
static int dir;

static void put(const char *name, const char *text)
{
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void check_content(const char *name, const char *wanted)
{
        char text[64];

        CHECK_INT(read_text_at(dir, name, text, sizeof(text)), (ssize_t)strlen(wanted));
        CHECK_STR(text, wanted);
}

static bool is_there(const char *name)
{
        return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_texts(void)
{
        char text[6] = "old", path[64];

        CHECK_INT(read_text_at(dir, "missing", text, sizeof(text)), -ENOENT);
        CHECK_STR(text, "");
        put("text", "one\ntwo\n");
        CHECK_INT(read_text_at(dir, "text", text, sizeof(text)), 5);
        CHECK_STR(text, "one\nt");
        CHECK_INT(read_line_at(dir, "text", text, sizeof(text)), 3);
        CHECK_STR(text, "one");
        snprintf(path, sizeof(path), "%s/text", folder);
        CHECK_INT(read_line_at(AT_FDCWD, path, text, sizeof(text)), 3);
        put("text", "");
        strcpy(text, "old");
        CHECK_INT(read_line_at(dir, "text", text, sizeof(text)), 0);
        CHECK_STR(text, "");
        CHECK_INT(read_line_at(dir, "missing", text, sizeof(text)), -ENOENT);
}

static void test_numbers(void)
{
        uint64_t number = 7;
        dev_t device = 7;

        CHECK_INT(read_number_at(dir, "missing", &number), -ENOENT);
        CHECK_INT(read_device_at(dir, "missing", &device), -ENOENT);
        CHECK_INT(number, 7);
        put("number", "18446744073709551615\n");
        CHECK_INT(read_number_at(dir, "number", &number), 0);
        CHECK(number == UINT64_MAX);
        CHECK_INT(read_device_at(dir, "number", &device), -EBADMSG);
        CHECK(device == 7);
        put("number", "259:1\n");
        CHECK_INT(read_device_at(dir, "number", &device), 0);
        CHECK(device == makedev(259, 1));
}

static void test_whole_files(void)
{
        _cleanup_free_ char *text = NULL;
        char *untouched = NULL;

        put("whole", "12345");
        CHECK_INT(read_whole_at(dir, "whole", 5, &text), 0);
        CHECK_STR(text, "12345");
        CHECK_INT(read_whole_at(dir, "whole", 4, &untouched), -EFBIG);
        CHECK_INT(symlinkat("whole", dir, "link"), 0);
        CHECK_INT(read_whole_at(dir, "link", 5, &untouched), -ELOOP);
        CHECK_INT(mkfifoat(dir, "pipe", 0600), 0);
        alarm(60);
        CHECK_INT(read_whole_at(dir, "pipe", 5, &untouched), -EBADMSG);
        alarm(0);
        CHECK(!untouched);
}

static void test_a_file_is_replaced(void)
{
        struct stat info;
        char path[64];

        umask(0077);
        CHECK_INT(replace_text_at(dir, "new", 0644, "first"), 0);
        check_content("new", "first");
        CHECK_INT(fstatat(dir, "new", &info, AT_SYMLINK_NOFOLLOW), 0);
        CHECK_INT(info.st_mode, S_IFREG | 0644);
        snprintf(path, sizeof(path), "%s/new", folder);
        CHECK_INT(replace_text_at(AT_FDCWD, path, 0600, "second"), 0);
        check_content("new", "second");
        CHECK(!is_there(".new.new"));
}

static void test_nothing_that_was_there_before_is_written_to(void)
{
        put("victim", "precious");
        CHECK_INT(symlinkat("victim", dir, "target"), 0);
        CHECK_INT(symlinkat("victim", dir, ".target.new"), 0);
        CHECK_INT(replace_text_at(dir, "target", 0600, "text"), 0);
        check_content("victim", "precious");
        check_content("target", "text");
}

static int fail(int at, const char *fresh, void *userdata)
{
        (void)at;
        put(fresh, "half of");
        return *(int *)userdata;
}

static void test_a_failure_leaves_the_old_file(void)
{
        int error = -EIO;
        char name[NAME_MAX];

        put("old", "old");
        CHECK_INT(replace_at(dir, "old", fail, &error), -EIO);
        check_content("old", "old");
        CHECK(!is_there(".old.new"));
        CHECK_INT(mkdirat(dir, ".old.new", 0700), 0);
        CHECK(replace_text_at(dir, "old", 0600, "new") < 0);
        check_content("old", "old");
        CHECK_INT(unlinkat(dir, ".old.new", AT_REMOVEDIR), 0);
        CHECK_INT(mkdirat(dir, "folder", 0700), 0);
        CHECK_INT(replace_text_at(dir, "folder", 0600, "new"), -EISDIR);
        CHECK(!is_there(".folder.new"));
        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        CHECK_INT(replace_text_at(dir, name, 0600, "new"), -ENAMETOOLONG);
}

/* A file may have five bytes, as on a full disk. */
static void test_a_short_write(void)
{
        struct rlimit before, five;

        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        five = before;
        five.rlim_cur = 5;
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &five), 0);
        CHECK_INT(replace_text_at(dir, "short", 0600, "123456"), -ENOSPC);
        CHECK_INT(replace_text_at(dir, "short", 0600, "12345"), 0);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        check_content("short", "12345");
}

static void test_directories_and_those_above(void)
{
        char path[128];
        struct stat st;

        snprintf(path, sizeof(path), "%s/a/b", folder);
        CHECK_INT(make_dirs(path, 0700), 0);
        CHECK_INT(make_dirs(path, 0755), 0); /* it stays as it is */
        CHECK_INT(fstatat(dir, "a/b", &st, 0), 0);
        CHECK_INT(st.st_mode, S_IFDIR | 0700);
        put("a/file", "no directory");
        snprintf(path, sizeof(path), "%s/a/file/c", folder);
        CHECK_INT(make_dirs(path, 0700), -ENOTDIR);
}

int main(void)
{
        char command[64];

        dir = CHECK(mkdtemp(folder)) ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (CHECK(dir >= 0)) {
                test_texts();
                test_numbers();
                test_whole_files();
                test_a_file_is_replaced();
                test_nothing_that_was_there_before_is_written_to();
                test_a_failure_leaves_the_old_file();
                test_a_short_write();
                test_directories_and_those_above();
                snprintf(command, sizeof(command), "rm -r %s", folder);
                CHECK_INT(system(command), 0);
        }
        close_fd(dir);
        return check_report();
}
