/* SPDX-License-Identifier: MIT */
/* Memory is given back while another thread writes to it: no byte may be lost.
 *
 * In the driver's place a socket: a read of it that waits in the ring ends as a command of the driver does,
 * in task work that copies the bytes and completes the request. */
#include "targets/worker/io/idle_pages.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TAGS = 4, LENGTH = 64 * 1024, KEEP = 4096, STALE = 's', ROUNDS = 2000, SOCKET_BUFFER = 1 << 20 };

/* The linker puts this in front of the real one, so that requests can come just before and just after it. */
void *__real_mremap(void *address, size_t length, size_t new_length, int flags, ...);
void *__wrap_mremap(void *address, size_t length, size_t new_length, int flags, ...);
static void (*before_move)(void), (*after_move)(void);

void *__wrap_mremap(void *address, size_t length, size_t new_length, int flags, ...)
{
        void *result;

        if (before_move)
                before_move();
        result = __real_mremap(address, length, new_length, flags, NULL);
        if (after_move)
                after_move();
        return result;
}

static struct io_uring ring;
static char *memory;
static int sockets[TAGS][2], pagemap;

static char *memory_of(unsigned tag)
{
        return memory + (size_t)tag * LENGTH;
}

/* Offers a tag's memory for the next request. */
static void offer(unsigned tag)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

        io_uring_prep_read(sqe, sockets[tag][0], memory_of(tag), LENGTH, 0);
        sqe->user_data = tag;
        CHECK_INT(io_uring_submit(&ring), 1);
}

static bool begin(unsigned flags)
{
        int r = io_uring_queue_init(TAGS, &ring, flags);

        if (r == -EINVAL)
                return false;
        CHECK_INT(r, 0);
        memory =
                mmap(NULL, (size_t)TAGS * LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, STALE, (size_t)TAGS * LENGTH);
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        CHECK(pagemap >= 0);
        for (unsigned tag = 0; tag < TAGS; tag++) {
                const int size = SOCKET_BUFFER;

                CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets[tag]), 0);
                (void)setsockopt(sockets[tag][1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
                offer(tag);
        }
        return true;
}

static void end(void)
{
        before_move = after_move = NULL;
        io_uring_queue_exit(&ring);
        for (unsigned tag = 0; tag < TAGS; tag++)
                for (int side = 0; side < 2; side++)
                        close(sockets[tag][side]);
        close(pagemap);
        munmap(memory, (size_t)TAGS * LENGTH);
}

static int drop(unsigned tag)
{
        const struct idle_pages_watch watch = {.ring = &ring, .user_data = tag, .pagemap = pagemap};

        return idle_pages_drop(memory_of(tag) + KEEP, LENGTH - KEEP, &watch);
}

static void send_request(unsigned tag, char letter, size_t length)
{
        static char data[LENGTH];

        memset(data, letter, length);
        CHECK_INT(write(sockets[tag][1], data, length), length);
}

/* Any system call is as good as another: the thread passes through the kernel. */
static void wait_for_request(void)
{
        while (io_uring_cq_ready(&ring) == 0)
                (void)getppid();
}

static bool is_all(const char *data, char letter, size_t length)
{
        return length == 0 || (data[0] == letter && memcmp(data, data + 1, length - 1) == 0);
}

/* ---- one request at each moment ---- */

static unsigned sent_tag;
static size_t sent_length;

static void a_request_comes(void)
{
        send_request(sent_tag, 'n', sent_length);
        wait_for_request();
}

enum moment { NEVER, EARLIER, JUST_BEFORE, JUST_AFTER };

static void test_moment(unsigned flags, enum moment moment, unsigned tag, size_t length)
{
        bool has_request = moment != NEVER && tag == 0;

        if (!begin(flags))
                return;
        sent_tag = tag;
        sent_length = length;
        if (moment == EARLIER)
                a_request_comes();
        before_move = moment == JUST_BEFORE ? a_request_comes : NULL;
        after_move = moment == JUST_AFTER ? a_request_comes : NULL;
        CHECK_INT(drop(0), has_request);
        if (moment != NEVER)
                CHECK(is_all(memory_of(tag), 'n', length));
        if (!has_request) {
                CHECK(is_all(memory_of(0), STALE, KEEP));
                CHECK(is_all(memory_of(0) + KEEP, '\0', LENGTH - KEEP));
        }
        end();
}

static void test_moments(unsigned flags)
{
        static const size_t lengths[] = {512, KEEP, KEEP + 512, LENGTH};

        test_moment(flags, NEVER, 0, 0);
        for (enum moment moment = EARLIER; moment <= JUST_AFTER; moment++)
                for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
                        for (unsigned tag = 0; tag < 2; tag++)
                                test_moment(flags, moment, tag, lengths[i]);
}

/* A request whose bytes cannot be found must not be answered. */
static void test_undecidable(void)
{
        if (!begin(0))
                return;
        sent_tag = 0;
        sent_length = LENGTH;
        after_move = a_request_comes;
        close(pagemap);
        pagemap = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK_INT(drop(0), -ENOTRECOVERABLE);
        end();
}

static void test_not_movable(void)
{
        if (!begin(0))
                return;
        munmap(memory_of(1) - KEEP, KEEP);
        CHECK_INT(drop(0), -EFAULT);
        CHECK(is_all(memory_of(0), STALE, LENGTH - KEEP));
        end();
}

/* ---- many at any moment ---- */

struct sender {
        atomic_uint awaited; /* bits: tags that have been offered */
        atomic_bool over;
        uint64_t random;
};

static unsigned next_random(uint64_t *random)
{
        *random = *random * 6364136223846793005 + 1442695040888963407;
        return (unsigned)(*random >> 33);
}

/* A request says what is in it by its first letter; its length is what comes. */
static void *send_requests(void *argument)
{
        struct sender *sender = argument;

        while (!atomic_load(&sender->over)) {
                unsigned tag = next_random(&sender->random) % TAGS;

                for (unsigned spins = next_random(&sender->random) % 2000; spins > 0; spins--)
                        atomic_signal_fence(memory_order_seq_cst);
                if (!(atomic_fetch_and(&sender->awaited, ~(1U << tag)) & 1U << tag))
                        continue;
                send_request(tag, (char)('A' + next_random(&sender->random) % 26),
                        (next_random(&sender->random) % (LENGTH / 512) + 1) * 512);
        }
        return NULL;
}

/* Looks at the requests that have come, and lets the tags have others. */
static unsigned take_requests(struct sender *sender, bool *ret_good)
{
        unsigned count = 0;
        struct io_uring_cqe *cqe;

        while (io_uring_cq_ready(&ring) > 0) {
                unsigned tag;

                CHECK_INT(io_uring_peek_cqe(&ring, &cqe), 0);
                tag = (unsigned)cqe->user_data;
                if (!CHECK(cqe->res > 0) || !CHECK(is_all(memory_of(tag), *memory_of(tag), (size_t)cqe->res)))
                        *ret_good = false;
                CHECK(*memory_of(tag) != STALE && *memory_of(tag) != '\0');
                memset(memory_of(tag), STALE, LENGTH);
                io_uring_cqe_seen(&ring, cqe);
                offer(tag);
                atomic_fetch_or(&sender->awaited, 1U << tag);
                count++;
        }
        return count;
}

static void test_storm(unsigned flags, uint64_t seed)
{
        struct sender sender = {.awaited = (1U << TAGS) - 1, .random = seed};
        uint64_t random = ~seed;
        unsigned requests = 0, dropped = 0, met = 0;
        bool good = true;
        pthread_t thread;

        if (!begin(flags))
                return;
        CHECK_INT(pthread_create(&thread, NULL, send_requests, &sender), 0);
        while (good && requests < ROUNDS) {
                for (int i = 0; i < TAGS; i++) {
                        int r = drop(next_random(&random) % TAGS);

                        if (!CHECK(r == 0 || r == 1))
                                good = false;
                        *(r == 0 ? &dropped : &met) += 1;
                }
                requests += take_requests(&sender, &good);
        }
        atomic_store(&sender.over, true);
        pthread_join(thread, NULL);
        printf("flags %#x, seed %#" PRIx64 ": %u requests, %u times dropped, %u times with a request\n",
                flags, seed, requests, dropped, met);
        end();
}

int main(void)
{
        static const unsigned ways[] = {0, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER};
        const char *given = getenv("UBLKD_TEST_SEED");
        uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
        int r = io_uring_queue_init(TAGS, &ring, 0);

        if (r == -ENOSYS || r == -EPERM || r == -EACCES)
                return CHECK_SKIP;
        CHECK_INT(r, 0);
        io_uring_queue_exit(&ring);
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                test_moments(ways[i]);
                test_storm(ways[i], seed);
        }
        test_undecidable();
        test_not_movable();
        return check_report();
}
