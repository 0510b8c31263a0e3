/* SPDX-License-Identifier: MIT */
/* A spec without the path of its image is that of the device which has it. */
#include "ublkctl/spec/image_path.h"

#include "tests/unit/check.h"

#define POOL(more) "{\"target\":{\"type\":\"loop\",\"pool\":\"fast\"" more "}}"

static void check(const char *text, const char *stored_text, const char *wanted_text)
{
        cJSON *spec = cJSON_Parse(text), *stored = cJSON_Parse(stored_text),
              *wanted = cJSON_Parse(wanted_text), *copy = image_path_carry(spec, stored);

        if (!CHECK(cJSON_Compare(copy, wanted, true)))
                fprintf(stderr, "    for %s\n", text);
        cJSON_Delete(spec);
        cJSON_Delete(stored);
        cJSON_Delete(wanted);
        cJSON_Delete(copy);
}

int main(void)
{
        static const char stored[] = POOL(",\"path\":\"/srv/fast/a.img\"");

        check(POOL(""), stored, stored);
        check(POOL(",\"keep\":true"), stored, POOL(",\"keep\":true,\"path\":\"/srv/fast/a.img\""));
        check(POOL(",\"path\":\"/srv/b\""), stored, POOL(",\"path\":\"/srv/b\""));
        check(POOL(""), "null", POOL(""));
        check("{\"target\":{\"type\":\"loop\",\"pool\":\"slow\"}}", stored,
                "{\"target\":{\"type\":\"loop\",\"pool\":\"slow\"}}");
        check("{\"target\":{\"type\":\"null\"}}", stored, "{\"target\":{\"type\":\"null\"}}");
        check("{\"target\":7}", stored, "{\"target\":7}");
        return check_report();
}
