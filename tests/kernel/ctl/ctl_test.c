/* SPDX-License-Identifier: MIT */
/* ublk_ctl and worker_proc against the real driver, without the rest of the supervisor: every command, the
 * answers that the reconciler relies on, and one disk from birth through a recovery to its end.
 *
 *   ctl_test PATH-OF-UBLKD-WORKER
 *
 * Run as root in a machine that may be thrown away. It is its own control helper. */
#include "ctl_call.h"

#include "tests/unit/ublkd/driver/control_open.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/offload/proc_spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

enum {
        RECOVERY_TRIES = 5000,
        DISK_SIZE = 64 << 20,
};

static const uint64_t cookie = UINT64_C(0x0123456789abcdef);
static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";
static const char spec[] = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":67108864}";

uint64_t now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void on_done(void *userdata, int result, const struct kernel_device *device)
{
        struct test *test = userdata;

        test->done = true;
        test->result = result;
        test->with_device = device;
        if (device)
                test->device = *device;
}

/* The result of a call that was submitted with `r`. */
int finish(struct test *test, int r)
{
        uint64_t start = now_usec();

        if (r < 0)
                return r;
        while (!test->done && now_usec() < start + PATIENCE_USEC)
                sd_event_run(test->event, 1000 * 1000);
        CHECK(test->done);
        test->done = false;
        return test->result;
}

/* With all that this kernel can do more. */
static uint64_t extra_flags;

static struct kernel_device_request request_for(int number)
{
        return (struct kernel_device_request){
                .number = number,
                .cookie = cookie,
                .flags = ublk_ctl_flags(KERNEL_RECOVERY_REISSUE) | extra_flags,
                .queues = 1,
                .queue_depth = 32,
                .max_io_size = 512 << 10,
        };
}

static const struct disk_params sample = {
        .size = DISK_SIZE,
        .logical_block_size = 512,
        .physical_block_size = 4096,
        .io_min = 4096,
        .max_io_size = 512 << 10,
        .discard_granularity = 4096,
        .max_discard_size = 1 << 20,
        .max_write_zeroes_size = 1 << 20,
        .volatile_cache = true,
        .fua = true,
};

/* DEL_DEV_ASYNC does not wait for processes that still have the device open: the ring of a worker that has just
 * ended, a command that was given up. Until then the number is taken. */
static void await_absence(struct test *test)
{
        uint64_t start = now_usec();
        int r;

        while ((r = CALL(get_info, NUMBER)) == 0 && now_usec() < start + PATIENCE_USEC)
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        CHECK_INT(r, -ENODEV);
}

/* Where it was another device's before, the number is free only at the end of that one's release, and the
 * driver does not find it from the beginning of that on: see attempt_add_result(). */
static int add_to_free(struct test *test, const struct kernel_device_request *request)
{
        uint64_t start = now_usec();
        int r;

        while ((r = CALL(add, request)) == -EEXIST && now_usec() < start + PATIENCE_USEC)
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        return r;
}

/* No other command for the device is sent before the one that was given up is out of the way. */
static int stop_released(struct test *test)
{
        uint64_t start = now_usec();
        int r;

        while ((r = CALL(stop, NUMBER)) == -EALREADY && now_usec() < start + PATIENCE_USEC)
                sd_event_run(test->event, 10 * 1000);
        return r;
}

static void test_features(struct test *test)
{
        printf("features: %#jx\n", (uintmax_t)test->features);
        extra_flags = ublk_ctl_extra_flags(KERNEL_RECOVERY_REISSUE, false, test->features);
        CHECK(!ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_REISSUE), test->features));
}

static void test_nothing_there(struct test *test)
{
        CHECK_INT(CALL(get_info, NUMBER), -ENODEV);
        CHECK_INT(CALL(stop, NUMBER), -ENODEV);
        CHECK_INT(CALL(try_stop, NUMBER), -ENODEV);
        CHECK_INT(CALL(stop_unheld, NUMBER), -ENODEV);
        CHECK_INT(CALL(quiesce, NUMBER), -ENODEV);
        CHECK_INT(CALL(del, NUMBER), -ENODEV);
        CHECK_INT(CALL(set_params, NUMBER, &sample), -ENODEV);
        CHECK_INT(CALL(start, NUMBER, getpid()), -ENODEV);
        CHECK_INT(CALL(begin_recovery, NUMBER, cookie), -ENODEV);
        CHECK_INT(CALL(end_recovery, NUMBER, cookie, getpid()), -ENODEV);
}

void check_device(struct test *test, enum kernel_state state)
{
        if (!CHECK(test->with_device))
                return;
        CHECK_INT(test->device.number, NUMBER);
        CHECK_INT(test->device.state, state);
        CHECK(test->device.cookie == cookie);
        CHECK_INT(test->device.queues, 1);
        CHECK_INT(test->device.queue_depth, 32);
        CHECK_INT(test->device.max_io_size, 512 << 10);
        CHECK(!ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_REISSUE), test->device.flags));
}

static void test_add_and_delete(struct test *test)
{
        struct kernel_device_request request = request_for(NUMBER), odd = request_for(NUMBER + 1);
        struct disk_params too_much = sample;

        CHECK_INT(CALL(add, &request), 0);
        check_device(test, KERNEL_STATE_DEAD);
        CHECK_INT(CALL(add, &request), -EEXIST);
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_DEAD);
        CHECK_INT(CALL(set_params, NUMBER, &sample), 0);
        CHECK_INT(CALL(set_params, NUMBER, &sample), 0); /* as often as one likes, before the start */
        too_much.max_io_size = 1 << 20;
        CHECK_INT(CALL(set_params, NUMBER, &too_much), -EINVAL);
        CHECK(CALL(begin_recovery, NUMBER, cookie) < 0);
        CHECK_INT(CALL(begin_recovery, NUMBER, cookie + 1), -ESTALE); /* as if another disk had the number */
        CHECK_INT(CALL(end_recovery, NUMBER, cookie + 1, getpid()), -ESTALE);
        CHECK_INT(CALL(stop, NUMBER), 0); /* legal at any time */
        CHECK_INT(CALL(get_info, NUMBER), 0);
        CHECK_INT(CALL(del, NUMBER), 0);
        CHECK_INT(CALL(get_info, NUMBER), -ENODEV);
        odd.queue_depth = 0;
        CHECK(CALL(add, &odd) < 0);
        CHECK_INT(CALL(get_info, NUMBER + 1), -ENODEV);
}

/* What is asked for and not there is dropped without a word, and has a name in the answer. */
static void test_negotiation(struct test *test)
{
        struct kernel_device_request request = request_for(NUMBER);
        const char *expected = ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_FAIL), test->features);

        request.flags = ublk_ctl_flags(KERNEL_RECOVERY_FAIL);
        CHECK_INT(add_to_free(test, &request), 0);
        CHECK_STR(ublk_ctl_missing(request.flags, test->device.flags), expected);
        CHECK_INT(CALL(del, NUMBER), 0);
        await_absence(test);
}

static void test_many(struct test *test)
{
        enum { COUNT = 40, BASE = 100 };
        struct kernel_device_request request;

        for (int i = 0; i < COUNT; i++) {
                request = request_for(BASE + i);
                CHECK_INT(CALL(add, &request), 0);
        }
        for (int i = 0; i < COUNT; i++) {
                CHECK_INT(CALL(get_info, BASE + i), 0);
                CHECK_INT(test->device.number, BASE + i);
                CHECK_INT(CALL(del, BASE + i), 0);
                CHECK_INT(CALL(get_info, BASE + i), -ENODEV);
        }
}

/* ---- with a worker ---- */

static void on_change(void *userdata _unused_, struct worker_proc *worker _unused_)
{
}

static void spawn(struct test *test)
{
        struct worker_msg config = {
                .type = WORKER_MSG_CONFIG,
                .config =
                        {
                                 .name = (char *)"data",
                                 .uid = (char *)uid,
                                 .epoch = 1,
                                 .spec = (char *)spec,
                                 .queues = 1,
                                 .queue_depth = 32,
                                 .max_io_size = 512 << 10,
                                 .reissue = true,
                                 },
        };

        CHECK_INT(worker_proc_spawn(test->event, test->dir, test->starter, &config, NULL, NULL, on_change,
                          test, &test->worker),
                0);
}

static bool reaches(struct test *test, enum worker_stage stage)
{
        uint64_t start = now_usec();

        while (!worker_proc_death(test->worker) && worker_proc_stage(test->worker) < stage
                && now_usec() < start + PATIENCE_USEC)
                sd_event_run(test->event, 1000 * 1000);
        for (size_t i = 0; i < worker_proc_problems(test->worker)->count; i++)
                fprintf(stderr, "worker: %s\n", worker_proc_problems(test->worker)->items[i].detail);
        if (worker_proc_death(test->worker))
                fprintf(stderr, "the worker %s\n", worker_proc_death(test->worker)->sentence);
        return !worker_proc_death(test->worker) && worker_proc_stage(test->worker) >= stage;
}

static void await_death(struct test *test)
{
        uint64_t start = now_usec();

        while (!worker_proc_death(test->worker) && now_usec() < start + PATIENCE_USEC)
                sd_event_run(test->event, 1000 * 1000);
        CHECK(worker_proc_death(test->worker));
}

static void read_disk(void)
{
        static char data[4096] __attribute__((aligned(4096)));
        char path[32];
        int fd;

        snprintf(path, sizeof(path), "/dev/ublkb%d", NUMBER);
        fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_INT(pread(fd, data, sizeof(data), 0), sizeof(data));
        close(fd);
}

static uint64_t read_sysfs(const char *attribute)
{
        char path[128], text[32] = "";
        int fd;

        snprintf(path, sizeof(path), "/sys/block/ublkb%d/%s", NUMBER, attribute);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (!CHECK(fd >= 0))
                return UINT64_MAX;
        CHECK(read(fd, text, sizeof(text) - 1) > 0);
        close(fd);
        return strtoull(text, NULL, 10);
}

/* That the parameters arrived, as the block layer understood them. */
static void check_limits(void)
{
        CHECK_INT(read_sysfs("size"), DISK_SIZE / 512);
        CHECK_INT(read_sysfs("ro"), 0);
        CHECK_INT(read_sysfs("queue/logical_block_size"), 512);
        CHECK_INT(read_sysfs("queue/physical_block_size"), 4096);
        CHECK_INT(read_sysfs("queue/minimum_io_size"), 4096);
        CHECK_INT(read_sysfs("queue/optimal_io_size"), 0);
        CHECK_INT(read_sysfs("queue/max_hw_sectors_kb"), 512);
        CHECK_INT(read_sysfs("queue/rotational"), 0);
        CHECK_INT(read_sysfs("queue/fua"), 1);
        CHECK_INT(read_sysfs("queue/discard_granularity"), 4096);
        CHECK_INT(read_sysfs("queue/discard_max_hw_bytes"), 1 << 20);
        CHECK_INT(read_sysfs("queue/write_zeroes_max_bytes"), 1 << 20);
}

static bool start_disk(struct test *test)
{
        struct kernel_device_request request = request_for(NUMBER);

        spawn(test);
        if (!CHECK(reaches(test, WORKER_STAGE_OPEN)))
                return false;
        CHECK(worker_proc_params(test->worker)->size == DISK_SIZE);
        CHECK_INT(add_to_free(test, &request), 0);
        CHECK_INT(CALL(set_params, NUMBER, &sample), 0);
        CHECK_INT(
                worker_proc_go(test->worker, NUMBER, &(struct data_route){.path = DATA_PATH_COPY}, NULL), 0);
        if (!CHECK(reaches(test, WORKER_STAGE_READY)))
                return false;
        CHECK_INT(CALL(start, NUMBER, worker_proc_pid(test->worker)), 0);
        CHECK_INT(worker_proc_live(test->worker), 0);
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_LIVE);
        CHECK_INT(test->device.server_pid, worker_proc_pid(test->worker));
        return true;
}

/* EBUSY until the last of the dead worker's references is gone. */
static int begin_recovery(struct test *test)
{
        int r = -EBUSY;

        for (unsigned i = 0; r == -EBUSY && i < RECOVERY_TRIES; i++) {
                r = CALL(begin_recovery, NUMBER, cookie);
                if (r == -EBUSY)
                        nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        }
        return r;
}

enum recovery_step {
        STEP_KILLED,
        STEP_DEAD,
        STEP_SPAWNED,
        STEP_OPEN,
        STEP_BEGUN,
        STEP_READY,
        STEP_LIVE,
        _STEP_MAX
};

/* For people: emulation does not show the speed, but it shows where the time goes. */
static void print_times(const uint64_t times[_STEP_MAX])
{
        static const char *const names[] = {"", "dead", "spawned", "open", "begun", "ready", "live"};

        printf("recovery:");
        for (unsigned i = STEP_DEAD; i < _STEP_MAX; i++)
                printf(" %s +%.1f", names[i], (double)(times[i] - times[i - 1]) / 1000);
        printf(", in all %.1f ms\n", (double)(times[STEP_LIVE] - times[STEP_KILLED]) / 1000);
}

static void kill_worker(struct test *test)
{
        worker_proc_kill(test->worker);
        await_death(test);
        CHECK_STR(worker_proc_death(test->worker)->sentence, "was killed by SIGKILL");
}

/* Its tags are taken back, those that were in use when it began at the next call; with the last one it
 * leaves. */
static void retire_worker(struct test *test)
{
        uint64_t start = now_usec();

        while (!worker_proc_death(test->worker) && now_usec() < start + PATIENCE_USEC) {
                CHECK_INT(CALL(quiesce, NUMBER), 0);
                sd_event_run(test->event, 10 * 1000);
        }
        await_death(test);
        CHECK_STR(worker_proc_death(test->worker)->sentence, "exited with status 0");
}

static bool recover_disk(struct test *test, void (*end_worker)(struct test *test))
{
        uint64_t times[_STEP_MAX] = {[STEP_KILLED] = now_usec()};
        pid_t dead = worker_proc_pid(test->worker);

        end_worker(test);
        times[STEP_DEAD] = now_usec();
        worker_proc_free(test->worker);
        spawn(test);
        times[STEP_SPAWNED] = now_usec();
        if (!CHECK(reaches(test, WORKER_STAGE_OPEN)))
                return false;
        times[STEP_OPEN] = now_usec();
        CHECK_INT(CALL(begin_recovery, NUMBER, cookie + 1), -ESTALE);
        if (!CHECK_INT(begin_recovery(test), 0))
                return false;
        times[STEP_BEGUN] = now_usec();
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_QUIESCED);
        CHECK(test->device.server_pid == -1 || test->device.server_pid == dead);
        CHECK_INT(CALL(set_params, NUMBER, &sample), -EACCES);
        CHECK_INT(
                worker_proc_go(test->worker, NUMBER, &(struct data_route){.path = DATA_PATH_COPY}, NULL), 0);
        if (!CHECK(reaches(test, WORKER_STAGE_READY)))
                return false;
        times[STEP_READY] = now_usec();
        CHECK_INT(CALL(end_recovery, NUMBER, cookie + 1, worker_proc_pid(test->worker)), -ESTALE);
        CHECK_INT(CALL(end_recovery, NUMBER, cookie, worker_proc_pid(test->worker)), 0);
        times[STEP_LIVE] = now_usec();
        CHECK_INT(worker_proc_live(test->worker), 0);
        print_times(times);
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_LIVE);
        CHECK_INT(test->device.server_pid, worker_proc_pid(test->worker));
        return true;
}

/* A restarted supervisor adopts the worker. */
static void adopt(struct test *test)
{
        pid_t pid = worker_proc_pid(test->worker);

        test->worker = worker_proc_free(test->worker);
        CHECK_INT(worker_proc_adopt(
                          test->event, test->dir, test->starter, "data", uid, on_change, test, &test->worker),
                0);
        if (!CHECK(reaches(test, WORKER_STAGE_READY)))
                return;
        CHECK_INT(worker_proc_pid(test->worker), pid);
        CHECK_INT(worker_proc_number(test->worker), NUMBER);
        CHECK_INT(worker_proc_epoch(test->worker), 1);
}

/* What a kernel has no flag for it refuses. */
bool has(const struct test *test, enum kernel_feature feature)
{
        return kernel_has_feature(test->device.flags, feature);
}

static void check_quiesce(struct test *test)
{
        if (!kernel_quiesces(test->device.flags, test->features)) {
                CHECK(CALL(quiesce, NUMBER) < 0);
                return;
        }
        CHECK(recover_disk(test, retire_worker));
        read_disk();
}

static void check_growth(struct test *test)
{
        bool grows = has(test, KERNEL_FEATURE_GROW);

        CHECK_INT(CALL(update_size, NUMBER, 2 * DISK_SIZE) == 0, grows);
        CHECK_INT(read_sysfs("size"), (grows ? 2 : 1) * DISK_SIZE / 512);
        if (grows)
                CHECK_INT(CALL(update_size, NUMBER, DISK_SIZE), 0); /* the driver does not mind */
        CHECK_INT(read_sysfs("size"), DISK_SIZE / 512);
}

static void test_life(struct test *test)
{
        if (start_disk(test)) {
                check_limits();
                read_disk();
                for (unsigned i = 0; i < 3; i++)
                        if (!recover_disk(test, kill_worker))
                                break;
                read_disk();
                check_quiesce(test);
                check_growth(test);
                adopt(test);
                read_disk();
        }
        check_stop_unheld(test);
        check_stop(test);
        await_death(test); /* of itself: its queues were taken away */
        CHECK_STR(worker_proc_death(test->worker)->sentence, "exited with status 0");
        CHECK_INT(CALL(del, NUMBER), 0);
        await_absence(test);
        test->worker = worker_proc_free(test->worker);
}

/* START waits for a worker that never fetches: the deadline ends it, and everything else goes on. */
static void test_start_that_hangs(struct test *outer)
{
        struct control_verdict verdict = {};
        struct test impatient = *outer, *test = &impatient;
        struct kernel_device_request request = request_for(NUMBER);
        uint64_t start;

        impatient.ctl = control_open(
                outer->event, (struct ublk_ctl_options){.deadline_usec = 5 * 1000 * 1000}, &verdict);
        CHECK_INT(verdict.result, 0);
        CHECK_INT(add_to_free(test, &request), 0);
        CHECK_INT(CALL(set_params, NUMBER, &sample), 0);
        start = now_usec();
        CHECK_INT(CALL(start, NUMBER, getpid()), -ETIMEDOUT);
        CHECK(now_usec() - start >= 5 * 1000 * 1000);
        CHECK_INT(CALL(get_info, NUMBER), 0); /* through a new helper */
        check_device(test, KERNEL_STATE_DEAD);
        CHECK_INT(stop_released(test), 0);
        CHECK_INT(CALL(del, NUMBER), 0);
        await_absence(test);
        ublk_ctl_free(impatient.ctl);
}

static bool open_control(struct test *test, struct problem_list *problems)
{
        struct control_verdict verdict = {};

        test->ctl = control_open(test->event, (struct ublk_ctl_options){}, &verdict);
        test->features = verdict.features;
        CHECK_INT(problem_list_append(problems, &verdict.problems), 0);
        problem_list_clear(&verdict.problems);
        return CHECK_INT(verdict.result, 0);
}

static void run_tests(struct test *test)
{
        test_features(test);
        test_nothing_there(test);
        test_add_and_delete(test);
        test_negotiation(test);
        test_many(test);
        test_life(test);
        test_start_that_hangs(test);
}

int main(int argc, char *argv[])
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/ctl_test.XXXXXX";
        struct test test = {};

        if (argc == 2 && strcmp(argv[1], "--control-helper") == 0)
                return ublk_ctl_helper_main(PROC_SPAWN_FIRST_FD);
        if (argc != 2) {
                fputs("Usage: ctl_test PATH-OF-UBLKD-WORKER\n", stderr);
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        if (CHECK(mkdtemp(base)) && CHECK_INT(sd_event_new(&test.event), 0)
                && CHECK_INT(runtime_dir_open(base, &test.dir, &problems), 0)
                && CHECK_INT(worker_start_new(test.event, argv[1], NULL, &test.starter), 0)
                && open_control(&test, &problems))
                run_tests(&test);
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s: %s\n", problems.items[i].reason, problems.items[i].detail);
        ublk_ctl_free(test.ctl);
        worker_start_free(test.starter);
        runtime_dir_free(test.dir);
        sd_event_unref(test.event);
        return check_report();
}
