/* SPDX-License-Identifier: MIT */
/* The null target reads as zeroes, also from memory that a write went through. */
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

static bool zero(const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                if (data[i] != 0)
                        return false;
        return true;
}

static void test_size(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;

        CHECK_INT(target_host_open(&host, "{\"target\":{\"type\":\"null\"}}", &problems), -EINVAL);
        if (CHECK_INT(problems.count, 1))
                CHECK_STR(problems.items[0].reason, "SizeMissing");
        target_host_close(&host);
}

static void test_zeroes(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;
        char *data;

        if (!CHECK_INT(
                    target_host_open(&host, "{\"target\":{\"type\":\"null\"},\"size\":\"1TiB\"}", &problems),
                    0))
                return;
        data = target_host_data(&host, 0);
        CHECK(!host.disk.params.volatile_cache);
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 4096), 4096);
        memset(data, 1, 8192);
        CHECK_INT(target_host_one(&host, IO_WRITE, 0, UINT64_C(1) << 39, 8192), 8192);
        memset(data, 2, 512);
        CHECK_INT(target_host_one(&host, IO_WRITE, IO_FUA, 0, 512), 512);
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 512), 512);
        CHECK(zero(data, 512));
        CHECK_INT(target_host_one(&host, IO_READ, 0, 0, 16384), 16384);
        CHECK(zero(data, 16384));
        CHECK_INT(target_host_one(&host, IO_FLUSH, 0, 0, 0), 0);
        CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 0, 1 << 30), 0);
        CHECK_INT(target_host_one(&host, IO_WRITE_ZEROES, 0, 0, 1 << 30), 0);
        CHECK_INT(target_host_one(&host, IO_READ, 0, UINT64_C(1) << 40, 512), -EIO);
        target_host_close(&host);
        CHECK_INT(problems.count, 0);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        test_size();
        test_zeroes();
        return check_report();
}
