/* SPDX-License-Identifier: MIT */
/* json_safe: JSON on a terminal is the same JSON, and moves nothing. */
#include "ublkctl/text/json_safe.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static void check_print(const char *json, const char *wanted)
{
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                abort();
        json_print_safely(file, json);
        fclose(file);
        CHECK_STR(text, wanted);
        free(text);
}

int main(void)
{
        check_print("{}", "{}\n");
        check_print("{\n\t\"a\":\t\"b\\tc\\u001b\"\n}", "{\n    \"a\": \"b\\tc\\u001b\"\n}\n");
        check_print("\"Grüße 世界 🙂\xc2\xa0\"", "\"Grüße 世界 🙂\xc2\xa0\"\n");
        check_print("\"\x7f\xc2\x9b"
                    "2J\"",
                "\"\\u007f\\u009b2J\"\n"); /* CSI in one character */
        check_print("\"\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa9\xd8\x9c\"", "\"\\u202e\\u2028\\u2069\\u061c\"\n");
        check_print("\"\x9b\xc0\x8a\xe4\xb8\"", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"\n");
        return check_report();
}
