/* SPDX-License-Identifier: MIT */
/* What `ublkd --check-config` prints. */
#include "ublkd/config/config_print.h"

static void print_default(const struct setting *setting, FILE *file)
{
        if (setting->preset)
                fprintf(file, "# default\n%s=%s\n", setting->key, setting->preset);
        else if (setting->otherwise)
                fprintf(file, "# default: %s\n#%s=\n", setting->otherwise, setting->key);
        else
                fprintf(file, "# default: none\n#%s=\n", setting->key);
}

void config_print_values(const struct config *config, FILE *file)
{
        fputs("[Manager]\n", file);
        for (size_t i = 0; i < settings_count; i++) {
                const struct config_setting *set = &config->settings[i];

                if (set->count == 0)
                        print_default(&settings[i], file);
                for (size_t j = 0; j < set->count; j++)
                        fprintf(file, "# %s\n%s=%s\n", set->items[j].place, settings[i].key,
                                set->items[j].text);
        }
}

void config_print_problems(const struct config *config, FILE *file)
{
        for (size_t i = 0; i < config->problems.count; i++)
                fprintf(file, "%s\n", config->problems.items[i].detail);
        if (config->problems.dropped > 0)
                fprintf(file, "%zu more problems are not shown\n", config->problems.dropped);
}
