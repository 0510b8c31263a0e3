/* SPDX-License-Identifier: MIT */
/* What the fuzzers share: texts, JSON as the API takes it, and how a finding ends the program. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/values/json_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);

        if (!text)
                abort();
        memcpy(text, data, size);
        text[size] = '\0';
        return text;
}

cJSON *fuzz_json(const char *text, size_t size)
{
        struct json_fault fault;
        cJSON *json;

        if (json_check(text, size, &fault) < 0)
                return NULL;
        json = cJSON_ParseWithLength(text, size);
        FUZZ_CHECK(json); /* what passes the check is JSON for the parser, too */
        return json;
}

void fuzz_found(const char *file, int line, const char *truth)
{
        fprintf(stderr, "%s:%d: not true: %s\n", file, line, truth);
        abort();
}
