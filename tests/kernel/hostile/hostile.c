/* SPDX-License-Identifier: MIT */
/* When and where the attacks run. The linker puts these functions in the place of the real ones (--wrap).
 *
 * At its start the process maps a file $UBLKD_HOSTILE_DIR/PID. From then on it needs nothing of the machine
 * to take an order and to write its report: a wall that is missing shows as an attack that succeeds, and
 * not as a report that never comes. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REPORT_SIZE = 32 * 1024, LOOK_EVERY = 20 /* milliseconds */ };

/* tests/kernel/harness/hostile.py has the same layout. */
struct page {
        struct victims victims;
        _Atomic uint32_t ordered, main_done, ring_done, report_used;
        _Atomic uint32_t deed; /* enum deed; DEED_NONE once it is done */
        char claims[HOSTILE_CLAIM_SIZE];
        char report[REPORT_SIZE];
};

static struct page *page;
static struct io_uring *rings[64];
static atomic_uint ring_count;
static atomic_bool one_spins, all_spin;

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_io_uring_queue_mmap(int fd, struct io_uring_params *params, struct io_uring *ring);
int __wrap_io_uring_queue_mmap(int fd, struct io_uring_params *params, struct io_uring *ring);
int __real_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);
int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);

__attribute__((constructor)) static void map_page(void)
{
        const char *directory = getenv("UBLKD_HOSTILE_DIR");
        char path[PATH_MAX];
        int fd;

        if (!directory)
                return;
        snprintf(path, sizeof(path), "%s/%d", directory, (int)getpid());
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0)
                abort();
        page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                abort();
        close(fd);
}

static void report(const char *name, int result)
{
        char line[160];
        int size = snprintf(line, sizeof(line), "%s: %d\n", name, result);
        uint32_t at = atomic_fetch_add(&page->report_used, (uint32_t)size);

        if (at + (uint32_t)size <= sizeof(page->report))
                memcpy(page->report + at, line, (size_t)size);
}

static void attack_from_main(void)
{
        static const struct named_attack *const tables[] = {
                process_attacks, machine_attacks, descriptor_attacks, rare_attacks};

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                for (const struct named_attack *attack = tables[i]; attack->name; attack++)
                        report(attack->name, attack->try(&page->victims));
        atomic_store(&page->main_done, atomic_load(&page->ordered));
}

/* $UBLKD_HOSTILE_DEED: what each worker does before it has a disk. */
static void do_deed(void)
{
        const char *first = getenv("UBLKD_HOSTILE_DEED");

        if (first)
                hostile_deed_do((uint32_t)atoi(first));
        if (!page || atomic_load(&page->deed) == DEED_NONE)
                return;
        hostile_deed_do(atomic_load(&page->deed));
        atomic_store(&page->deed, DEED_NONE);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
        int left = timeout, r;

        do {
                if (page && atomic_load(&page->ordered) != atomic_load(&page->main_done))
                        attack_from_main();
                do_deed();
                r = __real_poll(fds, count, timeout < 0 || left > LOOK_EVERY ? LOOK_EVERY : left);
                left -= LOOK_EVERY;
        } while (r == 0 && (timeout < 0 || left > 0));
        return r;
}

int __wrap_io_uring_queue_mmap(int fd, struct io_uring_params *params, struct io_uring *ring)
{
        unsigned index = atomic_fetch_add(&ring_count, 1);

        if (index < sizeof(rings) / sizeof(rings[0]))
                rings[index] = ring;
        return __real_io_uring_queue_mmap(fd, params, ring);
}

static struct io_uring *ring_of(unsigned fd)
{
        for (unsigned i = 0; i < atomic_load(&ring_count) && i < sizeof(rings) / sizeof(rings[0]); i++)
                if (rings[i] && (unsigned)rings[i]->enter_ring_fd == fd)
                        return rings[i];
        return NULL;
}

static void attack_from_queue(struct io_uring *ring)
{
        for (const struct ring_attack *attack = ring_attacks; attack->name; attack++)
                report(attack->name, ring_attack_try(ring, attack));
        report("ring: pidfd of the supervisor by the channel", ring_attack_peer(ring));
        report("ring: an option of a socket", ring_attack_option(ring));
        report("ring: any other operation", ring_attack_all(ring));
        atomic_store(&page->ring_done, atomic_load(&page->ordered));
}

const char *hostile_claims(void)
{
        return page ? page->claims : "";
}

void hostile_spin_one(void)
{
        atomic_store(&one_spins, true);
}

static void spin(void)
{
        for (;;)
                continue;
}

void hostile_spin_all(void)
{
        atomic_store(&all_spin, true);
        if (page)
                atomic_store(&page->deed, DEED_NONE); /* it does not return */
        spin();
}

static bool is_to_spin(void)
{
        return atomic_load(&all_spin) || atomic_exchange(&one_spins, false);
}

int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size)
{
        int r = __real_io_uring_enter2(fd, submit, complete, flags, signals, size);
        struct io_uring *ring = ring_of(fd);

        /* The test reads from the disk, so that the thread comes by here. */
        if (page && ring && complete > 0 && atomic_load(&page->ordered) != atomic_load(&page->ring_done))
                attack_from_queue(ring);
        if (ring && complete > 0 && r >= 0 && is_to_spin())
                spin();
        return r;
}
