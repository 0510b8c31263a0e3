/* SPDX-License-Identifier: MIT */
/* Names of the ublk driver's feature bits, and what a disk can do that has them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* What only some kernels can do to a live disk. */
enum kernel_feature {
        KERNEL_FEATURE_GROW,     /* UPDATE_SIZE */
        KERNEL_FEATURE_QUIESCE,  /* QUIESCE_DEV */
        KERNEL_FEATURE_TRY_STOP, /* TRY_STOP_DEV */
        _KERNEL_FEATURE_MAX
};
/* Return whether a disk with these flags (as negotiated) has the feature. */
bool kernel_has_feature(uint64_t flags, enum kernel_feature feature);

/* Return the driver's name of flag bit N without UBLK_F_, or NULL. */
const char *kernel_feature_name(unsigned bit);
/* Return a JSON array of the names of all bits set, the caller's; NULL on ENOMEM. */
cJSON *kernel_features_to_json(uint64_t flags);
