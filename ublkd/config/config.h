/* SPDX-License-Identifier: MIT */
/* The configuration: the values of all settings, where each was set, and what is wrong with the files. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/config/setting.h"

/* A setting on the command line. Its text outlives the configuration. */
struct config_option {
        const struct setting *setting;
        const char *text;
};

/* What a configuration is read from; it outlives the configuration. */
struct config_request {
        const char *root; /* files are looked for below this directory; "": the root directory */
        const struct config_option *options;
        size_t option_count;
};

struct config_value {
        char *text;
        char *place; /* "FILE:LINE", or "command line" */
};

/* The values of one setting. */
struct config_setting {
        struct config_value *items;
        size_t count; /* 0: it is not set */
};

struct config {
        struct config_setting *settings; /* as `settings` of setting.h */
        struct setting_values values;    /* with the defaults; its texts belong to `settings` */
        struct problem_list problems;    /* what was ignored, and where */
        bool refused; /* ublkd must not start: one of the problems could change what it serves */
};

/* Read the files, which may block, and take the options, which have priority. Return 0, also if there are problems; or
 * -ENOMEM. */
int config_load(const struct config_request *request, struct config **ret);
/* Free the configuration. NULL is fine. Return NULL. */
struct config *config_free(struct config *config);
DEFINE_CLEANUP(struct config, config_free);

/* Return where the last value of the setting with this key is from, or NULL: it is not set. The text belongs to the
 * configuration. */
const char *config_place(const struct config *config, const char *key);
/* Return whether both set this setting to the same texts. */
bool config_is_same(const struct config *one, const struct config *other, const struct setting *setting);
