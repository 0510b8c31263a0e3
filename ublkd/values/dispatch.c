/* SPDX-License-Identifier: MIT */
/* Option tables: JSON objects into structs, with every fault reported.
 *
 * The walk never stops at a fault. A field is written only once its value has proved good; until then it
 * holds its default, so that the struct can be released (and, where nothing was wrong with them, its other
 * fields used) at any time. Pointers are put together only for a fault: the way down is a chain of places on
 * the stack. */
#include "ublkd/values/dispatch.h"

#include "ublkd/base/utf8.h"
#include "ublkd/values/json_util.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Beyond it, not every integer survives the double that cJSON keeps. */
static const double exact_integer_max = 9007199254740992.0;

enum { OPTIONS_MAX = 64, EXCERPT_CHARACTERS = 40 };

struct walk {
        struct problem_list *problems;
        bool faulty;
};

/* What a user wrote, cut and made printable. Room for the longest UTF-8, quotes and dots. */
struct excerpt {
        char text[EXCERPT_CHARACTERS * 4 + 8];
};

/* Checks `value` and stores it at `field`. 0 (also when a fault was reported) or -ENOMEM. */
typedef int (*option_reader)(struct walk *walk, const struct json_place *place,
        const struct option_field *option, const cJSON *value, void *field);

static int read_object(struct walk *walk, const struct json_place *place, const cJSON *object,
        const struct option_table *table, char *ret);

static struct excerpt quote(const char *text)
{
        struct excerpt excerpt = {};
        size_t length = 0, characters = 0;

        excerpt.text[length++] = '"';
        for (; *text && length < sizeof(excerpt.text) - 6; text++) {
                if (!utf8_is_continuation(*text) && characters++ == EXCERPT_CHARACTERS)
                        break;
                excerpt.text[length++] = iscntrl((unsigned char)*text) ? '?' : *text;
        }
        strcpy(&excerpt.text[length], *text ? "...\"" : "\"");
        return excerpt;
}

static struct excerpt describe(const cJSON *value)
{
        struct excerpt excerpt = {};
        const char *word = "a list";

        if (cJSON_IsString(value))
                return quote(value->valuestring);
        if (cJSON_IsNumber(value)) {
                snprintf(excerpt.text, sizeof(excerpt.text),
                        trunc(value->valuedouble) == value->valuedouble && fabs(value->valuedouble) < 1e20
                                ? "%.0f"
                                : "%.15g",
                        value->valuedouble);
                if (strtod(excerpt.text, NULL) != value->valuedouble)
                        snprintf(excerpt.text, sizeof(excerpt.text), "%.17g", value->valuedouble);
                return excerpt;
        }
        if (cJSON_IsBool(value))
                word = cJSON_IsTrue(value) ? "true" : "false";
        else if (cJSON_IsNull(value))
                word = "null";
        else if (cJSON_IsObject(value))
                word = "an object";
        snprintf(excerpt.text, sizeof(excerpt.text), "%s", word);
        return excerpt;
}

/* The name of what is wrong, for the beginning of a sentence. */
static const char *subject(const struct json_place *place)
{
        return place->outer ? place->name : "this";
}

static int _printf_(4, 5) report(
        struct walk *walk, const struct json_place *place, const char *reason, const char *format, ...)
{
        _cleanup_free_ char *pointer = NULL, *detail = NULL;
        va_list arguments;
        int r;

        walk->faulty = true;
        /* A body full of faults must not cost a sentence each. */
        if (walk->problems->count == PROBLEM_LIST_MAX) {
                walk->problems->dropped++;
                return 0;
        }
        va_start(arguments, format);
        r = vasprintf(&detail, format, arguments);
        va_end(arguments);
        if (r < 0) {
                detail = NULL; /* vasprintf(3) leaves it undefined */
                return -ENOMEM;
        }
        pointer = json_place_pointer(place);
        if (!pointer)
                return -ENOMEM;
        return problem_add(walk->problems, EINVAL, pointer, reason, "%s", detail);
}

static int report_value(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, const char *reason, const char *what)
{
        return report(walk, place, reason, "%s is %s, %s; give %s", subject(place), describe(value).text,
                what, option->hint ? option->hint : "another value");
}

/* Return whether the number is good; if not, *ret is what report() answered. */
static bool number_is_good(struct walk *walk, const struct json_place *place,
        const struct option_field *option, const cJSON *value, int64_t number, int *ret)
{
        char what[64];

        if (number < option->minimum) {
                snprintf(what, sizeof(what), "below %lld", (long long)option->minimum);
                *ret = report_value(walk, place, option, value, "OutOfRange", what);
                return false;
        }
        if (number > option->maximum) {
                snprintf(what, sizeof(what), "above %lld", (long long)option->maximum);
                *ret = report_value(walk, place, option, value, "OutOfRange", what);
                return false;
        }
        if (option->multiple_of != 0 && number % option->multiple_of != 0) {
                snprintf(what, sizeof(what), "not a multiple of %lld", (long long)option->multiple_of);
                *ret = report_value(walk, place, option, value, "NotMultiple", what);
                return false;
        }
        for (size_t i = 0; i < option->value_count; i++)
                if (option->values[i] == number)
                        return true;
        if (option->value_count > 0) {
                *ret = report_value(walk, place, option, value, "BadValue", "not one of the choices");
                return false;
        }
        return true;
}

/* Takes the integer out of a JSON number and checks it against the option. On false *ret is the answer. */
static bool take_integer(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, int64_t *ret_number, int *ret)
{
        const char *what = NULL, *reason = "WrongType";

        *ret = 0;
        if (!cJSON_IsNumber(value))
                what = "not a number";
        else if (!(fabs(value->valuedouble) <= exact_integer_max)) {
                what = "too large";
                reason = "OutOfRange";
        } else if (trunc(value->valuedouble) != value->valuedouble)
                what = "not a whole number";
        if (what) {
                *ret = report_value(walk, place, option, value, reason, what);
                return false;
        }
        if (!number_is_good(walk, place, option, value, (int64_t)value->valuedouble, ret))
                return false;
        *ret_number = (int64_t)value->valuedouble;
        return true;
}

static int read_integer(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        int r;

        (void)take_integer(walk, place, option, value, field, &r);
        return r;
}

static int read_auto_integer(struct walk *walk, const struct json_place *place,
        const struct option_field *option, const cJSON *value, void *field)
{
        if (cJSON_IsString(value) && strcmp(value->valuestring, "auto") == 0) {
                *(int64_t *)field = OPTION_AUTO;
                return 0;
        }
        return read_integer(walk, place, option, value, field);
}

/* An amount that `parse` reads. */
static int read_quantity(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, int (*parse)(const char *, uint64_t *), uint64_t *field)
{
        uint64_t number;
        int r = parse(value->valuestring, &number);

        if (r == -ERANGE)
                return report_value(walk, place, option, value, "OutOfRange", "too large");
        if (r < 0)
                return report_value(walk, place, option, value, "BadFormat", "not understood");
        if (number_is_good(walk, place, option, value, (int64_t)number, &r)) {
                *field = number;
                return 0;
        }
        return r;
}

static int read_bytes(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        int64_t number;
        int r;

        if (cJSON_IsString(value))
                return read_quantity(walk, place, option, value, parse_bytes, field);
        if (take_integer(walk, place, option, value, &number, &r))
                *(uint64_t *)field = (uint64_t)number;
        return r;
}

static int read_duration(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        if (!cJSON_IsString(value))
                return report_value(walk, place, option, value, "WrongType", "not a string");
        return read_quantity(walk, place, option, value, parse_duration, field);
}

static int read_bool(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        if (!cJSON_IsBool(value))
                return report_value(walk, place, option, value, "WrongType", "neither true nor false");
        *(bool *)field = cJSON_IsTrue(value);
        return 0;
}

static int read_enum(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        const char *reason = cJSON_IsString(value) ? "BadValue" : "WrongType";

        for (int i = 0; cJSON_IsString(value) && option->names[i]; i++)
                if (option->names[i][0] != '\0' && strcmp(option->names[i], value->valuestring) == 0) {
                        *(int *)field = i;
                        return 0;
                }
        return report_value(walk, place, option, value, reason, "not one of the choices");
}

/* 1: matches, 0: does not, -ENOMEM. */
static int pattern_matches(const char *pattern, const char *text)
{
        regex_t regex;
        int r = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);

        assert(r == 0 || r == REG_ESPACE); /* the generator checks patterns */
        if (r != 0)
                return -ENOMEM;
        r = regexec(&regex, text, 0, NULL, 0);
        regfree(&regex);
        return r == REG_ESPACE ? -ENOMEM : r == 0;
}

static int read_string(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        size_t length;
        char *copy;
        int r;

        if (!cJSON_IsString(value))
                return report_value(walk, place, option, value, "WrongType", "not a string");
        length = utf8_count(value->valuestring);
        if (length > option->length_max)
                return report_value(walk, place, option, value, "BadLength", "too long");
        if (length < option->length_min)
                return report_value(walk, place, option, value, "BadLength", "too short");
        r = option->pattern ? pattern_matches(option->pattern, value->valuestring) : 1;
        if (r < 0)
                return r;
        if (r == 0)
                return report_value(walk, place, option, value, "BadFormat", "not of the right form");
        copy = strdup(value->valuestring);
        if (!copy)
                return -ENOMEM;
        free(*(char **)field);
        *(char **)field = copy;
        return 0;
}

static int check_map_name(
        struct walk *walk, const struct json_place *inner, const struct option_field *option)
{
        int r = option->pattern ? pattern_matches(option->pattern, inner->name) : 1;

        return r == 0 ? report(walk, inner, "BadFormat", "the name %s is not of the right form; give %s",
                                quote(inner->name).text, option->hint ? option->hint : "another one")
                      : r;
}

/* One name and value of a map. */
static int check_map_entry(struct walk *walk, const struct json_place *place,
        const struct option_field *option, const cJSON *entry)
{
        const struct json_place inner = {.outer = place, .name = entry->string};
        int r = check_map_name(walk, &inner, option);

        if (r < 0)
                return r;
        if (!cJSON_IsString(entry))
                return report(walk, &inner, "WrongType",
                        "%s is %s, not a string; give a string of at most %zu characters",
                        quote(entry->string).text, describe(entry).text, option->value_length_max);
        if (utf8_count(entry->valuestring) > option->value_length_max)
                return report(walk, &inner, "BadLength",
                        "%s is too long; give a string of at most %zu characters", quote(entry->string).text,
                        option->value_length_max);
        return 0;
}

/* Quadratic: only for maps whose size is within bounds. */
static int check_map_duplicates(struct walk *walk, const struct json_place *place, const cJSON *map)
{
        const cJSON *entry;

        cJSON_ArrayForEach (entry, map) {
                const struct json_place inner = {.outer = place, .name = entry->string};

                if (json_name_recurs(entry)
                        && report(walk, &inner, "DuplicateField", "%.64s is given twice; give it once",
                                   entry->string)
                                   < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int store_copy(const cJSON *value, void *field)
{
        cJSON *copy = cJSON_Duplicate(value, true);

        if (!copy)
                return -ENOMEM;
        cJSON_Delete(*(cJSON **)field);
        *(cJSON **)field = copy;
        return 0;
}

static int report_count(
        struct walk *walk, const struct json_place *place, const struct option_field *option, size_t count)
{
        return report(walk, place, count < option->length_min ? "TooFew" : "TooMany",
                "%s has %zu entries; give %zu to %zu", subject(place), count, option->length_min,
                option->length_max);
}

static int read_string_map(struct walk *walk, const struct json_place *place,
        const struct option_field *option, const cJSON *value, void *field)
{
        struct walk inside = {.problems = walk->problems};
        const cJSON *entry;
        size_t count = 0;
        int r = 0;

        if (!cJSON_IsObject(value))
                return report_value(walk, place, option, value, "WrongType", "not an object");
        cJSON_ArrayForEach (entry, value) {
                count++;
                r = check_map_entry(&inside, place, option, entry);
                if (r < 0)
                        return r;
        }
        if (count < option->length_min || count > option->length_max)
                r = report_count(&inside, place, option, count);
        else
                r = check_map_duplicates(&inside, place, value);
        if (r < 0)
                return r;
        walk->faulty = walk->faulty || inside.faulty;
        return inside.faulty ? 0 : store_copy(value, field);
}

/* Of several kinds of items, the one that the value is meant to be. */
static const struct option_field *item_of(const struct option_field *option, const cJSON *value)
{
        for (size_t i = 0; i < option->item_count; i++)
                if (option->items[i].kind == OPTION_INTEGER && cJSON_IsNumber(value))
                        return &option->items[i];
        return &option->items[0];
}

static int read_value(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field);

/* Only what is wrong with the item is of interest, so its value goes nowhere. */
static int check_item(struct walk *walk, const struct json_place *place, const struct option_field *item,
        const cJSON *value)
{
        const struct option_table alone = {.options = item, .count = 1};
        _cleanup_free_ void *scratch =
                calloc(1, item->kind == OPTION_OBJECT ? item->table->struct_size : sizeof(uint64_t));
        int r = scratch ? 0 : -ENOMEM;

        if (r >= 0 && item->kind == OPTION_OBJECT)
                r = option_defaults(item->table, scratch);
        if (r < 0)
                return r;
        r = read_value(walk, place, item, value, scratch);
        dispatch_release(scratch, &alone);
        return r;
}

/* A list, or an object whose members are objects. */
static int read_items(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        struct walk inside = {.problems = walk->problems};
        size_t count = 0;
        const cJSON *item;
        char index[24];
        int r = 0;

        if (option->kind == OPTION_LIST ? !cJSON_IsArray(value) : !cJSON_IsObject(value))
                return report_value(walk, place, option, value, "WrongType",
                        option->kind == OPTION_LIST ? "not a list" : "not an object");
        cJSON_ArrayForEach (item, value) {
                struct json_place inner = {.outer = place, .name = item->string};

                if (option->kind == OPTION_LIST) {
                        snprintf(index, sizeof(index), "%zu", count);
                        inner.name = index;
                } else
                        r = check_map_name(&inside, &inner, option);
                if (r >= 0 && ++count <= option->length_max)
                        r = check_item(&inside, &inner, item_of(option, item), item);
                if (r < 0)
                        return r;
        }
        if (count < option->length_min || count > option->length_max)
                r = report_count(&inside, place, option, count);
        else if (option->kind == OPTION_OBJECT_MAP)
                r = check_map_duplicates(&inside, place, value);
        if (r < 0)
                return r;
        walk->faulty = walk->faulty || inside.faulty;
        return inside.faulty ? 0 : store_copy(value, field);
}

static int read_document(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        if (!cJSON_IsObject(value))
                return report_value(walk, place, option, value, "WrongType", "not an object");
        return store_copy(value, field);
}

static int read_nested(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        if (!cJSON_IsObject(value))
                return report_value(walk, place, option, value, "WrongType", "not an object");
        return read_object(walk, place, value, option->table, field);
}

static const option_reader readers[] = {
        [OPTION_STRING] = read_string,
        [OPTION_BOOL] = read_bool,
        [OPTION_INTEGER] = read_integer,
        [OPTION_AUTO_INTEGER] = read_auto_integer,
        [OPTION_BYTES] = read_bytes,
        [OPTION_DURATION] = read_duration,
        [OPTION_ENUM] = read_enum,
        [OPTION_OBJECT] = read_nested,
        [OPTION_STRING_MAP] = read_string_map,
        [OPTION_DOCUMENT] = read_document,
        [OPTION_LIST] = read_items,
        [OPTION_OBJECT_MAP] = read_items,
};
static_assert(ARRAY_SIZE(readers) == _OPTION_KIND_MAX, "a reader for every kind");

static int read_value(struct walk *walk, const struct json_place *place, const struct option_field *option,
        const cJSON *value, void *field)
{
        return readers[option->kind](walk, place, option, value, field);
}

static int report_unknown(struct walk *walk, const struct json_place *place, const struct option_table *table)
{
        const char *meant;

        /* Looking for what was meant costs more than all else; past the limit no caller reads it. */
        if (walk->problems->count == PROBLEM_LIST_MAX)
                return report(walk, place, "UnknownField", "unknown field");
        meant = option_suggest(table, place->name);
        if (meant)
                return report(walk, place, "UnknownField", "unknown field %s; did you mean \"%s\"?",
                        quote(place->name).text, meant);
        return report(walk, place, "UnknownField", "unknown field %s; remove it", quote(place->name).text);
}

static int report_missing(
        struct walk *walk, const struct json_place *place, const struct option_table *table, uint64_t seen)
{
        for (size_t i = 0; i < table->count; i++) {
                const struct option_field *option = &table->options[i];
                const struct json_place inner = {.outer = place, .name = option->name};

                if (!option->required || (seen & (UINT64_C(1) << i)))
                        continue;
                if (report(walk, &inner, "MissingField", "%s is missing; give %s", option->name,
                            option->hint ? option->hint : "it")
                        < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* `ret` holds the defaults already. */
static int read_object(struct walk *walk, const struct json_place *place, const cJSON *object,
        const struct option_table *table, char *ret)
{
        uint64_t seen = 0;
        const cJSON *member;

        cJSON_ArrayForEach (member, object) {
                const struct json_place inner = {.outer = place, .name = member->string};
                int index = option_index(table, member->string), r = 0;

                assert(index < OPTIONS_MAX);
                if (index < 0)
                        r = report_unknown(walk, &inner, table);
                else if (seen & (UINT64_C(1) << index))
                        r = report(walk, &inner, "DuplicateField", "%s is given twice; give it once",
                                member->string);
                else if ((size_t)index < table->count) {
                        const struct option_field *option = &table->options[index];

                        r = readers[option->kind](walk, &inner, option, member, ret + option->offset);
                }
                if (r < 0)
                        return r;
                if (index >= 0)
                        seen |= UINT64_C(1) << index;
        }
        return report_missing(walk, place, table, seen);
}

int dispatch(const cJSON *object, const struct option_table *table, const char *pointer, void *ret,
        struct problem_list *problems)
{
        /* The whole table as one nested object. */
        const struct option_field whole = {.kind = OPTION_OBJECT, .table = table, .hint = "an object"};
        const struct json_place place = {.name = pointer};
        struct walk walk = {.problems = problems};
        int r = option_defaults(table, ret);

        if (r == 0)
                r = read_nested(&walk, &place, &whole, object, ret);
        if (r < 0) {
                dispatch_release(ret, table);
                return r;
        }
        return walk.faulty ? -EINVAL : 0;
}
