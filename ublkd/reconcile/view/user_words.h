/* SPDX-License-Identifier: MIT */
/* PURE: what the user has said of a device. */
#pragma once

#include "ublkd/store/device_store.h"

/* A try is judged by the words that it was made for: what it failed for says nothing about words that came
 * after it began. */
struct user_words {
        uint64_t generation; /* 0: not known, which is as good as older */
        uint64_t asked;      /* device_record.asked */
};

/* Return the words that the record holds now. */
struct user_words user_words_of(const struct device_record *record);
bool user_words_equal(struct user_words one, struct user_words other);
