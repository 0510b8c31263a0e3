/* SPDX-License-Identifier: MIT */
/* That a request is plain exactly when perform_co() would have found nothing wrong with it, and that what a
 * linear disk's plain request becomes moves its bytes. */
#include "targets/worker/queue/perform.h"
#include "targets/worker/queue/plain.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "tests/unit/shared_region.h"
#include "tests/unit/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REQUESTS = 300000, DEPTH = 4, BLOCK = 4096, IO_MAX = 128 * 1024, FILE_OFFSET = 3 * BLOCK };

static int full(struct target_io *io)
{
        return (int)io->length;
}

static const struct target_desc desc = {.name = "full"};
static const struct target writable = {.desc = &desc, .read = full, .write = full};
static const struct target unwritable = {.desc = &desc, .read = full};

/* For rules whose entries no ring sees. */
static const struct io_loop no_loop;

static struct shared shared;
static struct durability durability = {.shared = &shared};

/* ---- which requests are plain ---- */

static uint32_t number(unsigned *seed, uint32_t below)
{
        return (uint32_t)rand_r(seed) % below;
}

/* Mostly near the ends of what is allowed. */
static struct ublksrv_io_desc random_descriptor(unsigned *seed, uint64_t disk_sectors)
{
        static const uint64_t odd_starts[] = {0, 1, 7, UINT64_MAX, UINT64_MAX >> SECTOR_SHIFT, 1ULL << 55};
        static const uint32_t flags[] = {
                0, 0, 0, UBLK_IO_F_FUA, UBLK_IO_F_NOUNMAP, UBLK_IO_F_NEED_REG_BUF, UBLK_IO_F_META};
        uint64_t start = number(seed, 4) == 0 ? odd_starts[number(seed, ARRAY_SIZE(odd_starts))]
                                              : disk_sectors - number(seed, 40);

        return (struct ublksrv_io_desc){
                .op_flags = (number(seed, 4) == 0 ? number(seed, 256) : number(seed, 3))
                            | flags[number(seed, ARRAY_SIZE(flags))],
                .nr_sectors = number(seed, 8) == 0 ? UINT32_MAX - number(seed, 3) : 8 * number(seed, 5),
                .start_sector = number(seed, 8) == 0 ? start + 3 : start & ~7ULL,
        };
}

/* As the queue does for any request, see describe() in queue_requests.c. */
static bool nothing_is_wrong(struct target_device *device, const struct ublksrv_io_desc *descriptor)
{
        struct target_queue queue = {.device = device};
        uint64_t length = (uint64_t)descriptor->nr_sectors << SECTOR_SHIFT;
        struct target_io io = {.queue = &queue,
                .op = (enum io_op)(descriptor->op_flags & UBLK_OPERATION_MASK),
                .offset = descriptor->start_sector << SECTOR_SHIFT,
                .length = (uint32_t)length};

        return length <= IO_MAX && descriptor->start_sector <= UINT64_MAX >> SECTOR_SHIFT && length > 0
               && perform_co(&io, &durability) == (int)length;
}

static bool should_be_plain(struct target_device *device, const struct data_route *route,
        const struct ublksrv_io_desc *descriptor)
{
        uint32_t op = descriptor->op_flags & UBLK_OPERATION_MASK;
        bool ready = route->path == DATA_PATH_COPY
                     || (route->auto_buffers && !(descriptor->op_flags & UBLK_IO_F_NEED_REG_BUF));

        return (op == UBLK_IO_OP_READ || op == UBLK_IO_OP_WRITE) && !(descriptor->op_flags & UBLK_IO_F_FUA)
               && ready && nothing_is_wrong(device, descriptor);
}

static void test_plain_is_what_has_nothing_wrong(unsigned seed)
{
        static const struct data_route routes[] = {
                {.path = DATA_PATH_COPY},
                {.path = DATA_PATH_USER_COPY},
                {.path = DATA_PATH_ZERO_COPY, .auto_buffers = true},
                {.path = DATA_PATH_ZERO_COPY},
        };
        unsigned plain = 0;

        for (unsigned i = 0; i < REQUESTS; i++) {
                uint64_t sectors = 8 * (1 + (uint64_t)number(&seed, 100));
                struct target_device device = {.target = number(&seed, 8) ? &writable : &unwritable,
                        .read_only = number(&seed, 4) == 0,
                        .size = sectors << SECTOR_SHIFT,
                        .logical_block_size = number(&seed, 2) ? BLOCK : 512};
                struct io_data data = {.route = routes[number(&seed, ARRAY_SIZE(routes))]};
                struct plain_rules rules = plain_rules_of(&device, &data, &no_loop, IO_MAX);
                struct ublksrv_io_desc descriptor = random_descriptor(&seed, sectors);
                bool is = plain_is(&rules, &descriptor, plain_disk_sectors(&rules));

                if (!CHECK_INT(is, should_be_plain(&device, &data.route, &descriptor)))
                        fprintf(stderr, "%u: op_flags %#x, %u sectors at %" PRIu64 " of %" PRIu64 "\n", i,
                                descriptor.op_flags, descriptor.nr_sectors, (uint64_t)descriptor.start_sector,
                                sectors);
                plain += is;
        }
        CHECK(plain > REQUESTS / 100 && plain < REQUESTS / 2);
}

static void test_a_disk_that_has_grown(void)
{
        struct target_device device = {.target = &writable, .size = BLOCK, .logical_block_size = BLOCK};
        struct io_data data = {.route.path = DATA_PATH_COPY};
        struct plain_rules rules = plain_rules_of(&device, &data, &no_loop, IO_MAX);
        const struct ublksrv_io_desc descriptor = {.start_sector = 8, .nr_sectors = 8};

        CHECK(!plain_is(&rules, &descriptor, plain_disk_sectors(&rules)));
        device.size = 2 * BLOCK;
        CHECK(plain_is(&rules, &descriptor, plain_disk_sectors(&rules)));
}

/* ---- how they move ---- */

/* What the ring says of it. */
static int move_by(bool (*plain)(const struct plain_rules *, struct io_loop *, const struct ublksrv_io_desc *,
                           const struct plain_data *, uint64_t),
        struct io_loop *loop, const struct plain_rules *rules, const struct ublksrv_io_desc *descriptor,
        const struct plain_data *data)
{
        struct io_uring_cqe *cqe;
        char owner[8] __attribute__((aligned(8)));
        int result;

        if (!CHECK(plain(rules, loop, descriptor, data, user_data_plain(owner))))
                return -EIO;
        CHECK_INT(io_loop_submit(loop, true), 0);
        CHECK_INT(io_uring_wait_cqe(&loop->ring, &cqe), 0);
        CHECK_INT(user_data_kind(cqe->user_data), USER_DATA_PLAIN);
        CHECK(user_data_of_plain(cqe->user_data) == owner);
        result = cqe->res;
        io_uring_cqe_seen(&loop->ring, cqe);
        return result;
}

static int move(struct io_loop *loop, const struct plain_rules *rules,
        const struct ublksrv_io_desc *descriptor, const struct plain_data *data)
{
        return move_by(plain_move, loop, rules, descriptor, data);
}

static void check_moves(
        struct target_device *device, struct io_loop *loop, struct io_data *data, char *memory)
{
        const struct plain_rules rules = plain_rules_of(device, data, loop, IO_MAX);
        const struct plain_data whole = {.address = memory, .buffer.index = 2};
        const struct ublksrv_io_desc write = {.op_flags = UBLK_IO_OP_WRITE,
                                             .start_sector = 8,
                                             .nr_sectors = 8},
                                     read = {.op_flags = UBLK_IO_OP_READ, .start_sector = 8, .nr_sectors = 8};
        char seen[BLOCK];

        memset(memory, 'a', BLOCK);
        CHECK_INT(move(loop, &rules, &write, &whole), BLOCK);
        CHECK_INT(pread(device->files[0], seen, BLOCK, FILE_OFFSET + BLOCK), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        memset(seen, 'b', BLOCK);
        CHECK_INT(pwrite(device->files[0], seen, BLOCK, FILE_OFFSET + BLOCK), BLOCK);
        CHECK_INT(move(loop, &rules, &read, &whole), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        CHECK_INT(ftruncate(device->files[0], FILE_OFFSET + BLOCK + 512), 0);
        CHECK_INT(move(loop, &rules, &read, &whole), 512);
}

/* What moves bytes of a device, with a ring of its own and one block of memory, which it may have registered. */
typedef void (*moves_of)(
        struct target_device *device, struct io_loop *loop, struct io_data *data, char *memory);

static void check_on_a_ring(
        struct target_device *device, bool registered, enum io_loop_holder holder, moves_of check)
{
        struct io_data data = {.route.path = registered ? DATA_PATH_ZERO_COPY : DATA_PATH_COPY,
                .route.auto_buffers = registered};
        char *memory = aligned_alloc(BLOCK, BLOCK);
        struct io_loop loop;

        if (memory && CHECK_INT(io_loop_init(&loop, device, 0, DEPTH, 0, -1, holder), 0)) {
                const struct iovec buffers[] = {
                        {memory, BLOCK},
                        {memory, BLOCK},
                        {memory, BLOCK}
                };

                if (registered)
                        CHECK_INT(io_uring_register_buffers(&loop.ring, buffers, ARRAY_SIZE(buffers)), 0);
                CHECK_INT(io_loop_start(&loop), 0);
                check(device, &loop, &data, memory);
                io_loop_destroy(&loop);
        }
        free(memory);
        for (unsigned i = 0; i < device->file_count; i++)
                (void)close(device->files[i]);
}

static void test_moves(bool registered)
{
        struct target_device device = {.target = &writable,
                .size = 16 * BLOCK,
                .logical_block_size = BLOCK,
                .files = {open_temporary()},
                .file_count = 1,
                .linear = true,
                .linear_offset = FILE_OFFSET};

        check_on_a_ring(&device, registered, IO_LOOP_HELD_BY_RING, check_moves);
}

/* A map whose even blocks lie in the first file and odd ones in the second, and that has no place for more than one block. */
static bool locate(const struct target_queue *queue, enum io_op op, uint64_t offset, uint32_t length,
        struct target_place *ret)
{
        (void)queue, (void)op;
        *ret = (struct target_place){
                .file = offset / BLOCK % 2, .offset = FILE_OFFSET + offset / BLOCK / 2 * BLOCK};
        return length == BLOCK;
}

/* Block 5 is block 2 of the second file. */
static void check_mapped_moves(
        struct target_device *device, struct io_loop *loop, struct io_data *data, char *memory)
{
        enum { ODD = 5 };
        const struct plain_rules rules = plain_rules_of(device, data, loop, IO_MAX);
        const struct plain_data whole = {.address = memory, .buffer.index = 2};
        struct ublksrv_io_desc one = {.op_flags = UBLK_IO_OP_WRITE,
                .start_sector = ODD * BLOCK >> SECTOR_SHIFT,
                .nr_sectors = BLOCK >> SECTOR_SHIFT};
        struct ublksrv_io_desc two = one;
        struct stat first;
        char seen[BLOCK];

        two.nr_sectors *= 2;
        CHECK(!plain_move_mapped(&rules, loop, &two, &whole, 0));
        CHECK_INT(io_uring_sq_ready(&loop->ring), 0); /* and no entry was taken for it */
        memset(memory, 'a', BLOCK);
        CHECK_INT(move_by(plain_move_mapped, loop, &rules, &one, &whole), BLOCK);
        CHECK_INT(pread(device->files[1], seen, BLOCK, FILE_OFFSET + ODD / 2 * BLOCK), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        CHECK_INT(fstat(device->files[0], &first), 0);
        CHECK_INT(first.st_size, 0);
        memset(memory, 'b', BLOCK);
        one.op_flags = UBLK_IO_OP_READ;
        CHECK_INT(move_by(plain_move_mapped, loop, &rules, &one, &whole), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        CHECK_INT(ftruncate(device->files[1], FILE_OFFSET + ODD / 2 * BLOCK + 512), 0);
        CHECK_INT(move_by(plain_move_mapped, loop, &rules, &one, &whole), 512);
}

static void test_moves_of_a_map(bool registered, enum io_loop_holder holder)
{
        static const struct target map = {.desc = &desc, .read = full, .write = full, .locate = locate};
        struct target_device device = {
                .target = &map,
                .size = 16 * BLOCK,
                .logical_block_size = BLOCK,
                .files = {open_temporary(), open_temporary()},
                .file_count = 2
        };

        check_on_a_ring(&device, registered, holder, check_mapped_moves);
}

static void test_what_is_moved_inline(void)
{
        struct target_device device = {.target = &writable, .logical_block_size = BLOCK, .linear = true};
        struct io_data copy = {.route.path = DATA_PATH_COPY},
                       registered = {.route.path = DATA_PATH_ZERO_COPY, .route.auto_buffers = true};
        const struct ublksrv_io_desc most = {.nr_sectors = PLAIN_AT_ONCE_MAX >> SECTOR_SHIFT},
                                     more = {.nr_sectors = most.nr_sectors + 1};
        struct plain_rules rules = plain_rules_of(&device, &copy, &no_loop, IO_MAX);

        CHECK(!plain_is_inline(&rules, &most)); /* not in memory */
        device.linear_in_memory = true;
        rules = plain_rules_of(&device, &copy, &no_loop, IO_MAX);
        CHECK(plain_is_inline(&rules, &most) && !plain_is_inline(&rules, &more));
        rules = plain_rules_of(&device, &registered, &no_loop, IO_MAX);
        CHECK(!plain_is_inline(&rules, &most)); /* its pages are not ours to copy */
}

static void test_moves_at_once(void)
{
        struct target_device device = {.target = &writable,
                .logical_block_size = BLOCK,
                .files = {open_temporary()},
                .linear = true,
                .linear_in_memory = true,
                .linear_offset = FILE_OFFSET};
        struct io_data data = {.route.path = DATA_PATH_COPY};
        struct plain_rules rules = plain_rules_of(&device, &data, &no_loop, IO_MAX);
        const struct ublksrv_io_desc write = {.op_flags = UBLK_IO_OP_WRITE,
                                             .start_sector = 8,
                                             .nr_sectors = 8},
                                     read = {.op_flags = UBLK_IO_OP_READ, .start_sector = 8, .nr_sectors = 8};
        char memory[BLOCK], seen[BLOCK];

        memset(memory, 'a', BLOCK);
        CHECK_INT(plain_transfer_inline(&rules, &write, memory), BLOCK);
        CHECK_INT(pread(device.files[0], seen, BLOCK, FILE_OFFSET + BLOCK), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        memset(memory, 'b', BLOCK);
        CHECK_INT(plain_transfer_inline(&rules, &read, memory), BLOCK);
        CHECK(memcmp(seen, memory, BLOCK) == 0);
        CHECK_INT(ftruncate(device.files[0], FILE_OFFSET + BLOCK + 512), 0);
        CHECK_INT(plain_transfer_inline(&rules, &read, memory), 512);
        (void)close(device.files[0]);
        rules.descriptor = -1;
        CHECK_INT(plain_transfer_inline(&rules, &read, memory), -EBADF);
}

static void test_no_room(void)
{
        struct target_device device = {.target = &writable, .files = {open_temporary()}, .file_count = 1};
        const struct plain_rules rules = {};
        const struct ublksrv_io_desc descriptor = {.nr_sectors = 8};
        struct io_loop loop;
        unsigned count = 0;

        if (!CHECK_INT(io_loop_init(&loop, &device, 0, DEPTH, 0, -1, IO_LOOP_HELD_BY_RING), 0)
                || !CHECK_INT(io_loop_start(&loop), 0))
                return;
        while (count <= DEPTH && plain_move(&rules, &loop, &descriptor, &(struct plain_data){}, 0))
                count++;
        CHECK_INT(count, DEPTH);
        io_loop_destroy(&loop);
        (void)close(device.files[0]);
}

static void test_errors_that_are_tried_again(void)
{
        CHECK(plain_has_failed(-EIO) && plain_has_failed(-EROFS) && plain_has_failed(-EINVAL));
        CHECK(!plain_has_failed(-ENOSPC) && !plain_has_failed(-EDQUOT)); /* they may wait for room */
        CHECK(!plain_has_failed(-EAGAIN) && !plain_has_failed(-EINTR) && !plain_has_failed(0)
                && !plain_has_failed(512));
}

int main(int argc, char **argv)
{
        unsigned seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : (unsigned)time(NULL);

        shared = shared_region_new();
        printf("seed %u (give it as an argument to see the same again)\n", seed);
        test_plain_is_what_has_nothing_wrong(seed);
        test_a_disk_that_has_grown();
        test_errors_that_are_tried_again();
        test_what_is_moved_inline();
        test_moves_at_once();
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_moves(false);
        test_moves(true);
        for (enum io_loop_holder holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++) {
                test_moves_of_a_map(false, holder);
                test_moves_of_a_map(true, holder);
        }
        test_no_room();
        return check_report();
}
