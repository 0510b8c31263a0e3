/* SPDX-License-Identifier: MIT */
/* PURE: the request of the user that a try is made for. */
#pragma once

#include "ublkd/store/device_store.h"

/* Identifies the spec and the request that a try was made for: its failure does not count for later ones. */
struct user_request {
        uint64_t generation; /* 0: unknown, which counts as older */
        uint64_t asked;      /* device_record.asked */
};

/* Return the request that the record holds now. */
struct user_request user_request_of(const struct device_record *record);
bool user_request_equal(struct user_request one, struct user_request other);
