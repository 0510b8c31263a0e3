/* SPDX-License-Identifier: MIT */
/* A tree over several backing stores, as CONFIG lists them: it opens with all of them, or not at all. */
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "targets/worker/disk/disk.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 2, FILE_SIZE = 256 << 10, SPEC_SIZE = 2048 };

#define LOOP "{\"type\":\"loop\",\"path\":\"@\"}"
#define STRIPE "{\"target\":{\"type\":\"stripe\",\"children\":[" LOOP "," LOOP "]}}"

static struct scratch scratch;
static char paths[FILES][512];
static struct listed_store list[STORE_LIST_MAX];
static struct worker_config config;
static struct disk disk;
static struct problem_list problems;
static unsigned open_before;

/* The number of descriptors that this process has open. */
static unsigned open_fds(void)
{
        unsigned count = 0;

        for (int fd = 0; fd < 256; fd++)
                count += fcntl(fd, F_GETFD) >= 0;
        return count;
}

static void make_files(void)
{
        memset(list, 0, sizeof(list));
        CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0);
        for (unsigned i = 0; i < FILES; i++) {
                const char name[] = {(char)('a' + i), '\0'};

                CHECK_INT(scratch_file(&scratch, name, FILE_SIZE, paths[i], sizeof(paths[i])), 0);
        }
        open_before = open_fds();
}

static void remove_files(void)
{
        CHECK_INT(open_fds(), open_before);
        scratch_remove(&scratch);
}

/* Each @ is the path of the next file. */
static void write_spec(const char *target, char ret[static SPEC_SIZE])
{
        unsigned next = 0;
        size_t used = 0;

        for (; *target; target++)
                used += (size_t)snprintf(ret + used, SPEC_SIZE - used, "%.*s", *target == '@' ? 512 : 1,
                        *target == '@' ? paths[next++] : target);
}

/* As the worker does with a CONFIG. fds: -1 at the end, or NULL. */
static int open_list(const char *target, unsigned count, const int *fds)
{
        char spec[SPEC_SIZE];
        int given[STORE_LIST_MAX] = {[0 ... STORE_LIST_MAX - 1] = -1}, r;
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = spec,
                           .queues = 1,
                           .queue_depth = 8,
                           .max_io_size = 65536,
                           .lock = WORKER_LOCK_NEVER,
                           .stores = {list, count}}
        };

        for (unsigned i = 0; fds && fds[i] >= 0; i++)
                given[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        write_spec(target, spec);
        r = worker_config_parse(&msg, &config, &problems);
        if (r >= 0)
                r = worker_config_take_stores(&config, given, &problems);
        if (r >= 0)
                r = disk_open(&config, -1, &disk, &problems);
        for (unsigned i = 0; i < STORE_LIST_MAX; i++)
                close_fd(given[i]);
        return r;
}

static void close_list(int r)
{
        if (r >= 0)
                disk_close(&disk);
        worker_config_clear(&config);
        problem_list_clear(&problems);
}

static void check_refused(int r, int error, const char *pointer, const char *reason)
{
        CHECK_INT(r, error);
        if (CHECK_INT(problems.count, 1)) {
                CHECK_STR(problems.items[0].pointer, pointer);
                CHECK_STR(problems.items[0].reason, reason);
        }
        for (unsigned i = 0; i < config.store_count; i++)
                CHECK_INT(config.stores[i].kept, -1);
        close_list(r);
}

static ino_t inode_of(const char *path)
{
        struct stat status = {};

        CHECK_INT(stat(path, &status), 0);
        return status.st_ino;
}

static void test_all_of_a_list_are_opened(void)
{
        int r;

        make_files();
        r = open_list(STRIPE, FILES, NULL);
        CHECK_INT(r, 0);
        CHECK_INT(disk.params.size, FILES * FILE_SIZE);
        CHECK_INT(disk.witness_count, FILES);
        CHECK(!disk.device.store.as_given);
        if (CHECK_INT(config.store_count, FILES))
                for (unsigned i = 0; i < FILES; i++) {
                        CHECK(config.stores[i].inode == inode_of(paths[i]));
                        CHECK(!backing_identity_is_empty(&config.stores[i].found));
                        CHECK_INT(config.stores[i].kept, disk.witnesses[i]);
                }
        close_list(r);
        remove_files();
}

static void test_a_list_of_another_length_is_refused(void)
{
        static const struct {
                const char *spec;
                unsigned count;
        } cases[] = {
                {STRIPE,                                                                           1},
                {STRIPE,                                                                           3},
                {"{\"target\":" LOOP "}",                                                          1},
                {"{\"target\":{\"type\":\"linear\",\"child\":" LOOP "}}",                          2},
                {"{\"target\":{\"type\":\"linear\",\"child\":{\"type\":\"null\"}},\"size\":4096}", 1},
        };

        make_files();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_refused(
                        open_list(cases[i].spec, cases[i].count, NULL), -EINVAL, "/target", "MalformedSpec");
        /* An older ublkd has no list, and starts no such disk. */
        check_refused(open_list(STRIPE, 0, NULL), -EACCES, "/target", "BackingFileNotPermitted");
        remove_files();
}

static bool is_untouched(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        static unsigned char bytes[FILE_SIZE + 1];
        ssize_t size = read(fd, bytes, sizeof(bytes));

        for (ssize_t i = 0; i < size; i++)
                if (bytes[i] != scratch_pattern((uint64_t)i))
                        return false;
        return size == FILE_SIZE;
}

/* What a worker found the disk is made on from then on. */
static void learn(void)
{
        int r = open_list(STRIPE, FILES, NULL);

        CHECK_INT(r, 0);
        for (unsigned i = 0; i < config.store_count; i++) {
                list[i].identity = config.stores[i].found;
                list[i].in_this_boot = true;
        }
        close_list(r);
}

static void swap_expected(void)
{
        struct listed_store first = list[0];

        list[0] = list[1];
        list[1] = first;
}

static void test_one_other_store_refuses_all(void)
{
        for (unsigned other = 0; other < FILES; other++) {
                char aside[sizeof(paths) + sizeof("-aside")], pointer[64];
                struct backing_identity found[FILES];
                int r;

                make_files();
                learn();
                snprintf(aside, sizeof(aside), "%s-aside", paths[other]);
                CHECK_INT(rename(paths[other], aside), 0); /* so that its inode is not used again */
                CHECK_INT(scratch_file(&scratch, other == 0 ? "a" : "b", FILE_SIZE, paths[other],
                                  sizeof(paths[other])),
                        0);
                r = open_list(STRIPE, FILES, NULL);
                for (unsigned i = 0; i < config.store_count; i++)
                        found[i] = config.stores[i].found;
                snprintf(pointer, sizeof(pointer), "/target/children/%u/path", other);
                check_refused(r, -ESTALE, pointer, "BackingChanged");
                CHECK_INT(backing_compare(&list[other].identity, &found[other], true), BACKING_OTHER);
                for (unsigned i = 0; i < FILES; i++)
                        CHECK(is_untouched(paths[i]));
                remove_files();
        }
}

static void test_stores_in_another_order_are_refused(void)
{
        make_files();
        learn();
        swap_expected();
        check_refused(open_list(STRIPE, FILES, NULL), -ESTALE, "/target/children/1/path", "BackingChanged");
        remove_files();
}

static void open_files(int fds[static FILES + 2])
{
        for (unsigned i = 0; i < FILES; i++)
                fds[i] = open(paths[i], O_RDWR | O_CLOEXEC);
        fds[FILES] = fds[FILES + 1] = -1;
}

static void close_files(const int fds[static FILES + 2])
{
        for (unsigned i = 0; i < FILES; i++)
                close_fd(fds[i]);
}

static void test_the_descriptors_of_a_list_are_used_in_place_of_paths(void)
{
        int fds[FILES + 2], r;

        make_files();
        learn();
        list[0].has_fd = list[1].has_fd = true;
        open_files(fds);
        for (unsigned i = 0; i < FILES; i++)
                CHECK_INT(unlink(paths[i]), 0);
        r = open_list(STRIPE, FILES, fds);
        CHECK_INT(r, 0);
        CHECK(disk.device.store.as_given);
        for (unsigned i = 0; i < config.store_count; i++)
                CHECK(config.stores[i].as_given);
        close_list(r);
        close_files(fds);
        remove_files();
}

/* Of the other one there is a path. */
static void test_a_list_may_have_one_descriptor(void)
{
        int fds[FILES + 2], r;

        make_files();
        learn();
        list[1].has_fd = true;
        open_files(fds);
        r = open_list(STRIPE, FILES, (const int[]){fds[1], -1});
        CHECK_INT(r, 0);
        CHECK(!disk.device.store.as_given);
        CHECK(!config.stores[0].as_given && config.stores[1].as_given);
        CHECK(config.stores[1].inode == inode_of(paths[1]));
        close_list(r);
        close_files(fds);
        remove_files();
}

static void test_descriptors_that_are_not_those_of_the_list_are_refused(void)
{
        int fds[FILES + 2];

        make_files();
        learn();
        list[0].has_fd = list[1].has_fd = true;
        open_files(fds);
        check_refused(
                open_list(STRIPE, FILES, (const int[]){fds[0], -1}), -EINVAL, "/target", "MalformedSpec");
        check_refused(open_list(STRIPE, FILES, (const int[]){fds[0], fds[1], fds[1], -1}), -EINVAL, "/target",
                "MalformedSpec");
        /* Whether they are in the order of the list, ublkd knows: reconciler_stores_test. */
        check_refused(open_list(STRIPE, FILES, (const int[]){fds[0], fds[0], -1}), -EINVAL,
                "/target/children/0", "BackingInUse");
        close_files(fds);
        remove_files();
}

/* The core moves its bytes as it does those of a disk without a list. */
static void test_a_list_of_one_store_is_served_as_a_single_store(void)
{
        int r;

        make_files();
        r = open_list("{\"target\":{\"type\":\"linear\",\"offset\":4096,\"child\":" LOOP "}}", 1, NULL);
        CHECK_INT(r, 0);
        CHECK(disk.device.linear);
        CHECK_INT(disk.device.linear_offset, 4096);
        CHECK(disk.device.store.inode == inode_of(paths[0]));
        CHECK_INT(config.stores[0].kept, disk.device.store.kept);
        close_list(r);
        r = open_list("{\"target\":{\"type\":\"linear\",\"children\":[" LOOP
                      ",{\"type\":\"null\"}]},\"size\":4096}",
                1, NULL);
        CHECK_INT(r, 0);
        CHECK(!disk.device.linear);
        CHECK(config.stores[0].inode == inode_of(paths[0]));
        close_list(r);
        remove_files();
}

/* What lies beyond the end of any of them was served. */
static void test_a_disk_was_served_if_one_of_its_stores_was(void)
{
        make_files();
        for (unsigned i = 0; i <= FILES; i++) {
                int r;

                for (unsigned k = 0; k < FILES; k++)
                        list[k].was_served = k == i;
                r = open_list(STRIPE, FILES, NULL);
                CHECK_INT(r, 0);
                CHECK_INT(config.expected_served, i < FILES);
                close_list(r);
        }
        remove_files();
}

static void check_end(bool reaches, uint64_t bytes)
{
        uint64_t end = 0;

        CHECK_INT(disk.device.target->reaches_end(&disk.device, &end), reaches);
        if (!reaches)
                CHECK_INT(end, bytes);
}

/* Without measure(), which the queues never call. */
static void test_where_the_disk_ends_is_looked_at_in_each_store(void)
{
        for (unsigned cut = 0; cut < FILES; cut++) {
                int r;

                make_files();
                r = open_list(STRIPE, FILES, NULL);
                CHECK_INT(r, 0);
                CHECK(!disk.device.linear);
                check_end(true, 0);
                CHECK_INT(truncate(paths[cut], FILE_SIZE - 4096), 0);
                CHECK_INT(disk.device.target->reaches_end(&disk.device, &(uint64_t){0}), false);
                CHECK_INT(truncate(paths[cut], 2 * FILE_SIZE), 0);
                check_end(true, 0);
                CHECK_INT(truncate(paths[cut], 0), 0);
                CHECK_INT(disk.device.target->reaches_end(&disk.device, &(uint64_t){0}), false);
                close_list(r);
                remove_files();
        }
}

/* A disk that is smaller than its stores needs only a part of them. */
static void test_the_end_of_a_small_disk(void)
{
        int r;

        make_files();
        r = open_list("{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":65536,"
                      "\"child\":" LOOP "}," LOOP "]},\"size\":131072}",
                FILES, NULL);
        CHECK_INT(r, 0);
        CHECK_INT(truncate(paths[0], 65536), 0);
        CHECK_INT(truncate(paths[1], 65536), 0);
        check_end(true, 0);
        CHECK_INT(truncate(paths[1], 65536 - 4096), 0);
        check_end(false, 131072 - 4096);
        CHECK_INT(truncate(paths[1], FILE_SIZE), 0);
        CHECK_INT(truncate(paths[0], 65536 - 4096), 0);
        CHECK_INT(disk.device.target->reaches_end(&disk.device, &(uint64_t){0}), false);
        close_list(r);
        remove_files();
}

int main(void)
{
        test_all_of_a_list_are_opened();
        test_a_list_of_another_length_is_refused();
        test_one_other_store_refuses_all();
        test_stores_in_another_order_are_refused();
        test_the_descriptors_of_a_list_are_used_in_place_of_paths();
        test_a_list_may_have_one_descriptor();
        test_descriptors_that_are_not_those_of_the_list_are_refused();
        test_a_list_of_one_store_is_served_as_a_single_store();
        test_where_the_disk_ends_is_looked_at_in_each_store();
        test_the_end_of_a_small_disk();
        test_a_disk_was_served_if_one_of_its_stores_was();
        return check_report();
}
