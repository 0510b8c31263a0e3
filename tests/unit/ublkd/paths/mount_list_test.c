/* SPDX-License-Identifier: MIT */
/* mount_list: what has changed between two readings of mountinfo. */
#include "ublkd/paths/mount_list.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

#define ROOT "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
#define DATA "36 22 8:17 / /srv/my\\040data rw - ext4 /dev/sdb1 rw\n"
#define COVER "40 36 0:52 / /srv/my\\040data rw - tmpfs tmpfs rw\n"
#define MOVED "36 22 8:17 / /mnt rw - ext4 /dev/sdb1 rw\n"
#define REUSED "36 22 8:33 / /srv/my\\040data rw - ext4 /dev/sdc1 rw\n"

static char file[] = "/tmp/mount_list_test.XXXXXX";

static void write_mounts(const char *text)
{
        FILE *out = fopen(file, "we");

        if (!CHECK(out))
                exit(1);
        fputs(text, out);
        fclose(out);
}

static void note(void *userdata, const char *point)
{
        strcat(userdata, point);
        strcat(userdata, ";");
}

static void check_changes(const char *before, const char *after, const char *wanted)
{
        struct mount_list *list = NULL;
        char points[256] = "";

        write_mounts(before);
        if (!CHECK_INT(mount_list_open(file, &list), 0))
                return;
        write_mounts(after);
        CHECK_INT(mount_list_changes(list, note, points), 0);
        CHECK_STR(points, wanted);
        points[0] = '\0';
        CHECK_INT(mount_list_changes(list, note, points), 0);
        CHECK_STR(points, "");
        mount_list_close(list);
}

static void test_changes(void)
{
        check_changes(ROOT, ROOT, "");
        check_changes(ROOT, ROOT DATA, "/srv/my data;");
        check_changes(ROOT DATA, DATA ROOT, "");
        check_changes(ROOT DATA, ROOT, "/srv/my data;");
        check_changes(ROOT DATA, ROOT DATA COVER, "/srv/my data;");
        check_changes(ROOT DATA COVER, ROOT DATA, "/srv/my data;");
        check_changes(ROOT DATA, ROOT MOVED, "/mnt;/srv/my data;");
        check_changes(ROOT DATA, ROOT REUSED, "/srv/my data;/srv/my data;");
        check_changes("", ROOT, "/;");
        check_changes(ROOT "what is this\n", ROOT DATA, "/srv/my data;");
}

/* Longer than one read(). */
static void test_many_mounts(void)
{
        enum { MANY = 3000 };
        struct mount_list *list = NULL;
        char points[256] = "", *text = malloc(MANY * 64), *at = text;

        for (int i = 0; i < MANY; i++)
                at += sprintf(at, "%d 1 0:%d / /m/%d rw - tmpfs tmpfs rw\n", i + 100, i, i);
        write_mounts(text);
        CHECK_INT(mount_list_open(file, &list), 0);
        strcpy(at, "99 1 0:1 / /new rw - tmpfs tmpfs rw\n");
        write_mounts(text);
        CHECK_INT(mount_list_changes(list, note, points), 0);
        CHECK_STR(points, "/new;");
        mount_list_close(list);
        free(text);
}

static void test_mountinfo_of_this_process_is_read(void)
{
        struct mount_list *list = NULL;
        char points[4096] = "";

        CHECK_INT(mount_list_open("/proc/self/mountinfo", &list), 0);
        CHECK_INT(mount_list_changes(list, note, points), 0);
        CHECK(mount_list_fd(list) >= 0);
        mount_list_close(list);
}

int main(void)
{
        int fd = mkstemp(file);

        if (!CHECK(fd >= 0))
                return check_report();
        close(fd);
        test_changes();
        test_many_mounts();
        test_mountinfo_of_this_process_is_read();
        unlink(file);
        return check_report();
}
