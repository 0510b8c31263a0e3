/* SPDX-License-Identifier: MIT */
/* What is wrong, in words meant for a user: a list of {errno, JSON pointer, reason, sentence}. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stddef.h>

struct problem {
        int error;     /* positive errno value, for programs; 0 where no errno fits */
        char *pointer; /* RFC 6901 pointer into the document at fault ("/target/path"), or "" */
        char *reason;  /* one CamelCase word, stable: "BackingFileMissing", "UnknownField" */
        char *detail;  /* one sentence: what is wrong, and what to do */
};

/* Zero-initialise. At most PROBLEM_LIST_MAX are kept; further ones are counted in `dropped`. */
struct problem_list {
        struct problem *items;
        size_t count;
        size_t dropped;
};

enum { PROBLEM_LIST_MAX = 64 };

/* Append a copy. Return 0, or -ENOMEM: the list is unchanged. */
int problem_add(struct problem_list *list, int error, const char *pointer, const char *reason,
        const char *format, ...) _printf_(5, 6);

/* Append copies of all of `from`. Return 0, or -ENOMEM: some may have been appended. */
int problem_list_append(struct problem_list *list, const struct problem_list *from);

/* Free the items and empty the list; it may be used again. */
void problem_list_clear(struct problem_list *list);

/* Return what follows `outer` in the RFC 6901 pointer: "" or "/..."; NULL: it is not within. */
const char *pointer_rest(const char *pointer, const char *outer);

#define _cleanup_problems_ _cleanup_(problem_list_clear)
