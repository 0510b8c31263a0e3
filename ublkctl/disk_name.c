/* Names of devices made from names of files. */
#include "ublkctl/disk_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { STEM_MAX = 52 }; /* leaves room for a number */

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void disk_name(const char *path, char ret[static DISK_NAME_SIZE])
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
        size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name), used = 0;

        for (size_t i = 0; i < length && used < STEM_MAX; i++) {
                char c = (char)tolower((unsigned char)name[i]);

                if (!is_plain(c) && (used == 0 || ret[used - 1] == '-'))
                        continue; /* begins with a letter or a digit; one dash for many */
                ret[used++] = is_plain(c) || c == '.' || c == '_' ? c : '-';
        }
        while (used > 0 && !is_plain(ret[used - 1]))
                used--;
        ret[used] = '\0';
        if (used == 0)
                strcpy(ret, "disk");
}

void disk_name_make_unique(
        char name[static DISK_NAME_SIZE], bool (*is_taken)(void *userdata, const char *name), void *userdata)
{
        size_t length = strlen(name);

        for (unsigned i = 2; is_taken(userdata, name); i++)
                snprintf(name + length, DISK_NAME_SIZE - length, "-%u", i);
}
