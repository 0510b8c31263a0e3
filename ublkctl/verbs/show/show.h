/* SPDX-License-Identifier: MIT */
/* Show devices as a table, as JSON or YAML, or by name. */
#pragma once

#include "ublkctl/client/call.h"

/* Print an array of devices, or one device. format: enum output_format; OUTPUT_DEFAULT is the table. */
enum exit_status show_devices(struct context *context, const cJSON *devices, int format);
enum exit_status show_device(struct context *context, const cJSON *device, int format);

/* Print any JSON as JSON or (OUTPUT_YAML) as YAML. */
enum exit_status show_data(int format, const cJSON *value);

/* Print any JSON, indented, with a newline. */
enum exit_status show_json(const cJSON *value);

/* Fetch all devices (with the labels of -l, if given), page by page, as an array that the caller deletes. On
 * failure print the cause. */
enum exit_status fetch_devices(struct context *context, const struct text_list *labels, cJSON **ret);
