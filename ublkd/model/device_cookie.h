/* SPDX-License-Identifier: MIT */
/* The kernel keeps 64 bits for us with every device: 48 of the device's uid, 16 of its epoch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

uint64_t device_cookie(const char *uid, uint16_t epoch);

/* Ours, whatever its epoch. */
bool device_cookie_matches(uint64_t cookie, const char *uid);
uint16_t device_cookie_epoch(uint64_t cookie);
