/* SPDX-License-Identifier: MIT */
/* json_print: whole numbers are written as such, however large. */
#include "ublkd/values/json_print.h"

#include "tests/unit/check.h"

#include <stdlib.h>

/* What is read is written again in just these characters. */
static void check_kept(const char *text)
{
        cJSON *value = cJSON_Parse(text);
        char *printed = value ? json_print(value) : NULL;

        CHECK_STR(printed, text);
        free(printed);
        printed = value ? json_print(value) : NULL; /* it was left as it was */
        CHECK_STR(printed, text);
        free(printed);
        cJSON_Delete(value);
}

static void check_integer(uint64_t number, const char *text)
{
        cJSON *object = cJSON_CreateObject();
        char *printed;

        CHECK(json_add_integer(object, "n", number));
        printed = json_print(object);
        CHECK_STR(printed, text);
        free(printed);
        cJSON_Delete(object);
}

static void check_text(const char *value, const char *text)
{
        cJSON *object = cJSON_CreateObject();
        char *printed;

        CHECK(json_add_text(object, "t", value));
        printed = json_print(object);
        CHECK_STR(printed, text);
        free(printed);
        cJSON_Delete(object);
}

static void test_indented(void)
{
        cJSON *value = cJSON_Parse("{\"size\":1e15}");
        char *printed = json_print_indented(value);

        CHECK_STR(printed, "{\n\t\"size\":\t1000000000000000\n}");
        free(printed);
        cJSON_Delete(value);
}

int main(void)
{
        check_kept("{\"size\":1000000000000000}");
        check_kept("[{\"a\":[5000000000000000,-1000000000000000]},9007199254740992,4503599627370496]");
        check_kept("999999999999999");
        check_kept("[14.2,0,-1,null,true,\"1e+15\",{},[]]");
        check_kept("1e+300"); /* not the result of counting */
        check_integer(0, "{\"n\":0}");
        check_integer(UINT64_C(1000000000000000), "{\"n\":1000000000000000}");
        check_integer(UINT64_C(9007199254740992), "{\"n\":9007199254740992}");
        check_integer(UINT64_C(9007199254740993), "{\"n\":9007199254740993}");
        check_integer(UINT64_MAX, "{\"n\":18446744073709551615}");
        check_text("a", "{\"t\":\"a\"}");
        check_text("", "{\"t\":\"\"}");
        check_text(NULL, "{\"t\":null}");
        test_indented();
        return check_report();
}
