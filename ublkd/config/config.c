/* SPDX-License-Identifier: MIT */
/* The configuration: files first, then the command line. */
#include "ublkd/config/config.h"

#include "ublkd/config/config_files.h"
#include "ublkd/config/config_values.h"

#include <string.h>

/* A list on the command line replaces that of the files. The command line was checked when it was parsed. */
static int take_options(struct config *config, const struct config_request *request)
{
        int r = 0;

        for (size_t i = 0; i < request->option_count; i++)
                config_values_reset(config, request->options[i].setting);
        for (size_t i = 0; r >= 0 && i < request->option_count; i++)
                r = config_values_set(
                        config, request->options[i].setting, request->options[i].text, false, "command line");
        return r;
}

int config_load(const struct config_request *request, struct config **ret)
{
        _cleanup_(config_free_pointer) struct config *config = calloc(1, sizeof(*config));
        int r;

        if (!config)
                return -ENOMEM;
        config->settings = calloc(settings_count, sizeof(*config->settings));
        if (!config->settings)
                return -ENOMEM;
        r = config_files_read(config, request->root);
        if (r >= 0)
                r = take_options(config, request);
        if (r < 0)
                return r;
        config_values_parse(config);
        *ret = TAKE_PTR(config);
        return 0;
}

struct config *config_free(struct config *config)
{
        if (!config)
                return NULL;
        for (size_t i = 0; config->settings && i < settings_count; i++)
                config_values_reset(config, &settings[i]);
        free(config->settings);
        problem_list_clear(&config->problems);
        free(config);
        return NULL;
}

const char *config_place(const struct config *config, const char *key)
{
        for (size_t i = 0; i < settings_count; i++) {
                const struct config_setting *set = &config->settings[i];

                if (strcmp(settings[i].key, key) == 0 && set->count > 0)
                        return set->items[set->count - 1].place;
        }
        return NULL;
}

/* Return the value at `index`, the default among them, or NULL. */
static const char *text_at(const struct config *config, const struct setting *setting, size_t index)
{
        const struct config_setting *set = &config->settings[setting - settings];

        if (index < set->count)
                return set->items[index].text;
        return set->count == 0 && index == 0 ? setting->preset : NULL;
}

bool config_is_same(const struct config *one, const struct config *other, const struct setting *setting)
{
        for (size_t i = 0;; i++) {
                const char *mine = text_at(one, setting, i), *theirs = text_at(other, setting, i);

                if (!mine || !theirs)
                        return mine == theirs;
                if (strcmp(mine, theirs) != 0)
                        return false;
        }
}
