/* SPDX-License-Identifier: MIT */
/* Set and reset the values of a configuration, one after the other; the later value has priority. */
#pragma once

#include "ublkd/config/config.h"

/* Replace the value of a setting, or add one to a list. A text that is not valid changes nothing. place: see struct
 * config_value. Return 0; -EINVAL, -E2BIG: see setting_parse; -ENOMEM. */
int config_values_set(struct config *config, const struct setting *setting, const char *text, bool in_file,
        const char *place);
/* Drop the values of a setting: the default counts again. */
void config_values_reset(struct config *config, const struct setting *setting);
/* Fill config->values from the texts and the defaults. */
void config_values_parse(struct config *config);
