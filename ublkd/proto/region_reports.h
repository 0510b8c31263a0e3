/* SPDX-License-Identifier: MIT */
/* The events of the supervisor about a region that the database may not have yet.
 *
 * Events are written up to a second after they happen. Only one that is written marks as reported what it reports. Until
 * then the region has its revision: if ublkd is killed meanwhile, the next one compares it with the database, and
 * reports again what was lost. */
#pragma once

#include "ublkd/proto/device_region.h"

/* Read all but REGION_REPORT_KEPT. Return 0; -errno as device_region_read_header(). */
int region_reports_read(int fd, struct region_report ret[_REGION_REPORT_MAX]);
/* Read the one with number `what`. Return 0; -errno as device_region_read_header(). */
int region_report_read(int fd, unsigned what, struct region_report *ret);
/* Write the one with number `what`. Return 0 or -errno. */
int region_report_write(int fd, unsigned what, const struct region_report *report);
/* Take it out. Return 0 or -errno. */
int region_report_clear(int fd, unsigned what);
