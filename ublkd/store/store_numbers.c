/* SPDX-License-Identifier: MIT */
/* Which kernel numbers the records of the store have. */
#include "ublkd/store/store_numbers.h"

#include <string.h>

enum { WORD_BITS = 64 };

/* One bit for each number from `from` on. */
struct taken {
        uint64_t *words;
        size_t count; /* of words */
        int from;
};

static void take(struct taken *taken, int64_t number)
{
        uint64_t bit;

        if (number < taken->from)
                return;
        bit = (uint64_t)(number - taken->from);
        if (bit / WORD_BITS < taken->count)
                taken->words[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
}

static size_t first_free_word(const struct taken *taken, size_t *steps)
{
        size_t i = 0;

        for (; taken->words[i] == UINT64_MAX; i++)
                (*steps)++;
        return i;
}

const struct device_record *store_numbers_owner(
        const struct store_entries *entries, int number, const char *name)
{
        for (size_t i = 0; i < entries->count; i++) {
                const struct device_record *record = &entries->items[i]->record;
                bool wants = record->spec && record->spec->options.id == number;

                if ((record->number == number || wants) && strcmp(record->name, name) != 0)
                        return record;
        }
        return NULL;
}

int store_numbers_free(
        const struct store_entries *entries, int from, const char *name, int *ret_number, size_t *ret_steps)
{
        /* A record has two numbers at most, so one of twice as many and one is free. */
        struct taken taken = {.count = (2 * entries->count + 1) / WORD_BITS + 1, .from = from};
        _cleanup_free_ uint64_t *words = taken.words = calloc(taken.count, sizeof(*words));
        size_t steps = 0, word;

        if (!words)
                return -ENOMEM;
        for (size_t i = 0; i < entries->count; i++) {
                const struct device_record *record = &entries->items[i]->record;

                steps++;
                if (strcmp(record->name, name) == 0)
                        continue;
                take(&taken, record->number);
                if (record->spec)
                        take(&taken, record->spec->options.id);
        }
        word = first_free_word(&taken, &steps);
        *ret_number = from + (int)(word * WORD_BITS) + __builtin_ctzll(~words[word]);
        *ret_steps = steps;
        return 0;
}
