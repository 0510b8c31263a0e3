/* SPDX-License-Identifier: MIT */
/* Check that a text is JSON, by recursive descent; builds no document. */
#include "ublkd/values/json_check.h"

#include "ublkd/base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
        const char *text;
        size_t size, at;
        unsigned depth;
        const char *fault; /* NULL: none yet */
};

static bool check_value(struct cursor *cursor);

static bool fail(struct cursor *cursor, const char *what)
{
        if (!cursor->fault)
                cursor->fault = what;
        return false;
}

/* Return the next byte, or '\0' at the end. A real NUL is a fault everywhere. */
static char peek(const struct cursor *cursor)
{
        return cursor->at < cursor->size ? cursor->text[cursor->at] : '\0';
}

static void skip_space(struct cursor *cursor)
{
        while (cursor->at < cursor->size && memchr(" \t\r\n", cursor->text[cursor->at], 4))
                cursor->at++;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool check_digits(struct cursor *cursor)
{
        if (!is_digit(peek(cursor)))
                return fail(cursor, "expected a digit");
        while (is_digit(peek(cursor)))
                cursor->at++;
        return true;
}

static bool check_number(struct cursor *cursor)
{
        size_t begin = cursor->at;

        if (peek(cursor) == '-')
                cursor->at++;
        if (peek(cursor) == '0')
                cursor->at++;
        else if (!check_digits(cursor))
                return false;
        if (is_digit(peek(cursor)))
                return fail(cursor, "a number cannot begin with 0");
        if (peek(cursor) == '.') {
                cursor->at++;
                if (!check_digits(cursor))
                        return false;
        }
        if (peek(cursor) == 'e' || peek(cursor) == 'E') {
                cursor->at++;
                if (peek(cursor) == '+' || peek(cursor) == '-')
                        cursor->at++;
                if (!check_digits(cursor))
                        return false;
        }
        /* strtod() stops at the end of the number, because the text ends in a NUL. */
        if (!isfinite(strtod(cursor->text + begin, NULL)))
                return fail(cursor, "the number is too large");
        return true;
}

/* Read \uXXXX, from the 'u' on. Return -1 if it is invalid. */
static long read_unit(struct cursor *cursor)
{
        char digits[5] = "";

        if (peek(cursor) != 'u' || cursor->size - cursor->at < 5)
                return -1;
        memcpy(digits, cursor->text + cursor->at + 1, 4);
        if (strspn(digits, "0123456789abcdefABCDEF") != 4)
                return -1;
        cursor->at += 5;
        return strtol(digits, NULL, 16);
}

static bool check_unicode_escape(struct cursor *cursor)
{
        long unit = read_unit(cursor);

        if (unit < 0)
                return fail(cursor, "expected four hexadecimal digits after \\u");
        if (unit == 0)
                return fail(cursor, "\\u0000 is not supported");
        if (unit >= 0xdc00 && unit <= 0xdfff)
                return fail(cursor, "half of a surrogate pair; write both halves");
        if (unit < 0xd800 || unit > 0xdbff)
                return true;
        if (peek(cursor) != '\\')
                return fail(cursor, "half of a surrogate pair; write both halves");
        cursor->at++;
        unit = read_unit(cursor);
        return (unit >= 0xdc00 && unit <= 0xdfff)
               || fail(cursor, "half of a surrogate pair; write both halves");
}

static bool check_escape(struct cursor *cursor)
{
        cursor->at++; /* the backslash */
        if (peek(cursor) == 'u')
                return check_unicode_escape(cursor);
        if (cursor->at >= cursor->size || !memchr("\"\\/bfnrt", peek(cursor), 8))
                return fail(cursor, "unknown escape");
        cursor->at++;
        return true;
}

static bool check_string(struct cursor *cursor)
{
        cursor->at++; /* the quotation mark */
        while (cursor->at < cursor->size && peek(cursor) != '"') {
                size_t length;

                if (peek(cursor) == '\\') {
                        if (!check_escape(cursor))
                                return false;
                        continue;
                }
                if ((unsigned char)peek(cursor) < 0x20)
                        return fail(cursor, "a control character must be escaped");
                length = utf8_length(cursor->text + cursor->at, cursor->size - cursor->at);
                if (length == 0)
                        return fail(cursor, "the string is not UTF-8");
                cursor->at += length;
        }
        if (peek(cursor) != '"')
                return fail(cursor, "the string does not end");
        cursor->at++;
        return true;
}

static bool check_member(struct cursor *cursor)
{
        if (peek(cursor) != '"')
                return fail(cursor, "expected a name in quotation marks");
        if (!check_string(cursor))
                return false;
        skip_space(cursor);
        if (peek(cursor) != ':')
                return fail(cursor, "expected a colon");
        cursor->at++;
        return check_value(cursor);
}

/* Check an object or an array, from its opening bracket on. */
static bool check_container(
        struct cursor *cursor, char close, bool (*check_item)(struct cursor *), const char *expected)
{
        unsigned members = 0;

        if (++cursor->depth > JSON_DEPTH_MAX)
                return fail(cursor, "more than 64 levels");
        cursor->at++;
        skip_space(cursor);
        if (peek(cursor) != close) {
                do {
                        if (close == '}' && ++members > JSON_NAMES_MAX)
                                return fail(cursor, "more than 256 names in one object");
                        skip_space(cursor);
                        if (!check_item(cursor))
                                return false;
                        skip_space(cursor);
                } while (peek(cursor) == ',' && ++cursor->at);
                if (peek(cursor) != close)
                        return fail(cursor, expected);
        }
        cursor->at++;
        cursor->depth--;
        return true;
}

static bool check_word(struct cursor *cursor)
{
        static const char *const words[] = {"true", "false", "null"};

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                size_t length = strlen(words[i]);

                if (cursor->size - cursor->at >= length
                        && memcmp(cursor->text + cursor->at, words[i], length) == 0) {
                        cursor->at += length;
                        return true;
                }
        }
        return fail(cursor, "expected a value");
}

static bool check_value(struct cursor *cursor)
{
        char c;

        skip_space(cursor);
        c = peek(cursor);
        if (c == '{')
                return check_container(cursor, '}', check_member, "expected a comma or '}'");
        if (c == '[')
                return check_container(cursor, ']', check_value, "expected a comma or ']'");
        if (c == '"')
                return check_string(cursor);
        if (c == '-' || is_digit(c))
                return check_number(cursor);
        return check_word(cursor);
}

static void locate(const struct cursor *cursor, struct json_fault *ret)
{
        *ret = (struct json_fault){.what = cursor->fault, .line = 1, .column = 1};
        for (size_t i = 0; i < cursor->at; i++) {
                ret->column++;
                if (cursor->text[i] == '\n') {
                        ret->line++;
                        ret->column = 1;
                }
        }
}

int json_check(const char *text, size_t size, struct json_fault *ret_fault)
{
        struct cursor cursor = {.text = text, .size = size};

        if (check_value(&cursor)) {
                skip_space(&cursor);
                if (cursor.at == cursor.size)
                        return 0;
                (void)fail(&cursor, "more text follows the value");
        }
        locate(&cursor, ret_fault);
        return -EINVAL;
}
