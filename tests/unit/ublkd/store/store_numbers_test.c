/* SPDX-License-Identifier: MIT */
/* store_numbers: which number is free, and how much work it is to find out. */
#include "ublkd/store/store_numbers.h"

#include "tests/unit/check.h"

#include <string.h>

enum { DEVICES = 10000 }; /* as many as the API lets there be */

struct made {
        struct store_entry *entries;
        struct device_spec *specs;
        struct store_entry **items;
        char (*names)[24];
        struct store_entries all;
};

/* Device i has the number i, or none but asks for it; the last has and asks for none. */
static void make_devices(struct made *made, size_t count, bool ask)
{
        made->entries = calloc(count, sizeof(*made->entries));
        made->specs = calloc(count, sizeof(*made->specs));
        made->items = calloc(count, sizeof(struct store_entry *));
        made->names = calloc(count, sizeof(*made->names));
        if (!made->entries || !made->specs || !made->items || !made->names)
                abort();
        for (size_t i = 0; i < count; i++) {
                bool last = i == count - 1;

                snprintf(made->names[i], sizeof(made->names[i]), "d%06zu", i);
                made->specs[i].options.id = ask && !last ? (int64_t)i : -1;
                made->entries[i].record.name = made->names[i];
                made->entries[i].record.number = ask || last ? -1 : (int)i;
                made->entries[i].record.spec = &made->specs[i];
                made->items[i] = &made->entries[i];
        }
        made->all = (struct store_entries){.items = made->items, .count = count, .allocated = count};
}

static void free_devices(struct made *made)
{
        free(made->entries);
        free(made->specs);
        free(made->items);
        free(made->names);
}

static int free_number(const struct made *made, int from, const char *name)
{
        size_t steps = 0;
        int number = -1;

        CHECK_INT(store_numbers_free(&made->all, from, name, &number, &steps), 0);
        CHECK(!store_numbers_owner(&made->all, number, name));
        return number;
}

static void test_which_is_free(void)
{
        struct made made;

        make_devices(&made, 200, false);
        CHECK_INT(free_number(&made, 0, "d000199"), 199);
        CHECK_INT(free_number(&made, 0, "d000050"), 50); /* its own is free for it */
        CHECK_INT(free_number(&made, 51, "d000050"), 199);
        CHECK_INT(free_number(&made, 500, "d000199"), 500);
        made.entries[7].record.number = 5000; /* beyond what can matter */
        CHECK_INT(free_number(&made, 0, "d000199"), 7);
        made.specs[3].options.id = 7; /* one that has a number and asks for another holds both */
        CHECK_INT(free_number(&made, 0, "d000199"), 199);
        made.entries[9].record.spec = NULL; /* its stored spec cannot be used; it has its number */
        CHECK_INT(free_number(&made, 9, "d000199"), 199);
        free_devices(&made);
}

/* It was cubic: half a minute for each start of a device once there were 10,000. */
static void test_the_work_grows_with_the_devices_only(void)
{
        struct made made;
        int number;
        size_t steps;

        for (int ask = 0; ask < 2; ask++) {
                make_devices(&made, DEVICES, ask);
                CHECK_INT(store_numbers_free(&made.all, 0, "d009999", &number, &steps), 0);
                CHECK_INT(number, DEVICES - 1);
                if (!CHECK(steps >= DEVICES && steps <= 2 * DEVICES))
                        fprintf(stderr, "%zu steps\n", steps);
                free_devices(&made);
        }
}

int main(void)
{
        test_which_is_free();
        test_the_work_grows_with_the_devices_only();
        return check_report();
}
