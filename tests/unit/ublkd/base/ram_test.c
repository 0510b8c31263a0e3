/* SPDX-License-Identifier: MIT */
/* ram: what is locked, and that pages which were not touched cost nothing. */
#include "ublkd/base/ram.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

enum { SIZE = 1 << 20, PAGE = 4096 };

static char *map(void)
{
        char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(memory != MAP_FAILED);
        CHECK_INT(madvise(memory, SIZE, MADV_NOHUGEPAGE), 0);
        return memory;
}

/* A number, in KiB, of the mapping that begins at the address; -1: it has no such line. */
static long number_of(const char *address, const char *key)
{
        FILE *file = fopen("/proc/self/smaps", "re");
        char line[512], begin[32];
        bool here = false;
        long result = -1;

        CHECK(file);
        (void)snprintf(begin, sizeof(begin), "%lx-", (unsigned long)address);
        while (result < 0 && fgets(line, sizeof(line), file)) {
                here = here || strncmp(line, begin, strlen(begin)) == 0;
                if (here && strncmp(line, key, strlen(key)) == 0)
                        result = strtol(line + strlen(key), NULL, 10);
        }
        CHECK_INT(fclose(file), 0);
        return result;
}

static int run(void (*test)(void))
{
        pid_t pid = fork();
        int status;

        CHECK(pid >= 0);
        if (pid == 0) {
                test();
                _exit(EXIT_SUCCESS);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        return status;
}

static void test_what_is_mapped_is_kept(void)
{
        char *memory = map();

        memory[0] = 1;
        CHECK_INT(ram_keep_mapped(), 0);
        CHECK_INT(number_of(memory, "Locked:"), PAGE / 1024);
        memory[2 * PAGE] = 1;
        CHECK_INT(number_of(memory, "Locked:"), 2 * PAGE / 1024);
        CHECK_INT(number_of(memory, "Rss:"), 2 * PAGE / 1024);
}

/* A worker gives memory back that its requests do not need. */
static void test_pages_can_be_given_back_and_stay_locked(void)
{
        char *memory = map();

        memset(memory, 1, SIZE);
        CHECK_INT(ram_keep_mapped(), 0);
        CHECK_INT(madvise(memory, SIZE, MADV_DONTNEED), -1);
        CHECK_INT(errno, EINVAL);
        CHECK_INT(madvise(memory, SIZE, MADV_DONTNEED_LOCKED), 0);
        CHECK_INT(number_of(memory, "Rss:"), 0);
        memory[PAGE] = 1;
        CHECK_INT(number_of(memory, "Locked:"), PAGE / 1024);
}

/* A worker lowers the limit when it serves. */
static void test_the_stack_may_grow_when_nothing_more_may_be_locked(void)
{
        static const struct rlimit none = {};
        volatile char depth[384 * 1024];

        CHECK_INT(ram_keep_mapped(), 0);
        CHECK_INT(setrlimit(RLIMIT_MEMLOCK, &none), 0);
        for (size_t i = sizeof(depth); i > 0; i -= PAGE)
                depth[i - PAGE] = 1;
        CHECK_INT(depth[0], 1);
}

enum { STACK = 256 * 1024 };

__attribute__((noinline)) static void use_stack(void)
{
        volatile char depth[STACK];

        for (size_t i = 0; i < sizeof(depth); i += PAGE)
                depth[i] = 1;
}

/* Of the pages below the caller's frame. */
static int resident_stack(void)
{
        char *frame = __builtin_frame_address(0), *top = frame - (uintptr_t)frame % PAGE;
        unsigned char pages[STACK / PAGE];
        int count = 0;

        CHECK_INT(mincore(top - STACK, STACK, pages), 0);
        for (size_t i = 0; i < sizeof(pages); i++)
                count += pages[i] & 1;
        return count;
}

/* Of a stack that is locked. What the callers have on it stays. */
static void test_the_stack_is_given_back(void)
{
        volatile char mine[4 * PAGE];

        for (size_t i = 0; i < sizeof(mine); i++)
                mine[i] = 7;
        CHECK_INT(ram_keep_mapped(), 0);
        use_stack();
        CHECK_INT(resident_stack(), STACK / PAGE);
        ram_drop_stack();
        CHECK(resident_stack() <= 4);
        for (size_t i = 0; i < sizeof(mine); i++)
                CHECK_INT(mine[i], 7);
}

static void test_what_comes_later_is_kept_as_well(void)
{
        int r = ram_keep_all();
        char *memory = map();

        memory[0] = 1;
        if (r < 0) { /* a user without privileges, with a limit */
                CHECK_INT(r, -EPERM);
                CHECK_INT(number_of(memory, "Locked:"), 0);
                return;
        }
        CHECK_INT(number_of(memory, "Locked:"), PAGE / 1024);
        CHECK_INT(number_of(memory, "Rss:"), PAGE / 1024);
}

static void test_no_io_is_a_privilege(void)
{
        int r = ram_wait_for_no_io();

        CHECK(r == 0 || r == -EPERM);
}

int main(void)
{
        if (!SANITIZED) {
                CHECK_INT(run(test_what_is_mapped_is_kept), 0);
                CHECK_INT(run(test_the_stack_is_given_back), 0);
                CHECK_INT(run(test_pages_can_be_given_back_and_stay_locked), 0);
                CHECK_INT(run(test_the_stack_may_grow_when_nothing_more_may_be_locked), 0);
                CHECK_INT(run(test_what_comes_later_is_kept_as_well), 0);
        }
        CHECK_INT(run(test_no_io_is_a_privilege), 0);
        return 0;
}
