/* SPDX-License-Identifier: MIT */
/* Print JSON as YAML. */
#include "ublkctl/text/yaml.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/printable.h"
#include "ublkd/base/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { INDENT = 2, DEPTH_MAX = 100, REPLACEMENT = 0xfffd };

/* Words that YAML 1.1 or 1.2 takes for a boolean or null, in any case. */
static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};

static bool is_plain(const char *text)
{
        static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ ";
        size_t length = strlen(text);

        if (!isalpha((unsigned char)*text) && *text != '/' && *text != '_')
                return false;
        if (strspn(text, inside) != length || text[length - 1] == ' ')
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcasecmp(words[i], text) == 0)
                        return false;
        return true;
}

/* Decode the character at *text, and move *text behind it. cJSON does not check UTF-8: any other byte becomes U+FFFD. */
static uint32_t next_code_point(const char **text)
{
        uint32_t point = REPLACEMENT;
        size_t length = utf8_decode(*text, strnlen(*text, UTF8_MAX), &point);

        *text += length > 0 ? length : 1;
        return point;
}

/* Return whether YAML allows a character in a text, and takes it for nothing else: no control character, no line
 * break of YAML 1.1, no byte order mark. */
static bool is_printable(uint32_t point)
{
        return point < 0x80 ? isprint((int)point)
                            : point >= 0xa0 && point != 0x2028 && point != 0x2029 && point != 0xfeff
                                      && (point & 0xfffeu) != 0xfffeu && !(point >= 0xd800 && point < 0xe000);
}

static void print_quoted(FILE *file, const char *text)
{
        fputc('"', file);
        while (*text) {
                const char *begin = text;
                uint32_t point = next_code_point(&text);

                if (point == '"' || point == '\\')
                        fprintf(file, "\\%c", (int)point);
                else if (point == REPLACEMENT)
                        fputs("\\uFFFD", file);
                else if (is_printable(point) && printable_length(begin, (size_t)(text - begin)) > 0)
                        fwrite(begin, 1, (size_t)(text - begin), file);
                else if (point < 0x100)
                        fprintf(file, "\\x%02X", point);
                else if (point < 0x10000)
                        fprintf(file, "\\u%04X", point);
                else
                        fprintf(file, "\\U%08X", point);
        }
        fputc('"', file);
}

static void print_text(FILE *file, const char *text)
{
        if (is_plain(text))
                fputs(text, file);
        else
                print_quoted(file, text);
}

/* Whole numbers as such; with an exponent, YAML 1.1 wants a dot. */
static void print_number(FILE *file, double number)
{
        char text[40], *exponent;

        if (number == floor(number) && fabs(number) < 0x1p63) {
                fprintf(file, "%" PRId64, (int64_t)number);
                return;
        }
        snprintf(text, sizeof(text), "%.17g", number);
        if (strtod(text, NULL) == number) {
                char shorter[40];

                snprintf(shorter, sizeof(shorter), "%.15g", number);
                if (strtod(shorter, NULL) == number)
                        strcpy(text, shorter);
        }
        exponent = strchr(text, 'e');
        if (exponent && !strchr(text, '.'))
                fprintf(file, "%.*s.0%s", (int)(exponent - text), text, exponent);
        else
                fputs(text, file);
}

static void print_scalar(FILE *file, const cJSON *value)
{
        if (cJSON_IsString(value))
                print_text(file, value->valuestring);
        else if (cJSON_IsNumber(value))
                print_number(file, value->valuedouble);
        else if (cJSON_IsBool(value))
                fputs(cJSON_IsTrue(value) ? "true" : "false", file);
        else if (cJSON_IsArray(value))
                fputs("[]", file);
        else if (cJSON_IsObject(value))
                fputs("{}", file);
        else
                fputs("null", file);
}

static bool is_block(const cJSON *value)
{
        return (cJSON_IsArray(value) || cJSON_IsObject(value)) && value->child;
}

/* Print the members of a value that is_block(). `begun`: the first of them stands behind the dash of an item, in the
 * line that is begun. */
static void print_block(FILE *file, const cJSON *value, int indent, bool begun)
{
        const cJSON *member;

        cJSON_ArrayForEach (member, value) {
                bool item = cJSON_IsArray(value);

                fprintf(file, "%*s", begun ? 0 : indent, "");
                begun = false;
                if (item)
                        fputs("-", file);
                else
                        print_text(file, member->string);
                fputs(item ? " " : ":", file);
                if (is_block(member) && indent < DEPTH_MAX * INDENT) {
                        if (!item)
                                fputc('\n', file);
                        print_block(file, member, indent + INDENT, item);
                        continue;
                }
                if (!item)
                        fputc(' ', file);
                print_scalar(file, member);
                fputc('\n', file);
        }
}

void yaml_print(FILE *file, const cJSON *value)
{
        if (is_block(value)) {
                print_block(file, value, 0, false);
                return;
        }
        print_scalar(file, value);
        fputc('\n', file);
}
