/* SPDX-License-Identifier: MIT */
/* The version of the programs. The build asks scripts/version for it each time, and writes version.c. */
#pragma once

/* At most 128 bytes: a worker sends it with its first message. */
extern const char ublkd_version[];
