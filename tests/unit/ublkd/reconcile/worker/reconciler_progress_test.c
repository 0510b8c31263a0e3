/* SPDX-License-Identifier: MIT */
/* Workers whose requests do not end: killed, or only reported. /sys and /proc are trees of files, hangAfter is 1 s. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/base/clock.h"
#include "ublkd/disks/disk_stat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANG "\"hangAfter\":\"1s\""

enum { HANG_MS = 1000, LATE_MS = 20 * 1000 };

static char tree[] = "/tmp/reconciler-progress-XXXXXX";
static const struct progress_places places = {.sys = tree, .proc = tree};
static const char *const names[] = {"data"};

struct test {
        struct world world;
        struct queue_stats *queue; /* of the one queue, as its worker sees it */
};

static void put(const char *folder, const char *file, const char *text)
{
        _cleanup_fclose_ FILE *stream = NULL;
        char path[160];

        snprintf(path, sizeof(path), "mkdir -p %s/%s", tree, folder);
        CHECK_INT(system(path), 0);
        snprintf(path, sizeof(path), "%s/%s/%s", tree, folder, file);
        stream = fopen(path, "we");
        CHECK(stream && fputs(text, stream) >= 0);
}

static void put_disk(unsigned ended, unsigned in_flight)
{
        char text[96];

        snprintf(text, sizeof(text), "%u 0 0 0 0 0 0 0 %u 0 0 0 0 0 0 0 0\n", ended, in_flight);
        put("block/ublkb0", "stat", text);
}

static void put_process(char letter)
{
        char folder[32], text[96];

        snprintf(folder, sizeof(folder), "%d", FAKE_PID);
        snprintf(text, sizeof(text), "%d (ublkd-worker) %c 1 1 1 0 -1 0 0 0 0 0 0 0\n", FAKE_PID, letter);
        put(folder, "stat", text);
        snprintf(folder, sizeof(folder), "%d/task/%d", FAKE_PID, FAKE_PID + 1);
        snprintf(text, sizeof(text), "%d (queue-0) %c 1 1 1 0 -1 0 0 0 0 0 0 0\n", FAKE_PID + 1, letter);
        put(folder, "stat", text);
}

static void bring_up(struct test *test, const char *recovery)
{
        const struct device_record *record;
        _cleanup_close_ int fd = -1;
        char more[128];
        void *base = NULL;

        put_disk(3, 0);
        put_process('S');
        world_new(&test->world);
        world_stop_reconciler(&test->world);
        test->world.progress_places = &places;
        world_start_reconciler(&test->world);
        snprintf(more, sizeof(more), ",\"id\":0,\"recovery\":{%s}", recovery);
        world_put_loop(&test->world, "data", more);
        record = world_record(&test->world, "data");
        fd = runtime_dir_ensure_region(test->world.dir, record->uid,
                &(struct device_region_key){.queues = 1, .epoch = record->epoch});
        CHECK_INT(device_region_map(fd, 1, &base), 0);
        test->queue = device_region_queue_stats(base, 0);
        world_bring_up(&test->world, "data", "file:1");
}

static void wait_for_event(struct test *test, enum condition_reason reason, unsigned count)
{
        for (unsigned waited = 0; waited < LATE_MS && world_count_events(&test->world, reason) < count;
                waited += 10)
                world_settle(&test->world, 10);
        CHECK_INT(world_count_events(&test->world, reason), count);
}

static const struct device_condition *condition(const struct test *test)
{
        return &world_record(&test->world, "data")->status.conditions.of[CONDITION_PROGRESS];
}

static void a_slow_store_is_reported(void)
{
        struct test test;

        bring_up(&test, HANG);
        test.queue->ops[STATS_READ].begun = 1;
        put_disk(3, 1);
        wait_for_event(&test, REASON_BACKING_SLOW, 1);
        world_settle(&test.world, 20);
        CHECK_INT(condition(&test)->status, CONDITION_FALSE);
        CHECK_INT(condition(&test)->reason, REASON_BACKING_SLOW);
        CHECK(condition(&test)->transition_at > 0);
        CHECK_INT(world_phase(&test.world, "data"), PHASE_LIVE);
        test.queue->ops[STATS_READ].latency[0] = 1;
        put_disk(4, 0);
        wait_for_event(&test, REASON_PROGRESS_RESUMED, 1);
        world_settle(&test.world, 20);
        CHECK_INT(condition(&test)->status, CONDITION_ABSENT);
        CHECK_INT(fake_kills, 0);
        world_free(&test.world);
}

static void a_stopped_worker_is_replaced(void)
{
        struct test test;

        bring_up(&test, HANG);
        put_process('T');
        wait_for_event(&test, REASON_WORKER_HUNG, 1);
        CHECK_INT(fake_kills, 1);
        put_process('S');
        world_churn(&test.world, names, 1, "file:1");
        CHECK_INT(world_phase(&test.world, "data"), PHASE_LIVE);
        CHECK_INT(world_record(&test.world, "data")->status.worker.restarts, 1);
        CHECK_INT(world_count_events(&test.world, REASON_WORKER_DIED), 0);
        CHECK_INT(world_count_events(&test.world, REASON_RECOVERED), 1);
        world_free(&test.world);
}

/* By their specs a death would cost the disk, or the disk would wait for a recover. */
static void a_stopped_worker_whose_death_costs_more_stays(void)
{
        static const char *const specs[] = {HANG ",\"onCrash\":\"none\"", HANG ",\"trigger\":\"manual\""};

        for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
                struct test test;

                bring_up(&test, specs[i]);
                put_disk(3, 1);
                put_process('T');
                wait_for_event(&test, REASON_WORKER_HUNG, 1);
                world_settle(&test.world, 20);
                CHECK_INT(fake_kills, 0);
                CHECK_INT(condition(&test)->reason, REASON_WORKER_HUNG);
                CHECK_INT(world_phase(&test.world, "data"), PHASE_LIVE);
                put_process('S');
                put_disk(4, 0);
                wait_for_event(&test, REASON_PROGRESS_RESUMED, 1);
                world_free(&test.world);
        }
}

/* What a second worker does not know of either is not its fault: a third one would not help. */
static void a_worker_that_knows_of_no_request_is_replaced_once(void)
{
        struct test test;

        bring_up(&test, HANG);
        put_disk(3, 1);
        wait_for_event(&test, REASON_WORKER_HUNG, 1);
        CHECK_INT(fake_kills, 1);
        world_churn(&test.world, names, 1, "file:1");
        wait_for_event(&test, REASON_WORKER_HUNG, 2);
        world_settle(&test.world, 2 * HANG_MS);
        CHECK_INT(fake_kills, 1);
        CHECK_INT(condition(&test)->reason, REASON_WORKER_HUNG);
        CHECK_INT(world_phase(&test.world, "data"), PHASE_LIVE);
        world_free(&test.world);
}

static void nothing_is_looked_for_on_request(void)
{
        struct test test;

        bring_up(&test, "\"hangAfter\":\"0\"");
        put_process('T');
        put_disk(3, 1);
        world_settle(&test.world, 3 * HANG_MS);
        CHECK_INT(fake_kills, 0);
        CHECK_INT(condition(&test)->status, CONDITION_ABSENT);
        world_put_loop(
                &test.world, "data", ",\"id\":0,\"recovery\":{\"hangAfter\":\"1s\"}"); /* under the disk */
        wait_for_event(&test, REASON_WORKER_HUNG, 1);
        world_free(&test.world);
}

enum { MANY = 8 };

static uint64_t first_look[MANY];

int __real_disk_stat_read(const char *sys, int number, struct disk_stat *ret);
int __wrap_disk_stat_read(const char *sys, int number, struct disk_stat *ret);
int __wrap_disk_stat_read(const char *sys, int number, struct disk_stat *ret)
{
        if (number < MANY && first_look[number] == 0)
                first_look[number] = monotonic_now();
        return __real_disk_stat_read(sys, number, ret);
}

/* Return the time from the earliest to the latest first look; 0: there was none at a disk. */
static uint64_t range_of_looks(void)
{
        uint64_t first = UINT64_MAX, last = 0;

        for (unsigned i = 0; i < MANY; i++) {
                if (first_look[i] == 0)
                        return 0;
                first = first_look[i] < first ? first_look[i] : first;
                last = first_look[i] > last ? first_look[i] : last;
        }
        return last - first;
}

/* Wait for the next look. */
static void wait_for_look(struct test *test)
{
        first_look[0] = 0;
        for (unsigned waited = 0; waited < LATE_MS && first_look[0] == 0; waited += 10)
                world_settle(&test->world, 10);
        CHECK(first_look[0] > 0);
}

static void a_lower_value_counts_at_once(void)
{
        struct test test;
        uint64_t since;

        bring_up(&test, HANG);
        world_put_loop(&test.world, "data", ",\"id\":0,\"recovery\":{\"hangAfter\":\"1h\"}");
        world_settle(&test.world, 20);
        wait_for_look(&test); /* the next one is 15 s later */
        put_process('T');
        world_put_loop(&test.world, "data", ",\"id\":0,\"recovery\":{" HANG "}");
        since = monotonic_now();
        wait_for_event(&test, REASON_WORKER_HUNG, 1);
        CHECK(monotonic_now() - since < 10 * 1000 * 1000); /* usually a second and a half */
        CHECK_INT(fake_kills, 1);
        world_free(&test.world);
}

/* As after a start of ublkd. By chance, eight disks have a smaller range less than once in 100,000 times. */
static void devices_that_begin_together_are_not_looked_at_together(void)
{
        struct world world;
        char name[8];

        world_new(&world);
        for (unsigned i = 0; i < MANY; i++) {
                snprintf(name, sizeof(name), "d%u", i);
                world_put_loop(&world, name, "");
                world_bring_up(&world, name, name);
        }
        world.progress_places = &places;
        world_restart_with_workers(&world);
        memset(first_look, 0, sizeof(first_look));
        for (unsigned i = 0; i < MANY; i++) {
                snprintf(name, sizeof(name), "d%u", i);
                fake_worker_greet(fake_worker(name), world_record(&world, name)->epoch,
                        world_record(&world, name)->number);
        }
        world_settle(&world, 15000 + 2000); /* by default, they are 15 s apart */
        CHECK(range_of_looks() > 1500 * 1000);
        world_free(&world);
}

int main(void)
{
        char command[64];

        CHECK(mkdtemp(tree));
        a_slow_store_is_reported();
        a_stopped_worker_is_replaced();
        a_stopped_worker_whose_death_costs_more_stays();
        a_worker_that_knows_of_no_request_is_replaced_once();
        nothing_is_looked_for_on_request();
        a_lower_value_counts_at_once();
        devices_that_begin_together_are_not_looked_at_together();
        snprintf(command, sizeof(command), "rm -r %s", tree);
        CHECK_INT(system(command), 0);
        return check_report();
}
