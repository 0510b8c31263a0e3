/* SPDX-License-Identifier: MIT */
/* The settings in files, and every fault of these with its file and line. */
#pragma once

#include "ublkd/config/config.h"

/* Read all files below `root`, which may block. Every fault becomes a problem; config->refused: one of them could change
 * what ublkd serves, and to whom. Return 0 or -ENOMEM. */
int config_files_read(struct config *config, const char *root);
/* Take the text of one file, which is changed; it has `size` bytes and a NUL behind them. Return 0 or -ENOMEM. */
int config_files_take(struct config *config, const char *path, char *text, size_t size);
