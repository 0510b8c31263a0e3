/* SPDX-License-Identifier: MIT */
/* The control plane against helpers that are made for it: this program is the helper, too, and plays what
 * CTL_TEST_HELPER names. The real one is driven by the tests with the real driver. */
#include "ublkd/driver/ublk_ctl.h"

#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/model/device_status.h"
#include "ublkd/driver/ublk_ctl_calls.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/driver/control_helper_fake.h"
#include "tests/unit/ublkd/driver/control_open.h"

#include <signal.h>

enum { SHORT_USEC = 200 * 1000, LONG_USEC = 3000 * 1000, PATIENCE_USEC = 60 * 1000 * 1000, MANY = 2000 };

struct answer {
        unsigned count;
        int result;
        bool with_device;
        struct kernel_device device;
        unsigned order; /* of all answers */
        struct ublk_ctl **free_it;
};

static void on_done(void *userdata, int result, const struct kernel_device *device)
{
        static unsigned order;
        struct answer *answer = userdata;

        answer->count++;
        answer->result = result;
        answer->order = ++order;
        answer->with_device = device;
        if (device)
                answer->device = *device;
        if (answer->free_it)
                *answer->free_it = ublk_ctl_free(*answer->free_it);
}

static struct ublk_ctl *open_ctl(sd_event *event, const char *part)
{
        struct control_verdict verdict = {};
        struct ublk_ctl *ctl;

        setenv("CTL_TEST_HELPER", part, 1);
        ctl = control_open(event, (struct ublk_ctl_options){}, &verdict);
        CHECK_INT(verdict.result, 0);
        CHECK_INT(verdict.features, 0x1fe);
        return ctl;
}

/* Until `answer` has come. */
static void await(sd_event *event, const struct answer *answer)
{
        uint64_t start, now;

        sd_event_now(event, CLOCK_MONOTONIC, &start);
        now = start;
        while (answer->count == 0 && now < start + PATIENCE_USEC) {
                sd_event_run(event, 100 * 1000);
                sd_event_now(event, CLOCK_MONOTONIC, &now);
        }
        CHECK_INT(answer->count, 1);
}

static void check_result(sd_event *event, int r, struct answer *answer, int result)
{
        CHECK_INT(r, 0);
        await(event, answer);
        CHECK_INT(answer->result, result);
        CHECK_INT(answer->with_device, false);
        *answer = (struct answer){};
}

static void test_info(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer answer = {};

        CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &answer, NULL), 0);
        CHECK_INT(answer.count, 0); /* never from within the call */
        await(event, &answer);
        CHECK_INT(answer.result, 0);
        CHECK(answer.with_device);
        CHECK_INT(answer.device.number, 7);
        CHECK_INT(answer.device.state, KERNEL_STATE_QUIESCED);
        CHECK(answer.device.cookie == CONTROL_COOKIE);
        CHECK_INT(answer.device.flags, UBLK_F_USER_RECOVERY);
        CHECK_INT(answer.device.server_pid, -1);
        CHECK_INT(answer.device.queues, 2);
        CHECK_INT(answer.device.queue_depth, 64);
        CHECK_INT(answer.device.max_io_size, 1 << 20);
        answer = (struct answer){};
        check_result(event, ublk_ctl_get_info(ctl, NUMBER_MISSING, on_done, &answer, NULL), &answer, -ENODEV);
        check_result(event, ublk_ctl_get_info(ctl, NUMBER_ODD, on_done, &answer, NULL), &answer, -EPROTO);
        check_result(event, ublk_ctl_get_info(ctl, NUMBER_OLD, on_done, &answer, NULL), &answer, -EOPNOTSUPP);
        CHECK_INT(ublk_ctl_get_info(ctl, -1, on_done, &answer, NULL), -EINVAL);
        CHECK_INT(ublk_ctl_get_info(ctl, 1 << 20, on_done, &answer, NULL), -EINVAL);
}

static void test_info_of_a_foreign_device(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer answer = {};

        CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_FOREIGN, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.result, 0);
        CHECK_INT(answer.device.number, NUMBER_FOREIGN);
}

static void test_add(sd_event *event, struct ublk_ctl *ctl)
{
        struct kernel_device_request request = {
                .number = 9,
                .cookie = UINT64_MAX,
                .flags = ublk_ctl_flags(KERNEL_RECOVERY_FAIL),
                .queues = 3,
                .queue_depth = 128,
                .max_io_size = 65536,
        };
        struct answer answer = {};

        CHECK_INT(ublk_ctl_add(ctl, &request, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.result, 0);
        CHECK_INT(answer.device.number, 9);
        CHECK(answer.device.cookie == UINT64_MAX);
        CHECK_INT(answer.device.queues, 3);
        CHECK_INT(answer.device.queue_depth, 128);
        CHECK_INT(answer.device.max_io_size, 65536);
        CHECK_STR(ublk_ctl_missing(request.flags, answer.device.flags), "USER_RECOVERY_FAIL_IO");
        answer = (struct answer){};
        request.number = 1;
        check_result(event, ublk_ctl_add(ctl, &request, on_done, &answer, NULL), &answer, -EEXIST);
}

static void test_params(sd_event *event, struct ublk_ctl *ctl)
{
        const struct disk_params good = {
                .size = UINT64_C(1) << 49,
                .logical_block_size = 512,
                .physical_block_size = 4096,
                .io_min = 4096,
                .io_opt = (1 << 20) + 4096, /* no power of two: rounded down */
                .max_io_size = 1 << 20,
                .discard_granularity = 4096,
                .max_discard_size = 1 << 30,
                .max_write_zeroes_size = 1 << 29,
                .rotational = true,
                .volatile_cache = true,
                .fua = true,
        };
        struct disk_params bad[8];
        struct answer answer = {};

        check_result(
                event, ublk_ctl_set_params(ctl, NUMBER_PARAMS, &good, on_done, &answer, NULL), &answer, 0);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                bad[i] = good;
        bad[0].size = 0;
        bad[1].size = 1000;
        bad[2].logical_block_size = 0;
        bad[3].logical_block_size = 1000;
        bad[4].logical_block_size = 256;
        bad[5].logical_block_size = 8192;
        bad[6].physical_block_size = 5000;
        bad[7].max_io_size = 2048;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (!CHECK_INT(ublk_ctl_set_params(ctl, NUMBER_PARAMS, &bad[i], on_done, &answer, NULL),
                            -EINVAL))
                        fprintf(stderr, "  of set %zu\n", i);
        CHECK_INT(answer.count, 0);
}

/* After GET_DEV_INFO has answered, ublk_ctl knows how to address it. */
static void test_a_device_in_unprivileged_mode(sd_event *event, struct ublk_ctl *ctl)
{
        const struct disk_params params = {
                .size = 1 << 20, .logical_block_size = 512, .physical_block_size = 512, .max_io_size = 4096};
        struct kernel_device_request request = {
                .number = 12,
                .flags = ublk_ctl_unprivileged_flag(),
                .queues = 1,
                .queue_depth = 1,
                .max_io_size = 4096,
                .unprivileged = true,
                .uid = 1000,
                .gid = 1001,
        };
        struct answer answer = {};

        CHECK_INT(ublk_ctl_add(ctl, &request, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.result, 0);
        request.unprivileged = false;
        answer = (struct answer){};
        check_result(event, ublk_ctl_add(ctl, &request, on_done, &answer, NULL), &answer, -EPERM);
        CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_FOREIGN, on_done, &answer, NULL), 0);
        await(event, &answer);
        answer = (struct answer){};
        check_result(
                event, ublk_ctl_set_params(ctl, NUMBER_FOREIGN, &params, on_done, &answer, NULL), &answer, 0);
        CHECK_INT(ublk_ctl_get_affinity(ctl, NUMBER_FOREIGN, 0, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.device.queue_cpus[0], 0x0c);
        answer = (struct answer){};
        check_result(event, ublk_ctl_start(ctl, NUMBER_FOREIGN, 4711, on_done, &answer, NULL), &answer, 0);
        check_result(event,
                ublk_ctl_begin_recovery(ctl, NUMBER_FOREIGN, CONTROL_COOKIE, on_done, &answer, NULL), &answer,
                -ESTALE);
        check_result(event,
                ublk_ctl_end_recovery(ctl, NUMBER_FOREIGN, CONTROL_COOKIE, 4711, on_done, &answer, NULL),
                &answer, -ESTALE);
        check_result(event, ublk_ctl_del(ctl, NUMBER_FOREIGN, on_done, &answer, NULL), &answer, 0);
}

static void test_what_such_a_device_may_have(void)
{
        uint64_t recovery = ublk_ctl_flags(KERNEL_RECOVERY_REISSUE) | ublk_ctl_flags(KERNEL_RECOVERY_FAIL);
        uint64_t left = ublk_ctl_unprivileged_features(UINT64_MAX);

        CHECK_STR(ublk_ctl_missing(recovery, left), "USER_RECOVERY");
        CHECK_STR(ublk_ctl_missing(ublk_ctl_path_flags(DATA_PATH_USER_COPY), left), "USER_COPY");
        CHECK_STR(ublk_ctl_missing(ublk_ctl_path_flags(DATA_PATH_ZERO_COPY), left), "SUPPORT_ZERO_COPY");
        CHECK(!ublk_ctl_missing(ublk_ctl_flags(KERNEL_RECOVERY_NONE) | ublk_ctl_unprivileged_flag(), left));
}

static void test_plain(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer answer = {};

        check_result(event, ublk_ctl_start(ctl, 7, 4711, on_done, &answer, NULL), &answer, 0);
        check_result(event, ublk_ctl_end_recovery(ctl, 7, CONTROL_COOKIE, 4711, on_done, &answer, NULL),
                &answer, 0);
        check_result(event, ublk_ctl_end_recovery(ctl, 7, CONTROL_COOKIE, 1, on_done, &answer, NULL), &answer,
                -EINVAL);
        check_result(event, ublk_ctl_begin_recovery(ctl, 7, CONTROL_COOKIE, on_done, &answer, NULL), &answer,
                -EBUSY);
        check_result(event, ublk_ctl_begin_recovery(ctl, 7, 1, on_done, &answer, NULL), &answer, -ESTALE);
        check_result(event, ublk_ctl_end_recovery(ctl, 7, 1, 4711, on_done, &answer, NULL), &answer, -ESTALE);
        check_result(event, ublk_ctl_get_affinity(ctl, 7, 4, on_done, &answer, NULL), &answer, -EINVAL);
        CHECK_INT(ublk_ctl_get_affinity(ctl, 7, 3, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.device.queue_cpus[0], 0x0c);
        CHECK_INT(answer.device.queue_cpus[KERNEL_CPUS_SIZE - 1], 0x80);
        answer = (struct answer){};
        check_result(event, ublk_ctl_stop(ctl, 7, on_done, &answer, NULL), &answer, -EINTR);
        check_result(event, ublk_ctl_del(ctl, 7, on_done, &answer, NULL), &answer, 0); /* by way of _ASYNC */
        check_result(
                event, ublk_ctl_del(ctl, 7, on_done, &answer, NULL), &answer, 0); /* which is remembered */
}

static void test_answers_in_any_order(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer answers[3] = {};

        for (int i = 0; i < 3; i++)
                CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_REVERSED + i, on_done, &answers[i], NULL), 0);
        for (int i = 0; i < 3; i++) {
                await(event, &answers[i]);
                CHECK_INT(answers[i].device.number, NUMBER_REVERSED + i);
        }
        CHECK(answers[2].order < answers[1].order && answers[1].order < answers[0].order);
}

/* More than the socket holds: none is lost, and none waits for another. */
static void test_many(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer *answers = calloc(MANY, sizeof(*answers));
        unsigned wrong = 0;

        for (int i = 0; i < MANY; i++)
                CHECK_INT(ublk_ctl_get_info(ctl, 1000 + i, on_done, &answers[i], NULL), 0);
        for (int i = 0; i < MANY; i++) {
                await(event, &answers[i]);
                wrong += answers[i].device.number != 1000 + i;
        }
        CHECK_INT(wrong, 0);
        free(answers);
}

static void test_cancel(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer cancelled = {}, other = {};
        struct ublk_ctl_call *call;

        CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &cancelled, &call), 0);
        ublk_ctl_call_cancel(call);
        CHECK_INT(ublk_ctl_del(ctl, 8, on_done, &cancelled, &call), 0);
        ublk_ctl_call_cancel(call);
        CHECK_INT(ublk_ctl_get_info(ctl, 8, on_done, &other, NULL), 0);
        await(event, &other);
        CHECK_INT(cancelled.count, 0);
}

static void test_free_within_the_callback(sd_event *event)
{
        struct ublk_ctl *ctl = open_ctl(event, "kernel");
        struct answer first = {.free_it = &ctl}, second = {};

        CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &first, NULL), 0);
        CHECK_INT(ublk_ctl_get_info(ctl, 8, on_done, &second, NULL), 0);
        await(event, &first);
        CHECK(!ctl);
        for (unsigned i = 0; i < 10; i++)
                sd_event_run(event, 1000);
        CHECK_INT(second.count, 0);
}

static void test_helper_that_dies(sd_event *event)
{
        struct ublk_ctl *ctl = open_ctl(event, "dying");
        struct answer lost[3] = {}, answer = {};

        for (int i = 0; i < 3; i++)
                CHECK_INT(ublk_ctl_get_info(ctl, i, on_done, &lost[i], NULL), 0);
        for (int i = 0; i < 3; i++)
                check_result(event, 0, &lost[i], -ECONNRESET);
        setenv("CTL_TEST_HELPER", "kernel", 1);
        CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &answer, NULL), 0);
        await(event, &answer);
        CHECK_INT(answer.result, 0);
        ublk_ctl_free(ctl);
}

static struct ublk_ctl *open_impatient(sd_event *event, const char *part, uint64_t deadline_usec)
{
        struct control_verdict verdict = {};
        struct ublk_ctl *ctl;

        setenv("CTL_TEST_HELPER", part, 1);
        ctl = control_open(event, (struct ublk_ctl_options){.deadline_usec = deadline_usec}, &verdict);
        CHECK_INT(verdict.result, 0);
        return ctl;
}

/* Until a helper answers: on a busy machine one may be slow, and is given up like those that hang. */
static void check_others_go_on(sd_event *event, struct ublk_ctl *ctl)
{
        struct answer answer = {.result = -ETIMEDOUT};

        for (unsigned i = 0; i < 10 && answer.result == -ETIMEDOUT; i++) {
                answer = (struct answer){};
                if (CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &answer, NULL), 0))
                        await(event, &answer);
        }
        CHECK_INT(answer.result, 0);
}

/* One command hangs: it is given up with its helper, and the next one gets another. */
static void test_deadline(sd_event *event)
{
        struct ublk_ctl *ctl = open_impatient(event, "kernel", LONG_USEC);
        struct answer hangs = {}, cancelled = {}, answer = {};
        struct ublk_ctl_call *call;

        CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &cancelled, &call), 0);
        ublk_ctl_call_cancel(call);
        CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &hangs, NULL), 0);
        CHECK_INT(ublk_ctl_get_info(ctl, 7, on_done, &answer, NULL), 0);
        await(event, &answer); /* others pass it by */
        CHECK_INT(answer.result, 0);
        CHECK_INT(hangs.count, 0);
        check_result(event, 0, &hangs, -ETIMEDOUT);
        check_others_go_on(event, ctl);
        CHECK_INT(cancelled.count, 0);
        ublk_ctl_free(ctl);
}

/* Retired helpers are killed and reaped: hundreds of commands may hang one after the other. */
static void test_retired_helpers_go(sd_event *event)
{
        struct ublk_ctl *ctl = open_impatient(event, "kernel", SHORT_USEC);

        for (unsigned i = 0; i < CTL_RETIRED_MAX + 4; i++) {
                struct answer hangs = {};

                CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &hangs, NULL), 0);
                await(event, &hangs);
                CHECK_INT(hangs.result, -ETIMEDOUT);
        }
        ublk_ctl_free(ctl);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* All at once pass their deadline: the helper is given up with the first, and its others still get their answers. */
static void test_many_deadlines(sd_event *event)
{
        struct ublk_ctl *ctl = open_impatient(event, "kernel", LONG_USEC);
        struct answer hangs[CTL_RETIRED_MAX + 4] = {};
        unsigned i;

        for (i = 0; i < ARRAY_SIZE(hangs); i++)
                CHECK_INT(ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &hangs[i], NULL), 0);
        for (i = 0; i < ARRAY_SIZE(hangs); i++)
                check_result(event, 0, &hangs[i], -ETIMEDOUT);
        check_others_go_on(event, ctl);
        ublk_ctl_free(ctl);
}

static void on_released(void *userdata, int number)
{
        struct answer *answer = userdata;

        answer->count++;
        answer->result = number;
}

/* A command that was given up may still take effect until its helper is dead: no other one overtakes it. */
static void test_released(sd_event *event)
{
        struct ublk_ctl *ctl = open_impatient(event, "kernel", SHORT_USEC);
        struct answer hangs = {}, released = {};

        ublk_ctl_on_released(ctl, on_released, &released);
        CHECK_INT(ublk_ctl_del(ctl, NUMBER_HANGS, on_done, &hangs, NULL), 0);
        await(event, &hangs);
        CHECK_INT(hangs.result, -ETIMEDOUT);
        CHECK_INT(released.count, 0);
        CHECK_INT(ublk_ctl_stop(ctl, NUMBER_HANGS, on_done, &hangs, NULL), -EALREADY);
        await(event, &released);
        CHECK_INT(released.result, NUMBER_HANGS);
        hangs = (struct answer){};
        check_result(event, ublk_ctl_stop(ctl, NUMBER_HANGS, on_done, &hangs, NULL), &hangs, -ETIMEDOUT);
        ublk_ctl_free(ctl);
}

/* NULL: one may not trace here. */
static struct ublk_ctl *open_undying(sd_event *event, uint64_t deadline_usec)
{
        struct control_verdict verdict = {};
        struct ublk_ctl *ctl;

        setenv("CTL_TEST_HELPER", "undying", 1);
        ctl = control_open(event, (struct ublk_ctl_options){.deadline_usec = deadline_usec}, &verdict);
        problem_list_clear(&verdict.problems);
        return verdict.result < 0 ? ublk_ctl_free(ctl) : ctl;
}

/* A device that hangs for good is tried again and again, and costs no second helper: none is sent. */
static void test_retries_cost_no_helper(sd_event *event)
{
        struct ublk_ctl *ctl = open_undying(event, SHORT_USEC);
        struct answer hangs = {};

        if (!ctl)
                return;
        check_result(event, ublk_ctl_stop(ctl, NUMBER_HANGS, on_done, &hangs, NULL), &hangs, -ETIMEDOUT);
        for (unsigned i = 0; i < CTL_RETIRED_MAX + 4; i++) {
                CHECK_INT(ublk_ctl_stop(ctl, NUMBER_HANGS, on_done, &hangs, NULL), -EALREADY);
                CHECK_INT(ublk_ctl_del(ctl, NUMBER_HANGS, on_done, &hangs, NULL), -EALREADY);
                check_others_go_on(event, ctl);
        }
        CHECK_INT(hangs.count, 0);
        ublk_ctl_free(ctl);
}

/* As if each hung in the driver for good: no slot comes free, and the last helper serves the others. It is
 * given up when it answers nothing for CTL_LAST_MISSES_MAX deadlines, and may be that slow for a second. */
static void test_too_many_helpers(sd_event *event)
{
        struct ublk_ctl *ctl = open_undying(event, 2 * SHORT_USEC);

        if (!ctl)
                return;
        for (unsigned i = 0; i < CTL_RETIRED_MAX + 4; i++) {
                struct answer hangs = {};

                check_result(event, ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &hangs, NULL), &hangs,
                        -ETIMEDOUT);
                check_others_go_on(event, ctl);
        }
        ublk_ctl_free(ctl); /* does not wait for them for long */
}

/* It hangs, and so does every other command: the last helper is given up as well, and calls fail at once. */
static void test_last_helper_that_answers_nothing(sd_event *event)
{
        struct ublk_ctl *ctl = open_undying(event, SHORT_USEC);
        int r = 0;

        if (!ctl)
                return;
        for (unsigned i = 0; r >= 0 && i < 4 * CTL_RETIRED_MAX; i++) {
                struct answer hangs = {};

                r = ublk_ctl_get_info(ctl, NUMBER_HANGS, on_done, &hangs, NULL);
                if (r >= 0)
                        check_result(event, 0, &hangs, -ETIMEDOUT);
        }
        CHECK_INT(r, -EAGAIN);
        ublk_ctl_free(ctl);
}

static void test_flags(void)
{
        CHECK(!(ublk_ctl_flags(KERNEL_RECOVERY_NONE) & UBLK_F_USER_RECOVERY));
        CHECK((ublk_ctl_flags(KERNEL_RECOVERY_QUEUE) & (UBLK_F_USER_RECOVERY | UBLK_F_USER_RECOVERY_REISSUE))
                == UBLK_F_USER_RECOVERY);
        CHECK(ublk_ctl_flags(KERNEL_RECOVERY_REISSUE) & UBLK_F_USER_RECOVERY_REISSUE);
        CHECK(ublk_ctl_flags(KERNEL_RECOVERY_FAIL) & UBLK_F_USER_RECOVERY_FAIL_IO);
        CHECK(ublk_ctl_extra_flags(KERNEL_RECOVERY_QUEUE, false, UINT64_MAX) & UBLK_F_QUIESCE);
        CHECK(!(ublk_ctl_extra_flags(KERNEL_RECOVERY_QUEUE, false, UINT64_MAX & ~UBLK_F_IO_DESC_SIZE)
                & UBLK_F_QUIESCE)); /* it may crash the kernel */
        CHECK(!(ublk_ctl_extra_flags(KERNEL_RECOVERY_REISSUE, true, UINT64_MAX) & UBLK_F_QUIESCE));
        CHECK(!(ublk_ctl_extra_flags(KERNEL_RECOVERY_NONE, false, UINT64_MAX) & UBLK_F_QUIESCE));
        CHECK(!ublk_ctl_missing(UBLK_F_USER_RECOVERY, UINT64_MAX));
        CHECK(!ublk_ctl_missing(0, 0));
        CHECK_STR(ublk_ctl_missing(UBLK_F_USER_RECOVERY | UBLK_F_ZONED, UBLK_F_ZONED), "USER_RECOVERY");
        CHECK_STR(ublk_ctl_missing(UINT64_C(1) << 62, 0), "unknown");
}

/* kernel_feature.c may not see the UAPI: this is what holds it to it. */
static void test_feature_names(void)
{
        static const struct {
                uint64_t flag;
                const char *name;
        } features[] = {
#define FEATURE(feature) {UBLK_F_##feature, #feature}
                FEATURE(SUPPORT_ZERO_COPY),
                FEATURE(URING_CMD_COMP_IN_TASK),
                FEATURE(NEED_GET_DATA),
                FEATURE(USER_RECOVERY),
                FEATURE(USER_RECOVERY_REISSUE),
                FEATURE(UNPRIVILEGED_DEV),
                FEATURE(CMD_IOCTL_ENCODE),
                FEATURE(USER_COPY),
                FEATURE(ZONED),
                FEATURE(USER_RECOVERY_FAIL_IO),
                FEATURE(UPDATE_SIZE),
                FEATURE(AUTO_BUF_REG),
                FEATURE(QUIESCE),
                FEATURE(PER_IO_DAEMON),
                FEATURE(BUF_REG_OFF_DAEMON),
                FEATURE(BATCH_IO),
                FEATURE(INTEGRITY),
                FEATURE(SAFE_STOP_DEV),
                FEATURE(NO_AUTO_PART_SCAN),
                FEATURE(SHMEM_ZC),
                FEATURE(IO_DESC_SIZE),
#undef FEATURE
        };

        for (size_t i = 0; i < ARRAY_SIZE(features); i++)
                CHECK_STR(kernel_feature_name((unsigned)__builtin_ctzll(features[i].flag)), features[i].name);
        CHECK(!kernel_feature_name(ARRAY_SIZE(features)));
}

static void test_commands(sd_event *event)
{
        struct ublk_ctl *ctl = open_ctl(event, "kernel");

        test_info(event, ctl);
        test_info_of_a_foreign_device(event, ctl);
        test_add(event, ctl);
        test_params(event, ctl);
        test_a_device_in_unprivileged_mode(event, ctl);
        test_what_such_a_device_may_have();
        test_plain(event, ctl);
        test_answers_in_any_order(event, ctl);
        test_cancel(event, ctl);
        test_many(event, ctl);
        ublk_ctl_free(ctl);
}

int main(int argc, char *argv[])
{
        sd_event *event = NULL;

        if (argc == 2 && strcmp(argv[1], "--control-helper") == 0)
                _exit(control_helper_fake()); /* a leak check would hold on to the process that is waited for
                                               */
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK_INT(sd_event_new(&event), 0))
                return check_report();
        test_flags();
        test_feature_names();
        test_commands(event);
        test_free_within_the_callback(event);
        test_helper_that_dies(event);
        test_deadline(event);
        test_retired_helpers_go(event);
        test_many_deadlines(event);
        test_released(event);
        test_retries_cost_no_helper(event); /* last, because they leave helpers behind */
        test_too_many_helpers(event);
        test_last_helper_that_answers_nothing(event);
        sd_event_unref(event);
        return check_report();
}
