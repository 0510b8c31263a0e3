/* SPDX-License-Identifier: MIT */
/* Paths as text: nothing is looked up, so a link stays the name that it is. */
#include "ublkd/values/path_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes the last part of `path` (`end` bytes) away. Returns the new end. */
static size_t drop_part(const char *path, size_t end)
{
        while (end > 0 && path[end - 1] != '/')
                end--;
        return end > 0 ? end - 1 : 0;
}

/* Appends "/PART" to `path`, which is large enough, or does what "." and ".." mean. Returns the new end. */
static size_t add_part(char *path, size_t end, const char *part, size_t length)
{
        if (length == 0 || (length == 1 && part[0] == '.'))
                return end;
        if (length == 2 && part[0] == '.' && part[1] == '.')
                return drop_part(path, end);
        path[end++] = '/';
        memmove(path + end, part, length);
        return end + length;
}

int path_make_absolute(const char *directory, const char *path, char **ret)
{
        size_t end = 0, length;
        char *whole, *result;

        if (asprintf(&whole, "%s/%s", *path == '/' ? "" : directory, path) < 0)
                return -ENOMEM;
        result = malloc(strlen(whole) + 2);
        for (const char *part = whole; result && *part; part += length) {
                part += *part == '/';
                length = strcspn(part, "/");
                end = add_part(result, end, part, length);
        }
        free(whole);
        if (!result)
                return -ENOMEM;
        if (end == 0)
                result[end++] = '/';
        result[end] = '\0';
        *ret = result;
        return 0;
}

const char *path_rest(const char *path, const char *directory)
{
        size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

        if (strncmp(path, directory, length) != 0 || (path[length] != '/' && path[length] != '\0'))
                return NULL;
        return path + length;
}

static bool is_octal(const char *text)
{
        for (unsigned i = 0; i < 3; i++)
                if (text[i] < '0' || text[i] > '7')
                        return false;
        return text[0] <= '3';
}

void path_unescape(char *text)
{
        char *to = text;

        for (const char *from = text; *from; to++)
                if (*from == '\\' && is_octal(from + 1)) {
                        *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
                        from += 4;
                } else {
                        *to = *from++;
                }
        *to = '\0';
}
