/* SPDX-License-Identifier: MIT */
/* Opening trees of targets: what the core knows of the store through targets that leave a part out, where faults are reported,
 * and growth. */
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "targets/linear/linear.h"
#include "targets/worker/disk/store_locks.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { FILE_SIZE = 1 << 20 };

struct place {
        struct scratch scratch;
        char path[512], spec[2048];
};

static bool place_make(struct place *place)
{
        return CHECK_INT(scratch_make(&place->scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0)
               && CHECK_INT(
                       scratch_file(&place->scratch, "disk", FILE_SIZE, place->path, sizeof(place->path)), 0);
}

/* A part of a part of a file: byte 0 is byte 4096 + 8192 + 512 of it. */
static void part_of_part(struct place *place, const char *more)
{
        snprintf(place->spec, sizeof(place->spec),
                "{\"target\":{\"type\":\"linear\",\"offset\":512,\"child\":{\"type\":\"linear\",\"offset\":"
                "8192,"
                "\"child\":{\"type\":\"loop\",\"path\":\"%s\",\"offset\":4096}}}%s}",
                place->path, more);
}

static void test_the_core_sees_the_store_through_parts(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct place place;

        if (!place_make(&place))
                return;
        part_of_part(&place, ",\"size\":65536,\"blockSize\":512");
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                const struct target_device *device = &host.disk.device;
                const struct backing_claims *claims = &host.disk.params.claims;

                CHECK(device->linear);
                CHECK_INT(device->linear_offset, 4096 + 8192 + 512);
                CHECK(device->store.kept >= 0 && device->store.inode > 0 && device->store.end == FILE_SIZE);
                CHECK(device->files[device->linear_file] >= 0);
                CHECK_INT(host.disk.params.size_max, FILE_SIZE - 4096 - 8192 - 512);
                if (CHECK(claims->count > 0)) {
                        CHECK_INT(claims->items[0].start, 4096 + 8192 + 512);
                        CHECK_INT(claims->items[0].end, 4096 + 8192 + 512 + 65536);
                }
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

/* As of a disk on the file itself. */
static void test_a_store_that_is_given_is_opened_in_place_of_the_path(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host first;
        struct disk second;
        struct place place;
        int kept;

        if (!place_make(&place))
                return;
        part_of_part(&place, "");
        if (CHECK_INT(target_host_open(&first, place.spec, &problems), 0)) {
                kept = dup(first.disk.device.store.kept);
                CHECK_INT(unlink(place.path), 0);
                if (CHECK_INT(disk_open(&first.config, kept, &second, &problems), 0)) {
                        CHECK(second.device.store.as_given);
                        CHECK_INT(second.device.store.inode, first.disk.device.store.inode);
                        CHECK_INT(second.device.linear_offset, 4096 + 8192 + 512);
                        disk_close(&second);
                }
        }
        target_host_close(&first);
        scratch_remove(&place.scratch);
}

/* The supervisor refuses such a spec. It could not claim, lock or recognise the store: a worker opens none. */
static void test_a_store_that_the_disk_does_not_lie_in_is_not_opened(void)
{
        static const char *const around[][2] = {
                {"{\"type\":\"stripe\",\"children\":[{\"type\":\"null\"},",            "]}"                    },
                {"{\"type\":\"linear\",\"children\":[",                                ",{\"type\":\"null\"}]}"},
                {"{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"children\":[",
                 ",{\"type\":\"null\"}]}}"                                                                     },
        };
        struct place place;

        if (!place_make(&place))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(around); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct target_host host;
                struct disk disk;

                snprintf(place.spec, sizeof(place.spec),
                        "{\"target\":%s{\"type\":\"linear\",\"length\":65536,\"child\":{\"type\":\"loop\","
                        "\"path\":\"%s\"}"
                        "}%s,\"size\":65536}",
                        around[i][0], place.path, around[i][1]);
                if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                        host.config.stack->stores_anywhere = false;
                        CHECK_INT(disk_open(&host.config, -1, &disk, &problems), -EACCES);
                        if (CHECK_INT(problems.count, 1))
                                CHECK_STR(problems.items[0].reason, "BackingFileNotPermitted");
                }
                target_host_close(&host);
        }
        scratch_remove(&place.scratch);
}

static void test_the_bytes_of_the_part_are_locked(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct place place;

        if (!place_make(&place))
                return;
        part_of_part(&place, ",\"size\":65536,\"blockSize\":512");
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 12800};
                _cleanup_close_ int fd = open(place.path, O_RDWR | O_CLOEXEC);

                CHECK_INT(disk_lock(&host.disk), 0);
                CHECK_INT(host.disk.lock, DISK_LOCK_HELD);
                CHECK_INT(fcntl(fd, F_OFD_SETLK, &other), 0); /* before the part */
                other.l_start = 12800 + 65536;
                CHECK_INT(fcntl(fd, F_OFD_SETLK, &other), 0); /* behind it */
                other.l_start = 12800 + 65535;
                other.l_len = 1;
                CHECK_INT(fcntl(fd, F_OFD_SETLK, &other), -1);
                other.l_start = 12800;
                CHECK_INT(fcntl(fd, F_OFD_SETLK, &other), -1);
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

static void test_growth_and_a_cut(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct place place;
        uint64_t end;

        if (!place_make(&place))
                return;
        part_of_part(&place, ",\"size\":1035776,\"blockSize\":512"); /* up to the end */
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                CHECK_INT(disk_grow(&host.disk, 1035776 + 4096, &problems), -EINVAL);
                problem_list_clear(&problems);
                CHECK_INT(truncate(place.path, FILE_SIZE + 4096), 0);
                CHECK_INT(disk_grow(&host.disk, 1035776 + 4096, &problems), 0);
                CHECK_INT(target_size(&host.disk.device), 1035776 + 4096);
                CHECK_INT(host.disk.params.claims.items[0].end, FILE_SIZE + 4096);
                CHECK(!disk_is_cut(&host.disk, &end));
                CHECK_INT(truncate(place.path, FILE_SIZE), 0);
                CHECK_INT(disk_grow(&host.disk, 1035776 + 8192, &problems), -EINVAL);
                CHECK(disk_is_cut(&host.disk, &end));
                CHECK_INT(end, FILE_SIZE);
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

/* What is behind the length is another's. */
static void test_nothing_beyond_the_length_is_claimed(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct place place;

        if (!place_make(&place))
                return;
        snprintf(place.spec, sizeof(place.spec),
                "{\"target\":{\"type\":\"linear\",\"length\":65536,\"child\":{\"type\":\"loop\",\"path\":\"%"
                "s\"}}}",
                place.path);
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                CHECK_INT(host.disk.params.size, 65536);
                CHECK_INT(host.disk.params.claims.items[0].end, 65536);
                CHECK_INT(disk_grow(&host.disk, 65536 + 4096, &problems), -EINVAL);
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

/* Open a tree that cannot be opened. In the target, %s is the path of the file. */
static void check_fault(const struct place *place, const char *before, const char *after, int error,
        const char *pointer, const char *reason)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        char spec[2048];

        snprintf(spec, sizeof(spec), "{\"target\":%s%s%s}", before, place->path, after);
        CHECK_INT(target_host_open(&host, spec, &problems), error);
        if (CHECK_INT(problems.count, 1)) {
                CHECK_STR(problems.items[0].pointer, pointer);
                CHECK_STR(problems.items[0].reason, reason);
        }
        target_host_close(&host);
}

static void test_faults_have_the_place_of_their_target(void)
{
        struct place place;

        if (!place_make(&place))
                return;
        check_fault(&place, "{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"path\":\"", "-none\"}}",
                -ENOENT, "/target/child/path", "BackingFileMissing");
        check_fault(&place,
                "{\"type\":\"stripe\",\"children\":[{\"type\":\"null\"},{\"type\":\"linear\",\"child\":{"
                "\"type\":\"loop\",\"path\":\"",
                "-none\"}}]}", -ENOENT, "/target/children/1/child/path", "BackingFileMissing");
        check_fault(&place,
                "{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"offset\":1048576,\"path\":\"", "\"}}",
                -ENOSPC, "/target/child/offset", "OffsetBeyondEnd");
        check_fault(&place,
                "{\"type\":\"linear\",\"offset\":1048576,\"child\":{\"type\":\"loop\",\"path\":\"", "\"}}",
                -ENOSPC, "/target/offset", "OffsetBeyondEnd");
        check_fault(&place,
                "{\"type\":\"linear\",\"offset\":512,\"length\":1048576,\"child\":{\"type\":\"loop\","
                "\"path\":\"",
                "\"}}", -ENOSPC, "/target/length", "OffsetBeyondEnd");
        check_fault(&place,
                "{\"type\":\"linear\",\"child\":{\"type\":\"linear\",\"length\":2097152,\"child\":{\"type\":"
                "\"loop\",\"path\":\"",
                "\"}}}", -ENOSPC, "/target/child/length", "OffsetBeyondEnd");
        check_fault(&place,
                "{\"type\":\"stripe\",\"children\":[{\"type\":\"null\"},{\"type\":\"null\"}],\"x\":\"", "\"}",
                -EINVAL, "/target/x", "UnknownField");
        scratch_remove(&place.scratch);
}

static void test_one_of_many_closes_all(void)
{
        struct place place;
        int before, after;

        if (!place_make(&place))
                return;
        before = dup(0);
        close_fd(before);
        check_fault(&place,
                "{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":2097152,\"child\":{"
                "\"type\":\"loop\",\"path\":\"",
                "\"}},{\"type\":\"null\"}]}", -ENOSPC, "/target/children/0/length", "OffsetBeyondEnd");
        after = dup(0);
        CHECK_INT(after, before); /* no descriptor is left open */
        close_fd(after);
        scratch_remove(&place.scratch);
}

static int open_with_a_file(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        int r = linear_target.open(device, ret, problems);

        device->files[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
        device->file_count = device->files[0] >= 0;
        return r < 0 ? r : device->files[0] < 0 ? -errno : 0;
}

static void test_the_store_is_found_behind_the_files_of_other_targets(void)
{
        static struct target with_a_file;
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct disk second;
        struct place place;
        struct stat status;

        if (!place_make(&place))
                return;
        with_a_file = linear_target;
        with_a_file.open = open_with_a_file;
        part_of_part(&place, "");
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                host.config.stack->targets[1] = &with_a_file;
                if (CHECK_INT(disk_open(&host.config, -1, &second, &problems), 0)) {
                        CHECK_INT(fstat(second.device.files[second.device.linear_file], &status), 0);
                        CHECK_INT(status.st_ino, second.device.store.inode);
                        disk_close(&second);
                }
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

/* Two files of FILE_SIZE bytes each; the disk has all of them. */
static void test_a_cut_of_one_of_several_stores(void)
{
        static const struct {
                const char *before, *between, *after;
                uint64_t size;
                off_t cuts[2];
                bool cut;
        } cases[] = {
                {"{\"type\":\"stripe\",\"children\":[",                                                   ",", "]}", 2 * FILE_SIZE, {FILE_SIZE, FILE_SIZE},
                 false                                                                                                                                                     },
                {"{\"type\":\"stripe\",\"children\":[",                                                   ",", "]}", 2 * FILE_SIZE,
                 {FILE_SIZE - 512, FILE_SIZE},                                                                                                                        true },
                {"{\"type\":\"stripe\",\"children\":[",                                                   ",", "]}", 2 * FILE_SIZE, {FILE_SIZE, 65536},               true },
                {"{\"type\":\"stripe\",\"children\":[",                                                   ",", "]}", FILE_SIZE,     {FILE_SIZE / 2, FILE_SIZE},
                 false                                                                                                                                                     },
                {"{\"type\":\"stripe\",\"children\":[",                                                   ",", "]}", FILE_SIZE,     {FILE_SIZE / 2 - 1, FILE_SIZE},
                 true                                                                                                                                                      },
                {"{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":1048576,\"child\":",
                 "},",                                                                                         "]}", 2 * FILE_SIZE, {FILE_SIZE, FILE_SIZE - 512},     true },
                /* The other one has grown by more than that. */
                {"{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":1048576,\"child\":",
                 "},",                                                                                         "]}", 2 * FILE_SIZE, {FILE_SIZE - 512, 2 * FILE_SIZE}, true },
                {"{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":1048576,\"child\":",
                 "},",                                                                                         "]}", 2 * FILE_SIZE, {2 * FILE_SIZE, FILE_SIZE},       false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct target_host host;
                struct disk second;
                struct place place;
                char other[512];
                uint64_t end;
                int r;

                if (!place_make(&place)
                        || !CHECK_INT(
                                scratch_file(&place.scratch, "other", FILE_SIZE, other, sizeof(other)), 0))
                        return;
                snprintf(place.spec, sizeof(place.spec),
                        "{\"target\":%s{\"type\":\"loop\",\"path\":\"%s\"}%s{\"type\":\"loop\",\"path\":\"%"
                        "s\"}%s,"
                        "\"size\":%ju,\"blockSize\":512}",
                        cases[i].before, place.path, cases[i].between, other, cases[i].after,
                        (uintmax_t)cases[i].size);
                if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                        CHECK(!disk_is_cut(&host.disk, &end));
                        CHECK_INT(truncate(place.path, cases[i].cuts[0]), 0);
                        CHECK_INT(truncate(other, cases[i].cuts[1]), 0);
                        (void)disk_grow(&host.disk, cases[i].size, &problems); /* which looks */
                        CHECK_INT(disk_is_cut(&host.disk, &end), cases[i].cut);
                        r = disk_open(&host.config, -1, &second, &problems);
                        CHECK_INT(r == -ENOSPC || r == -EINVAL, cases[i].cut);
                        if (!CHECK_INT(disk_is_cut(&second, &end), cases[i].cut))
                                fprintf(stderr, "  in case %zu\n", i);
                        if (r >= 0)
                                disk_close(&second);
                }
                target_host_close(&host);
                scratch_remove(&place.scratch);
        }
}

static bool is_file(int fd, const char *path)
{
        struct stat one, other;

        return fstat(fd, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev
               && one.st_ino == other.st_ino;
}

/* Each store reports its own lost writes, and only the core asks. */
static void test_each_store_has_a_witness(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct place place;
        char second[512];

        if (!place_make(&place)
                || !CHECK_INT(scratch_file(&place.scratch, "second", FILE_SIZE, second, sizeof(second)), 0))
                return;
        snprintf(place.spec, sizeof(place.spec),
                "{\"target\":{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":\"%s\"},{"
                "\"type\":\"null\"},"
                "{\"type\":\"linear\",\"child\":{\"type\":\"loop\",\"path\":\"%s\"}}]}}",
                place.path, second);
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)
                && CHECK_INT(host.disk.witness_count, 2)) {
                CHECK(is_file(host.disk.witnesses[0], place.path));
                CHECK(is_file(host.disk.witnesses[1], second));
        }
        target_host_close(&host);
        part_of_part(&place, "");
        if (CHECK_INT(target_host_open(&host, place.spec, &problems), 0)) {
                CHECK_INT(host.disk.witness_count, 1);
                CHECK_INT(host.disk.witnesses[0], host.disk.device.store.kept);
        }
        target_host_close(&host);
        scratch_remove(&place.scratch);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_the_core_sees_the_store_through_parts();
        test_a_store_that_is_given_is_opened_in_place_of_the_path();
        test_a_store_that_the_disk_does_not_lie_in_is_not_opened();
        test_the_bytes_of_the_part_are_locked();
        test_growth_and_a_cut();
        test_nothing_beyond_the_length_is_claimed();
        test_faults_have_the_place_of_their_target();
        test_one_of_many_closes_all();
        test_the_store_is_found_behind_the_files_of_other_targets();
        test_each_store_has_a_witness();
        test_a_cut_of_one_of_several_stores();
        return check_report();
}
