/* SPDX-License-Identifier: MIT */
/* What both programs know of the loop target. */
#include "targets/loop/loop_options.h"
#include "targets/target_desc.h"

extern const struct target_desc loop_desc;

const struct target_desc loop_desc = {
        .name = "loop",
        .summary = "Serves a file or a block device, or a part of one",
        .flags = TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS,
        .options = &loop_options_table,
};
