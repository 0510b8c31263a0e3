/* SPDX-License-Identifier: MIT */
/* A worker dies at the N-th await: when a coroutine is about to suspend, and when it is about to continue. For each N
 * until none dies, the next worker opens the files and the kept memory, and has all that was acknowledged. */
#include "targets/known/known_targets.h"
#include "targets/worker/disk/registry.h"
#include "tests/target/lined_target.h"
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        FILES = 2,
        FILE_BYTES = 32 * 1024,
        DISK = 32 * 1024,
        BLOCK = 512,
        ROUNDS = 4,
        WIDTH = 3,
        AWAITS_MAX = 500
};
enum { ENDED = 0, BROKEN = 1, DIED = 17 }; /* how the worker exits */

struct row {
        const char *name, *spec; /* %1$s, %2$s: paths of files */
        bool awaits;             /* requests suspend */
        bool loses;              /* a loss is to be found */
        bool new_region;         /* the next worker is not given the kept memory */
};

struct disk_under_test {
        struct scratch scratch;
        char paths[FILES][128], spec[512];
        int region;
        struct host_request (
                *rounds)[WIDTH]; /* shared with the worker; result: INT_MIN until it is answered */
};

/* ---- the death ---- */

static unsigned awaits_left; /* 0: nothing dies */
static bool dies_behind;     /* when the coroutine continues */

/* The linker puts ours in the place of the coroutines'. */
void __real_co_suspend(struct co *co);
void __wrap_co_suspend(struct co *co);

void __wrap_co_suspend(struct co *co)
{
        bool dies = awaits_left > 0 && --awaits_left == 0;

        if (dies && !dies_behind)
                _exit(DIED);
        __real_co_suspend(co);
        if (dies)
                _exit(DIED);
}

/* ---- the targets ---- */

/* The linker puts ours beside those of the worker. */
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);
const struct target_desc *__real_known_target_find(const char *name);
const struct target_desc *__wrap_known_target_find(const char *name);

const struct target *__wrap_target_find(const char *name)
{
        const struct target *target = lined_target_find(name);

        return target ? target : __real_target_find(name);
}

const struct target_desc *__wrap_known_target_find(const char *name)
{
        const struct target *target = lined_target_find(name);

        return target ? target->desc : __real_known_target_find(name);
}

/* ---- the requests ---- */

/* Each round writes to two places at the same time, one of which the round before has written as well. */
static struct host_request request_of(unsigned round, unsigned number)
{
        struct host_request request = {.op = IO_WRITE, .length = 4 * BLOCK, .result = INT_MIN};

        if (number == WIDTH - 1) {
                request.op = round % 2 == 0 ? IO_FLUSH : IO_READ;
                request.length = round % 2 == 0 ? 0 : 8 * BLOCK;
                return request;
        }
        request.flags = round == 2 && number == 0 ? IO_FUA : 0;
        request.offset =
                number * DISK / 2U + (round / 2 + 6) * BLOCK; /* over the end of a chunk of the stripe */
        return request;
}

static char letter_of(unsigned round)
{
        return (char)('a' + round);
}

static int open_host(const struct disk_under_test *disk, struct target_host *host)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = disk->region < 0 ? target_host_open(host, disk->spec, &problems)
                                 : target_host_open_kept(host, disk->spec, disk->region, &problems);

        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].pointer, problems.items[i].detail);
        return r;
}

static void serve_and_die(const struct disk_under_test *disk, unsigned await, bool behind)
{
        struct target_host host;

        if (open_host(disk, &host) < 0)
                _exit(BROKEN);
        awaits_left = await;
        dies_behind = behind;
        for (unsigned round = 0; round < ROUNDS; round++) {
                for (unsigned i = 0; i < WIDTH; i++)
                        memset(target_host_data(&host, i), letter_of(round), HOST_DATA_SIZE);
                if (target_host_perform(&host, disk->rounds[round], WIDTH) < 0)
                        _exit(BROKEN);
                for (unsigned i = 0; i < WIDTH; i++)
                        if (disk->rounds[round][i].result < 0)
                                _exit(BROKEN);
        }
        _exit(ENDED);
}

/* ---- the next worker ---- */

static bool covers(const struct host_request *request, uint64_t offset)
{
        return request->op == IO_WRITE && offset >= request->offset
               && offset < request->offset + request->length;
}

static bool is_answered(const struct host_request round[static WIDTH])
{
        bool answered = true;

        for (unsigned i = 0; i < WIDTH; i++)
                answered = answered && round[i].result != INT_MIN;
        return answered;
}

/* Return whether a block may have a letter: the last one that was acknowledged, or one that was under way. */
static bool is_admissible(const struct disk_under_test *disk, uint64_t offset, char letter)
{
        bool admissible = letter == 0;

        for (unsigned round = 0; round < ROUNDS; round++)
                for (unsigned i = 0; i < WIDTH; i++) {
                        const struct host_request *request = &disk->rounds[round][i];
                        bool begun = round == 0 || is_answered(disk->rounds[round - 1]);

                        if (!begun || !covers(request, offset))
                                continue;
                        admissible = letter == letter_of(round) || (request->result == INT_MIN && admissible);
                }
        return admissible;
}

/* Return how many blocks have what they may not have; -errno. */
static int look(const struct disk_under_test *disk)
{
        struct target_host host;
        const char *data;
        int r = open_host(disk, &host), wrong = 0;

        if (r >= 0)
                r = target_host_one(&host, IO_READ, 0, 0, DISK);
        data = r >= 0 ? target_host_data(&host, 0) : NULL;
        for (uint64_t i = 0; r >= 0 && i < DISK; i += BLOCK)
                wrong += !is_admissible(disk, i, data[i]) || memcmp(data + i, data + i + 1, BLOCK - 1) != 0;
        target_host_close(&host);
        return r < 0 ? r : wrong;
}

static int renew_region(struct disk_under_test *disk)
{
        uint64_t size;

        disk->region = close_fd(disk->region);
        return target_host_new_region(disk->spec, 1, &disk->region, &size);
}

static void renew(struct disk_under_test *disk)
{
        for (unsigned i = 0; i < FILES; i++) {
                CHECK_INT(truncate(disk->paths[i], 0), 0);
                CHECK_INT(truncate(disk->paths[i], FILE_BYTES), 0);
        }
        CHECK_INT(renew_region(disk), 0);
        for (unsigned round = 0; round < ROUNDS; round++)
                for (unsigned i = 0; i < WIDTH; i++)
                        disk->rounds[round][i] = request_of(round, i);
}

/* Return how the worker has exited. */
static int run_worker(struct disk_under_test *disk, unsigned await, bool behind)
{
        int status = 0;
        pid_t pid;

        renew(disk);
        pid = fork();
        if (pid == 0)
                serve_and_die(disk, await, behind);
        if (!CHECK_INT(waitpid(pid, &status, 0), pid) || !CHECK(WIFEXITED(status)))
                return BROKEN;
        return WEXITSTATUS(status);
}

static void test_row(const struct row *row, struct disk_under_test *disk, bool behind)
{
        unsigned await = 0, found = 0;
        int end = DIED;

        while (end == DIED && CHECK(await < AWAITS_MAX)) {
                int wrong;

                end = run_worker(disk, ++await, behind);
                if (row->new_region)
                        CHECK_INT(renew_region(disk), 0);
                wrong = look(disk);
                found += wrong > 0;
                if (!CHECK(wrong >= 0) || (!row->loses && !CHECK_INT(wrong, 0)))
                        fprintf(stderr, "  %s: died %s await %u\n", row->name, behind ? "behind" : "at",
                                await);
        }
        CHECK_INT(end, ENDED);
        CHECK(row->awaits ? await > ROUNDS : await == 1);
        CHECK(!row->loses || found > 0);
        printf("%s: died %s %u awaits\n", row->name, behind ? "behind" : "at", await - 1);
}

static const struct row rows[] = {
#define CHILD(TYPE, MORE, N) "{\"type\":\"" TYPE "\"," MORE "\"path\":\"%" #N "$s\"}"
#define LOOP(N) CHILD("loop", "", N)
#define FAULT(CACHE, CHILD_OF_IT) "{\"type\":\"fault\"," CACHE "\"child\":" CHILD_OF_IT "}"
#define CACHE "\"volatileCache\":true,"
#define STRIPE(ONE, OTHER)                                                                                   \
        "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[" ONE "," OTHER "]}}"
#define BLOCKING "\"directIo\":\"off\","
        {.name = "loop", .spec = "{\"target\":" LOOP(1) "}", .awaits = true},
        {.name = "stripe", .spec = STRIPE(LOOP(1), LOOP(2)), .awaits = true},
        {.name = "list",
                                                .spec = "{\"target\":{\"type\":\"linear\",\"children\":[{\"type\":\"linear\",\"length\":4096,"
                        "\"child\":" LOOP(1) "}," LOOP(2) "]},\"size\":32768}",
                                                .awaits = true},
        {.name = "fault", .spec = "{\"target\":" FAULT("", LOOP(1)) "}", .awaits = true},
        {.name = "fault, volatile cache", .spec = "{\"target\":" FAULT(CACHE, LOOP(1)) "}", .awaits = true},
        {.name = "stripe, one with a cache", .spec = STRIPE(FAULT(CACHE, LOOP(1)), LOOP(2)), .awaits = true},
        {.name = "fault, memory lost",
                                                .spec = "{\"target\":" FAULT(CACHE, LOOP(1)) "}",
                                                .awaits = true,
                                                .loses = true,
                                                .new_region = true},
        {.name = "keeping", .spec = "{\"target\":{\"type\":\"null\"},\"size\":32768}"},
        {.name = "background, locks, work",
                                                .spec = "{\"target\":" CHILD("lined", BLOCKING, 1) "}",
                                                .awaits = true},
        {.name = "stripe of these",
                                                .spec = STRIPE(CHILD("lined", BLOCKING, 1), CHILD("lined", BLOCKING, 2)),
                                                .awaits = true},
        {.name = "answered before the background writes",
                                                .spec = "{\"target\":" CHILD("hasty", BLOCKING, 1) "}",
                                                .awaits = true,
                                                .loses = true},
};

int main(void)
{
        struct disk_under_test disk = {.region = -1};
        const size_t size = ROUNDS * sizeof(*disk.rounds);

        if (!io_uring_is_there())
                return CHECK_SKIP;
        setvbuf(stdout, NULL, _IOLBF, 0); /* a fork copies no output */
        lined_targets_make();
        disk.rounds = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(disk.rounds != MAP_FAILED);
        CHECK_INT(scratch_make(&disk.scratch, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"), 0);
        CHECK_INT(scratch_file(&disk.scratch, "one", FILE_BYTES, disk.paths[0], sizeof(disk.paths[0])), 0);
        CHECK_INT(scratch_file(&disk.scratch, "two", FILE_BYTES, disk.paths[1], sizeof(disk.paths[1])), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(disk.spec, sizeof(disk.spec), rows[i].spec, disk.paths[0], disk.paths[1]);
#pragma GCC diagnostic pop
                test_row(&rows[i], &disk, false);
                test_row(&rows[i], &disk, true);
        }
        close_fd(disk.region);
        scratch_remove(&disk.scratch);
        (void)munmap(disk.rounds, size);
        return check_report();
}
