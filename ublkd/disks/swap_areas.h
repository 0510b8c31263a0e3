/* SPDX-License-Identifier: MIT */
/* Finds the disks /dev/ublkbN that hold swap, by the kernel's list of swap areas: a disk or its partition, also below
 * device mapper (LVM, LUKS) and md. A file that holds swap, inside a file system, is not followed. No file system and
 * no process is asked, so nothing can hang. */
#pragma once

#include <stdio.h>

/* Call `found` with the number of a disk for each swap area on it, from `swaps` on, which is open at its beginning
 * (/proc/swaps). sys: "/sys". Return 0, or -errno if the list could not be read to its end. */
int swap_areas_read(FILE *swaps, const char *sys, void (*found)(void *userdata, int number), void *userdata);
