/* SPDX-License-Identifier: MIT */
/* The table of settings: its rows are in settings_table.c, which the build generates. */
#include "ublkd/config/setting.h"

#include "ublkd/values/name_distance.h"

#include <string.h>

const struct setting *setting_find(const char *key)
{
        for (size_t i = 0; i < settings_count; i++)
                if (strcmp(settings[i].key, key) == 0)
                        return &settings[i];
        return NULL;
}

/* A third of the letters may be wrong; more is a different word. */
static size_t distance_of(const char *key, const char *name)
{
        size_t distance = name_distance(key, name);

        return distance <= strlen(name) / 3 ? distance : SIZE_MAX;
}

const struct setting *setting_meant(const char *key)
{
        const struct setting *best = NULL;
        size_t least = SIZE_MAX;

        for (size_t i = 0; i < settings_count; i++) {
                size_t by_key = distance_of(key, settings[i].key),
                       by_option = distance_of(key, settings[i].option),
                       distance = by_key < by_option ? by_key : by_option;

                if (distance < least) {
                        least = distance;
                        best = &settings[i];
                }
        }
        return best;
}
