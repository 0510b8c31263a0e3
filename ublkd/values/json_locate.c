/* SPDX-License-Identifier: MIT */
/* Find the line of a value in a JSON text, which is known to be valid. */
#include "ublkd/values/json_locate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct reader {
        const char *at;
        size_t line;
};

static void skip_space(struct reader *reader)
{
        for (; *reader->at && strchr(" \t\r\n", *reader->at); reader->at++)
                reader->line += *reader->at == '\n';
}

static void skip_string(struct reader *reader)
{
        for (reader->at++; *reader->at && *reader->at != '"'; reader->at++)
                if (*reader->at == '\\' && reader->at[1])
                        reader->at++;
        if (*reader->at)
                reader->at++;
}

/* Skip a value of any depth without recursion: brackets in strings do not count. */
static void skip_value(struct reader *reader)
{
        size_t depth = 0;

        do {
                skip_space(reader);
                if (!*reader->at)
                        return;
                if (*reader->at == '"') {
                        skip_string(reader);
                        continue;
                }
                if (strchr("{[", *reader->at))
                        depth++;
                else if (strchr("}]", *reader->at)) {
                        if (depth == 0)
                                return; /* of the container around the value */
                        depth--;
                } else if (depth == 0 && !strchr(",:", *reader->at)) {
                        reader->at += strcspn(reader->at, ",:{}[]\" \t\r\n"); /* a number or a word */
                        continue;
                }
                reader->at++;
        } while (depth > 0);
}

/* Take the first part off the pointer. Return false at its end. */
static bool next_part(const char **pointer, const char **ret, size_t *ret_size)
{
        if (**pointer != '/')
                return false;
        *ret = ++*pointer;
        *ret_size = strcspn(*pointer, "/");
        *pointer += *ret_size;
        return true;
}

/* Return whether the string at `name` (from its quotation mark on) is the part of a pointer. A name with escapes of
 * JSON is compared as it is written: no field of a spec has one. */
static bool is_name(const char *name, const char *part, size_t size)
{
        const char *end = part + size;

        for (name++; part < end; part++, name++) {
                char c = *part;

                if (c == '~' && part + 1 < end)
                        c = *++part == '1' ? '/' : '~';
                if (*name != c || *name == '"')
                        return false;
        }
        return *name == '"';
}

/* Move from the bracket of an object to its member's value. Return the line of the name; 0: there is no such member. */
static size_t enter_member(struct reader *reader, const char *part, size_t size)
{
        reader->at++;
        for (;;) {
                bool found;
                size_t line;

                skip_space(reader);
                if (*reader->at == ',') {
                        reader->at++;
                        continue;
                }
                if (*reader->at != '"')
                        return 0;
                found = is_name(reader->at, part, size);
                line = reader->line;
                skip_string(reader);
                skip_space(reader);
                if (*reader->at == ':')
                        reader->at++;
                if (found)
                        return line;
                skip_value(reader);
        }
}

/* Move from the bracket of an array to an element. Return its line; 0: there is no such element. */
static size_t enter_element(struct reader *reader, const char *part)
{
        char *end;
        unsigned long index = strtoul(part, &end, 10);

        if (end == part)
                return 0;
        reader->at++;
        for (unsigned long i = 0;; i++) {
                skip_space(reader);
                if (!*reader->at || *reader->at == ']')
                        return 0;
                if (i == index)
                        return reader->line;
                skip_value(reader);
                skip_space(reader);
                if (*reader->at == ',')
                        reader->at++;
        }
}

size_t json_locate(const char *text, const char *pointer)
{
        struct reader reader = {.at = text, .line = 1};
        const char *part;
        size_t size, line, found;

        skip_space(&reader);
        line = reader.line;
        while (next_part(&pointer, &part, &size)) {
                skip_space(&reader);
                found = *reader.at == '{'   ? enter_member(&reader, part, size)
                        : *reader.at == '[' ? enter_element(&reader, part)
                                            : 0;
                if (found == 0)
                        return line;
                line = found;
        }
        return line;
}
