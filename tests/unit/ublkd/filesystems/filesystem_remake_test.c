/* SPDX-License-Identifier: MIT */
/* filesystem_maker: what was cut off is made again when a client asks for that, and nothing else is. Needs what
 * filesystem_maker_test needs. */
#include "tests/unit/check.h"

#include "tests/unit/ublkd/filesystems/maker_world.h"

#include "ublkd/filesystems/filesystem_process.h"
#include "ublkd/filesystems/filesystem_sight.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* For mounts that this test alone sees. */
static int unshare_mounts(void)
{
        return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

static struct outcome make_again(enum filesystem_kind kind, const char *uuid)
{
        struct filesystem_wish wish = {.kind = kind};
        struct outcome outcome;

        strcpy(wish.remake, uuid);
        CHECK_INT(begin_wish(wish, &outcome), 0);
        wait_for(&outcome);
        return outcome;
}

/* What was cut off has a way out that keeps the device: a client names the UUID. */
static void test_what_was_cut_off_is_made_again(void)
{
        static const char uuid[] = "11111111-2222-4333-8444-555555555555";

        for (int i = 0; i < _FILESYSTEM_KIND_MAX; i++) {
                enum filesystem_kind kind = (enum filesystem_kind)i;
                struct outcome outcome;

                set_up(NULL);
                put_byte(64 << 10); /* a part, without a superblock */
                note(FILESYSTEM_BEGUN, kind, uuid);
                CHECK_INT(make(kind).verdict, FILESYSTEM_UNFINISHED);
                CHECK_INT(make_again(kind, "99999999-2222-4333-8444-555555555555").verdict,
                        FILESYSTEM_NOT_BEGUN);
                CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
                outcome = make_again(kind, uuid);
                if (!CHECK_INT(outcome.verdict, FILESYSTEM_IS_MADE))
                        fprintf(stderr, "%s: %s\n", filesystem_kind_name(kind), outcome.text);
                CHECK_STR(outcome.filesystem.uuid, uuid);
                CHECK_INT(sight(kind, uuid), FILESYSTEM_SEES_IT);
                put_byte(DISK_SIZE / 2 + 12345);
                CHECK_INT(make_again(kind, uuid).verdict, FILESYSTEM_IS_MADE); /* the same request again */
                CHECK_INT(noted().stage, FILESYSTEM_MADE);
                tear_down();
        }
}

/* Another program made one since, and may have filled it. */
static void test_what_has_another_uuid_is_not_made_again(void)
{
        static const char uuid[] = "11111111-2222-4333-8444-555555555555";

        for (int i = 0; i < _FILESYSTEM_KIND_MAX; i++) {
                enum filesystem_kind there = (enum filesystem_kind)i;
                struct outcome others;

                set_up(NULL);
                others = make(there);
                CHECK_INT(others.verdict, FILESYSTEM_IS_MADE);
                note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, uuid);
                CHECK_INT(make_again(FILESYSTEM_EXT4, uuid).verdict, FILESYSTEM_NOT_BLANK);
                CHECK_INT(sight(there, others.filesystem.uuid), FILESYSTEM_SEES_IT);
                CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
                tear_down();
        }
}

/* A file system that is whole may have data since: it is noted, and not made again. */
static void test_what_is_whole_is_not_made_again(void)
{
        static const char word[] = "data of a client";
        char found[sizeof(word)] = "";
        _cleanup_close_ int fd = -1;
        struct outcome first;

        set_up(NULL);
        first = make(FILESYSTEM_EXT4);
        fd = open(disk, O_RDWR | O_CLOEXEC);
        CHECK_INT(pwrite(fd, word, sizeof(word), 16), (int)sizeof(word)); /* before the superblock */
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, first.filesystem.uuid);
        CHECK_INT(make_again(FILESYSTEM_EXT4, first.filesystem.uuid).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(pread(fd, found, sizeof(found), 16), (int)sizeof(found));
        CHECK_STR(found, word);
        tear_down();
}

/* The check does not end by itself: a look at the disk shows nothing against the file system, and its note stays. */
static void test_what_cannot_be_checked_is_not_made_again(void)
{
        static const char lost[] = "/usr/sbin/e2fsck";
        struct outcome outcome;

        set_up(NULL);
        outcome = make(FILESYSTEM_EXT4);
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, outcome.filesystem.uuid);
        CHECK_INT(unshare_mounts(), 0);
        CHECK_INT(mount("/dev/null", lost, NULL, MS_BIND, NULL), 0);
        CHECK_INT(make_again(FILESYSTEM_EXT4, outcome.filesystem.uuid).verdict, FILESYSTEM_NOT_INSTALLED);
        CHECK_INT(umount2(lost, MNT_DETACH), 0);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        CHECK_INT(sight(FILESYSTEM_EXT4, outcome.filesystem.uuid), FILESYSTEM_SEES_IT);
        tear_down();
}

static int byte_at(off_t at)
{
        _cleanup_close_ int fd = open(disk, O_RDONLY | O_CLOEXEC);
        unsigned char byte = 0;

        CHECK_INT(pread(fd, &byte, 1, at), 1);
        return byte;
}

static void put_at(const void *data, size_t size, off_t at)
{
        _cleanup_close_ int fd = open(disk, O_WRONLY | O_CLOEXEC);

        CHECK_INT(pwrite(fd, data, size, at), (int)size);
}

static void break_ext4(void)
{
        static const char zeroes[64 << 10];

        put_at(zeroes, sizeof(zeroes), 4096); /* group descriptors */
}

/* The superblock was written, and what it leads to was not. */
static void test_a_file_system_that_is_not_whole_is_not_made(void)
{
        struct outcome outcome;

        set_up(NULL);
        outcome = make(FILESYSTEM_EXT4);
        break_ext4();
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, outcome.filesystem.uuid);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_UNFINISHED);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        CHECK_INT(make_again(FILESYSTEM_EXT4, outcome.filesystem.uuid).verdict, FILESYSTEM_IS_MADE);
        tear_down();
}

/* Run this instead of a program of the host, until it is detached. */
static void replace_program(const char *path, const char *script)
{
        char own[128];
        FILE *file;

        snprintf(own, sizeof(own), "%s/script", dev);
        file = fopen(own, "we");
        CHECK(file && fprintf(file, "#!/bin/sh\n%s\n", script) > 0 && fclose(file) == 0);
        CHECK_INT(chmod(own, 0755), 0);
        CHECK_INT(unshare_mounts(), 0);
        CHECK_INT(mount(own, path, NULL, MS_BIND, NULL), 0);
}

/* The check has failed itself, and has found nothing against the file system: see e2fsck(8). */
static void test_what_the_check_could_not_read_is_not_made_again(void)
{
        static const int statuses[] = {1, 8, 12, 16, 32, 128};
        static const char program[] = "/usr/sbin/e2fsck";

        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
                struct outcome outcome;
                char script[32];

                snprintf(script, sizeof(script), "exit %d", statuses[i]);
                set_up(NULL);
                outcome = make(FILESYSTEM_EXT4);
                note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, outcome.filesystem.uuid);
                put_byte(16); /* before the superblock: mkfs would clear it */
                replace_program(program, script);
                if (!CHECK_INT(make_again(FILESYSTEM_EXT4, outcome.filesystem.uuid).verdict,
                            FILESYSTEM_PROGRAM_FAILED))
                        fprintf(stderr, "in: %s\n", script);
                CHECK_INT(umount2(program, MNT_DETACH), 0);
                CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
                CHECK(byte_at(16) == 'x');
                tear_down();
        }
}

/* It may have data: it was mounted. */
static void test_a_file_system_that_was_mounted_is_not_made_again(void)
{
        struct outcome outcome;

        set_up(NULL);
        outcome = make(FILESYSTEM_EXT4);
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, outcome.filesystem.uuid);
        put_at("\1\2\3\4", 4, 1024 + 0x2C); /* the time of the mount */
        break_ext4();
        CHECK_INT(make_again(FILESYSTEM_EXT4, outcome.filesystem.uuid).verdict, FILESYSTEM_PROGRAM_FAILED);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        tear_down();
}

/* mkfs.xfs marks the superblock until the rest is there. */
static void test_xfs_is_made_again_only_while_its_mark_is_there(void)
{
        static const char zeroes[64 << 10];
        struct outcome outcome;

        set_up(NULL);
        outcome = make(FILESYSTEM_XFS);
        note(FILESYSTEM_BEGUN, FILESYSTEM_XFS, outcome.filesystem.uuid);
        put_at(zeroes, sizeof(zeroes), 512); /* the headers of the first group */
        CHECK_INT(make_again(FILESYSTEM_XFS, outcome.filesystem.uuid).verdict, FILESYSTEM_PROGRAM_FAILED);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        put_at("\1", 1, 126); /* sb_inprogress */
        CHECK_INT(make_again(FILESYSTEM_XFS, outcome.filesystem.uuid).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(byte_at(126), 0);
        tear_down();
}

int main(int argc, char *argv[])
{
        if (argc == 2 && strcmp(argv[1], FILESYSTEM_PROCESS_OPTION) == 0)
                return filesystem_process_main();
        if (!world_opens())
                return CHECK_SKIP;
        test_what_was_cut_off_is_made_again();
        test_what_has_another_uuid_is_not_made_again();
        test_what_is_whole_is_not_made_again();
        test_what_cannot_be_checked_is_not_made_again();
        test_a_file_system_that_is_not_whole_is_not_made();
        test_what_the_check_could_not_read_is_not_made_again();
        test_a_file_system_that_was_mounted_is_not_made_again();
        test_xfs_is_made_again_only_while_its_mark_is_there();
        world_close();
        return check_report();
}
