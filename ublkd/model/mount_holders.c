/* SPDX-License-Identifier: MIT */
/* The note of the holders of a mount. */
#include "ublkd/model/mount_holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HASH_SIZE = 17, WORD_SIZE = HASH_SIZE + 1 };

/* FNV-1a. Only administrators name holders, so two do not collide by intent. */
static uint64_t hash(const char *text)
{
        uint64_t value = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        return value;
}

/* Write " HASH", as the note has it. */
static void word_of(const char *holder, char ret[static WORD_SIZE])
{
        snprintf(ret, WORD_SIZE, " %016" PRIx64, hash(holder));
}

static bool is_of_boot(const char *note, const char *boot)
{
        size_t length = strlen(boot);

        return strncmp(note, boot, length) == 0 && (note[length] == ' ' || note[length] == '\0');
}

size_t mount_holders_count(const char *note, const char *boot)
{
        return is_of_boot(note, boot) ? (strlen(note) - strlen(boot)) / HASH_SIZE : 0;
}

int mount_holders_add(char note[static MOUNT_HOLDERS_SIZE], const char *boot, const char *holder)
{
        char word[WORD_SIZE];
        size_t length;

        if (!is_of_boot(note, boot))
                snprintf(note, MOUNT_HOLDERS_SIZE, "%s", boot);
        word_of(holder, word);
        length = strlen(note);
        if (strstr(note, word))
                return 0;
        if (mount_holders_count(note, boot) >= MOUNT_HOLDERS_MAX || length + HASH_SIZE >= MOUNT_HOLDERS_SIZE)
                return -ENOSPC;
        memcpy(note + length, word, WORD_SIZE);
        return 1;
}

bool mount_holders_remove(char note[static MOUNT_HOLDERS_SIZE], const char *boot, const char *holder)
{
        char word[WORD_SIZE], *at;

        word_of(holder, word);
        at = is_of_boot(note, boot) ? strstr(note, word) : NULL;
        if (!at)
                return false;
        memmove(at, at + HASH_SIZE, strlen(at + HASH_SIZE) + 1);
        return true;
}
