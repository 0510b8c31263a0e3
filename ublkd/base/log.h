/* One logging layer: lines for a terminal, or fields for the journal when stderr is connected to it.
 * Only main, reconciler, http_server and worker/main log failures; everything else returns them. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <syslog.h>

/* LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG. Above `level` nothing is written. Default: LOG_INFO. */
void log_set_level(int level);

/* device: the device's name, or NULL for a line about ublkd itself. */
void log_line(int level, const char *device, const char *format, ...) _printf_(3, 4);

#define log_error(device, ...) log_line(LOG_ERR, device, __VA_ARGS__)
#define log_warning(device, ...) log_line(LOG_WARNING, device, __VA_ARGS__)
#define log_info(device, ...) log_line(LOG_INFO, device, __VA_ARGS__)
#define log_debug(device, ...) log_line(LOG_DEBUG, device, __VA_ARGS__)
