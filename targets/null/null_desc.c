/* SPDX-License-Identifier: MIT */
/* What both programs know of the null target. */
#include "targets/null/null_desc.h"
#include "targets/null/null_options.h"

/* Not TARGET_REGISTERED_BUFFERS: a read must fill the pages with zeroes, or it would show what was there
 * before. */
const struct target_desc null_desc = {
        .name = "null",
        .summary = "Drops what is written and reads as zeroes: for measurements and tests",
        .flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE,
        .size_required = true,
        .options = &null_options_table,
};
