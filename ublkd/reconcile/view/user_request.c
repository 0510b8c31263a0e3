/* SPDX-License-Identifier: MIT */
/* The requests of the user that a try is made for. */
#include "ublkd/reconcile/view/user_request.h"

struct user_request user_request_of(const struct device_record *record)
{
        return (struct user_request){.generation = record->generation, .asked = record->asked};
}

bool user_request_equal(struct user_request one, struct user_request other)
{
        return one.generation == other.generation && one.asked == other.asked;
}
