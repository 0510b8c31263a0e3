/* SPDX-License-Identifier: MIT */
/* json_time: points of time in JSON. */
#include "ublkd/values/json_time.h"

#include "tests/unit/check.h"

static void check_time(uint64_t usec, const char *text)
{
        cJSON *object = cJSON_CreateObject();
        const cJSON *item;

        CHECK(json_add_time(object, "at", usec));
        item = cJSON_GetObjectItemCaseSensitive(object, "at");
        if (text)
                CHECK_STR(cJSON_GetStringValue(item), text);
        else
                CHECK(cJSON_IsNull(item));
        cJSON_Delete(object);
}

int main(void)
{
        check_time(0, NULL);
        check_time(1, "1970-01-01T00:00:00.000Z");
        check_time(1700000000123999, "2023-11-14T22:13:20.123Z");
        check_time(253402300799999999, "9999-12-31T23:59:59.999Z");
        return check_report();
}
