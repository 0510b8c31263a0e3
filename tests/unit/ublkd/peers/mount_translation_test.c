/* SPDX-License-Identifier: MIT */
/* mount_translate: which path of the host is a path of a container. */
#include "ublkd/peers/mount_translation.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

static const char host[] = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
                           "23 22 0:5 / /dev rw - devtmpfs udev rw\n"
                           "24 22 8:2 / /home rw shared:2 - ext4 /dev/sda2 rw\n"
                           "25 22 8:2 /alice/public /srv/public rw shared:2 - ext4 /dev/sda2 rw\n"
                           "26 22 0:40 / /hidden rw - tmpfs none rw\n"
                           "27 26 8:3 / /hidden/below rw - ext4 /dev/sda3 rw\n"
                           "28 27 0:41 / /hidden/below rw - tmpfs none rw\n"
                           "29 22 0:44 /@home /a\\040b rw - btrfs /dev/sdb rw\n";

static const char container[] = "500 400 0:99 / / rw - overlay overlay rw\n"
                                "501 500 8:2 /alice/disks /data rw master:2 - ext4 /dev/sda2 rw\n"
                                "502 500 0:98 / /tmp rw - tmpfs tmpfs rw\n"
                                "503 500 8:2 /alice/one.img /one rw - ext4 /dev/sda2 rw\n"
                                "504 501 0:97 / /data/over rw - tmpfs tmpfs rw\n"
                                "505 500 8:2 /alice/public /twice rw - ext4 /dev/sda2 rw\n"
                                "506 505 8:1 /etc /twice rw - ext4 /dev/sda1 rw\n"
                                "507 500 8:3 / /unseen rw - ext4 /dev/sda3 rw\n"
                                "508 500 0:44 /@home/c /spaces rw - btrfs /dev/sdb rw\n"
                                "509 500 8:9 / /foreign rw - ext4 /dev/sdz rw\n"
                                "510 502 8:2 /alice /tmp/in rw - ext4 /dev/sda2 rw\n"
                                "511 502 0:96 / /tmp rw - tmpfs tmpfs rw\n"
                                "512 500 8:2 /alice/disks /reading ro,nosuid - ext4 /dev/sda2 rw\n"
                                "513 512 8:2 /alice/disks/open /reading/open rw - ext4 /dev/sda2 ro\n"
                                "a line that is none\n";

/* wanted: NULL: there is no such path. */
static void check(const char *path, const char *wanted)
{
        char *theirs = strdup(container), *ours = strdup(host), *found = NULL;

        CHECK_INT(mount_translate(theirs, ours, path, true, &found), wanted ? 0 : -ENOENT);
        CHECK_STR(found, wanted);
        free(found);
        free(theirs);
        free(ours);
}

static void a_path_is_found_on_the_host(void)
{
        check("/data/a.img", "/home/alice/disks/a.img");
        check("/data", "/home/alice/disks");
        check("/data/a/b", "/home/alice/disks/a/b");
        check("/one", "/home/alice/one.img");
        check("/spaces/x", "/a b/c/x");
}

/* Else the disk would lie in a file that the client does not see. */
static void what_is_on_top_counts(void)
{
        check("/data/over/x", NULL);
        check("/twice/x", "/etc/x");
        check("/tmp/in/x", NULL); /* another mount is above /tmp */
        check("/unseen/x", NULL); /* hidden on the host, by /hidden/below */
}

static void what_is_not_on_the_host_has_no_path(void)
{
        check("/x", NULL);
        check("/tmp/x", NULL);
        check("/foreign/x", NULL);
        check("/datax/a", NULL);
}

static int translate(const char *path, bool writes)
{
        _cleanup_free_ char *theirs = strdup(container), *ours = strdup(host), *found = NULL;

        return mount_translate(theirs, ours, path, writes, &found);
}

/* The mount that the path ends in counts; that the file system is read-only shows when the file is opened. */
static void a_mount_that_is_read_only_stays_so(void)
{
        CHECK_INT(translate("/reading/a.img", true), -EROFS);
        CHECK_INT(translate("/reading/a.img", false), 0);
        CHECK_INT(translate("/reading/open/a.img", true), 0);
}

static void lists_without_a_root(void)
{
        char empty[] = "", ours[] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
             chroot[] = "30 22 8:1 /x /x rw - ext4 /dev/sda1 rw\n", *found = NULL;

        CHECK_INT(mount_translate(empty, ours, "/x", true, &found), -ENOENT);
        CHECK_INT(mount_translate(chroot, ours, "/y", true, &found), -ENOENT);
}

/* A client may make as many mounts above each other as its kernel lets it. */
static void a_tower_of_mounts_ends(void)
{
        size_t size = 64 * 2000, length = 0;
        char *theirs = malloc(size), ours[] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", *found = NULL;

        for (unsigned i = 0; i < 2000; i++)
                length += (size_t)snprintf(theirs + length, size - length,
                        "%u %u 8:1 / / rw - ext4 /dev/sda1 rw\n", 100 + i, 99 + i);
        CHECK_INT(mount_translate(theirs, ours, "/x", true, &found), -ENOENT);
        free(theirs);
}

int main(void)
{
        a_path_is_found_on_the_host();
        what_is_on_top_counts();
        what_is_not_on_the_host_has_no_path();
        a_mount_that_is_read_only_stays_so();
        lists_without_a_root();
        a_tower_of_mounts_ends();
        return check_report();
}
