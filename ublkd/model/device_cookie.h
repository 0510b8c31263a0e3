/* SPDX-License-Identifier: MIT */
/* The cookie by which ublkd recognises its disks: 64 bits that the driver keeps with each disk. The upper 48
 * are from the uid of the device, the lower 16 are the epoch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

uint64_t device_cookie(const char *uid, uint16_t epoch);

/* Return whether the cookie is of the device with this uid, at any epoch. */
bool device_cookie_matches(uint64_t cookie, const char *uid);
uint16_t device_cookie_epoch(uint64_t cookie);
