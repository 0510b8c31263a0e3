/* SPDX-License-Identifier: MIT */
/* Which way a disk goes: what was asked for, what is the fastest, and what the kernel has. */
#include "tests/unit/check.h"
#include "ublkd/driver/device_route.h"
#include "ublkd/kernel/ublk_uapi.h"

enum {
        ZERO = UBLK_F_SUPPORT_ZERO_COPY,
        AUTO = UBLK_F_AUTO_BUF_REG,
        USER = UBLK_F_USER_COPY,
        BATCH = UBLK_F_BATCH_IO
};

static void test_choice(void)
{
        static const struct {
                enum data_path wanted, fastest;
                uint64_t features;
                struct data_route route;
        } rows[] = {
                {DATA_PATH_AUTO,      DATA_PATH_AUTO,      ZERO | AUTO | BATCH, {DATA_PATH_COPY, false, true}      },
                {DATA_PATH_AUTO,      DATA_PATH_COPY,      ZERO | AUTO | USER,  {DATA_PATH_COPY, false, false}     },
                {DATA_PATH_AUTO,      DATA_PATH_ZERO_COPY, ZERO | AUTO | BATCH, {DATA_PATH_ZERO_COPY, true, true}  },
                {DATA_PATH_AUTO,      DATA_PATH_ZERO_COPY, ZERO | AUTO,         {DATA_PATH_ZERO_COPY, true, false} },
                {DATA_PATH_AUTO,      DATA_PATH_ZERO_COPY, ZERO,                {DATA_PATH_COPY, false, false}     },
                {DATA_PATH_AUTO,      DATA_PATH_ZERO_COPY, 0,                   {DATA_PATH_COPY, false, false}     },
                {DATA_PATH_AUTO,      DATA_PATH_ZERO_COPY, BATCH,               {DATA_PATH_COPY, false, true}      },
                {DATA_PATH_AUTO,      DATA_PATH_USER_COPY, USER,                {DATA_PATH_USER_COPY, false, false}},
                {DATA_PATH_AUTO,      DATA_PATH_USER_COPY, 0,                   {DATA_PATH_COPY, false, false}     },
                {DATA_PATH_ZERO_COPY, DATA_PATH_COPY,      ZERO,                {DATA_PATH_ZERO_COPY, false, false}},
                {DATA_PATH_USER_COPY, DATA_PATH_COPY,      0,                   {DATA_PATH_USER_COPY, false, false}},
                {DATA_PATH_COPY,      DATA_PATH_ZERO_COPY, ZERO | AUTO | BATCH, {DATA_PATH_COPY, false, true}      },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct data_route_wish wish = {rows[i].wanted, rows[i].fastest, 64, true};
                struct data_route got = device_route_choose(&wish, rows[i].features);

                wish.may_batch = false;
                CHECK(!device_route_choose(&wish, rows[i].features).batch);
                CHECK_INT(got.path, rows[i].route.path);
                CHECK_INT(got.auto_buffers, rows[i].route.auto_buffers);
                CHECK_INT(got.batch, rows[i].route.batch);
        }
}

/* The worker gets the flags that the driver has accepted. */
static void test_flags_and_back(void)
{
        for (int path = DATA_PATH_COPY; path < _DATA_PATH_MAX; path++)
                for (int bits = 0; bits < 4; bits++) {
                        struct data_route route = {path, path == DATA_PATH_ZERO_COPY && bits & 1, bits & 2};
                        struct data_route got = ublk_ctl_route(ublk_ctl_route_flags(&route));

                        CHECK_INT(got.path, route.path);
                        CHECK_INT(got.auto_buffers, route.auto_buffers);
                        CHECK_INT(got.batch, route.batch);
                }
        CHECK(!ublk_ctl_route(AUTO).auto_buffers); /* a failed buffer could not be registered by hand */
}

static void test_reasons(void)
{
        const struct data_route copy = {.path = DATA_PATH_COPY}, zero = {.path = DATA_PATH_ZERO_COPY};

        CHECK_STR(device_route_reason(DATA_PATH_COPY, DATA_PATH_ZERO_COPY, &copy), "The spec asks for it.");
        CHECK(strstr(device_route_reason(DATA_PATH_AUTO, DATA_PATH_ZERO_COPY, &copy), "kernel"));
        CHECK(strstr(device_route_reason(DATA_PATH_AUTO, DATA_PATH_COPY, &copy), "auto"));
        CHECK(strstr(device_route_reason(DATA_PATH_AUTO, DATA_PATH_AUTO, &zero), "auto"));
}

static void test_batches_are_for_many(void)
{
        struct data_route_wish wish = {.path = DATA_PATH_COPY, .queue_depth = 3, .may_batch = true};

        CHECK(!device_route_choose(&wish, ZERO | AUTO | BATCH).batch);
        wish.queue_depth = 4;
        CHECK(device_route_choose(&wish, ZERO | AUTO | BATCH).batch);
        CHECK(!device_route_choose(&wish, ZERO | AUTO).batch);
}

int main(void)
{
        test_choice();
        test_batches_are_for_many();
        test_flags_and_back();
        test_reasons();
        return check_report();
}
