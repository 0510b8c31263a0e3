/* SPDX-License-Identifier: MIT */
/* A directory that files of a configuration are looked for in. */
#pragma once

#include "ublkd/config/config.h"

/* A fresh, empty one; it is removed by config_root_remove(). */
void config_root_make(void);
void config_root_remove(void);
const char *config_root(void);
/* The path of a file in it, valid until the next but seven call. */
const char *config_root_path(const char *name);
/* Write a file of `size` bytes, and the directories above it. */
void config_root_write_bytes(const char *name, const char *bytes, size_t size);
void config_root_write(const char *name, const char *text);
void config_root_link(const char *name, const char *target);
/* Load it, without options. */
struct config *config_root_load(void);
/* The value of a setting: its texts with commas between, or "" if it is not set. Valid until the next call. */
const char *config_root_value(const struct config *config, const char *key);
/* Whether one of the problems begins with the path of the file followed by `begin`, and ends with `end`. */
bool config_root_has_problem(
        const struct config *config, const char *file, const char *begin, const char *end);
