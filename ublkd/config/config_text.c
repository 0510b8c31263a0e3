/* SPDX-License-Identifier: MIT */
/* The text of a file in the form of systemd.
 *
 * Not with a library: inih, as Debian builds it, splits a line after 200 bytes and takes the rest for a line of its own,
 * takes a line that begins with a blank for one more value, splits at ':' as well, cuts a value at " ;", ends a line at
 * a NUL byte, and does not report the number of a line, nor more than the first fault. */
#include "ublkd/config/config_text.h"

#include "ublkd/base/utf8.h"

#include <stdbool.h>
#include <string.h>

static const char blanks[] = " \t\r";
static const char byte_order_mark[] = "\xef\xbb\xbf";

struct reader {
        struct config_line line;
        void (*take)(void *userdata, const struct config_line *line);
        void *userdata;
};

static bool is_blank(char byte)
{
        return byte && strchr(blanks, byte);
}

static bool has_control_character(const char *text)
{
        for (; *text; text++)
                if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
                        return true;
        return false;
}

/* Return why a line cannot be taken, whatever it says, or NULL. */
static const char *fault_of_bytes(const char *text, size_t length)
{
        if (length > CONFIG_LINE_MAX)
                return "the line is longer than 8192 bytes; make it shorter";
        if (strlen(text) < length)
                return "the line has a NUL byte; write it again";
        if (!utf8_is_valid(text, length))
                return "the line is not UTF-8; write it in UTF-8";
        if (has_control_character(text))
                return "the line has a control character; write it again without";
        if (text[length - 1] == '\\')
                return "the line goes on in the next one, which ublkd cannot read; write it as one line";
        return NULL;
}

static void give(struct reader *reader, const char *key, const char *value, const char *fault)
{
        reader->line.key = key;
        reader->line.value = value;
        reader->line.fault = fault;
        reader->take(reader->userdata, &reader->line);
}

/* A section whose name is not known is one that ublkd does not have. */
static void take_section(struct reader *reader, char *text, size_t length)
{
        bool good = text[length - 1] == ']' && strcspn(text + 1, "[]") == length - 2;

        if (good)
                text[length - 1] = '\0';
        reader->line.section = text + 1;
        give(reader, good ? NULL : "", NULL,
                good ? NULL : "the line begins a section and does not end with ']'; write [Manager]");
}

static void take_assignment(struct reader *reader, char *text)
{
        char *equals = strchr(text, '='), *end = equals, *value;

        if (!equals) {
                text[strcspn(text, blanks)] = '\0';
                give(reader, text, NULL, "there is no '=' in the line; write KEY=VALUE");
                return;
        }
        while (end > text && is_blank(end[-1]))
                end--;
        value = equals + 1 + strspn(equals + 1, blanks);
        *end = '\0';
        give(reader, text, value, *text ? NULL : "there is nothing before '='; write KEY=VALUE");
}

static void take_line(struct reader *reader, char *text, size_t length)
{
        const char *fault;

        while (length > 0 && is_blank(text[0])) {
                text++;
                length--;
        }
        while (length > 0 && is_blank(text[length - 1]))
                length--;
        text[length] = '\0';
        if (length == 0 || text[0] == '#' || text[0] == ';')
                return;
        fault = fault_of_bytes(text, length);
        if (fault) {
                text[strcspn(text, "= \t\r")] = '\0';
                give(reader, text, NULL, fault);
        } else if (text[0] == '[')
                take_section(reader, text, length);
        else
                take_assignment(reader, text);
}

void config_text_read(
        char *text, size_t size, void (*take)(void *userdata, const struct config_line *line), void *userdata)
{
        struct reader reader = {.take = take, .userdata = userdata};
        char *end = text + size;

        if (size >= strlen(byte_order_mark) && memcmp(text, byte_order_mark, strlen(byte_order_mark)) == 0)
                text += strlen(byte_order_mark);
        while (text < end) {
                char *next = memchr(text, '\n', (size_t)(end - text));
                size_t length = (size_t)((next ? next : end) - text);

                reader.line.number++;
                take_line(&reader, text, length);
                text += length + 1;
        }
}
