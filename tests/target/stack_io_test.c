/* SPDX-License-Identifier: MIT */
/* Trees of targets against a model: random requests, many at a time, on plain files. After each batch the answers, and in the
 * end each file, must be what a plain array of bytes would be, laid out byte by byte.
 *
 * UBLKD_TEST_SEED repeats a run. */
#include "tests/target/random_requests.h"
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        FILES = 3,
        FILE_SIZE = 512 << 10,
        DISK_MAX = FILES * FILE_SIZE,
        BATCHES = 60,
        LOOKS = 400,
        NOWHERE = -1
};

/* Where one byte of a disk lies: in which file, or NOWHERE, where it reads as zero. */
struct place {
        int file;
        uint64_t offset;
};

struct tree {
        const char *name, *spec; /* "%1$s" to "%3$s": the paths of the files */
        uint64_t size;           /* bytes, of the disk */
        struct place (*place)(uint64_t byte);
};

static struct place place_part(uint64_t byte)
{
        return (struct place){0, 8192 + byte};
}

static struct place place_part_of_part(uint64_t byte)
{
        return (struct place){0, 4096 + 12288 + 512 + byte};
}

static struct place place_list(uint64_t byte)
{
        if (byte < 65536)
                return (struct place){0, byte};
        if (byte < 65536 + 135168)
                return (struct place){1, 4096 + byte - 65536};
        return (struct place){2, byte - 65536 - 135168};
}

static struct place place_nulls(uint64_t byte)
{
        if (byte < 20480)
                return (struct place){NOWHERE, 0};
        if (byte < 20480 + 131072)
                return (struct place){0, byte - 20480};
        return (struct place){NOWHERE, 0};
}

static struct place place_stripe_of_three(uint64_t byte)
{
        uint64_t chunk = byte / 4096;

        return (struct place){(int)(chunk % 3), chunk / 3 * 4096 + byte % 4096};
}

static struct place place_wide_stripe(uint64_t byte)
{
        uint64_t chunk = byte / 65536, offset = chunk / 2 * 65536 + byte % 65536;

        return chunk % 2 == 0 ? (struct place){1, offset} : (struct place){2, 8192 + offset};
}

/* A part of a stripe whose second child is a list. */
static struct place place_deep(uint64_t whole)
{
        uint64_t byte = 12288 + whole, chunk = byte / 8192, offset = chunk / 2 * 8192 + byte % 8192;

        if (chunk % 2 == 0)
                return (struct place){0, offset};
        return offset < 65536 ? (struct place){1, offset} : (struct place){2, offset - 65536};
}

#define LOOP(n) "{\"type\":\"loop\",\"path\":\"%" #n "$s\"}"
#define PART(more, child) "{\"type\":\"linear\"," more "\"child\":" child "}"

static const struct tree trees[] = {
        {"a part", PART("\"offset\":8192,\"length\":262144,", LOOP(1)), 262144, place_part},
        {"a part of a part",
         PART("\"offset\":512,",
         PART("\"offset\":12288,", "{\"type\":\"loop\",\"path\":\"%1$s\",\"offset\":4096}")),
         FILE_SIZE - 4096 - 12288 - 512, place_part_of_part},
        {"a list",
         "{\"type\":\"linear\",\"children\":[" PART("\"length\":65536,", LOOP(1)) "," PART(
                        "\"offset\":4096,\"length\":135168,", LOOP(2)) "," LOOP(3) "]}",
         65536 + 135168 + FILE_SIZE, place_list},
        {"a list with nothing",
         "{\"type\":\"linear\",\"children\":[" PART(
                        "\"length\":20480,", "{\"type\":\"null\"}") "," PART("\"length\":131072,",
         LOOP(1)) "," PART("\"length\":20480,", "{\"type\":\"null\"}") "]}",
         20480 + 131072 + 20480, place_nulls},
        {"a stripe",
         "{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" LOOP(1) "," LOOP(2) "," LOOP(3) "]}",
         FILES *FILE_SIZE, place_stripe_of_three},
        {"a wide stripe",
         "{\"type\":\"stripe\",\"children\":[" LOOP(2) "," PART("\"offset\":8192,", LOOP(3)) "]}",
         2 * (FILE_SIZE - 65536), place_wide_stripe},
        {"a deep tree",
         PART("\"offset\":12288,",
         "{\"type\":\"stripe\",\"chunk\":8192,\"children\":[" LOOP(
                                1) ",{\"type\":\"linear\",\"children\":[" PART("\"length\":65536,",
         LOOP(2)) "," LOOP(3) "]}]}"),
         2 * FILE_SIZE - 12288, place_deep},
};

struct model {
        const struct tree *tree;
        unsigned char disk[DISK_MAX], files[FILES][FILE_SIZE]; /* a file: before the first request */
};

static bool is_somewhere(const struct model *model, uint64_t byte)
{
        return model->tree->place(byte).file != NOWHERE;
}

static void begin_model(struct model *model, const struct tree *tree)
{
        model->tree = tree;
        for (int i = 0; i < FILES; i++)
                for (uint64_t byte = 0; byte < FILE_SIZE; byte++)
                        model->files[i][byte] = scratch_pattern(byte);
        for (uint64_t byte = 0; byte < tree->size; byte++) {
                struct place place = tree->place(byte);

                model->disk[byte] = place.file == NOWHERE ? 0 : model->files[place.file][place.offset];
        }
}

static void store(struct model *model, const struct host_request *request)
{
        for (uint32_t i = 0; i < request->length; i++)
                if (is_somewhere(model, request->offset + i))
                        model->disk[request->offset + i] =
                                request->op == IO_WRITE ? (unsigned char)request->data[i] : 0;
}

static void check_answer(const struct host_request *request, struct model *model)
{
        switch (request->op) {
        case IO_READ:
                CHECK_INT(request->result, request->length);
                CHECK(memcmp(request->data, model->disk + request->offset, request->length) == 0);
                break;
        case IO_WRITE:
                CHECK_INT(request->result, request->length);
                store(model, request);
                break;
        case IO_DISCARD:
        case IO_WRITE_ZEROES:
                CHECK_INT(request->result, 0);
                store(model, request);
                break;
        case IO_FLUSH:
        case _IO_OP_MAX:
                CHECK_INT(request->result, 0);
                break;
        }
}

/* Each file has the bytes of the disk where the tree puts them, and all others are as they were. */
static void check_files(struct model *model, char paths[FILES][512])
{
        static unsigned char bytes[FILE_SIZE];

        for (uint64_t byte = 0; byte < model->tree->size; byte++) {
                struct place place = model->tree->place(byte);

                if (place.file != NOWHERE)
                        model->files[place.file][place.offset] = model->disk[byte];
        }
        for (int i = 0; i < FILES; i++) {
                _cleanup_close_ int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

                CHECK_INT(pread(fd, bytes, FILE_SIZE, 0), FILE_SIZE);
                CHECK(memcmp(bytes, model->files[i], FILE_SIZE) == 0);
        }
}

static void run(struct target_host *host, struct model *model)
{
        struct host_request requests[HOST_DEPTH];

        for (unsigned batch = 0; batch < BATCHES; batch++) {
                unsigned count = 0, wanted = 1 + (unsigned)next_random(HOST_DEPTH);

                for (unsigned tries = 0; tries < 200 && count < wanted; tries++)
                        count += random_request(host, requests, count, 2);
                if (!CHECK_INT(target_host_perform(host, requests, count), 0))
                        return;
                for (unsigned i = 0; i < count; i++)
                        check_answer(&requests[i], model);
        }
}

/* Return whether all bytes lie in one file, one after another. */
static bool is_in_one_file(const struct tree *tree, uint64_t offset, uint32_t length)
{
        const struct place first = tree->place(offset);

        for (uint32_t i = 0; i < length; i++) {
                struct place place = tree->place(offset + i);

                if (place.file == NOWHERE || place.file != first.file || place.offset != first.offset + i)
                        return false;
        }
        return true;
}

static bool leads_to(const struct target_host *host, unsigned file, const char *path)
{
        struct stat one, other;

        return CHECK_INT(fstat(host->disk.device.files[file], &one), 0) && CHECK_INT(stat(path, &other), 0)
               && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* What the core moves by itself lies in one file, where the model has it. Two neighbours may lie there one after another, and are
 * divided all the same. */
static void check_located(const struct target_host *host, const struct tree *tree, char paths[FILES][512])
{
        const struct target_device *device = &host->disk.device;
        const uint32_t block = host->disk.params.logical_block_size;
        unsigned found = 0;

        if (!CHECK(device->target->locate))
                return;
        for (unsigned i = 0; i < LOOKS; i++) {
                uint32_t length = (uint32_t)(1 + next_random(16)) * block;
                uint64_t offset = next_random((tree->size - length) / block) * block;
                struct target_place at;
                bool is = device->target->locate(&host->loop.queue, IO_READ, offset, length, &at);

                if (!is) {
                        CHECK(!is_in_one_file(tree, offset, 1) || length > block);
                        continue;
                }
                found++;
                CHECK(is_in_one_file(tree, offset, length));
                CHECK_INT(at.offset, tree->place(offset).offset);
                CHECK(leads_to(host, at.file, paths[tree->place(offset).file]));
        }
        CHECK(found > 0);
}

static int make_files(const struct scratch *scratch, char paths[FILES][512])
{
        int r = 0;

        for (int i = 0; r >= 0 && i < FILES; i++) {
                char name[] = {(char)('a' + i), '\0'};

                r = scratch_file(scratch, name, FILE_SIZE, paths[i], sizeof(paths[i]));
        }
        return r;
}

static void test_tree(const char *parent, const struct tree *tree, uint32_t block_size)
{
        static struct model model;
        _cleanup_problems_ struct problem_list problems = {};
        uint64_t first_seed = seed;
        unsigned failures = check_failures;
        struct target_host host;
        struct scratch scratch;
        char paths[FILES][512], target[4096], spec[4200];

        if (!CHECK_INT(scratch_make(&scratch, parent), 0) || !CHECK_INT(make_files(&scratch, paths), 0))
                return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
        snprintf(target, sizeof(target), tree->spec, paths[0], paths[1], paths[2]);
#pragma GCC diagnostic pop
        snprintf(spec, sizeof(spec), "{\"target\":%s,\"blockSize\":%u}", target, block_size);
        if (CHECK_INT(target_host_open(&host, spec, &problems), 0)
                && CHECK_INT(host.disk.params.size, tree->size)) {
                check_located(&host, tree, paths);
                begin_model(&model, tree);
                run(&host, &model);
                check_files(&model, paths);
        }
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "  %s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        if (check_failures > failures)
                fprintf(stderr, "  %s on %s, blocks of %u, with UBLKD_TEST_SEED=%ju\n", tree->name, parent,
                        block_size, (uintmax_t)first_seed);
        target_host_close(&host);
        scratch_remove(&scratch);
}

int main(void)
{
        const char *parents[] = {getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", "/var/tmp", "/dev/shm"};

        if (!io_uring_is_there())
                return CHECK_SKIP;
        read_seed();
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++)
                for (size_t k = 0; access(parents[i], W_OK) == 0 && k < ARRAY_SIZE(trees); k++) {
                        test_tree(parents[i], &trees[k], 512);
                        if (trees[k].size % 4096 == 0) /* else a part begins in the middle of such a block */
                                test_tree(parents[i], &trees[k], 4096);
                }
        return check_report();
}
