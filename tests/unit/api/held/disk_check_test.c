/* SPDX-License-Identifier: MIT */
/* disk_check: what counts as an answer. The search is real; the test decides what it finds. */
#include "api/held/disk_check.h"

#include "api/http/hold.h"
#include "api/http/server.h"

#include "tests/unit/api/fake_connection.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

static sd_event *event;

static int find_no_user(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        (void)roots;
        (void)disks;
        (void)count;
        return 0;
}

static void test_an_empty_answer_is_invalid(void)
{
        const struct disk_answer nothing = {};

        CHECK_INT(nothing.use, DISK_USE_UNKNOWN);
        CHECK(nothing.use != DISK_UNUSED);
}

/* The disk 0 has the number that an answer has which was never given. */
static void test_a_question_that_is_asked_again_too_early(void)
{
        struct api api = {.event = event};
        struct request request = {.api = &api};
        struct device_record record = {.generation = 1};
        const struct disk_answer *answer;

        CHECK_INT(disk_search_new(event, &(struct disk_search_options){.find = find_no_user},
                          &api.config.disk_search),
                0);
        CHECK(!disk_check(&request, &record, 0));
        CHECK(!disk_check(&request, &record, 0)); /* no search has run yet */
        CHECK_INT(fake_connection.suspended, 1);
        while (request.suspended)
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        CHECK_INT(fake_connection.resumed, 1);
        answer = disk_check(&request, &record, 0);
        if (CHECK(answer))
                CHECK_INT(answer->use, DISK_UNUSED);
        CHECK_INT(fake_connection.suspended, 1);
        request.hold->kind->free(request.hold);
        disk_search_free(api.config.disk_search);
}

int main(void)
{
        CHECK_INT(sd_event_new(&event), 0);
        fake_connection.fd = eventfd(0, EFD_CLOEXEC); /* nothing comes of it */
        CHECK(fake_connection.fd >= 0);
        test_an_empty_answer_is_invalid();
        test_a_question_that_is_asked_again_too_early();
        close_fd(fake_connection.fd);
        sd_event_unref(event);
        return check_report();
}
