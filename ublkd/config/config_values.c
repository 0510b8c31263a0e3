/* SPDX-License-Identifier: MIT */
/* Set and reset the values of a configuration, one after the other. */
#include "ublkd/config/config_values.h"

#include <assert.h>
#include <string.h>

static struct config_setting *values_of(struct config *config, const struct setting *setting)
{
        return &config->settings[setting - settings];
}

static void clear(struct config_value *value)
{
        free(value->text);
        free(value->place);
        *value = (struct config_value){};
}

void config_values_reset(struct config *config, const struct setting *setting)
{
        struct config_setting *set = values_of(config, setting);

        for (size_t i = 0; i < set->count; i++)
                clear(&set->items[i]);
        free(set->items);
        *set = (struct config_setting){};
}

static int append(struct config_setting *set, const char *text, const char *place)
{
        struct config_value *items = realloc(set->items, (set->count + 1) * sizeof(*items));
        struct config_value value;

        if (!items)
                return -ENOMEM;
        set->items = items;
        value = (struct config_value){.text = strdup(text), .place = strdup(place)};
        if (!value.text || !value.place) {
                clear(&value);
                return -ENOMEM;
        }
        items[set->count++] = value;
        return 0;
}

int config_values_set(struct config *config, const struct setting *setting, const char *text, bool in_file,
        const char *place)
{
        struct config_setting *set = values_of(config, setting);
        struct setting_values scratch = {};
        int r = setting->parse(text, in_file, &scratch);

        if (r < 0)
                return r;
        if (setting->list_max > 0 && set->count == setting->list_max)
                return -E2BIG;
        if (setting->list_max == 0)
                config_values_reset(config, setting);
        return append(set, text, place);
}

/* Each value was already checked, and each list has room for all its entries. */
void config_values_parse(struct config *config)
{
        config->values = (struct setting_values){};
        for (size_t i = 0; i < settings_count; i++) {
                const struct config_setting *set = &config->settings[i];
                int r = 0;

                if (set->count == 0 && settings[i].preset)
                        r = settings[i].parse(settings[i].preset, true, &config->values);
                for (size_t j = 0; r >= 0 && j < set->count; j++)
                        r = settings[i].parse(set->items[j].text, false, &config->values);
                assert(r >= 0);
        }
}
