/* SPDX-License-Identifier: MIT */
/* partition_steps: only what differs is touched, and what a partition in use could lose is left to the kernel. */
#include "ublkd/partitions/partition_steps.h"

#include "tests/unit/check.h"

/* The steps as text: "-1 +1@8+8 >2@16+24": delete, add, grow. leave: a number, or 0. */
static const char *steps_of(
        const struct partition_list *present, const struct partition_list *wanted, unsigned leave)
{
        static const char signs[] = {[PARTITION_DELETE] = '-', [PARTITION_GROW] = '>', [PARTITION_ADD] = '+'};
        static char text[512];
        bool left[PARTITION_NUMBER_MAX + 1] = {};
        struct partition_steps steps;
        size_t used = 0;

        left[leave] = leave > 0;
        partition_steps_find(present, wanted, left, &steps);
        text[0] = '\0';
        for (size_t i = 0; i < steps.count; i++) {
                const struct partition_step *step = &steps.items[i];

                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%c%u", i ? " " : "",
                        signs[step->action], step->partition.number);
                if (step->action != PARTITION_DELETE)
                        used += (size_t)snprintf(text + used, sizeof(text) - used, "@%" PRIu64 "+%" PRIu64,
                                step->partition.start, step->partition.size);
        }
        return text;
}

#define LIST(...)                                                                                            \
        (&(const struct partition_list){.items = {__VA_ARGS__},                                              \
                .count = sizeof((const struct partition[]){__VA_ARGS__}) / sizeof(struct partition)})
#define NONE (&(const struct partition_list){})

int main(void)
{
        CHECK_STR(steps_of(NONE, NONE, 0), "");
        CHECK_STR(steps_of(NONE, LIST({1, 8, 8}, {2, 16, 8}), 0), "+1@8+8 +2@16+8");
        CHECK_STR(steps_of(LIST({2, 16, 8}, {1, 8, 8}), LIST({1, 8, 8}, {2, 16, 8}), 0), "");
        CHECK_STR(steps_of(LIST({1, 8, 8}, {2, 16, 8}), NONE, 0), "-1 -2");
        /* What has no valid entry stays. */
        CHECK_STR(steps_of(LIST({1, 8, 8}, {2, 16, 8}), NONE, 2), "-1");
        /* A partition that grows stays open; one that shrinks or moves does not. */
        CHECK_STR(steps_of(LIST({1, 8, 8}), LIST({1, 8, 16}), 0), ">1@8+16");
        CHECK_STR(steps_of(LIST({1, 8, 16}), LIST({1, 8, 8}), 0), "-1 +1@8+8");
        CHECK_STR(steps_of(LIST({1, 8, 8}), LIST({1, 16, 8}), 0), "-1 +1@16+8");
        /* What makes room comes first. */
        CHECK_STR(steps_of(LIST({1, 8, 8}, {2, 16, 8}), LIST({1, 8, 16}), 0), "-2 >1@8+16");
        CHECK_STR(steps_of(LIST({1, 8, 16}), LIST({2, 16, 8}, {1, 8, 8}), 0), "-1 +2@16+8 +1@8+8");
        CHECK_STR(steps_of(LIST({1, 8, 8}, {2, 16, 8}), LIST({1, 16, 8}, {2, 8, 8}), 0),
                "-1 -2 +1@16+8 +2@8+8");
        return check_report();
}
