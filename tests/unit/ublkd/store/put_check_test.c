/* SPDX-License-Identifier: MIT */
/* Which change of the backing stores of a disk a put may make. */
#include "ublkd/store/put_check.h"
#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"

#include <errno.h>
#include <string.h>

/* Add a part of a file: "a1" is /a from 1 GiB on, by the offset of the loop target, "A1" by that of a linear one above it. */
static void add_part(const char *part, char *text, size_t size)
{
        bool above = *part >= 'A' && *part <= 'Z';
        char name = above ? (char)(*part - 'A' + 'a') : *part;
        size_t length = strlen(text);

        snprintf(text + length, size - length,
                "{\"type\":\"linear\",\"length\":\"1GiB\",\"offset\":\"%cGiB\",\"child\":"
                "{\"type\":\"loop\",\"path\":\"/%c\",\"offset\":\"%cGiB\"}}",
                above ? part[1] : '0', name, above ? '0' : part[1]);
}

/* parts: "a0 b0"; a list, unless there is one part only. */
static struct device_spec *make_spec(const char *parts)
{
        char text[2048] = "{\"name\":\"data\",\"target\":";

        if (strchr(parts, ' '))
                strcat(text, "{\"type\":\"linear\",\"children\":[");
        for (const char *part = parts; *part; part += part[2] ? 3 : 2) {
                add_part(part, text, sizeof(text) - 8);
                strcat(text, part[2] ? "," : "");
        }
        strcat(text, strchr(parts, ' ') ? "]}}" : "}");
        return spec_of(text);
}

static void a_store_or_a_part_of_it_keeps_its_place(void)
{
        static const struct {
                const char *before, *now;
                bool moves;
        } rows[] = {
                {"a0 b0",    "a0 b0",    false},
                {"a0 b0",    "c0 b0",    false},
                {"a0 b0",    "b0 a0",    true },
                {"a0 b0",    "c0 a0",    true },
                {"a0 b0",    "b0",       true },
                {"a0 b0",    "a1 b0",    false}, /* as of a single store: the client asks for other bytes */
                {"a0",       "a1",       false},
                {"a0",       "a0 b0",    false},
                {"a0",       "b0 a0",    true },
                /* One part stays, and another one moves, or comes where it was. */
                {"a0 b0 a1", "a0 a1 c0", true },
                {"a0 a1",    "a1",       true },
                {"A0 A1",    "A1",       true },
                {"a0 A1",    "a1",       true },
                {"a0 a1",    "a1 a0",    true },
                {"a0 a1",    "a1 c0",    true },
                {"a0 a1",    "a0",       false},
                {"A0 A1",    "a0",       false},
                {"a0 a1",    "a0 c0",    false},
                {"a0 a1",    "A0 A1",    false},
                {"a0 b0 a1", "a0 b0 c0", false},
                {"a0 b0",    "a0 b0 a1", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_problems_ struct problem_list problems = {};
                struct device_record record = {.status.disk = true};
                struct device_spec *now = make_spec(rows[i].now);

                record.spec = make_spec(rows[i].before);
                if (record.spec && now
                        && !CHECK_INT(put_check(now, &record, NULL,
                                              &(const struct put_condition){.mode = PUT_CREATE_OR_REPLACE},
                                              &problems),
                                rows[i].moves ? -ETXTBSY : 0))
                        fprintf(stderr, "in: %s -> %s\n", rows[i].before, rows[i].now);
                device_spec_free(record.spec);
                device_spec_free(now);
        }
}

int main(void)
{
        a_store_or_a_part_of_it_keeps_its_place();
        return check_report();
}
