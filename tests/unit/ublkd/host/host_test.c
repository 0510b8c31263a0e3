/* SPDX-License-Identifier: MIT */
/* host: the group that disks belong to, without a name service. */
#include "ublkd/host/host.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        if (CHECK(file)) {
                CHECK(fputs(text, file) >= 0);
                fclose(file);
        }
}

static void check_name(const char *const *paths, gid_t gid, const char *wanted)
{
        char *name = host_find_group_name(paths, 3, gid);

        if (wanted)
                CHECK_STR(name, wanted);
        else
                CHECK(!name);
        free(name);
}

static void test_the_group_comes_from_the_first_file_that_has_it(const char *folder)
{
        char first[64], second[64];
        const char *paths[] = {"/nonexistent/group", first, second};

        snprintf(first, sizeof(first), "%s/first", folder);
        snprintf(second, sizeof(second), "%s/second", folder);
        write_file(first, "root:x:0:\n# no group\ndiskette:x:4:\nfloppy:x:25:user,disk\n");
        write_file(second, "disk:x:6:user\ndisk:x:7:\n");
        CHECK_INT(host_find_group(paths, 3, "disk"), 6);
        CHECK_INT(host_find_group(paths, 3, "floppy"), 25);
        CHECK_INT(host_find_group(paths, 2, "disk"), 0);
        check_name(paths, 6, "disk");
        check_name(paths, 25, "floppy");
        check_name(paths, 5, NULL);
        unlink(first);
        unlink(second);
}

/* A pipe without a writer. */
static void test_other_entries_than_files_are_not_waited_for(const char *folder)
{
        char pipe[64];
        const char *paths[] = {pipe};

        snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
        CHECK_INT(mkfifo(pipe, 0600), 0);
        alarm(60);
        CHECK_INT(host_find_group(paths, 1, "disk"), 0);
        unlink(pipe);
}

int main(void)
{
        char folder[] = "/tmp/host_test.XXXXXX";

        if (CHECK(mkdtemp(folder))) {
                test_the_group_comes_from_the_first_file_that_has_it(folder);
                test_other_entries_than_files_are_not_waited_for(folder);
                rmdir(folder);
        }
        return check_report();
}
