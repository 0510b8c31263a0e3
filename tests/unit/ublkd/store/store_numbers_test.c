/* SPDX-License-Identifier: MIT */
/* store_numbers: which number is free and who has one, against a plain look at every record. */
#include "ublkd/store/store_numbers.h"

#include "tests/unit/check.h"

#include <string.h>

enum { SEED = 20260101, RANDOM_DEVICES = 300, RANDOM_NUMBERS = 400, ROUNDS = 5000 };

struct made {
        struct store_entry *entries;
        struct device_spec *specs;
        char (*names)[24];
        size_t count;
        struct store_entries all;
};

/* Device i has the number i, and the last has none. */
static void make_devices(struct made *made, size_t count)
{
        *made = (struct made){.count = count};
        made->entries = calloc(count, sizeof(*made->entries));
        made->specs = calloc(count, sizeof(*made->specs));
        made->names = calloc(count, sizeof(*made->names));
        if (!made->entries || !made->specs || !made->names)
                abort();
        store_entries_init(&made->all);
        for (size_t i = 0; i < count; i++) {
                struct device_record *record = &made->entries[i].record;

                snprintf(made->names[i], sizeof(made->names[i]), "d%06zu", i);
                made->specs[i].options.id = -1;
                record->name = made->names[i];
                record->number = i == count - 1 ? -1 : (int)i;
                record->spec = &made->specs[i];
                store_entries_insert(&made->all, &made->entries[i]);
        }
}

static void free_devices(struct made *made)
{
        for (size_t i = 0; i < made->count; i++)
                store_entries_take(&made->all, &made->entries[i]);
        CHECK_INT(store_entries_count(&made->all), 0);
        CHECK(!store_entries_of_number(&made->all, 3));
        CHECK(!number_set_has(&made->all.taken, 3));
        free(made->entries);
        free(made->specs);
        free(made->names);
}

static void set_number(struct made *made, size_t i, int number)
{
        made->entries[i].record.number = number;
        store_entries_update(&made->all, &made->entries[i]);
}

static void ask_for(struct made *made, size_t i, int number)
{
        made->specs[i].options.id = number;
        store_entries_update(&made->all, &made->entries[i]);
}

static int free_number(const struct made *made, int from, const char *name)
{
        int number = -1;

        CHECK_INT(store_numbers_free(&made->all, from, name, &number), 0);
        CHECK(!store_numbers_owner(&made->all, number, name));
        return number;
}

static void test_which_is_free(void)
{
        struct made made;

        make_devices(&made, 200);
        CHECK_INT(free_number(&made, 0, "d000199"), 199);
        CHECK_INT(free_number(&made, 0, "d000050"), 50); /* its own is free for it */
        CHECK_INT(free_number(&made, 51, "d000050"), 199);
        CHECK_INT(free_number(&made, 500, "d000199"), 500);
        CHECK_INT(free_number(&made, 0, "unknown"), 199);
        set_number(&made, 7, 5000);
        CHECK_INT(free_number(&made, 0, "d000199"), 7);
        ask_for(&made, 3, 7); /* one that has a number and asks for another holds both */
        CHECK_INT(free_number(&made, 0, "d000199"), 199);
        made.entries[9].record.spec = NULL; /* its stored spec cannot be used; it has its number */
        store_entries_update(&made.all, &made.entries[9]);
        CHECK_INT(free_number(&made, 9, "d000199"), 199);
        free_devices(&made);
}

/* Devices that have the last number, and one that two have: a database may say so. */
static void test_the_ends(void)
{
        struct made made;
        int number;

        make_devices(&made, 10);
        set_number(&made, 8, DEVICE_NUMBER_MAX);
        CHECK_INT(store_numbers_free(&made.all, DEVICE_NUMBER_MAX, "d000009", &number), -ENOSPC);
        CHECK_INT(free_number(&made, DEVICE_NUMBER_MAX, "d000008"), DEVICE_NUMBER_MAX);
        set_number(&made, 9, 4);
        CHECK_STR(store_numbers_owner(&made.all, 4, "d000004")->name, "d000009");
        CHECK_STR(store_numbers_owner(&made.all, 4, "d000009")->name, "d000004");
        CHECK_INT(free_number(&made, 0, "d000009"), 8);
        set_number(&made, 4, -1);
        CHECK(!store_numbers_owner(&made.all, 4, "d000009"));
        CHECK_INT(free_number(&made, 0, "d000004"), 8); /* the other one still has it */
        free_devices(&made);
}

static const struct device_record *model_owner(const struct made *made, int number, size_t but)
{
        for (size_t i = 0; i < made->count; i++) {
                const struct device_record *record = &made->entries[i].record;

                if (i != but && (record->number == number || record->spec->options.id == number))
                        return record;
        }
        return NULL;
}

static void test_random_changes(void)
{
        struct made made;

        srand(SEED);
        make_devices(&made, RANDOM_DEVICES);
        for (unsigned round = 0; round < ROUNDS; round++) {
                size_t changed = (size_t)rand() % made.count, looks = (size_t)rand() % made.count;
                int number = rand() % (RANDOM_NUMBERS + 1) - 1, from = rand() % RANDOM_NUMBERS, wanted = from;

                if (rand() % 2)
                        set_number(&made, changed, number);
                else
                        ask_for(&made, changed, number);
                CHECK(store_numbers_owner(&made.all, from, made.names[looks])
                        == model_owner(&made, from, looks));
                while (model_owner(&made, wanted, looks))
                        wanted++;
                CHECK_INT(free_number(&made, from, made.names[looks]), wanted);
        }
        free_devices(&made);
}

int main(void)
{
        test_which_is_free();
        test_the_ends();
        test_random_changes();
        return check_report();
}
