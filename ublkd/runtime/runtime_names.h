/* SPDX-License-Identifier: MIT */
/* Names in the runtime directory that also other files and programs than runtime_dir.c know: ublkd-follow, and
 * ublk-disk@.path, which tests/lint/units_test.py compares. */
#pragma once

#define RUNTIME_WORKERS_NAME "workers"
#define RUNTIME_LIVE_NAME "live"
#define RUNTIME_FAILED_NAME "failed"
