/* SPDX-License-Identifier: MIT */
/* What every reader of JSON needs. */
#include "ublkd/values/json_util.h"

#include <stdio.h>
#include <string.h>

static void place_write(const struct json_place *place, FILE *stream)
{
        if (!place->outer) {
                fputs(place->name, stream);
                return;
        }
        place_write(place->outer, stream);
        fputc('/', stream);
        for (const char *c = place->name; *c; c++)
                if (*c == '~' || *c == '/')
                        fputs(*c == '~' ? "~0" : "~1", stream);
                else
                        fputc(*c, stream);
}

char *json_place_pointer(const struct json_place *place)
{
        char *pointer = NULL;
        size_t size;
        FILE *stream = open_memstream(&pointer, &size);
        bool failed;

        if (!stream)
                return NULL;
        place_write(place, stream);
        failed = ferror(stream); /* fclose(3) does not report what failed before it */
        if (fclose(stream) != 0 || failed) {
                free(pointer);
                return NULL;
        }
        return pointer;
}

bool json_name_recurs(const cJSON *member)
{
        for (const cJSON *later = member->next; later; later = later->next)
                if (strcmp(later->string, member->string) == 0)
                        return true;
        return false;
}
