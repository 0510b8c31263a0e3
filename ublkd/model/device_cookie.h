/* SPDX-License-Identifier: MIT */
/* The cookie by which ublkd recognises its disks: 64 bits that the driver keeps with each disk. The upper 48
 * are from the uid of the device, the lower 16 are the epoch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Return the cookie of the disk of that epoch. uid: a UUID as text, with small letters. */
uint64_t device_cookie(const char *uid, uint16_t epoch);

/* Return whether the cookie is of the device with this uid, at any epoch. */
bool device_cookie_matches(uint64_t cookie, const char *uid);
/* Return the epoch that a cookie of ublkd has. */
uint16_t device_cookie_epoch(uint64_t cookie);
