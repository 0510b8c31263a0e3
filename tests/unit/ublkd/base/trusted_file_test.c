/* SPDX-License-Identifier: MIT */
/* trusted_file: which files are opened, and that nothing else is. */
#include "ublkd/base/trusted_file.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/trusted_file_test.XXXXXX";
static int dir;

/* Return what open_trusted() returns, and the text of the file in `text` if it opens. */
static int opened(const char *name, char text[static 8])
{
        const char *why = NULL;
        _cleanup_close_ int fd = open_trusted(dir, name, &why);
        ssize_t n = fd < 0 ? 0 : read(fd, text, 7);

        CHECK((fd == -EPERM) == (why != NULL));
        text[n > 0 ? n : 0] = '\0';
        return fd < 0 ? fd : 0;
}

static void make(const char *name, mode_t mode)
{
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        CHECK_INT(write(fd, "text", 4), 4);
        CHECK_INT(fchmod(fd, mode), 0);
}

static void test_files(void)
{
        char text[8];

        make("good", 0644);
        make("group", 0664);
        make("others", 0646);
        CHECK_INT(opened("good", text), 0);
        CHECK_STR(text, "text");
        CHECK_INT(opened("group", text), -EPERM);
        CHECK_INT(opened("others", text), -EPERM);
        CHECK_INT(opened("none", text), -ENOENT);
}

static void test_a_link_counts_as_what_it_leads_to(void)
{
        char text[8];

        CHECK_INT(symlinkat("good", dir, "link"), 0);
        CHECK_INT(symlinkat("others", dir, "bad-link"), 0);
        CHECK_INT(symlinkat("none", dir, "lost"), 0);
        CHECK_INT(opened("link", text), 0);
        CHECK_INT(opened("bad-link", text), -EPERM);
        CHECK_INT(opened("lost", text), -ENOENT);
}

/* A FIFO that is opened would wait, or wake its writer. */
static void test_no_other_kind_is_opened(void)
{
        char text[8];
        int writer;

        CHECK_INT(mkfifoat(dir, "fifo", 0600), 0);
        CHECK_INT(mkdirat(dir, "directory", 0700), 0);
        CHECK_INT(symlinkat("/dev/zero", dir, "device"), 0);
        CHECK_INT(opened("fifo", text), -EPERM);
        CHECK_INT(opened("directory", text), -EPERM);
        CHECK_INT(opened("device", text), -EPERM);
        writer = openat(dir, "fifo", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        CHECK(writer < 0 && errno == ENXIO);
}

static void test_the_owner(void)
{
        struct stat info = {.st_mode = S_IFREG | 0644};

        CHECK(!file_distrust(&info));
        info.st_uid = geteuid();
        CHECK(!file_distrust(&info));
        info.st_uid = geteuid() + 1;
        CHECK(file_distrust(&info));
}

int main(void)
{
        char command[64];

        CHECK(mkdtemp(folder));
        dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (CHECK(dir >= 0)) {
                test_files();
                test_a_link_counts_as_what_it_leads_to();
                test_no_other_kind_is_opened();
                test_the_owner();
                snprintf(command, sizeof(command), "rm -r %s", folder);
                CHECK_INT(system(command), 0);
        }
        close_fd(dir);
        return check_report();
}
