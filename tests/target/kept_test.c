/* SPDX-License-Identifier: MIT */
/* A target with kept memory, from worker to worker: tests/kernel/keeping in the place of the null target. */
#include "targets/known/known_targets.h"
#include "tests/kernel/keeping/keeping.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "ublkd/base/clock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = KEEPING_BLOCKS * KEEPING_BLOCK };

static const char spec[] = "{\"target\":{\"type\":\"null\"},\"size\":33280}";
static const struct device_region_key key = {.queues = 1, .epoch = 1};

static struct region_kept_wish wish_of_target(void)
{
        const struct target_desc *desc = known_target_find("null");

        return (struct region_kept_wish){
                .target = desc->name,
                .disk_bytes = desc->kept_disk_bytes,
                .queue_bytes = desc->kept_queue_bytes,
                .version = desc->kept_version,
        };
}

static int new_region(const struct region_kept_wish *wish, int from)
{
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(region_kept_format(fd, &key, wish, from), 0);
        return fd;
}

static int open_host(struct target_host *host, int region)
{
        _cleanup_problems_ struct problem_list problems = {};

        return target_host_open_kept(host, spec, region, &problems);
}

static struct keeping_report report_of(struct target_host *host)
{
        struct keeping_report report;

        CHECK_INT(target_host_one(host, IO_READ, 0, LENGTH, KEEPING_BLOCK), KEEPING_BLOCK);
        memcpy(&report, target_host_data(host, 0), sizeof(report));
        return report;
}

static void write_all(struct target_host *host, char letter)
{
        memset(target_host_data(host, 0), letter, LENGTH);
        CHECK_INT(target_host_one(host, IO_WRITE, 0, 0, LENGTH), LENGTH);
}

/* Return which letter the whole disk is of; -1: of several. */
static int read_all(struct target_host *host)
{
        const char *data = target_host_data(host, 0);

        CHECK_INT(target_host_one(host, IO_READ, 0, 0, LENGTH), LENGTH);
        for (unsigned i = 1; i < LENGTH; i++)
                if (data[i] != data[0])
                        return -1;
        return data[0];
}

static void test_the_next_worker_has_the_data(void)
{
        const struct region_kept_wish wish = wish_of_target();
        int region = new_region(&wish, -1);

        for (unsigned i = 0; i < 4; i++) {
                struct target_host host;
                struct keeping_report report;

                if (!CHECK_INT(open_host(&host, region), 0))
                        break;
                report = report_of(&host);
                CHECK_INT(report.workers, i + 1);
                CHECK_INT(report.disk_was_fresh, i == 0);
                CHECK_INT(report.queue_was_fresh, i == 0);
                CHECK_INT(report.records, i == 0 ? 0 : KEEPING_BLOCKS);
                CHECK_INT(report.rejected, 0);
                CHECK_INT(read_all(&host), i == 0 ? 0 : 'a' + (int)i - 1);
                write_all(&host, (char)('a' + i));
                target_host_close(&host);
        }
        close(region);
}

static char letter_of(uint64_t write)
{
        return (char)('a' + write % 26);
}

/* Write letter after letter, and count the writes that are acknowledged. Killed at any moment, in the middle of a write as
 * a rule. */
static void write_until_killed(int region, uint64_t *written)
{
        struct target_host host;

        if (open_host(&host, region) < 0)
                _exit(1);
        for (uint64_t i = 1;; i++) {
                memset(target_host_data(&host, 0), letter_of(i), LENGTH);
                if (target_host_one(&host, IO_WRITE, 0, 0, LENGTH) != LENGTH)
                        _exit(1);
                __atomic_store_n(written, i, __ATOMIC_RELEASE);
        }
}

static bool await_writes(pid_t pid, const uint64_t *written, uint64_t wanted)
{
        uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + UINT64_C(60) * 1000 * 1000;

        while (__atomic_load_n(written, __ATOMIC_ACQUIRE) < wanted) {
                if (!CHECK_INT(waitpid(pid, NULL, WNOHANG), 0))
                        return false; /* the writer has exited */
                if (!CHECK(clock_usec(CLOCK_MONOTONIC) < deadline)) {
                        (void)kill(pid, SIGKILL);
                        (void)waitpid(pid, NULL, 0);
                        return false;
                }
                (void)sched_yield();
        }
        return true;
}

/* Each block is of the last letter that was acknowledged, or of the one that was being written. */
static void check_after_kill(int region, char acknowledged)
{
        struct target_host host;
        char next = acknowledged == 'z' ? 'a' : (char)(acknowledged + 1);
        const char *data;

        if (!CHECK_INT(open_host(&host, region), 0))
                return;
        CHECK_INT(report_of(&host).rejected, 0);
        CHECK_INT(report_of(&host).records, KEEPING_BLOCKS);
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, LENGTH), LENGTH);
        data = target_host_data(&host, 0);
        for (unsigned i = 0; i < LENGTH; i++)
                if (!CHECK(data[i] == acknowledged || data[i] == next)
                        || !CHECK_INT(data[i], data[i - i % KEEPING_BLOCK]))
                        break;
        target_host_close(&host);
}

static void test_a_killed_worker_loses_nothing_that_it_acknowledged(void)
{
        const struct region_kept_wish wish = wish_of_target();
        int region = new_region(&wish, -1);
        uint64_t *written =
                mmap(NULL, sizeof(*written), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        for (unsigned i = 0; i < 20; i++) {
                pid_t pid;

                *written = 0;
                pid = fork();
                if (pid == 0)
                        write_until_killed(region, written);
                if (!await_writes(pid, written, i + 1))
                        break;
                CHECK_INT(kill(pid, SIGKILL), 0);
                CHECK_INT(waitpid(pid, NULL, 0), pid);
                check_after_kill(region, letter_of(*written));
        }
        (void)munmap(written, sizeof(*written));
        close(region);
}

/* A worker that dies before it has settled the memory leaves a half of something: the next one begins from zeroes. */
static void test_what_was_not_settled_is_zeroed(void)
{
        const struct region_kept_wish wish = wish_of_target();
        int region = new_region(&wish, -1);
        struct region_kept_map map;
        struct target_host host;

        CHECK_INT(region_kept_map(region, 1, &wish, &map), 0);
        memset((char *)region_kept_disk(&map) + REGION_KEPT_HEAD, 'x', map.disk_bytes);
        memset((char *)region_kept_queue(&map, 0) + REGION_KEPT_HEAD, 'x', map.queue_bytes);
        region_kept_disk(&map)->settled = 2;
        CHECK_INT(open_host(&host, region), 0);
        CHECK(report_of(&host).disk_was_fresh && report_of(&host).queue_was_fresh);
        CHECK_INT(report_of(&host).workers, 1);
        CHECK_INT(report_of(&host).rejected, 0);
        target_host_close(&host);
        close(region);
}

/* The supervisor has made memory for another version in between. */
static void test_another_version_is_fresh(void)
{
        const struct region_kept_wish wish = wish_of_target();
        struct region_kept_wish other = wish;
        int one = new_region(&wish, -1), two, three;
        struct target_host host;

        CHECK_INT(open_host(&host, one), 0);
        write_all(&host, 'a');
        target_host_close(&host);
        other.version++;
        two = new_region(&other, one);
        CHECK_INT(open_host(&host, two), -EPROTO); /* never used as if it were its own */
        target_host_close(&host);
        three = new_region(&wish, two);
        CHECK_INT(open_host(&host, three), 0);
        CHECK(report_of(&host).queue_was_fresh);
        CHECK_INT(read_all(&host), 0);
        target_host_close(&host);
        close(three);
        close(two);
        close(one);
}

/* ublkd is older than the worker, and has made no memory for this target. */
static void test_a_region_without(void)
{
        int region = new_region(&(struct region_kept_wish){.target = "null"}, -1);
        struct target_host host;

        CHECK_INT(open_host(&host, region), -EPROTO);
        target_host_close(&host);
        close(region);
}

int main(void)
{
        test_the_next_worker_has_the_data();
        test_a_killed_worker_loses_nothing_that_it_acknowledged();
        test_what_was_not_settled_is_zeroed();
        test_another_version_is_fresh();
        test_a_region_without();
        return check_report();
}
