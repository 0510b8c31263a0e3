/* SPDX-License-Identifier: MIT */
/* The image of a device in a pool: made once, grown before its worker, deleted after its disk. Real files, under a fake
 * kernel and fake workers. */
#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "tests/unit/ublkd/reconcile/reconciler_world.h"
#include "ublkd/backing/file_identity.h"
#include "ublkd/offload/job_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 1 << 20 /* as fake workers report it */, PATIENCE_MS = 20000 };

static char pool[32], path[64];

static void begin(struct world *world)
{
        strcpy(pool, "/tmp/ublkd-pool-XXXXXX");
        CHECK(mkdtemp(pool));
        snprintf(path, sizeof(path), "%s/data-0123456789abcdef.img", pool);
        world_new(world);
        world_stop_reconciler(world);
        CHECK_INT(job_thread_new(world->event, &world->image_thread), 0);
        world->host.features = WORLD_GROWS;
        world_start_reconciler(world);
}

static void end(struct world *world)
{
        world_stop_reconciler(world);
        world->image_thread = job_thread_free(world->image_thread);
        world_free(world);
        remove_tree(pool);
}

static void put(struct world *world, unsigned size, const char *target, const char *more)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        enum put_outcome outcome;
        char text[512];
        cJSON *document;

        snprintf(text, sizeof(text),
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"fast\",\"path\":\"%s\"%s},"
                "\"size\":%u%s}",
                path, target, size, more);
        document = cJSON_Parse(text);
        if (CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0))
                CHECK_INT(device_store_put(world->store, spec, &condition, &record, &outcome, &problems), 0);
        cJSON_Delete(document);
}

static int64_t size_of_image(void)
{
        struct stat info;

        return lstat(path, &info) < 0 ? -1 : info.st_size;
}

static bool has_worker(const struct world *world)
{
        (void)world;
        return fake_worker("data") != NULL;
}

static bool is_asked(const struct world *world)
{
        (void)world;
        return fake_worker("data") && fake_worker("data")->asked > 0;
}

static bool image_is_there(const struct world *world)
{
        (void)world;
        return size_of_image() >= 0;
}

static bool image_is_gone(const struct world *world)
{
        return !image_is_there(world);
}

static void wait_until(struct world *world, bool (*holds)(const struct world *world))
{
        for (unsigned i = 0; i < PATIENCE_MS && !holds(world); i++)
                world_settle(world, 1);
        CHECK(holds(world));
}

/* Let its worker open the image, and report what it is. */
static void open_image(struct world *world)
{
        struct fake_worker *worker;
        struct stat info;
        int fd;

        wait_until(world, has_worker);
        worker = fake_worker("data");
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (!CHECK(worker && fd >= 0) || !CHECK_INT(fstat(fd, &info), 0))
                return;
        fake_worker_store(worker, "file:a", fd);
        file_identify(fd, &info, &worker->store.identity);
        world_bring_up(world, "data", "file:1");
}

static void bring_up(struct world *world, const char *target, const char *more)
{
        put(world, SIZE, target, more);
        open_image(world);
}

static void remove_device(struct world *world)
{
        CHECK_INT(device_store_request_delete(world->store, "data", true), 0);
}

/* ---- making ---- */

static void the_image_is_made_before_the_first_worker(void)
{
        struct world world;

        begin(&world);
        put(&world, SIZE, "", "");
        wait_until(&world, has_worker);
        CHECK_INT(size_of_image(), SIZE);
        CHECK_INT(world_count_events(&world, REASON_IMAGE_CREATED), 1);
        CHECK(strstr(world_last_message(&world, REASON_IMAGE_CREATED), path));
        end(&world);
}

static void a_pool_that_cannot_be_used_is_tried_again(void)
{
        struct world world;

        begin(&world);
        CHECK_INT(chmod(pool, 0770), 0);
        put(&world, SIZE, "", "");
        world_wait_reason(&world, "data", REASON_POOL_UNAVAILABLE);
        CHECK_INT(world_phase(&world, "data"), PHASE_BACKOFF);
        world_wait_value(&world, "data", pool);
        CHECK(!fake_worker("data"));
        CHECK_INT(size_of_image(), -1);
        CHECK_INT(chmod(pool, 0700), 0);
        open_image(&world);
        end(&world);
}

static void take_disk_away(struct world *world)
{
        CHECK_INT(device_store_request_stop(world->store, "data"), 0);
        world_settle(world, 5);
        CHECK_INT(world_phase(world, "data"), PHASE_DISABLED);
}

/* An empty file would be a disk that has lost all its data, and looks well. */
static void an_image_that_was_lost_is_not_made_again(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        take_disk_away(&world);
        CHECK_INT(unlink(path), 0);
        put(&world, SIZE, "", ",\"queueDepth\":64");
        put(&world, SIZE, ",\"directIo\":\"off\"",
                ",\"queueDepth\":64"); /* the same store, with other options */
        CHECK_INT(device_store_request_start(world.store, "data"), 0);
        wait_until(&world, has_worker); /* which shows what is wrong */
        CHECK_INT(size_of_image(), -1);
        fake_worker_refuse(fake_worker("data"), "BackingFileMissing", "There is no such file");
        world_settle(&world, 5);
        wait_until(&world, has_worker);
        CHECK_INT(size_of_image(), -1);
        fake_worker_refuse(fake_worker("data"), "BackingFileMissing", "There is no such file");
        world_wait_reason(&world, "data", REASON_BACKING_FILE_MISSING);
        end(&world);
}

/* What it has lost would read as zeroes. */
static void an_image_that_was_cut_off_is_not_grown(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        world_stop_reconciler(&world);
        CHECK_INT(truncate(path, SIZE / 2), 0);
        memset(fake_disks, 0, sizeof(fake_disks)); /* a boot */
        world_start_reconciler(&world);
        wait_until(&world, has_worker);
        CHECK_INT(size_of_image(), SIZE / 2);
        end(&world);
}

/* ---- growing ---- */

static void the_image_grows_before_the_worker(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        put(&world, 4 * SIZE, "", "");
        wait_until(&world, is_asked);
        CHECK_INT(size_of_image(), 4 * SIZE);
        CHECK_INT(fake_worker("data")->asked, 4 * SIZE);
        end(&world);
}

static void a_disk_whose_image_cannot_grow_is_served_as_before(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        CHECK_INT(chmod(pool, 0770), 0);
        put(&world, 4 * SIZE, "", "");
        world_wait_reason(&world, "data", REASON_CANNOT_GROW);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE);
        CHECK(!is_asked(&world));
        CHECK_INT(chmod(pool, 0700), 0);
        wait_until(&world, is_asked);
        CHECK_INT(size_of_image(), 4 * SIZE);
        end(&world);
}

/* A kernel that cannot change the size of a disk. */
static void the_image_grows_for_a_new_disk(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        take_disk_away(&world);
        put(&world, 4 * SIZE, "", "");
        CHECK_INT(device_store_request_start(world.store, "data"), 0);
        wait_until(&world, has_worker);
        CHECK_INT(size_of_image(), geteuid() == 0 ? 4 * SIZE : SIZE);
        end(&world);
}

/* ---- a thread that hangs ---- */

static sem_t may_end;

static void run_blocked(struct thread_job *job)
{
        (void)job;
        while (sem_wait(&may_end) < 0)
                continue;
}

static void drop_job(struct thread_job *job)
{
        free(job);
}

static void block_thread(struct world *world)
{
        struct thread_job *job = calloc(1, sizeof(*job));

        CHECK_INT(sem_init(&may_end, 0, 0), 0);
        *job = (struct thread_job){.run = run_blocked, .done = drop_job};
        job_thread_add(world->image_thread, job);
}

static void free_thread(void)
{
        (void)sem_post(&may_end);
}

static void a_pool_that_hangs_is_not_in_the_way_of_a_recovery(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        block_thread(&world);
        put(&world, 4 * SIZE, "", "");
        world_settle(&world, 5);
        CHECK(!is_asked(&world));
        fake_worker_die(fake_worker("data"));
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_RECOVERING);
        world_bring_up(&world, "data", "file:1");
        free_thread();
        wait_until(&world, is_asked);
        CHECK_INT(size_of_image(), 4 * SIZE);
        end(&world);
}

static void nor_of_a_disk_that_dies_with_its_worker(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", ",\"recovery\":{\"onCrash\":\"none\"}");
        block_thread(&world);
        fake_worker_die(fake_worker("data"));
        fake_disks[0].state = KERNEL_STATE_DEAD;
        wait_until(&world, has_worker);
        free_thread();
        end(&world);
}

static void a_removal_waits_for_the_image_that_is_being_made(void)
{
        struct world world;

        begin(&world);
        block_thread(&world);
        put(&world, SIZE, "", "");
        world_settle(&world, 5);
        CHECK(!fake_worker("data"));
        remove_device(&world);
        world_settle(&world, 5);
        CHECK(world_record(&world, "data"));
        free_thread();
        world_wait_gone(&world, "data");
        CHECK_INT(size_of_image(), -1);
        CHECK_INT(world_count_events(&world, REASON_IMAGE_CREATED), 1); /* it was there */
        end(&world);
}

/* The job outlives the reconciler. */
static void a_job_may_end_after_its_device(void)
{
        struct world world;

        begin(&world);
        block_thread(&world);
        put(&world, SIZE, "", "");
        world_settle(&world, 5);
        world_stop_reconciler(&world);
        free_thread();
        wait_until(&world, image_is_there);
        world_start_reconciler(&world);
        open_image(&world);
        end(&world);
}

/* ---- removing ---- */

static void the_image_goes_after_the_disk(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        remove_device(&world);
        for (unsigned i = 0; i < PATIENCE_MS && world_record(&world, "data"); i++) {
                if (fake_disks[0].exists)
                        CHECK(size_of_image() == SIZE);
                world_settle(&world, 0);
        }
        world_wait_gone(&world, "data");
        CHECK_INT(size_of_image(), -1);
        CHECK_INT(world_count_events(&world, REASON_IMAGE_DELETED), 1);
        end(&world);
}

static void an_image_that_is_kept_stays(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        put(&world, SIZE, ",\"keep\":true", "");
        world_settle(&world, 5);
        CHECK_INT(world_phase(&world, "data"), PHASE_LIVE); /* the same disk */
        CHECK_INT(world_record(&world, "data")->epoch, 1);
        remove_device(&world);
        world_wait_gone(&world, "data");
        CHECK_INT(size_of_image(), SIZE);
        CHECK_INT(world_count_events(&world, REASON_IMAGE_KEPT), 1);
        CHECK(strstr(world_last_message(&world, REASON_IMAGE_KEPT), path));
        end(&world);
}

static void an_image_that_cannot_be_deleted_keeps_the_record(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        CHECK_INT(chmod(pool, 0770), 0);
        remove_device(&world);
        world_wait_reason(&world, "data", REASON_IMAGE_NOT_DELETED);
        CHECK_INT(size_of_image(), SIZE);
        CHECK_INT(chmod(pool, 0700), 0);
        world_wait_gone(&world, "data");
        CHECK_INT(size_of_image(), -1);
        end(&world);
}

static void another_file_at_the_path_stays(void)
{
        struct world world;
        char other[96];

        begin(&world);
        bring_up(&world, "", "");
        snprintf(other, sizeof(other), "%s.old", path);
        CHECK_INT(rename(path, other), 0);
        close_fd(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        remove_device(&world);
        world_wait_reason(&world, "data", REASON_IMAGE_NOT_DELETED);
        CHECK_INT(size_of_image(), 0);
        CHECK_INT(rename(other, path), 0); /* the image is back */
        world_wait_gone(&world, "data");
        CHECK_INT(size_of_image(), -1);
        end(&world);
}

static void a_death_before_the_record_is_erased_is_made_good(void)
{
        struct world world;

        begin(&world);
        bring_up(&world, "", "");
        remove_device(&world);
        world.disk.write_error = -EIO;
        wait_until(&world, image_is_gone);
        world_settle(&world, 5);
        CHECK(world_record(&world, "data"));
        world_stop_reconciler(&world);
        world.disk.write_error = 0;
        world_start_reconciler(&world);
        world_wait_gone(&world, "data");
        end(&world);
}

static void a_device_that_never_had_an_image_can_be_removed(void)
{
        struct world world;

        begin(&world);
        CHECK_INT(chmod(pool, 0770), 0);
        put(&world, SIZE, ",\"keep\":true", "");
        world_wait_reason(&world, "data", REASON_POOL_UNAVAILABLE);
        remove_device(&world);
        world_wait_gone(&world, "data");
        CHECK_INT(world_count_events(&world, REASON_IMAGE_KEPT), 0);
        end(&world);
}

int main(void)
{
        the_image_is_made_before_the_first_worker();
        a_pool_that_cannot_be_used_is_tried_again();
        an_image_that_was_lost_is_not_made_again();
        an_image_that_was_cut_off_is_not_grown();
        the_image_grows_before_the_worker();
        a_disk_whose_image_cannot_grow_is_served_as_before();
        the_image_grows_for_a_new_disk();
        a_pool_that_hangs_is_not_in_the_way_of_a_recovery();
        nor_of_a_disk_that_dies_with_its_worker();
        a_removal_waits_for_the_image_that_is_being_made();
        a_job_may_end_after_its_device();
        the_image_goes_after_the_disk();
        an_image_that_is_kept_stays();
        an_image_that_cannot_be_deleted_keeps_the_record();
        another_file_at_the_path_stays();
        a_death_before_the_record_is_erased_is_made_good();
        a_device_that_never_had_an_image_can_be_removed();
        return check_report();
}
