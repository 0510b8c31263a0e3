/* SPDX-License-Identifier: MIT */
/* Opening trees of targets: what the core knows of the store through targets that leave a part out, where faults are reported,
 * growth, and which children a request reaches. */
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "targets/worker/queue/perform.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { FILE_SIZE = 1 << 20, CALLS_MAX = 32 };

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
static void test_a_length_is_the_end(void)
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

/* ---- which children a request reaches ---- */

static struct {
        const struct target_device *device;
        enum io_op op;
        uint64_t offset;
        uint32_t length;
} calls[CALLS_MAX];
static unsigned call_count;
static enum io_op failing_op;
static const struct target_device *failing; /* NULL: none */

static int record(struct target_io *io)
{
        if (CHECK(call_count < CALLS_MAX)) {
                calls[call_count].device = io->queue->device;
                calls[call_count].op = io->op;
                calls[call_count].offset = io->offset;
                calls[call_count++].length = io->length;
        }
        if (failing == io->queue->device && failing_op == io->op)
                return -ENOLINK;
        return io->op == IO_READ || io->op == IO_WRITE ? (int)io->length : 0;
}

static uint64_t opened_offset, opened_size; /* bytes; what a recorder was asked for */

static int open_recorder(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)problems;
        opened_offset = device->wanted_offset;
        opened_size = device->wanted_size;
        *ret = (struct target_geometry){.size = FILE_SIZE,
                .volatile_cache = true,
                .max_discard_size = 1 << 20,
                .max_write_zeroes_size = 1 << 20};
        return 0;
}

static struct target recorder = {
        .open = open_recorder,
        .read = record,
        .write = record,
        .flush = record,
        .discard = record,
        .write_zeroes = record,
};

/* What the outer part leaves out counts for the length of the inner one: what the store is asked to claim ends with that. */
static void test_a_part_of_a_part_with_a_length_wants_no_more(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        struct disk second;

        if (CHECK_INT(
                    target_host_open(&host,
                            "{\"target\":{\"type\":\"linear\",\"offset\":4096,\"child\":{\"type\":\"linear\","
                            "\"offset\":8192,\"length\":65536,\"child\":{\"type\":\"null\"}}}}",
                            &problems),
                    0)) {
                recorder.desc = host.config.stack->targets[2]->desc;
                host.config.stack->targets[2] = &recorder;
                if (CHECK_INT(disk_open(&host.config, -1, &second, &problems), 0)) {
                        CHECK_INT(opened_offset, 4096 + 8192);
                        CHECK_INT(opened_size, 65536 - 4096);
                        disk_close(&second);
                }
        }
        target_host_close(&host);
}

/* A stripe of three in chunks of 4096 bytes, over targets that note what they are asked for. */
static bool open_recorders(struct target_host *host)
{
        static const char tree[] =
                "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"null\"},"
                "{\"type\":\"null\"},{\"type\":\"null\"}]},\"blockSize\":512}";
        _cleanup_problems_ struct problem_list problems = {};
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = (char *)(uintptr_t)tree,
                           .queues = 1,
                           .queue_depth = HOST_DEPTH,
                           .max_io_size = HOST_DATA_SIZE}
        };

        *host = (struct target_host){};
        if (!CHECK_INT(worker_config_parse(&msg, &host->config, &problems), 0))
                return false;
        recorder.desc = host->config.stack->targets[1]->desc;
        for (unsigned i = 1; i <= 3; i++)
                host->config.stack->targets[i] = &recorder;
        return CHECK_INT(target_host_start(host, &problems), 0);
}

static const struct target_device *recorder_of(const struct target_host *host, unsigned number)
{
        const struct target_queue *const *queues =
                host->loop.queue.state; /* struct stack_queue begins with its queues */

        return queues[0][1 + number].device;
}

static void clear_calls(void)
{
        call_count = 0;
        failing = NULL;
}

static unsigned calls_of(const struct target_device *device, enum io_op op)
{
        unsigned count = 0;

        for (unsigned i = 0; i < call_count; i++)
                count += calls[i].device == device && calls[i].op == op;
        return count;
}

static void test_a_discard_reaches_each_child_once(void)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 4096, 9 * 4096), 0);
        CHECK_INT(call_count, 3);
        for (unsigned i = 0; i < 3; i++) {
                CHECK_INT(calls_of(recorder_of(&host, i), IO_DISCARD), 1);
                CHECK_INT(calls[i].length, 3 * 4096);
        }
        target_host_close(&host);
}

/* A child that fails does not keep the others from the request, and its error is the answer. */
static void test_the_error_of_each_child_counts(void)
{
        static const struct {
                enum io_op op;
                uint32_t length;
        } requests[] = {
                {IO_FLUSH,        0       },
                {IO_READ,         3 * 4096},
                {IO_WRITE,        3 * 4096},
                {IO_DISCARD,      3 * 4096},
                {IO_WRITE_ZEROES, 3 * 4096}
        };

        for (size_t k = 0; k < ARRAY_SIZE(requests); k++)
                for (unsigned bad = 0; bad < 3; bad++) {
                        struct target_host host;

                        if (!CHECK(open_recorders(&host)))
                                return;
                        clear_calls();
                        failing = recorder_of(&host, bad);
                        failing_op = requests[k].op;
                        CHECK_INT(target_host_one(&host, requests[k].op, 0, 0, requests[k].length), -ENOLINK);
                        for (unsigned i = 0; i < 3; i++)
                                CHECK_INT(calls_of(recorder_of(&host, i), requests[k].op), 1);
                        target_host_close(&host);
                }
}

/* With FUA the core flushes after the request, of all children. */
static void test_a_discard_with_fua_is_flushed(void)
{
        struct target_host host;

        if (!CHECK(open_recorders(&host)))
                return;
        clear_calls();
        CHECK_INT(target_host_one(&host, IO_DISCARD, IO_FUA, 0, 4096), 0);
        CHECK_INT(calls_of(recorder_of(&host, 0), IO_DISCARD), 1);
        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(calls_of(recorder_of(&host, i), IO_FLUSH), 1);
        CHECK_INT(call_count, 4);
        target_host_close(&host);
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

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_the_core_sees_the_store_through_parts();
        test_a_store_that_is_given_is_opened_in_place_of_the_path();
        test_a_store_that_the_disk_does_not_lie_in_is_not_opened();
        test_the_bytes_of_the_part_are_locked();
        test_growth_and_a_cut();
        test_a_length_is_the_end();
        test_a_part_of_a_part_with_a_length_wants_no_more();
        test_faults_have_the_place_of_their_target();
        test_a_discard_reaches_each_child_once();
        test_the_error_of_each_child_counts();
        test_a_discard_with_fua_is_flushed();
        test_one_of_many_closes_all();
        return check_report();
}
