/* SPDX-License-Identifier: MIT */
/* What both programs know of the stripe target. */
#include "targets/stripe/stripe_desc.h"
#include "targets/stripe/stripe_options.h"

/* The smallest child decides; one without a size is as large as the others. */
static bool has_size(const void *options, const bool *children, unsigned count)
{
        (void)options;
        for (unsigned i = 0; i < count; i++)
                if (children[i])
                        return true;
        return false;
}

static const struct target_verb verbs[] = {SCRUB_VERB(&stripe_scrub_arguments_table)};

const struct target_desc stripe_desc = {
        .name = "stripe",
        .summary = "Distributes a disk over several targets, chunk by chunk",
        .flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE | TARGET_REGISTERED_BUFFERS
                 | TARGET_SCANS,
        .options = &stripe_options_table,
        .verbs = verbs,
        .verb_count = sizeof(verbs) / sizeof(verbs[0]),
        .has_size = has_size,
};
