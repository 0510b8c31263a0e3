/* SPDX-License-Identifier: MIT */
/* What both programs know of the loop target. */
#include "targets/loop/loop_desc.h"
#include "targets/loop/loop_options.h"

static int add(struct problem_list *problems, const char *pointer, const char *reason, const char *sentence)
{
        return problem_add(problems, EINVAL, pointer, reason, "%s", sentence);
}

/* The image of a pool belongs to one disk, which is as large as its size asks. */
static int check_pool(const struct loop_options *options, uint64_t size, struct problem_list *problems)
{
        int r = 0;

        if (size == 0)
                r = add(problems, "/size", "PoolNeedsSize",
                        "size is missing, and ublkd makes the image of the disk; give one, like \"1GiB\"");
        if (r >= 0 && options->offset > 0)
                r = add(problems, "/target/offset", "OffsetInPool",
                        "offset is given, but a disk of a pool has the whole image; leave it out");
        return r;
}

static int check(const void *loop_options, uint64_t size, struct problem_list *problems)
{
        const struct loop_options *options = loop_options;

        if (options->pool)
                return check_pool(options, size, problems);
        if (!options->path)
                return add(problems, "/target", "PathOrPool",
                        "path and pool are missing; give the path of a file or block device, or the pool in "
                        "which ublkd makes one");
        if (options->keep)
                return add(problems, "/target/keep", "KeepWithoutPool",
                        "keep is given without a pool, and ublkd deletes only what it has made; leave it "
                        "out");
        return 0;
}

static const char *const live_options[] = {"keep", NULL};

static const struct target_verb verbs[] = {SCRUB_VERB(&loop_scrub_arguments_table)};

const struct target_desc loop_desc = {
        .name = "loop",
        .summary = "Serves a file or a block device, or a part of one",
        .flags = TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS | TARGET_STORE_OF_USER
                 | TARGET_SCANS,
        .options = &loop_options_table,
        .verbs = verbs,
        .verb_count = sizeof(verbs) / sizeof(verbs[0]),
        .live_options = live_options,
        .check = check,
};
