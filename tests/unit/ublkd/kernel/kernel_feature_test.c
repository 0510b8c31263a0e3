/* SPDX-License-Identifier: MIT */
/* Names of the driver's feature bits. */
#include "ublkd/kernel/kernel_feature.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

static void check_json(uint64_t flags, const char *wanted)
{
        cJSON *array = kernel_features_to_json(flags);
        _cleanup_free_ char *text = cJSON_PrintUnformatted(array);

        CHECK_STR(text, wanted);
        cJSON_Delete(array);
}

int main(void)
{
        CHECK_STR(kernel_feature_name(0), "SUPPORT_ZERO_COPY");
        CHECK_STR(kernel_feature_name(3), "USER_RECOVERY");
        CHECK_STR(kernel_feature_name(19), "SHMEM_ZC");
        CHECK_STR(kernel_feature_name(20), "IO_DESC_SIZE");
        CHECK(!kernel_feature_name(21));
        CHECK(!kernel_feature_name(~0u));
        CHECK(kernel_quiesces(UINT64_C(1) << 12, UINT64_C(1) << 20));
        CHECK(!kernel_quiesces(UINT64_C(1) << 12, UINT64_C(1) << 12)); /* before 7.3 */
        CHECK(!kernel_quiesces(0, UINT64_MAX));                        /* the disk was made without it */
        CHECK(kernel_cancels_late(UINT64_MAX & ~(UINT64_C(1) << 12))
                && !kernel_cancels_late(UINT64_C(1) << 12));
        CHECK(kernel_learns_by_timeout(UINT64_MAX & ~(UINT64_C(1) << 12))
                && !kernel_learns_by_timeout(UINT64_C(1) << 12));
        check_json(0, "[]");
        check_json(UINT64_C(1) << 3 | UINT64_C(1) << 4, "[\"USER_RECOVERY\",\"USER_RECOVERY_REISSUE\"]");
        check_json(
                UINT64_C(1) << 63 | 1, "[\"SUPPORT_ZERO_COPY\",\"BIT_63\"]"); /* a driver newer than we are */
        return check_report();
}
