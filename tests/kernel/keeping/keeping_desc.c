/* SPDX-License-Identifier: MIT */
/* What both programs know of the target of keeping.c. The linker takes it in the place of the description of null. */
#include "targets/null/null_desc.h"
#include "targets/null/null_options.h"
#include "tests/kernel/keeping/keeping.h"

const struct target_desc null_desc = {
        .name = "null",
        .summary = "Keeps its data in the memory that outlives its worker",
        .flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE,
        .size_required = true,
        .options = &null_options_table,
        .kept_disk_bytes = sizeof(uint64_t),
        .kept_queue_bytes = KEEPING_QUEUE_BYTES,
        .kept_version = 1,
};
