/* SPDX-License-Identifier: MIT */
/* Option tables: JSON objects into structs, with every fault reported. The tables are generated from
 * schemas/ at build time (schemas/generate.py), so that schema and daemon cannot disagree. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/values/quantity.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum option_kind {
        OPTION_STRING,       /* char *, owned */
        OPTION_BOOL,         /* bool */
        OPTION_INTEGER,      /* int64_t */
        OPTION_AUTO_INTEGER, /* int64_t; the string "auto" is OPTION_AUTO */
        OPTION_BYTES,        /* uint64_t; an integer, or a string like "10GiB" or "10G" */
        OPTION_DURATION,     /* uint64_t microseconds; "0" or a number with us, ms, s, min, h */
        OPTION_ENUM,       /* int, the index in `names`; the name "" cannot be given: it stands for silence */
        OPTION_OBJECT,     /* a struct inside the struct, with a table of its own */
        OPTION_STRING_MAP, /* cJSON *, owned: an object whose values are strings */
        OPTION_DOCUMENT,   /* cJSON *, owned: any object, checked elsewhere (the target) */
        OPTION_LIST,       /* cJSON *, owned: a list, each item of which is as one of `items` says */
        OPTION_OBJECT_MAP, /* cJSON *, owned: an object, each member of which is as the first of `items` says */
        _OPTION_KIND_MAX
};

#define OPTION_AUTO INT64_C(-1)

struct option_table;

struct option_field {
        const char *name; /* as in the JSON */
        enum option_kind kind;
        size_t offset; /* into the struct of the table */
        bool required;
        int64_t minimum, maximum; /* OPTION_INTEGER, _AUTO_INTEGER, _BYTES, _DURATION */
        int64_t multiple_of;      /* 0: any */
        const int64_t *values;    /* OPTION_INTEGER: the only good ones, or NULL */
        size_t value_count;
        const char *pattern; /* POSIX extended, anchored; OPTION_STRING, keys of a map */
        size_t length_min,
                length_max;       /* in code points; OPTION_STRING; for a map or a list: number of entries */
        size_t value_length_max;  /* OPTION_STRING_MAP: of each value */
        const char *const *names; /* OPTION_ENUM, NULL-terminated */
        const struct option_table *table; /* OPTION_OBJECT */
        /* OPTION_LIST, OPTION_OBJECT_MAP: OPTION_STRING, _INTEGER or _OBJECT, one of a kind; their `name` and `offset`
         * do not count. The caller takes the values out of the copy, objects by dispatch() with `table`. */
        const struct option_field *items;
        size_t item_count;
        const char *hint; /* what a good value looks like, for the sentence */
        union {
                int64_t integer; /* also enum index, bytes, microseconds, bool */
                const char *string;
        } preset; /* the default: what the struct holds when the JSON is silent */
};

struct option_table {
        const struct option_field *options;
        size_t count;
        size_t struct_size;
        const char *const *ignored; /* names handled elsewhere (a target's "type"), NULL-terminated or NULL */
        /* Of a target (targets/target_tree.h): whether it has a field "child", which is another target, and how many
         * targets its field "children" lists; 0: it has no such field. */
        bool has_child;
        size_t children_min, children_max;
};

/* Fill `ret` (of table->struct_size bytes, overwritten) from `object`, defaults first. `pointer` is the RFC
 * 6901 pointer of the object itself. Every fault becomes a problem (unknown field, duplicate field, wrong
 * type, out of range, missing). Return 0; -EINVAL when problems were added (ret holds what was good, defaults
 * elsewhere, and must still be released); -ENOMEM (nothing left to release, but it does no harm). The reasons
 * of its problems: UnknownField, DuplicateField, MissingField, WrongType, OutOfRange, NotMultiple, BadValue,
 * BadFormat, BadLength, TooMany, TooFew. */
int dispatch(const cJSON *object, const struct option_table *table, const char *pointer, void *ret,
        struct problem_list *problems);

/* Free what dispatch() allocated inside `object`. May be called again. */
void dispatch_release(void *object, const struct option_table *table);

/* Fill `ret` (of table->struct_size bytes, overwritten) with the defaults. Return 0; or -ENOMEM, with nothing
 * to release. */
int option_defaults(const struct option_table *table, void *ret);

/* Return the index of `name` among the options, or, counted on behind them, among the ignored names; -1:
 * neither. */
int option_index(const struct option_table *table, const char *name);
/* Return the option called `name`, or NULL. */
const struct option_field *option_find(const struct option_table *table, const char *name);

/* Return the name in `table` that a client who wrote `name` may have meant, or NULL. */
const char *option_suggest(const struct option_table *table, const char *name);

/* Return whether two structs filled from `table` hold the same values ("10GiB" equals 10737418240). On a
 * difference *ret_name (may be NULL) is the name of the first top-level option that differs. */
bool dispatch_equal(
        const void *one, const void *other, const struct option_table *table, const char **ret_name);
