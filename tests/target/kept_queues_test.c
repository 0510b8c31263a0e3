/* SPDX-License-Identifier: MIT */
/* Kept memory of a disk with three queues, from worker to worker, as the core prepares it: each worker is a process with the threads
 * of its queues that dies at a moment of its start. An empty file takes the place of the driver's node, and the target below
 * that of null. */
#include "targets/null/null_desc.h"
#include "targets/null/null.h"
#include "targets/null/null_options.h"
#include "targets/worker/disk/disk_start.h"
#include "targets/worker/queue/queue_threads.h"
#include "targets/worker/queue/ublk_queue.h"
#include "tests/unit/check.h"
#include "ublkd/proto/region_faults.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUEUES = 3, DISK_BYTES = 100, QUEUE_BYTES = 5000 };

int __wrap_sem_wait(sem_t *sem);
int __real_sem_wait(sem_t *sem);
void __wrap_disk_started(struct disk *disk);
void __real_disk_started(struct disk *disk);
int __wrap_ublk_queue_fetch(struct ublk_queue *queue);

/* How far a worker gets before it is killed. SERVING: a queue has its first request, and has stored what it acknowledges. */
enum moment { OPENED, DEVICE_STARTED, TWO_QUEUES_STARTED, ALL_STARTED, SERVING };

/* What the target of the last worker was shown, and what it found. */
struct report {
        bool opened, started;
        int result;
        char reason[64]; /* of start_device() */
        struct {
                enum target_kept_state state;
                char letter; /* that all of the area consists of; 0 is one, too; -1: of several */
                uint64_t seed;
        } disk, queues[QUEUES], queues_at_start[QUEUES];
        unsigned queues_started;
        unsigned fetched; /* queues that take requests */
};

static struct report *report; /* shared with the workers */
static int refusal;           /* of start_device() */
static unsigned
        dies_at; /* the area whose mark a worker cannot set that dies when all have started; 0: of the disk */

/* Of the process of a worker. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct disk disk;
        enum moment moment;
        char letter;
        unsigned waiting; /* queues that have started, and wait */
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static _Thread_local bool is_queue; /* which has started */

static void fill(const struct target_kept *kept, char letter)
{
        memset(kept->memory, letter, kept->size);
}

static void fill_all(void)
{
        const struct target_device *device = &worker.disk.device;

        fill(&device->kept, worker.letter);
        for (unsigned i = 0; i < device->queues; i++)
                fill(&device->queues_kept[i], (char)(worker.letter + 1 + (int)i));
}

/* Fill all areas with letters, and be killed. */
static void die(void)
{
        fill_all();
        (void)kill(getpid(), SIGKILL);
}

static char letter_of(const struct target_kept *kept)
{
        const char *bytes = kept->memory;

        for (uint64_t i = 1; i < kept->size; i++)
                if (bytes[i] != bytes[0])
                        return -1;
        return bytes[0];
}

static int three_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)problems;
        *ret = (struct target_geometry){};
        report->opened = true;
        return device->kept.state == TARGET_KEPT_NONE && !device->kept.memory && !device->queues_kept
                       ? 0
                       : -EPROTO;
}

static int three_start_device(struct target_device *device, struct problem_list *problems)
{
        (void)problems;
        report->started = true;
        report->disk.state = device->kept.state;
        report->disk.letter = letter_of(&device->kept);
        report->disk.seed = device->kept.seed;
        for (unsigned i = 0; i < device->queues; i++) {
                report->queues[i].state = device->queues_kept[i].state;
                report->queues[i].letter = letter_of(&device->queues_kept[i]);
                report->queues[i].seed = device->queues_kept[i].seed;
        }
        return refusal;
}

/* One after another. */
static int three_start_queue(struct target_queue *queue)
{
        (void)pthread_mutex_lock(&worker.lock);
        while (report->queues_started < queue->index)
                (void)pthread_cond_wait(&worker.changed, &worker.lock);
        if (worker.moment == TWO_QUEUES_STARTED && queue->index == 2) {
                while (worker.waiting + report->fetched < 2)
                        (void)pthread_cond_wait(&worker.changed, &worker.lock);
                die();
        }
        report->queues_at_start[queue->index].state = queue->kept->state;
        report->queues_at_start[queue->index].letter = letter_of(queue->kept);
        report->queues_started++;
        is_queue = true;
        (void)pthread_cond_broadcast(&worker.changed);
        (void)pthread_mutex_unlock(&worker.lock);
        return 0;
}

static int three_read(struct target_io *io)
{
        return (int)io->length;
}

const struct target_desc null_desc = {
        .name = "null",
        .summary = "Keeps memory for the disk and for each queue",
        .flags = TARGET_NEVER_WAITS,
        .size_required = true,
        .options = &null_options_table,
        .kept_disk_bytes = DISK_BYTES,
        .kept_queue_bytes = QUEUE_BYTES,
        .kept_version = 1,
};

const struct target null_target = {
        .desc = &null_desc,
        .open = three_open,
        .start_device = three_start_device,
        .start_queue = three_start_queue,
        .read = three_read,
};

/* ---- a worker ---- */

static struct region_kept_wish wish(void)
{
        return (struct region_kept_wish){
                .target = "null", .disk_bytes = DISK_BYTES, .queue_bytes = QUEUE_BYTES, .version = 1};
}

static int new_region(unsigned queues, int from)
{
        struct region_kept_wish wanted = wish();
        const struct device_region_key key = {.queues = queues, .epoch = 1};
        int fd = memfd_create("region", MFD_CLOEXEC);

        wanted.new_disk = from < 0;
        CHECK_INT(region_kept_format(fd, &key, &wanted, from), 0);
        return fd;
}

/* The main thread waits for the tables of its threads by the same call. */
int __wrap_sem_wait(sem_t *sem)
{
        if (is_queue) {
                (void)pthread_mutex_lock(&worker.lock);
                worker.waiting++;
                (void)pthread_cond_broadcast(&worker.changed);
                (void)pthread_mutex_unlock(&worker.lock);
        }
        return __real_sem_wait(sem);
}

static void be_killed(int number)
{
        (void)number;
        (void)kill(getpid(), SIGKILL);
}

/* The head of each area has a page of its own. */
static void make_deadly(unsigned area)
{
        struct region_kept_map *map = &worker.disk.kept;
        struct region_kept_head *head = area == 0 ? region_kept_disk(map) : region_kept_queue(map, area - 1);
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

        (void)signal(SIGSEGV, be_killed);
        (void)mprotect((void *)((uintptr_t)head / page * page), page, PROT_READ);
}

void __wrap_disk_started(struct disk *disk)
{
        if (worker.moment == ALL_STARTED) {
                fill_all();
                make_deadly(dies_at);
        }
        __real_disk_started(disk);
}

int __wrap_ublk_queue_fetch(struct ublk_queue *queue)
{
        (void)queue;
        (void)pthread_mutex_lock(&worker.lock);
        report->fetched++;
        if (worker.moment == SERVING)
                die();
        (void)pthread_cond_broadcast(&worker.changed);
        (void)pthread_mutex_unlock(&worker.lock);
        return -EIO;
}

/* Return the error of the first thread that fails. */
static int run_queues(struct disk *disk, void *region)
{
        const struct shared shared = {
                .region = region, .news = -1, .pagemap = -1, .links = {-1, -1}
        };
        const struct data_route route = {.path = DATA_PATH_COPY, .batch = true};
        int driver = memfd_create("driver", MFD_CLOEXEC), error = 0;
        struct queue_threads *threads;
        const char *what;
        int r = queue_threads_start(disk, &shared, &route, driver, NULL, NULL, &threads);

        while (r >= 0 && queue_threads_state(threads, &error, &what) == QUEUE_THREADS_STARTING)
                (void)poll(&(struct pollfd){.fd = queue_threads_fd(threads), .events = POLLIN}, 1, -1);
        return r < 0 ? r : error;
}

static int serve(struct disk *disk, void *region)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = disk_start(disk, device_region_control(region), &problems);

        if (r < 0 && CHECK_INT(problems.count, 1))
                snprintf(report->reason, sizeof(report->reason), "%s", problems.items[0].reason);
        if (r < 0)
                return r;
        if (worker.moment == DEVICE_STARTED)
                die();
        return run_queues(disk, region);
}

static int work(int region, unsigned queues)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = (char *)(uintptr_t) "{\"target\":{\"type\":\"null\"},\"size\":4096}",
                           .queues = (uint16_t)queues,
                           .queue_depth = 16,
                           .max_io_size = 1 << 20}
        };
        _cleanup_problems_ struct problem_list problems = {};
        struct worker_config config;
        void *base;
        int r = worker_config_parse(&msg, &config, &problems);

        if (r >= 0)
                r = worker_config_map_region(&config, region, &base, &problems);
        if (r >= 0)
                r = disk_open(&config, -1, &worker.disk, &problems);
        return r < 0 || worker.moment == OPENED ? r : serve(&worker.disk, base);
}

/* A worker that fills all areas with letters at that moment, and is killed then. */
static void run_worker(int region, unsigned queues, enum moment moment, char letter)
{
        int status;
        pid_t pid;

        *report = (struct report){};
        CHECK_INT(region_kept_give(region), 0);
        pid = fork();
        if (pid == 0) {
                worker.moment = moment;
                worker.letter = letter;
                report->result = work(region, queues);
                (void)kill(getpid(), SIGKILL);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(report->opened);
        CHECK_INT(report->started, moment > OPENED);
        CHECK(report->fetched == 0 || report->queues_started == queues);
}

static void check_shown(unsigned queues, unsigned started, enum target_kept_state state, char letter)
{
        CHECK_INT(report->result, 0);
        CHECK_INT(report->disk.state, state);
        CHECK_INT(report->disk.letter, letter);
        for (unsigned i = 0; i < queues; i++) {
                char of_queue = letter == 0 ? 0 : (char)(letter + 1 + (int)i);

                CHECK_INT(report->queues[i].state, state);
                CHECK_INT(report->queues[i].letter, of_queue);
                CHECK(report->queues[i].seed != report->disk.seed);
                if (i >= started)
                        continue;
                CHECK_INT(report->queues_at_start[i].state, state);
                CHECK_INT(report->queues_at_start[i].letter, of_queue);
        }
        CHECK_INT(report->queues_started, started);
}

/* ---- tests ---- */

/* The fault of a failed flush, which the supervisor reports. */
static bool is_latched(int region)
{
        struct fault_report faults[_REGION_FAULT_MAX];
        const struct fault_report *fault = &faults[REGION_FAULT_FLUSH];

        CHECK_INT(region_faults_read(region, faults), 0);
        return fault->number > 0 && CHECK_INT(fault->op, STATS_OTHER) && CHECK_INT(fault->error, ENODATA);
}

static void the_next_worker_finds_all_areas(void)
{
        int region = new_region(QUEUES, -1);

        run_worker(region, QUEUES, SERVING, 'a');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FRESH, 0);
        run_worker(region, QUEUES, SERVING, 'k');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'a');
        /* One that dies early takes nothing away. */
        run_worker(region, QUEUES, DEVICE_STARTED, 'r');
        check_shown(QUEUES, 0, TARGET_KEPT_FOUND, 'k');
        run_worker(region, QUEUES, SERVING, 'a');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'r');
        close(region);
}

/* Until every queue has started, what was stored is a half of something, and none takes requests. */
static void a_worker_that_dies_while_it_starts(void)
{
        for (enum moment moment = OPENED; moment < SERVING; moment++) {
                int region = new_region(QUEUES, -1);

                run_worker(region, QUEUES, moment, 'a');
                CHECK_INT(report->fetched, 0);
                run_worker(region, QUEUES, SERVING, 'k');
                check_shown(QUEUES, QUEUES, TARGET_KEPT_FRESH, 0);
                close(region);
        }
}

static void set_marks(int region, const uint64_t marks[1 + QUEUES])
{
        const struct region_kept_wish wanted = wish();
        struct region_kept_map map;

        CHECK_INT(region_kept_map(region, QUEUES, &wanted, &map), 0);
        region_kept_disk(&map)->settled = marks[0];
        for (unsigned i = 0; i < QUEUES; i++)
                region_kept_queue(&map, i)->settled = marks[1 + i];
}

/* Killed in disk_started(), after any number of its stores: nothing was served. */
static void a_worker_that_dies_between_two_marks(void)
{
        static const struct {
                uint64_t marks[1 + QUEUES];
                enum target_kept_state state;
        } before[] = {
                {{0, 0, 0, 0}, TARGET_KEPT_FRESH},
                {{2, 0, 0, 0}, TARGET_KEPT_LOST },
                {{0, 0, 0, 1}, TARGET_KEPT_LOST },
        };

        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                for (dies_at = 0; dies_at <= QUEUES; dies_at++) {
                        int region = new_region(QUEUES, -1);

                        set_marks(region, before[i].marks);
                        run_worker(region, QUEUES, ALL_STARTED, 'a');
                        check_shown(QUEUES, QUEUES, before[i].state, 0);
                        CHECK_INT(report->fetched, 0);
                        run_worker(region, QUEUES, SERVING, 'k');
                        check_shown(QUEUES, QUEUES, before[i].state, 0);
                        CHECK_INT(is_latched(region), before[i].state == TARGET_KEPT_LOST);
                        run_worker(region, QUEUES, SERVING, 'a');
                        check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'k');
                        close(region);
                }
        dies_at = 0;
}

/* Before GO a thread of the worker before this one may still store into the memory. */
static void a_worker_without_go_touches_nothing(void)
{
        const struct region_kept_wish wanted = wish();
        int region = new_region(QUEUES, -1);
        struct region_kept_map map;
        const char *bytes;

        CHECK_INT(region_kept_map(region, QUEUES, &wanted, &map), 0);
        bytes = (const char *)region_kept_queue(&map, 2) + REGION_KEPT_HEAD;
        memset((char *)region_kept_queue(&map, 2) + REGION_KEPT_HEAD, 'x', QUEUE_BYTES);
        run_worker(region, QUEUES, OPENED, 'a');
        CHECK_INT(report->result, 0);
        CHECK(bytes[0] == 'x' && bytes[QUEUE_BYTES - 1] == 'x');
        run_worker(region, QUEUES, DEVICE_STARTED, 'a');
        check_shown(QUEUES, 0, TARGET_KEPT_FRESH, 0);
        close(region);
}

static void another_number_of_queues(void)
{
        int three = new_region(QUEUES, -1), two, again;

        run_worker(three, QUEUES, SERVING, 'a');
        two = new_region(2, three);
        run_worker(two, 2, SERVING, 'k');
        check_shown(2, 2, TARGET_KEPT_LOST, 0);
        again = new_region(QUEUES, two);
        run_worker(again, QUEUES, TWO_QUEUES_STARTED, 'a');
        check_shown(QUEUES, 2, TARGET_KEPT_LOST, 0);
        run_worker(again, QUEUES, SERVING, 'a'); /* that one has not served */
        check_shown(QUEUES, QUEUES, TARGET_KEPT_LOST, 0);
        run_worker(again, QUEUES, SERVING, 'k');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'a');
        close(again);
        close(two);
        close(three);
}

/* No worker leaves such marks: what they were set for may have been good. Of the disk, then of each queue. */
static void scribbled_marks(void)
{
        static const uint64_t cases[][1 + QUEUES] = {
                {1,          1, UINT64_MAX, 1},
                {2,          0, 0,          0},
                {0,          1, 1,          1},
                {1,          0, 1,          1},
                {1,          1, 0,          1},
                {0,          0, 0,          1},
                {UINT64_MAX, 2, 3,          4},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int region = new_region(QUEUES, -1);

                run_worker(region, QUEUES, SERVING, 'a');
                CHECK(!is_latched(region));
                set_marks(region, cases[i]);
                run_worker(region, QUEUES, DEVICE_STARTED, 'k');
                check_shown(QUEUES, 0, TARGET_KEPT_LOST, 0);
                CHECK(is_latched(region));
                run_worker(region, QUEUES, SERVING, 'k');
                check_shown(QUEUES, QUEUES, TARGET_KEPT_LOST, 0);
                run_worker(region, QUEUES, SERVING, 'a');
                check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'k');
                close(region);
        }
}

static void a_target_refuses_what_is_lost(void)
{
        int before = new_region(QUEUES, -1), region;

        run_worker(before, QUEUES, SERVING, 'a');
        region = new_region(QUEUES, before);
        refusal = -ENODATA;
        for (unsigned i = 0; i < 3; i++) {
                run_worker(region, QUEUES, SERVING, 'k');
                CHECK_INT(report->result, -ENODATA);
                CHECK_INT(report->disk.state, TARGET_KEPT_LOST);
                CHECK_STR(report->reason, "KeptMemoryLost");
                CHECK_INT(report->queues_started, 0);
        }
        refusal = -EIO; /* another reason than the loss */
        run_worker(region, QUEUES, SERVING, 'k');
        CHECK_INT(report->result, -EIO);
        CHECK_INT(report->disk.state, TARGET_KEPT_LOST);
        CHECK_STR(report->reason, "TargetNotOpened");
        refusal = 0;
        close(region);
        close(before);
}

/* The target does not serve, so the memory stays as it is for one that does. */
static void a_target_refuses_to_start(void)
{
        int region = new_region(QUEUES, -1);

        refusal = -ENODATA;
        run_worker(region, QUEUES, SERVING, 'a');
        CHECK_INT(report->result, -ENODATA);
        CHECK_STR(report->reason, "TargetNotOpened");
        CHECK_INT(report->queues_started, 0);
        refusal = 0;
        run_worker(region, QUEUES, SERVING, 'k');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FRESH, 0);
        refusal = -ENODATA;
        run_worker(region, QUEUES, SERVING, 'a');
        CHECK_INT(report->result, -ENODATA);
        refusal = 0;
        run_worker(region, QUEUES, SERVING, 'a');
        check_shown(QUEUES, QUEUES, TARGET_KEPT_FOUND, 'k');
        close(region);
}

int main(void)
{
        report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (report == MAP_FAILED)
                return 1;
        the_next_worker_finds_all_areas();
        a_worker_that_dies_while_it_starts();
        a_worker_that_dies_between_two_marks();
        a_worker_without_go_touches_nothing();
        another_number_of_queues();
        scribbled_marks();
        a_target_refuses_what_is_lost();
        a_target_refuses_to_start();
        return check_report();
}
