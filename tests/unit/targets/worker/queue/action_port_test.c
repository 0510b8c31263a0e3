/* SPDX-License-Identifier: MIT */
/* The way of an order to the first queue: what the supervisor sees of it, and the memory that goes with it. */
#include "targets/worker/queue/action_port.h"
#include "targets/target_action.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"
#include "ublkd/proto/region_action.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static struct shared shared;
static struct region_control *control;

static struct action_port *new_port(void)
{
        struct action_port *port = NULL;

        CHECK_INT(action_port_new(control, -1, &port), 0);
        return port;
}

/* A queue that is in a long turn takes the order later: until then no look at the region finds another action there. */
static void test_named_before_the_queue_looks(void)
{
        struct action_port *port = new_port();

        CHECK(!action_port_take(port));
        CHECK_INT(action_port_give(port, &(struct action_order){.id = 5, .worker = 9}), 0);
        CHECK(action_port_is_busy(port));
        CHECK_INT(control->action.id, 5);
        CHECK_INT(control->action.worker, 9);
        CHECK_INT(control->action.state, REGION_ACTION_RUNNING);
        CHECK(action_port_take(port) && action_port_take(port)->id == 5);
        action_port_done(port);
        CHECK(!action_port_is_busy(port) && !action_port_take(port));
        action_port_free(port);
}

/* The request to end an action may come before its order. */
static void test_cancelled_before_it_is_given(void)
{
        struct action_port *port = new_port();

        control->action.cancel = 6;
        CHECK_INT(action_port_give(port, &(struct action_order){.id = 6, .worker = 9}), 0);
        CHECK(region_action_is_cancelled(control, 6));
        action_port_done(port);
        CHECK_INT(action_port_give(port, &(struct action_order){.id = 7, .worker = 9}), 0);
        CHECK(!region_action_is_cancelled(control, 7));
        action_port_free(port);
}

static size_t pages_of(const struct action_port *port)
{
        unsigned char there[TARGET_ACTION_MEMORY / 4096] = {};
        size_t count = 0;

        CHECK_INT(mincore(port->memory, TARGET_ACTION_MEMORY, there), 0);
        for (size_t i = 0; i < sizeof(there); i++)
                count += there[i] & 1;
        return count;
}

static size_t all_pages(void)
{
        return TARGET_ACTION_MEMORY / (size_t)sysconf(_SC_PAGESIZE);
}

static void act_once(struct action_port *port, uint64_t id)
{
        CHECK_INT(pages_of(port), 0);
        CHECK_INT(action_port_give(port, &(struct action_order){.id = id, .worker = 9}), 0);
        CHECK_INT(pages_of(port), all_pages());
        action_port_done(port);
        CHECK_INT(pages_of(port), 0);
}

/* An idle worker does not pay for the memory of actions. */
static void test_memory_is_there_only_for_an_action(void)
{
        struct action_port *port = new_port();

        act_once(port, 8);
        act_once(port, 9);
        action_port_free(port);
}

/* As in a worker, whose memory is locked on fault. */
static void test_memory_that_is_locked(void)
{
        struct action_port *port = new_port();

        if (mlock2(port->memory, TARGET_ACTION_MEMORY, MLOCK_ONFAULT) >= 0)
                act_once(port, 10);
        action_port_free(port);
}

static void test_memory_that_cannot_be_had(void)
{
        struct action_port *port = new_port();

        CHECK_INT(munmap(port->memory, TARGET_ACTION_MEMORY), 0);
        CHECK_INT(action_port_give(port, &(struct action_order){.id = 11, .worker = 9}), -ENOMEM);
        CHECK(!action_port_is_busy(port) && !action_port_take(port));
        CHECK_INT(control->action.id, 11);
        port->memory = NULL;
        action_port_free(port);
}

int main(void)
{
        shared = shared_region_new();
        control = device_region_control(shared.region);
        test_named_before_the_queue_looks();
        test_cancelled_before_it_is_given();
        test_memory_is_there_only_for_an_action();
        test_memory_that_is_locked();
        test_memory_that_cannot_be_had();
        shared_region_unmap(&shared);
        return check_report();
}
