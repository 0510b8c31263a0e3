/* SPDX-License-Identifier: MIT */
/* upgrade_queue: which worker is replaced next, against a plain look at every device. */
#include "ublkd/tasks/upgrade_queue.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 20261126, DEVICES = 40, ROUNDS = 5000 };

static const struct upgrade_facts due = {.outdated = true, .ready = true},
                                  refused = {.outdated = true, .ready = true, .refused = true},
                                  busy = {.outdated = true, .restarting = true}, current = {.ready = true};

static void set(struct upgrade_queue *queue, const char *name, const struct upgrade_facts *facts)
{
        CHECK_INT(upgrade_queue_set(queue, name, facts), 0);
}

static void the_first_name_is_next_and_a_refusal_comes_last(void)
{
        struct upgrade_queue queue;

        upgrade_queue_init(&queue);
        CHECK(!upgrade_queue_next(&queue));
        set(&queue, "a", &refused);
        set(&queue, "c", &due);
        set(&queue, "b", &due);
        set(&queue, "d", &current);
        CHECK_STR(upgrade_queue_next(&queue), "b");
        CHECK_INT(queue.outdated, 3);
        CHECK_INT(queue.devices.count, 3); /* nothing is kept of a worker that stays */
        set(&queue, "b", &busy);
        CHECK_INT(queue.restarting, 1);
        CHECK_STR(upgrade_queue_next(&queue), "c");
        set(&queue, "b", &current);
        CHECK_INT(queue.restarting, 0);
        upgrade_queue_remove(&queue, "c");
        upgrade_queue_remove(&queue, "c");
        CHECK_STR(upgrade_queue_next(&queue), "a");
        set(&queue, "a", &current);
        CHECK(!upgrade_queue_next(&queue));
        CHECK_INT(queue.outdated, 0);
        CHECK_INT(queue.devices.count, 0);
        upgrade_queue_clear(&queue);
}

static void a_device_that_was_passed_over_is_not_next(void)
{
        struct upgrade_queue queue;

        upgrade_queue_init(&queue);
        set(&queue, "a", &due);
        set(&queue, "b", &due);
        CHECK_INT(upgrade_queue_pass_over(&queue, "a"), 0);
        CHECK_STR(upgrade_queue_next(&queue), "b");
        CHECK_INT(queue.outdated, 2);
        set(&queue, "a", &busy);
        CHECK_INT(queue.restarting, 0);
        set(&queue, "a", &current);
        set(&queue, "a", &due); /* it stays passed over, whatever it was meanwhile */
        CHECK_STR(upgrade_queue_next(&queue), "b");
        upgrade_queue_remove(&queue, "a");
        set(&queue, "a", &due); /* another device of this name */
        CHECK_STR(upgrade_queue_next(&queue), "a");
        CHECK_INT(upgrade_queue_pass_over(&queue, "a"), 0);
        upgrade_queue_clear(&queue);
        set(&queue, "a", &due);
        CHECK_STR(upgrade_queue_next(&queue), "a");
        upgrade_queue_clear(&queue);
}

/* ---- against a plain look ---- */

struct device {
        char name[8];
        struct upgrade_facts facts;
        bool passed_over;
};

static void reset(struct device *devices)
{
        memset(devices, 0, DEVICES * sizeof(*devices));
        for (unsigned i = 0; i < DEVICES; i++)
                snprintf(devices[i].name, sizeof(devices[i].name), "%03u", i);
}

static const struct device *look(const struct device *devices, bool is_refused)
{
        for (size_t i = 0; i < DEVICES; i++)
                if (devices[i].facts.outdated && devices[i].facts.ready && !devices[i].passed_over
                        && devices[i].facts.refused == is_refused)
                        return &devices[i];
        return NULL;
}

static void check_all(const struct upgrade_queue *queue, const struct device *devices)
{
        const struct device *next = look(devices, false) ? look(devices, false) : look(devices, true);
        size_t outdated = 0, restarting = 0;

        for (size_t i = 0; i < DEVICES; i++) {
                outdated += devices[i].facts.outdated;
                restarting += devices[i].facts.restarting && !devices[i].passed_over;
        }
        CHECK_STR(upgrade_queue_next(queue), next ? next->name : NULL);
        CHECK_INT(queue->outdated, outdated);
        CHECK_INT(queue->restarting, restarting);
}

static void the_order_is_that_of_a_plain_look(void)
{
        struct device devices[DEVICES];
        struct upgrade_queue queue;

        srandom(SEED);
        upgrade_queue_init(&queue);
        reset(devices);
        for (unsigned round = 0; round < ROUNDS && check_failures == 0; round++) {
                struct device *device = &devices[random() % DEVICES];

                device->facts = (struct upgrade_facts){.outdated = random() % 2,
                        .ready = random() % 2,
                        .refused = random() % 2,
                        .restarting = random() % 4 == 0};
                if (random() % 50 == 0) {
                        upgrade_queue_clear(&queue);
                        reset(devices);
                } else if (random() % 10 == 0) {
                        device->facts = (struct upgrade_facts){};
                        device->passed_over = false;
                        upgrade_queue_remove(&queue, device->name);
                } else {
                        set(&queue, device->name, &device->facts);
                        if (random() % 20 == 0) {
                                device->passed_over = true;
                                CHECK_INT(upgrade_queue_pass_over(&queue, device->name), 0);
                        }
                }
                check_all(&queue, devices);
        }
        upgrade_queue_clear(&queue);
}

int main(void)
{
        the_first_name_is_next_and_a_refusal_comes_last();
        a_device_that_was_passed_over_is_not_next();
        the_order_is_that_of_a_plain_look();
        return check_report();
}
