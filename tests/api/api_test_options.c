/* SPDX-License-Identifier: MIT */
/* Values of the options of api_test_server. */
#include "tests/api/api_test_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void api_test_parse_times(const char *text, struct api_times *ret)
{
        unsigned idle = 0, head = 0, body = 0, reply = 0, token = 0;

        (void)sscanf(text, "%u,%u,%u,%u,%u", &idle, &head, &body, &reply, &token);
        *ret = (struct api_times){.idle = idle * UINT64_C(1000),
                .head = head * UINT64_C(1000),
                .body = body * UINT64_C(1000),
                .reply = reply * UINT64_C(1000),
                .token = token * UINT64_C(1000)};
}

struct api_group api_test_group(const char *text, const char *name)
{
        struct api_group group = {.gid = (gid_t)strtoul(text, NULL, 10), .name = name};

        group.exists = group.gid != 0;
        return group;
}

void api_test_parse_readers(const char *text, struct api_rights *ret)
{
        ret->everyone_reads = strcmp(text, "everyone") == 0;
        ret->readers = ret->everyone_reads ? (struct api_group){} : api_test_group(text, "ublk");
}
