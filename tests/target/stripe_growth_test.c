/* SPDX-License-Identifier: MIT */
/* A stripe of two files grows: by whole rows, so only with both files. What it had stays where it is, what is new lies where the
 * map puts it, and is locked before it is served. */
#include "targets/worker/disk/store_locks.h"
#include "tests/target/two_files.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
        FILES = TWO_FILES,
        CHUNK = 4096,
        ROW = FILES * CHUNK,
        FILE_SIZE = 64 << 10,
        SIZE = FILES * FILE_SIZE,
        MORE = 32 << 10, /* bytes by which a file grows */
        GROWN = SIZE + FILES * MORE,
        AROUND = 32 << 10, /* bytes before the old end, and behind it */
};

/* A disk of all bytes of both files, which are locked. */
static bool place_open(struct two_files *place)
{
        _cleanup_problems_ struct problem_list problems = {};
        char spec[2048];

        if (!two_files_make(place, FILE_SIZE))
                return false;
        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"stripe\",\"chunk\":%d,\"children\":[{\"type\":\"loop\",\"path\":\"%"
                "s\"},{\"type\":\"loop\",\"path\":\"%s\"}]},\"blockSize\":512}",
                CHUNK, place->paths[0], place->paths[1]);
        return CHECK_INT(target_host_open(&place->host, spec, &problems), 0)
               && CHECK_INT(place->host.disk.params.size, SIZE) && CHECK_INT(disk_lock(&place->host.disk), 0);
}

static void resize(const struct two_files *place, unsigned file, off_t size)
{
        CHECK_INT(truncate(place->paths[file], size), 0);
}

/* Check that no growth to that size comes about, and that the disk is as it was. */
static void check_refused(struct two_files *place, uint64_t size, int error, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        uint64_t before = place->host.disk.params.size;

        CHECK_INT(disk_grow(&place->host.disk, size, &problems), error);
        if (CHECK_INT(problems.count, 1)) {
                CHECK_STR(problems.items[0].pointer, "/size");
                CHECK_STR(problems.items[0].reason, reason);
        }
        CHECK_INT(target_size(&place->host.disk.device), before);
        CHECK_INT(place->host.disk.params.size, before);
}

static void check_grows(struct two_files *place, uint64_t size)
{
        _cleanup_problems_ struct problem_list problems = {};

        CHECK_INT(disk_grow(&place->host.disk, size, &problems), 0);
        CHECK_INT(target_size(&place->host.disk.device), size);
        CHECK_INT(place->host.disk.params.size, size);
}

/* There is no place for its half of a row. */
static void test_one_file_that_has_grown_is_not_enough(void)
{
        for (unsigned grown = 0; grown < FILES; grown++) {
                struct two_files place;

                if (place_open(&place)) {
                        resize(&place, grown, FILE_SIZE + MORE);
                        check_refused(&place, SIZE + 512, -EINVAL, "BackingTooSmall");
                        check_refused(&place, GROWN, -EINVAL, "BackingTooSmall");
                        CHECK_INT(place.host.disk.params.size_max, SIZE);
                        CHECK(two_files_is_free(&place, grown, FILE_SIZE));
                        resize(&place, 1 - grown, FILE_SIZE + MORE);
                        check_grows(&place, GROWN);
                }
                two_files_close(&place);
        }
}

/* The files have grown by three chunks, and by one and a half: that is one row. */
static void test_a_row_that_is_not_whole_is_not_offered(void)
{
        struct two_files place;

        if (place_open(&place)) {
                resize(&place, 0, FILE_SIZE + 3 * CHUNK);
                resize(&place, 1, FILE_SIZE + CHUNK + CHUNK / 2);
                check_refused(&place, SIZE + ROW + 512, -EINVAL, "BackingTooSmall");
                check_refused(&place, SIZE + 2 * ROW, -EINVAL, "BackingTooSmall");
                CHECK_INT(place.host.disk.params.size_max, SIZE + ROW);
                check_refused(&place, SIZE + 100, -EINVAL, "SizeNotAMultiple");
                check_grows(&place, SIZE + 512); /* a disk may end within a row that is there */
                check_grows(&place, SIZE + ROW);
                CHECK_INT(target_host_one(&place.host, IO_WRITE, 0, SIZE, ROW), ROW);
                resize(&place, 1, FILE_SIZE + 2 * CHUNK);
                check_grows(&place, SIZE + 2 * ROW);
        }
        two_files_close(&place);
}

/* All of the new bytes of both files, or the disk stays as large as it is. */
static void test_the_new_bytes_are_locked_before_they_are_served(void)
{
        for (unsigned held = 0; held < FILES; held++) {
                struct flock lock = {
                        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = FILE_SIZE + MORE - 1, .l_len = 1};
                struct two_files place;

                if (place_open(&place)) {
                        for (unsigned i = 0; i < FILES; i++) {
                                resize(&place, i, FILE_SIZE + MORE);
                                CHECK(!two_files_is_free(&place, i, FILE_SIZE - 1));
                                CHECK(two_files_is_free(&place, i, FILE_SIZE));
                        }
                        CHECK_INT(fcntl(place.others[held], F_OFD_SETLK, &lock), 0);
                        check_refused(&place, GROWN, -EAGAIN, "BackingInUse");
                        lock.l_type = F_UNLCK;
                        CHECK_INT(fcntl(place.others[held], F_OFD_SETLK, &lock), 0);
                        check_grows(&place, GROWN);
                        CHECK_INT(place.host.disk.lock, DISK_LOCK_HELD);
                        for (unsigned i = 0; i < FILES; i++) {
                                CHECK(!two_files_is_free(&place, i, FILE_SIZE));
                                CHECK(!two_files_is_free(&place, i, FILE_SIZE + MORE - 1));
                                CHECK(two_files_is_free(&place, i, FILE_SIZE + MORE));
                        }
                }
                two_files_close(&place);
        }
}

static char written(uint64_t byte)
{
        return (char)(1 + byte * 7 % 251);
}

/* What file `file` has at a byte of its own after the disk was written to around its old end. */
static char expected(unsigned file, uint64_t byte)
{
        uint64_t of_disk = byte / CHUNK * ROW + file * CHUNK + byte % CHUNK;

        if (of_disk >= SIZE - AROUND && of_disk < SIZE + AROUND)
                return written(of_disk);
        return byte < FILE_SIZE ? (char)scratch_pattern(byte) : '\0';
}

static void check_files(const struct two_files *place)
{
        for (unsigned file = 0; file < FILES; file++) {
                char bytes[FILE_SIZE + MORE];
                uint64_t different = 0;

                CHECK_INT(pread(place->others[file], bytes, sizeof(bytes), 0), sizeof(bytes));
                for (uint64_t i = 0; i < sizeof(bytes); i++)
                        different += bytes[i] != expected(file, i);
                CHECK_INT(different, 0);
        }
}

/* With one request across the old end. */
static void test_old_and_new_bytes_are_in_their_places(void)
{
        struct host_request write = {
                .op = IO_WRITE, .offset = SIZE - AROUND, .length = 2 * AROUND, .flags = IO_FUA};
        struct host_request read = {.op = IO_READ, .offset = SIZE - AROUND, .length = 2 * AROUND};
        struct two_files place;

        if (place_open(&place)) {
                char *data = target_host_data(&place.host, 0);
                uint64_t end = 0;

                for (unsigned i = 0; i < FILES; i++)
                        resize(&place, i, FILE_SIZE + MORE);
                check_grows(&place, GROWN);
                CHECK(!disk_is_cut(&place.host.disk, &end));
                for (uint32_t i = 0; i < 2 * AROUND; i++)
                        data[i] = written(SIZE - AROUND + i);
                CHECK_INT(target_host_perform(&place.host, &write, 1), 0);
                CHECK_INT(write.result, 2 * AROUND);
                check_files(&place);
                memset(data, 0, 2 * AROUND);
                CHECK_INT(target_host_perform(&place.host, &read, 1), 0);
                CHECK_INT(read.result, 2 * AROUND);
                for (uint32_t i = 0; i < 2 * AROUND; i++)
                        if (!CHECK_INT(data[i], written(SIZE - AROUND + i)))
                                break;
                /* One of them is as short again as before it grew. */
                resize(&place, 1, FILE_SIZE);
                check_refused(&place, GROWN + ROW, -EINVAL, "BackingTooSmall");
                CHECK(disk_is_cut(&place.host.disk, &end));
                CHECK_INT(end, SIZE);
        }
        two_files_close(&place);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_one_file_that_has_grown_is_not_enough();
        test_a_row_that_is_not_whole_is_not_offered();
        test_the_new_bytes_are_locked_before_they_are_served();
        test_old_and_new_bytes_are_in_their_places();
        return check_report();
}
