/* SPDX-License-Identifier: MIT */
/* How much two names differ: the distance of Levenshtein, in one row of its table. */
#include "ublkd/values/name_distance.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { NAME_COMPARED_MAX = 32 };

size_t name_distance(const char *one, const char *other)
{
        size_t row[NAME_COMPARED_MAX + 1], length = strlen(other);

        if (length > NAME_COMPARED_MAX || strnlen(one, NAME_COMPARED_MAX + 1) > NAME_COMPARED_MAX)
                return SIZE_MAX;
        for (size_t i = 0; i <= length; i++)
                row[i] = i;
        for (; *one; one++) {
                size_t diagonal = row[0]++;

                for (size_t i = 1; i <= length; i++) {
                        bool same = tolower((unsigned char)*one) == tolower((unsigned char)other[i - 1]);
                        size_t best = diagonal + !same;

                        if (row[i] + 1 < best)
                                best = row[i] + 1;
                        if (row[i - 1] + 1 < best)
                                best = row[i - 1] + 1;
                        diagonal = row[i];
                        row[i] = best;
                }
        }
        return row[length];
}
