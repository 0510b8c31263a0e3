/* SPDX-License-Identifier: MIT */
/* The loop target against a model: random requests, many at a time, on every kind of file that there is here.
 * After each batch the answers, and in the end disk and file, must be what a plain array of bytes would be.
 *
 * UBLKD_TEST_SEED repeats a run. */
#include "tests/target/random_requests.h"
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { FILE_SIZE = 3 << 20, BATCHES = 60 };

/* What the disk holds, and the file around it. */
struct model {
        unsigned char file[FILE_SIZE];
        uint64_t offset; /* of the disk in the file */
};

static void check_answer(const struct host_request *request, struct model *model, bool discards)
{
        unsigned char *there = model->file + model->offset + request->offset;

        switch (request->op) {
        case IO_READ:
                CHECK_INT(request->result, request->length);
                CHECK(memcmp(request->data, there, request->length) == 0);
                break;
        case IO_WRITE:
                CHECK_INT(request->result, request->length);
                memcpy(there, request->data, request->length);
                break;
        case IO_DISCARD:
                CHECK_INT(request->result, discards ? 0 : -EOPNOTSUPP);
                if (request->result == 0) /* in a file a discarded range reads as zeroes */
                        memset(there, 0, request->length);
                break;
        case IO_WRITE_ZEROES:
                CHECK_INT(request->result, 0);
                memset(there, 0, request->length);
                break;
        case IO_FLUSH:
        case _IO_OP_MAX:
                CHECK_INT(request->result, 0);
                break;
        }
}

static void check_file(const struct model *model, const char *path)
{
        _cleanup_free_ unsigned char *bytes = malloc(FILE_SIZE);
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat stat;

        CHECK_INT(fstat(fd, &stat), 0);
        CHECK_INT(stat.st_size, FILE_SIZE);
        CHECK_INT(pread(fd, bytes, FILE_SIZE, 0), FILE_SIZE);
        CHECK(memcmp(bytes, model->file, FILE_SIZE) == 0);
}

static void run(struct target_host *host, struct model *model)
{
        struct host_request requests[HOST_DEPTH];
        bool discards = host->disk.params.max_discard_size > 0;

        for (unsigned batch = 0; batch < BATCHES; batch++) {
                unsigned count = 0, wanted = 1 + (unsigned)next_random(HOST_DEPTH);

                for (unsigned tries = 0; tries < 200 && count < wanted; tries++)
                        count += random_request(host, requests, count, 4);
                if (!CHECK_INT(target_host_perform(host, requests, count), 0))
                        return;
                for (unsigned i = 0; i < count; i++)
                        check_answer(&requests[i], model, discards);
        }
}

static void test_file(const char *parent, const char *direct, uint32_t block_size, uint64_t offset)
{
        static struct model model;
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct scratch scratch;
        char path[512], spec[1024];
        uint64_t first_seed = seed;
        int r;

        if (!CHECK_INT(scratch_make(&scratch, parent), 0))
                return;
        CHECK_INT(scratch_file(&scratch, "disk", FILE_SIZE, path, sizeof(path)), 0);
        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"loop\",\"path\":\"%s\",\"offset\":%ju,\"directIo\":\"%s\"},"
                "\"blockSize\":%u}",
                path, (uintmax_t)offset, direct, block_size);
        r = target_host_open(&host, spec, &problems);
        if (r < 0 && strcmp(direct, "on") == 0 && problems.count == 1) {
                CHECK_STR(problems.items[0].reason, "DirectIoUnavailable");
                printf("%s cannot do direct I/O in blocks of %u\n", parent, block_size);
        } else if (CHECK_INT(r, 0)) {
                if (strcmp(parent, "/dev/shm") == 0) /* a tmpfs wherever there is one; others may be, too */
                        CHECK(host.disk.device.linear_in_memory && host.disk.device.io_ends_with_process);
                model.offset = offset;
                CHECK_INT(host.disk.params.size, FILE_SIZE - offset);
                for (uint64_t i = 0; i < FILE_SIZE; i++)
                        model.file[i] = scratch_pattern(i);
                run(&host, &model);
                check_file(&model, path);
        }
        if (check_failures > 0)
                fprintf(stderr, "  on %s with UBLKD_TEST_SEED=%ju\n", spec, (uintmax_t)first_seed);
        target_host_close(&host);
        scratch_remove(&scratch);
}

/* Older than the last change, it would be set by the next read even of a file system with relatime. */
static void test_access_time_stays(void)
{
        const struct timespec times[] = {{.tv_sec = 1000}, {.tv_nsec = UTIME_OMIT}};
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct scratch scratch;
        char path[512], spec[1024];
        struct stat status;

        if (!CHECK_INT(scratch_make(&scratch, "/tmp"), 0))
                return;
        CHECK_INT(scratch_file(&scratch, "disk", FILE_SIZE, path, sizeof(path)), 0);
        CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        if (CHECK_INT(target_host_open(&host, spec, &problems), 0)) {
                CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 4096), 4096);
                CHECK_INT(stat(path, &status), 0);
                CHECK_INT(status.st_atim.tv_sec, 1000);
        }
        target_host_close(&host);
        scratch_remove(&scratch);
}

int main(void)
{
        static const char *const directs[] = {"auto", "off", "on"};
        const char *parents[] = {getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", "/var/tmp", "/dev/shm"};

        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_access_time_stays();
        read_seed();
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                if (access(parents[i], W_OK) < 0)
                        continue;
                for (size_t k = 0; k < ARRAY_SIZE(directs); k++) {
                        test_file(parents[i], directs[k], 512, 0);
                        test_file(parents[i], directs[k], 4096, 1 << 20);
                        test_file(parents[i], directs[k], 1024, 1024 * 7);
                }
        }
        return check_report();
}
