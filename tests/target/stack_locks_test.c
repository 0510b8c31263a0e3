/* SPDX-License-Identifier: MIT */
/* The locks of a disk over several backing stores: on each of them, or the disk is not served. */
#include "targets/worker/disk/store_locks.h"
#include "tests/target/two_files.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <errno.h>
#include <fcntl.h>

enum { FILES = TWO_FILES, FILE_SIZE = 256 << 10, PART_BEGIN = 8192, PART_LENGTH = 65536 };

/* A list of a part of the first file, and the second one from byte 4096 on. */
static bool place_open(struct two_files *place)
{
        _cleanup_problems_ struct problem_list problems = {};
        char spec[2048];

        if (!two_files_make(place, FILE_SIZE))
                return false;
        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"offset\":%d,"
                "\"length\":%d,\"child\":"
                "{\"type\":\"loop\",\"path\":\"%s\"}},{\"type\":\"loop\",\"path\":\"%s\",\"offset\":4096}]}}",
                PART_BEGIN, PART_LENGTH, place->paths[0], place->paths[1]);
        return CHECK_INT(target_host_open(&place->host, spec, &problems), 0);
}

static void test_what_the_disk_reaches_of_each_store_is_locked(void)
{
        static const struct {
                unsigned file;
                off_t byte;
                bool free;
        } bytes[] = {
                {0, PART_BEGIN - 1,               true },
                {0, PART_BEGIN,                   false},
                {0, PART_BEGIN + PART_LENGTH - 1, false},
                {0, PART_BEGIN + PART_LENGTH,     true },
                {1, 4095,                         true },
                {1, 4096,                         false},
                {1, FILE_SIZE - 1,                false},
        };
        struct two_files place;

        if (place_open(&place)) {
                CHECK_INT(place.host.disk.lock, DISK_LOCK_WANTED);
                CHECK_INT(disk_lock(&place.host.disk), 0);
                CHECK_INT(place.host.disk.lock, DISK_LOCK_HELD);
                for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
                        CHECK_INT(two_files_is_free(&place, bytes[i].file, bytes[i].byte), bytes[i].free);
        }
        two_files_close(&place);
}

static void other_locks(const struct two_files *place, unsigned file, short type)
{
        struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = PART_BEGIN, .l_len = 1};

        CHECK_INT(fcntl(place->others[file], F_OFD_SETLK, &lock), 0);
}

/* With the pointer of the store that is locked. */
static void test_one_that_is_locked_keeps_the_disk_from_being_served(void)
{
        static const char *const pointers[] = {"/target/children/0/child", "/target/children/1"};

        for (unsigned locked = 0; locked < FILES; locked++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct two_files place;
                pid_t holder;

                if (place_open(&place)) {
                        other_locks(&place, locked, F_WRLCK);
                        CHECK_INT(disk_lock(&place.host.disk), -EAGAIN);
                        CHECK_INT(place.host.disk.lock, DISK_LOCK_WANTED);
                        CHECK_INT(disk_lock_explain(&place.host.disk, &problems, &holder), 0);
                        if (CHECK_INT(problems.count, 1)) {
                                CHECK_STR(problems.items[0].pointer, pointers[locked]);
                                CHECK_STR(problems.items[0].reason, "BackingInUse");
                        }
                        other_locks(&place, locked, F_UNLCK);
                        CHECK_INT(disk_lock(&place.host.disk), 0);
                        CHECK_INT(place.host.disk.lock, DISK_LOCK_HELD);
                        CHECK(!two_files_is_free(&place, 0, PART_BEGIN)
                                && !two_files_is_free(&place, 1, FILE_SIZE - 1));
                }
                two_files_close(&place);
        }
}

/* A reader of one does not keep a disk that exists from its lock, which becomes whole when the reader has gone. */
static void test_a_reader_of_one_store_does_not_keep_a_disk_from_its_lock(void)
{
        struct two_files place;

        if (place_open(&place)) {
                place.host.disk.exists = true;
                other_locks(&place, 1, F_RDLCK);
                CHECK_INT(disk_lock(&place.host.disk), 0);
                CHECK_INT(place.host.disk.lock, DISK_LOCK_BESIDE_READERS);
                CHECK(!two_files_is_free(&place, 0, PART_BEGIN)
                        && !two_files_is_free(&place, 1, FILE_SIZE - 1));
                other_locks(&place, 1, F_UNLCK);
                CHECK_INT(disk_lock(&place.host.disk), 0);
                CHECK_INT(place.host.disk.lock, DISK_LOCK_HELD);
        }
        two_files_close(&place);
}

static void test_growth_locks_the_rest(void)
{
        enum { SIZE = PART_LENGTH + FILE_SIZE - 4096 };
        struct two_files place;

        if (place_open(&place)) {
                _cleanup_problems_ struct problem_list problems = {};
                struct flock lock = {
                        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = FILE_SIZE, .l_len = 4096};

                CHECK_INT(place.host.disk.params.size, SIZE);
                CHECK_INT(disk_lock(&place.host.disk), 0);
                CHECK_INT(truncate(place.paths[1], FILE_SIZE + 4096), 0);
                CHECK(two_files_is_free(&place, 1, FILE_SIZE));
                CHECK_INT(fcntl(place.others[1], F_OFD_SETLK, &lock), 0);
                CHECK_INT(disk_grow(&place.host.disk, SIZE + 4096, &problems), -EAGAIN);
                if (CHECK_INT(problems.count, 1))
                        CHECK_STR(problems.items[0].pointer, "/size");
                CHECK_INT(target_size(&place.host.disk.device), SIZE);
                problem_list_clear(&problems);
                lock.l_type = F_UNLCK;
                CHECK_INT(fcntl(place.others[1], F_OFD_SETLK, &lock), 0);
                CHECK_INT(disk_grow(&place.host.disk, SIZE + 4096, &problems), 0);
                CHECK_INT(target_size(&place.host.disk.device), SIZE + 4096);
                CHECK(!two_files_is_free(&place, 1, FILE_SIZE + 4095));
                CHECK(two_files_is_free(&place, 0, PART_BEGIN + PART_LENGTH));
        }
        two_files_close(&place);
}

/* Bytes of one file at two places of the disk: refused, at the second of the targets. */
static void test_no_byte_is_at_two_places(void)
{
        static const struct {
                const char *of_second;
                int result;
        } cases[] = {
                {"\"offset\":65536", 0      },
                {"\"offset\":65024", -EINVAL},
        };
        struct two_files place;
        char spec[2048];

        if (!place_open(&place)) {
                two_files_close(&place);
                return;
        }
        target_host_close(&place.host);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_problems_ struct problem_list problems = {};

                snprintf(spec, sizeof(spec),
                        "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":"
                        "65536,"
                        "\"child\":{\"type\":\"loop\",\"path\":\"%s\"}},{\"type\":\"loop\",\"path\":\"%s\",%"
                        "s}]}}",
                        place.paths[0], place.paths[0], cases[i].of_second);
                CHECK_INT(target_host_open(&place.host, spec, &problems), cases[i].result);
                if (cases[i].result < 0 && CHECK(problems.count > 0))
                        CHECK_STR(problems.items[0].pointer, "/target/children/1");
                if (i + 1 < ARRAY_SIZE(cases))
                        target_host_close(&place.host);
        }
        two_files_close(&place);
}

int main(void)
{
        test_no_byte_is_at_two_places();
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_what_the_disk_reaches_of_each_store_is_locked();
        test_one_that_is_locked_keeps_the_disk_from_being_served();
        test_a_reader_of_one_store_does_not_keep_a_disk_from_its_lock();
        test_growth_locks_the_rest();
        return check_report();
}
