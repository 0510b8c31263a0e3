/* SPDX-License-Identifier: MIT */
/* Names of the data paths. */
#include "ublkd/kernel/data_path.h"

#include "tests/unit/check.h"

int main(void)
{
        CHECK_STR(data_path_to_string(DATA_PATH_AUTO), "auto");
        CHECK_STR(data_path_to_string(DATA_PATH_COPY), "copy");
        CHECK_STR(data_path_to_string(DATA_PATH_USER_COPY), "user-copy");
        CHECK_STR(data_path_to_string(DATA_PATH_ZERO_COPY), "zero-copy");
        return check_report();
}
