/* SPDX-License-Identifier: MIT */
/* filesystem_maker: file systems come onto disks once, by the real process and the real programs. The disks are files.
 * Needs root and Landlock, for the walls, and the programs of ext4 and xfs. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include "tests/unit/ublkd/filesystems/maker_world.h"

#include "ublkd/filesystems/filesystem_process.h"
#include "ublkd/filesystems/filesystem_sight.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

static void test_each_kind_is_made_once(void)
{
        for (int i = 0; i < _FILESYSTEM_KIND_MAX; i++) {
                enum filesystem_kind kind = (enum filesystem_kind)i;
                struct outcome first, second;

                set_up(NULL);
                first = make(kind);
                if (!CHECK_INT(first.verdict, FILESYSTEM_IS_MADE))
                        fprintf(stderr, "%s: %s\n", filesystem_kind_name(kind), first.text);
                CHECK_INT(noted().stage, FILESYSTEM_MADE);
                CHECK_INT(sight(kind, first.filesystem.uuid), FILESYSTEM_SEES_IT);
                put_byte(DISK_SIZE / 2 + 12345); /* the data of a client */
                second = make(kind);
                CHECK_INT(second.verdict, FILESYSTEM_IS_MADE);
                CHECK_STR(second.filesystem.uuid, first.filesystem.uuid);
                tear_down();
        }
}

static void put_byte_at_begin(void *userdata, const struct store_event *happened)
{
        bool *done = userdata;

        if (!happened->record || *done
                || filesystem_of_note(happened->record->filesystem).stage != FILESYSTEM_BEGUN)
                return;
        *done = true;
        put_byte(20 << 10);
}

/* mkfs.ext4 does not look for data when no terminal asks it to. */
static void test_data_that_come_after_the_look_stay(void)
{
        for (int i = 0; i < _FILESYSTEM_KIND_MAX; i++) {
                bool done = false;

                set_up(NULL);
                CHECK_INT(device_store_subscribe(store, put_byte_at_begin, &done), 0);
                CHECK_INT(make((enum filesystem_kind)i).verdict, FILESYSTEM_NOT_BLANK);
                CHECK(done);
                CHECK_STR(record()->filesystem, "");
                CHECK_INT(sight((enum filesystem_kind)i, ""), FILESYSTEM_SEES_OTHER);
                device_store_unsubscribe(store, put_byte_at_begin, &done);
                tear_down();
        }
}

static void test_another_kind_is_refused(void)
{
        set_up(NULL);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(make(FILESYSTEM_XFS).verdict, FILESYSTEM_OTHER_KIND);
        tear_down();
}

static void test_data_stay_as_they_are(void)
{
        set_up(NULL);
        put_byte(3 << 20);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_NOT_BLANK);
        CHECK_STR(record()->filesystem, "");
        put_byte(DISK_SIZE - 1);
        CHECK_INT(make(FILESYSTEM_XFS).verdict, FILESYSTEM_NOT_BLANK);
        tear_down();
}

/* ublkd died before the program wrote a byte, after the last one, and in between. */
static void test_what_a_death_leaves(void)
{
        static const char uuid[] = "11111111-2222-4333-8444-555555555555";
        char made[FILESYSTEM_UUID_SIZE];
        struct outcome outcome;

        set_up(NULL);
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, uuid);
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_MADE);
        strcpy(made, outcome.filesystem.uuid);

        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, made);
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_MADE);
        CHECK_STR(outcome.filesystem.uuid, made);
        CHECK_INT(noted().stage, FILESYSTEM_MADE);

        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, uuid);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_UNFINISHED);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        CHECK_INT(sight(FILESYSTEM_EXT4, made), FILESYSTEM_SEES_IT);
        tear_down();
}

static void test_a_lost_file_system_is_not_made_again(void)
{
        set_up(NULL);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_IS_MADE);
        make_disk(); /* another store, or one that was emptied */
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_LOST);
        CHECK_INT(sight(FILESYSTEM_EXT4, ""), FILESYSTEM_SEES_BLANK);
        tear_down();
}

static void test_a_program_that_refuses_leaves_no_note(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(truncate(disk, 1 << 20), 0); /* too small for xfs */
        outcome = make(FILESYSTEM_XFS);
        CHECK_INT(outcome.verdict, FILESYSTEM_PROGRAM_FAILED);
        CHECK(*outcome.text != '\0');
        CHECK_STR(record()->filesystem, "");
        tear_down();
}

static void test_a_disk_that_cannot_be_read(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(unlink(disk), 0);
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_READ);
        CHECK_INT(outcome.error, -ENOENT);
        CHECK_INT(mkfifo(disk, 0600), 0);
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_READ);
        CHECK_INT(outcome.error, -ENOTBLK);
        CHECK_INT(unlink(disk), 0);
        tear_down();
}

/* The node was left by an earlier disk, or is another disk: what the kernel shows of the disk is not what it leads to. */
static void test_a_node_of_another_disk(void)
{
        char folder[128], path[160];
        FILE *file;
        struct outcome outcome;

        snprintf(folder, sizeof(folder), "%s/block/ublkb%d", dev, NUMBER);
        snprintf(path, sizeof(path), "%s/dev", folder);
        CHECK_INT(make_dirs(folder, 0755), 0);
        file = fopen(path, "we");
        CHECK(file && fputs("259:7\n", file) >= 0 && fclose(file) == 0);
        set_up(&(const struct filesystem_limits){.sys = dev});
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_READ);
        CHECK_INT(outcome.error, -ESTALE);
        CHECK_INT(sight(FILESYSTEM_EXT4, ""), FILESYSTEM_SEES_BLANK);
        CHECK_INT(unlink(path), 0);
        outcome = make(FILESYSTEM_EXT4);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_READ);
        CHECK_INT(outcome.error, -ENOENT);
        tear_down();
}

static void test_a_disk_that_is_not_in_service(void)
{
        struct outcome outcome;

        set_up(NULL);
        set_live(-1);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), -ENODEV);
        tear_down();
}

/* An older database was restored: nothing is done with the disk, which may be that of a newer record. */
static void test_an_outdated_record(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(device_store_set_age(store, "data", RECORD_OUTDATED), 0);
        set_live(NUMBER);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), -ENODEV);
        tear_down();
}

/* What is mounted stays so when its disk is taken away, or another one is created: the unmount asks nothing of the disk. */
static void test_an_unmount_needs_no_disk(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(unlink(disk), 0);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &outcome), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_UNMOUNTED);
        set_live(-1);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &outcome), 0);
        set_live(NUMBER);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_UNMOUNTED);
        tear_down();
}

static void test_an_unmount_waits_for_what_is_under_way(void)
{
        struct outcome first, second;

        set_up(NULL);
        CHECK_INT(begin(FILESYSTEM_EXT4, &first), 0);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &second), -EBUSY);
        wait_for(&first);
        tear_down();
}

static void test_what_is_unmounted_is_marked_until_the_answer(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &outcome), 0);
        CHECK_INT(record()->mount_change, MOUNT_STAYS);
        while (record()->mount_change != MOUNT_GOES && !outcome.answered)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
        CHECK_INT(record()->mount_change, MOUNT_GOES);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_UNMOUNTED);
        CHECK_INT(record()->mount_change, MOUNT_STAYS);
        tear_down();
}

/* Users must not write to the disk before what is left of its mount has ended. */
static bool can_be_opened_to_users(void)
{
        static const char open_to_users[] = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":"
                                            "\"400MiB\",\"owner\":{\"uid\":1000}}";
        int r = put_device(store, open_to_users);

        CHECK(r == 0 || r == -ETXTBSY);
        return r == 0;
}

static void unmount(enum filesystem_verdict verdict, int error)
{
        struct outcome outcome;

        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &outcome), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, verdict);
        CHECK_INT(outcome.error, error);
}

/* Until then it is not known what is left of a mount whose end on the host was not enough. */
static void test_a_mount_goes_until_nothing_is_left(void)
{
        char folder[128], path[160], point[160];
        FILE *file;

        snprintf(folder, sizeof(folder), "%s/block/ublkb%d", dev, NUMBER);
        snprintf(path, sizeof(path), "%s/dev", folder);
        set_up(&(const struct filesystem_limits){.sys = dev});
        CHECK_INT(make_dirs(folder, 0755), 0);
        snprintf(point, sizeof(point), "%s/%s", mounts, record()->uid);
        CHECK_INT(make_dirs(point, 0700), 0);
        file = fopen(path, "we");
        CHECK(file && fputs("which copies are left cannot be seen\n", file) >= 0 && fclose(file) == 0);
        unmount(FILESYSTEM_NOT_UNMOUNTED, -EBADMSG);
        CHECK_INT(record()->mount_change, MOUNT_GOES);
        CHECK(!can_be_opened_to_users());
        CHECK_INT(chmod(mounts, 0777), 0);
        unmount(FILESYSTEM_NOT_UNMOUNTED, -EPERM); /* it looks at nothing */
        CHECK_INT(record()->mount_change, MOUNT_GOES);
        CHECK_INT(chmod(mounts, 0700), 0);
        CHECK_INT(unlink(path), 0);
        unmount(FILESYSTEM_IS_UNMOUNTED, 0);
        CHECK_INT(record()->mount_change, MOUNT_STAYS);
        CHECK(can_be_opened_to_users());
        CHECK_INT(rmdir(folder), 0);
        tear_down();
}

/* The process, which dies when it has its task. It leaves the node of the task in a file. */
static int die_at_work(const char *path)
{
        static const struct filesystem_look look = {.sight = FILESYSTEM_SEES_IT};
        static struct filesystem_order order;
        static struct filesystem_go go;
        _cleanup_fclose_ FILE *file = NULL;

        if (recv(FILESYSTEM_LINK_FD, &order, sizeof(order), 0) != sizeof(order)
                || send(FILESYSTEM_LINK_FD, &look, sizeof(look), MSG_NOSIGNAL) != sizeof(look)
                || recv(FILESYSTEM_LINK_FD, &go, sizeof(go), 0) != sizeof(go))
                return EXIT_FAILURE;
        file = fopen(path, "we");
        return file && fputs(go.node, file) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void check_text_is(const char *path, const char *expected)
{
        char text[160];

        CHECK(read_line_at(AT_FDCWD, path, text, sizeof(text)) >= 0);
        CHECK_STR(text, expected);
        CHECK_INT(unlink(path), 0);
}

/* The mount of the host may have ended, and a copy may be there. */
static void test_an_unmount_that_died_is_not_over(void)
{
        char path[160];

        snprintf(path, sizeof(path), "%s/task", dev);
        set_up(NULL);
        CHECK_INT(device_store_set_mount(store, "data", "/mounts/data"), 0);
        CHECK_INT(setenv("TEST_DIES", path, 1), 0);
        unmount(FILESYSTEM_TOOK_TOO_LONG, -EPIPE);
        CHECK_INT(unsetenv("TEST_DIES"), 0);
        check_text_is(path, disk); /* which it asks for what claims it */
        CHECK_STR(record()->mount, "/mounts/data");
        CHECK_INT(record()->mount_change, MOUNT_GOES);
        CHECK_INT(device_store_set_mount(store, "data", ""), 0); /* as it has ended on the host */
        CHECK(!can_be_opened_to_users());
        unmount(FILESYSTEM_IS_UNMOUNTED, 0);
        CHECK(can_be_opened_to_users());
        tear_down();
}

/* The copies that the unmount before has left are those of the disk that was not mounted. */
static void test_a_mount_that_fails_leaves_what_an_unmount_has_left(void)
{
        char path[160];
        struct outcome outcome;

        snprintf(path, sizeof(path), "%s/task", dev);
        set_up(NULL);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(setenv("TEST_DIES", path, 1), 0);
        unmount(FILESYSTEM_TOOK_TOO_LONG, -EPIPE);
        CHECK_INT(unsetenv("TEST_DIES"), 0);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_MOUNTED}, &outcome), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_MOUNTED); /* the disk is a file */
        CHECK_INT(record()->mount_change, MOUNT_GOES);
        CHECK(!can_be_opened_to_users());
        unmount(FILESYSTEM_IS_UNMOUNTED, 0);
        CHECK(can_be_opened_to_users());
        tear_down();
}

/* Begin a mount on a device of its own, which has no file system. Return as filesystem_request(). */
static int begin_of(unsigned number, enum filesystem_aim aim, struct filesystem_account account)
{
        const struct filesystem_wish wish = {.aim = aim, .account = account};
        struct device_status status = {.phase = PHASE_LIVE, .number = (int)number, .disk = true};
        struct filesystem_making *making;
        char name[16], text[128];

        snprintf(name, sizeof(name), "of-%u", number);
        snprintf(text, sizeof(text), "{\"name\":\"%s\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}",
                name);
        put_device(store, text);
        CHECK_INT(device_store_assign_number(store, name, (int)number), 0);
        CHECK_INT(device_store_set_status(store, name, &status), 0);
        return filesystem_request(maker, device_store_get(store, name), &wish, NULL, NULL, &making);
}

/* Subordinate users of one range are one person, and many persons leave room for the administrators. */
static void test_tenants_have_half_of_the_room(void)
{
        static const struct filesystem_account alice = {true, 1000, 1000}, hers = {true, 100000, 165535},
                                               bob = {true, 1001, 1001}, administrator = {};
        const enum filesystem_aim mounted = FILESYSTEM_AIM_MOUNTED, unmounted = FILESYSTEM_AIM_UNMOUNTED;

        set_up(NULL);
        CHECK_INT(begin_of(20, mounted, hers), 0);
        CHECK_INT(begin_of(21, mounted, hers), 0);
        CHECK_INT(begin_of(22, mounted, hers), -EAGAIN);
        CHECK_INT(begin_of(23, unmounted, hers), 0);
        CHECK_INT(begin_of(24, mounted, alice), 0);
        CHECK_INT(begin_of(25, mounted, bob), 0);
        CHECK_INT(begin_of(26, mounted, bob), -EAGAIN); /* half of 8 */
        CHECK_INT(begin_of(27, mounted, administrator), 0);
        CHECK_INT(begin_of(28, unmounted, bob), 0);
        CHECK_INT(begin_of(29, mounted, administrator), 0);
        tear_down();
}

static void test_one_request_for_a_disk_at_a_time(void)
{
        struct outcome first, second;

        set_up(NULL);
        CHECK_INT(begin(FILESYSTEM_EXT4, &first), 0);
        CHECK_INT(begin(FILESYSTEM_EXT4, &second), -EBUSY);
        wait_for(&first);
        CHECK_INT(first.verdict, FILESYSTEM_IS_MADE);
        tear_down();
}

/* The device was removed, or has another disk: what the process has looked at is not the disk of the device. */
static void test_a_disk_that_goes_meanwhile(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), 0);
        set_live(-1);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NO_DISK);
        CHECK_INT(sight(FILESYSTEM_EXT4, ""), FILESYSTEM_SEES_BLANK);
        set_live(NUMBER);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), 0);
        CHECK_INT(device_store_remove(store, "data"), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NO_DISK);
        tear_down();
}

/* A removal that came before the look is not held up: what is on the disk is deleted with it. */
static void test_a_device_that_is_removed_meanwhile(void)
{
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_MOUNTED}, &outcome), 0);
        CHECK_INT(device_store_request_delete(store, "data", false), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NO_DISK);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_UNMOUNTED}, &outcome), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_IS_UNMOUNTED);
        tear_down();
}

/* Between the look and the mount users get no right to write to the disk. */
static void test_a_disk_is_not_given_to_users_meanwhile(void)
{
        static const char open_to_users[] = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":"
                                            "\"400MiB\",\"owner\":{\"uid\":1000}}";
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(make(FILESYSTEM_EXT4).verdict, FILESYSTEM_IS_MADE);
        CHECK_INT(begin_wish((struct filesystem_wish){.aim = FILESYSTEM_AIM_MOUNTED}, &outcome), 0);
        while (record()->mount_change != MOUNT_COMES && !outcome.answered)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
        CHECK_INT(put_device(store, open_to_users), -ETXTBSY);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NOT_MOUNTED); /* the disk is a file */
        CHECK_INT(put_device(store, open_to_users), 0);
        tear_down();
}

/* What ended is not what the record notes now: that is of another request, for another disk of the device. */
static void test_the_end_of_another_request_settles_nothing(void)
{
        static const char other[] = "11111111-2222-4333-8444-555555555555";
        struct outcome outcome;

        set_up(NULL);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), 0);
        while (noted().stage != FILESYSTEM_BEGUN)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
        note(FILESYSTEM_BEGUN, FILESYSTEM_EXT4, other);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_NO_DISK);
        CHECK_INT(noted().stage, FILESYSTEM_BEGUN);
        CHECK_STR(noted().uuid, other);
        tear_down();
}

static void test_a_process_that_takes_too_long_is_killed(void)
{
        static const struct filesystem_limits hasty = {.patience_usec = 1};
        struct outcome outcome;

        set_up(&hasty);
        CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), 0);
        wait_for(&outcome);
        CHECK_INT(outcome.verdict, FILESYSTEM_TOOK_TOO_LONG);
        tear_down();
}

/* The disk does not answer, and is the same one: it was not removed. The note of an earlier try stays. */
static void test_a_look_that_takes_too_long_is_killed(void)
{
        static const struct filesystem_limits hasty = {.patience_usec = 1000};
        static const char uuid[] = "11111111-2222-4333-8444-555555555555";

        CHECK_INT(setenv("TEST_SILENT", "1", 1), 0); /* the process, which never looks */
        for (int stage = FILESYSTEM_BEGUN; stage <= FILESYSTEM_MADE; stage++) {
                struct outcome outcome;

                set_up(&hasty);
                note((enum filesystem_stage)stage, FILESYSTEM_EXT4, uuid);
                CHECK_INT(begin(FILESYSTEM_EXT4, &outcome), 0);
                wait_for(&outcome);
                CHECK_INT(outcome.verdict, FILESYSTEM_TOOK_TOO_LONG);
                CHECK_INT(noted().stage, stage);
                CHECK_STR(noted().uuid, uuid);
                tear_down();
        }
        CHECK_INT(unsetenv("TEST_SILENT"), 0);
}

static void test_an_abandoned_request_goes_on(void)
{
        struct filesystem_making *making;
        struct outcome outcome = {};

        set_up(NULL);
        CHECK_INT(
                filesystem_request(maker, record(), &(const struct filesystem_wish){.kind = FILESYSTEM_EXT4},
                        on_answer, &outcome, &making),
                0);
        filesystem_abandon(making);
        while (noted().stage != FILESYSTEM_MADE)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
        CHECK(!outcome.answered);
        tear_down();
}

int main(int argc, char *argv[])
{
        if (argc == 2 && strcmp(argv[1], FILESYSTEM_PROCESS_OPTION) == 0)
                return getenv("TEST_SILENT") ? pause()
                       : getenv("TEST_DIES") ? die_at_work(getenv("TEST_DIES"))
                                             : filesystem_process_main();
        if (!world_opens())
                return CHECK_SKIP;
        test_each_kind_is_made_once();
        test_data_that_come_after_the_look_stay();
        test_another_kind_is_refused();
        test_data_stay_as_they_are();
        test_what_a_death_leaves();
        test_a_lost_file_system_is_not_made_again();
        test_a_program_that_refuses_leaves_no_note();
        test_a_disk_that_cannot_be_read();
        test_a_node_of_another_disk();
        test_a_disk_that_is_not_in_service();
        test_an_outdated_record();
        test_an_unmount_needs_no_disk();
        test_an_unmount_waits_for_what_is_under_way();
        test_what_is_unmounted_is_marked_until_the_answer();
        test_a_mount_goes_until_nothing_is_left();
        test_an_unmount_that_died_is_not_over();
        test_a_mount_that_fails_leaves_what_an_unmount_has_left();
        test_tenants_have_half_of_the_room();
        test_one_request_for_a_disk_at_a_time();
        test_a_disk_that_goes_meanwhile();
        test_a_device_that_is_removed_meanwhile();
        test_a_disk_is_not_given_to_users_meanwhile();
        test_the_end_of_another_request_settles_nothing();
        test_a_process_that_takes_too_long_is_killed();
        test_a_look_that_takes_too_long_is_killed();
        test_an_abandoned_request_goes_on();
        world_close();
        return check_report();
}
