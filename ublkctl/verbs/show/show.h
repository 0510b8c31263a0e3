/* SPDX-License-Identifier: MIT */
/* Show devices as a table, as JSON, or by name. */
#pragma once

#include "ublkctl/client/call.h"

/* Print one device, or an array of them. OUTPUT_DEFAULT is the table. */
enum exit_status show_devices(struct context *context, const cJSON *devices, enum output_format format);

/* Print any JSON, indented, with a newline. */
enum exit_status show_json(const cJSON *value);

/* Fetch all devices (with the labels of -l, if given), page by page, as an array that the caller deletes. On
 * failure print the cause. */
enum exit_status fetch_devices(struct context *context, const struct text_list *labels, cJSON **ret);
