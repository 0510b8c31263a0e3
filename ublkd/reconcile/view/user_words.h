/* SPDX-License-Identifier: MIT */
/* PURE: the requests of the user that a try is made for. */
#pragma once

#include "ublkd/store/device_store.h"

/* Identifies the spec and the request that a try was made for: its failure does not count for later ones. */
struct user_words {
        uint64_t generation; /* 0: unknown, which counts as older */
        uint64_t asked;      /* device_record.asked */
};

/* Return the words that the record holds now. */
struct user_words user_words_of(const struct device_record *record);
bool user_words_equal(struct user_words one, struct user_words other);
