/* SPDX-License-Identifier: MIT */
/* Who wants the file system of a device to stay mounted, as the record notes it: "BOOT HASH HASH …". A holder is known by
 * a word that it chooses, of which the note has a hash of 64 bits. Those of another boot count no more: no mount outlives
 * its boot. PURE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
        MOUNT_HOLDERS_MAX = 32,
        MOUNT_HOLDER_LENGTH_MAX = 255,
        MOUNT_HOLDERS_SIZE = 37 + MOUNT_HOLDERS_MAX * 17,
};

/* boot: the id of this boot, everywhere. */
size_t mount_holders_count(const char *note, const char *boot);
/* Add a holder to the note. Return 1; 0: it is in there; -ENOSPC: there are too many. */
int mount_holders_add(char note[static MOUNT_HOLDERS_SIZE], const char *boot, const char *holder);
/* Remove a holder from the note. Return whether it was in there. */
bool mount_holders_remove(char note[static MOUNT_HOLDERS_SIZE], const char *boot, const char *holder);
