/* SPDX-License-Identifier: MIT */
/* hold: how a suspended request ends. */
#include "api/http/hold.h"
#include "api/http/server.h"

#include "tests/unit/api/fake_connection.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/socket.h>

static sd_event *event;
static unsigned freed, left;
static int ends[2]; /* of the client's connection; the first is the server's */

static struct hold *free_hold(struct hold *hold)
{
        hold_release(hold);
        free(hold);
        freed++;
        return NULL;
}

static void on_left(struct hold *hold)
{
        hold_resume(hold);
        left++;
}

static const struct hold_kind passing = {.free = free_hold}, stream = {.left = on_left, .free = free_hold};

struct world {
        struct api api;
        struct request request;
};

static void begin(struct world *world)
{
        freed = left = 0;
        *world = (struct world){.api.event = event, .request.api = &world->api};
        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        fake_connection = (struct fake_connection){.fd = ends[0]};
}

static void end(struct world *world)
{
        if (world->request.hold)
                world->request.hold->kind->free(world->request.hold);
        CHECK(!world->api.holds);
        for (unsigned i = 0; i < ARRAY_SIZE(ends); i++)
                ends[i] = close_fd(ends[i]);
}

static struct hold *hold_new(struct world *world, const struct hold_kind *kind)
{
        struct hold *hold = calloc(1, sizeof(*hold));

        CHECK(hold);
        CHECK_INT(hold_attach(hold, kind, &world->request), 0);
        return hold;
}

static void test_a_request_that_ends_keeps_its_hold_until_the_next(void)
{
        struct world world;
        struct hold *hold;

        begin(&world);
        hold = hold_new(&world, &passing);
        hold_suspend(hold);
        CHECK(world.request.suspended);
        CHECK_INT(hold_count(&world.api, &passing), 1);
        CHECK_INT(hold_count(&world.api, &stream), 0);
        hold_end(hold);
        CHECK(!world.request.suspended && !world.request.abandoned && world.request.hold == hold);
        CHECK_INT(fake_connection.resumed, 1);
        CHECK_INT(hold_count(&world.api, &passing), 0);
        CHECK_INT(freed, 0);
        (void)hold_new(&world, &stream);
        CHECK_INT(freed, 1);
        end(&world);
        CHECK_INT(freed, 2);
}

static void test_a_client_that_leaves_abandons_its_request(void)
{
        struct world world;

        begin(&world);
        hold_suspend(hold_new(&world, &passing));
        ends[1] = close_fd(ends[1]);
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        CHECK(world.request.abandoned && !world.request.suspended && !world.request.hold);
        CHECK_INT(freed, 1);
        CHECK_INT(fake_connection.resumed, 1);
        end(&world);
}

static void test_a_stream_learns_that_its_client_has_left(void)
{
        struct world world;
        struct hold *hold;

        begin(&world);
        hold = hold_new(&world, &stream); /* it writes: not suspended */
        ends[1] = close_fd(ends[1]);
        CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        CHECK_INT(left, 1);
        CHECK_INT(fake_connection.resumed, 0);
        CHECK(!world.request.abandoned && world.request.hold == hold);
        CHECK_INT(sd_event_run(event, 0), 0); /* once */
        end(&world);
}

static void test_a_server_that_stops(void)
{
        struct world worlds[2];
        struct hold *hold;

        begin(&worlds[0]);
        worlds[1].request = (struct request){.api = &worlds[0].api};
        hold_suspend(hold_new(&worlds[0], &passing));
        fake_connection.fd = ends[1]; /* another connection */
        hold = hold_new(&worlds[1], &stream);
        hold_suspend(hold);
        hold_abandon_all(&worlds[0].api);
        CHECK(worlds[0].request.abandoned && !worlds[1].request.abandoned);
        CHECK_INT(fake_connection.suspended, 2);
        CHECK_INT(fake_connection.resumed, 2);
        CHECK_INT(left, 1);
        free_hold(hold);
        end(&worlds[0]);
}

static void test_a_client_that_cannot_be_watched(void)
{
        struct world world;
        struct hold hold = {};

        begin(&world);
        fake_connection.fd = -1;
        CHECK_INT(hold_attach(&hold, &passing, &world.request), -ENOTCONN);
        CHECK(!world.request.hold && !world.api.holds);
        end(&world);
}

int main(void)
{
        CHECK_INT(sd_event_new(&event), 0);
        test_a_request_that_ends_keeps_its_hold_until_the_next();
        test_a_client_that_leaves_abandons_its_request();
        test_a_stream_learns_that_its_client_has_left();
        test_a_server_that_stops();
        test_a_client_that_cannot_be_watched();
        sd_event_unref(event);
        return check_report();
}
