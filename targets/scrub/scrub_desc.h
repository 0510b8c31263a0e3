/* SPDX-License-Identifier: MIT */
/* The action "scrub" as both programs know it, for each target that has scan() (TARGET_SCANS). */
#pragma once

#include "targets/target_desc.h"

/* Its arguments: $defs/scrub of schemas/types.schema.json. */
struct scrub_arguments {
        uint64_t rate; /* bytes in a second */
};
_Static_assert(sizeof(struct scrub_arguments) <= TARGET_ARGUMENTS_MAX, "they are handed on as a copy");

/* Add its result to an object. Return false on ENOMEM. */
bool scrub_show(const struct target_findings *findings, cJSON *ret);

/* A row of target_desc.verbs. table: of the target's schema. */
#define SCRUB_VERB(TABLE)                                                                                    \
        {.name = "scrub",                                                                                    \
                .summary = "Reads every block of the disk, and reports which cannot be read",                \
                .arguments = (TABLE),                                                                        \
                .needs = TARGET_SCANS,                                                                       \
                .show_result = scrub_show}
