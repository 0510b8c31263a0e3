/* SPDX-License-Identifier: MIT */
/* Finds the owners of kernel numbers, and free numbers. */
#include "ublkd/store/store_numbers.h"

#include <string.h>

const struct device_record *store_numbers_owner(
        const struct store_entries *entries, int number, const char *name)
{
        const struct store_number *owner = store_entries_of_number(entries, number);

        while (owner && strcmp(owner->entry->record.name, name) == 0)
                owner = store_entries_same_number(owner);
        return owner ? &owner->entry->record : NULL;
}

int store_numbers_free(const struct store_entries *entries, int from, const char *name, int *ret)
{
        const struct store_entry *self = store_entries_find(entries, name);
        const int own[] = {self ? self->has.number : -1, self ? self->asks.number : -1};
        int number = number_set_first_missing(&entries->taken, from);

        /* The device may take the numbers that it has or asks for itself. */
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                if (own[i] >= from && (number < 0 || own[i] < number)
                        && !store_numbers_owner(entries, own[i], name))
                        number = own[i];
        if (number < 0)
                return -ENOSPC;
        *ret = number;
        return 0;
}
