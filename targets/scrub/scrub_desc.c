/* SPDX-License-Identifier: MIT */
/* What a scrub has found, for clients. */
#include "targets/scrub/scrub_desc.h"
#include "ublkd/values/json_print.h"

bool scrub_show(const struct target_findings *findings, cJSON *ret)
{
        uint64_t read = findings->done > findings->bytes ? findings->done - findings->bytes : 0;

        return json_add_integer(ret, "bytesRead", read) && target_findings_show(findings, "unreadable", ret);
}
