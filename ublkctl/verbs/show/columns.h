/* SPDX-License-Identifier: MIT */
/* The table of devices: its columns (--columns), and the order of its rows (--sort). */
#pragma once

#include "ublkctl/client/call.h"

#include <cjson/cJSON.h>

/* Return STATUS_USAGE, with a sentence on stderr, if --columns or --sort names an unknown column. */
enum exit_status columns_check(const struct settings *settings);

/* Print an array of devices as a table, with the columns of --columns, or the usual ones. */
enum exit_status columns_show(struct context *context, const cJSON *devices);

/* Sort an array of devices as --sort asks; without it, keep its order. */
enum exit_status columns_sort(const struct settings *settings, cJSON *devices);
