/* SPDX-License-Identifier: MIT */
/* Derive names of devices from names of files. */
#include "ublkctl/spec/device_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { STEM_MAX = 52 }; /* leaves room for "-NUMBER" */

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Return the length of the part that names the device: a file name without its extension. Links in /dev have
 * no extension. */
static size_t stem_length(const char *path, const char *name)
{
        const char *dot = strncmp(path, "/dev/", 5) == 0 ? NULL : strrchr(name, '.');

        return dot && dot > name ? (size_t)(dot - name) : strlen(name);
}

/* Begin the name of a disk that lies on a ublk disk. It must not equal that disk's name, nor look like a
 * node: "detach ublkb0" would then mean another disk than "detach /dev/ublkb0". Return the length of the
 * beginning. */
static size_t begin(const char *path, const char *name, char ret[static DEVICE_NAME_SIZE])
{
        static const char node[] = "ublkb", links[] = "/dev/ublk/";
        bool reads_like_node = strncasecmp(name, node, sizeof(node) - 1) == 0
                               && isdigit((unsigned char)name[sizeof(node) - 1]);

        strcpy(ret, reads_like_node || strncmp(path, links, sizeof(links) - 1) == 0 ? "on-" : "");
        return strlen(ret);
}

void device_name(const char *path, char ret[static DEVICE_NAME_SIZE])
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t length = stem_length(path, name), used = begin(path, name, ret), prefix = used;

        for (size_t i = 0; i < length && used < STEM_MAX; i++) {
                char c = (char)tolower((unsigned char)name[i]);

                if (!is_plain(c) && (used == prefix || ret[used - 1] == '-'))
                        continue; /* begin with a letter or digit; one dash replaces a run */
                ret[used++] = is_plain(c) || c == '.' || c == '_' ? c : '-';
        }
        while (used > 0 && !is_plain(ret[used - 1]))
                used--;
        ret[used] = '\0';
        if (used == prefix || used == 0)
                strcpy(ret, "disk");
}

void device_name_make_unique(char name[static DEVICE_NAME_SIZE],
        bool (*is_taken)(void *userdata, const char *name), void *userdata)
{
        size_t length = strlen(name);

        for (unsigned i = 2; is_taken(userdata, name); i++)
                snprintf(name + length, DEVICE_NAME_SIZE - length, "-%u", i);
}
