/* SPDX-License-Identifier: MIT */
/* The table of settings: what can be set in files and with options. Generated from settings.json, as are the lists of
 * ublkd(8) and ublkd.conf(5). */
#pragma once

#include "ublkd/config/setting_values.h"

#include <stddef.h>

struct setting {
        const char *key;       /* in files */
        const char *option;    /* on the command line, after "--" */
        const char *preset;    /* the value of one that is not set; NULL: none */
        const char *otherwise; /* without preset: what counts if it is not set, in words; NULL: nothing */
        const char *wanted;    /* what to do about an invalid value */
        size_t list_max;       /* values that it can have; 0: it is not a list */
        bool reloads;          /* a new value takes effect without a restart */
        bool refuses;          /* ublkd must not start with another value than the one that was meant */
        setting_parse *parse;
};

extern const struct setting settings[];
extern const size_t settings_count;
/* What `ublkd --help` prints. */
extern const char settings_usage[];

/* Return the setting with that key, or NULL. */
const struct setting *setting_find(const char *key);
/* Return the setting that an administrator who wrote the unknown `key` may have meant, or NULL. Its option counts as
 * well, and upper case does not matter. */
const struct setting *setting_meant(const char *key);
