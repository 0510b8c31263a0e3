/* SPDX-License-Identifier: MIT */
/* The requests of the user that a try is made for. */
#include "ublkd/reconcile/view/user_words.h"

struct user_words user_words_of(const struct device_record *record)
{
        return (struct user_words){.generation = record->generation, .asked = record->asked};
}

bool user_words_equal(struct user_words one, struct user_words other)
{
        return one.generation == other.generation && one.asked == other.asked;
}
