/* SPDX-License-Identifier: MIT */
/* Devices as a table, as JSON, or by name. */
#pragma once

#include "ublkctl/client/call.h"

/* Prints one device, or an array of them. OUTPUT_DEFAULT is the table. */
enum exit_status show_devices(struct context *context, const cJSON *devices, enum output_format format);

/* Prints any JSON, indented, with a newline. */
enum exit_status show_json(const cJSON *value);

/* All devices (with the labels of -l, if given), page by page, as an array that the caller deletes. Says what
 * is wrong. */
enum exit_status fetch_devices(struct context *context, const struct text_list *labels, cJSON **ret);
