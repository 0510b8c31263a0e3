/* SPDX-License-Identifier: MIT */
/* user_request: a failure counts for the spec and the request that the try was made for, and for no other. */
#include "ublkd/reconcile/view/user_request.h"

#include "tests/unit/check.h"

int main(void)
{
        struct device_record record = {.generation = 4, .asked = 2};
        const struct user_request tried = user_request_of(&record);

        CHECK_INT(tried.generation, 4);
        CHECK_INT(tried.asked, 2);
        CHECK(user_request_equal(tried, user_request_of(&record)));
        record.revision++; /* a status was stored */
        CHECK(user_request_equal(tried, user_request_of(&record)));
        record.asked++; /* a client wants a try at once */
        CHECK(!user_request_equal(tried, user_request_of(&record)));
        record.asked--;
        record.generation++; /* a client has changed the spec */
        CHECK(!user_request_equal(tried, user_request_of(&record)));
        CHECK(!user_request_equal(tried, (struct user_request){})); /* of a worker that was adopted */
        return check_report();
}
