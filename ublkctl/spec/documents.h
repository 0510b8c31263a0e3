/* SPDX-License-Identifier: MIT */
/* Specs from files: one, several one after the other, arrays, and lists ("items"). */
#pragma once

#include "ublkctl/text/exit_status.h"

#include <cjson/cJSON.h>
#include <stddef.h>

struct document {
        cJSON *spec;
        const char *source; /* the file, or "standard input"; belongs to the list */
};

struct documents {
        struct document *items;
        size_t count, capacity;
        char **sources;
        size_t source_count;
        char **unreadable; /* what documents_read() was given or found, and could not take whole */
        size_t unreadable_count;
};

/* Reads a file, every *.json of a folder (in the order of their names), or standard input ("-"), and appends
 * what is in there. A device as the API gives it counts as its spec. Faults are told on stderr, and their
 * files are remembered; what is good is appended all the same. STATUS_OK, or what goes with the fault. */
enum exit_status documents_read(struct documents *documents, const char *path);
/* The same from a text, which is called `source`. */
enum exit_status documents_parse(struct documents *documents, const char *text, const char *source);
void documents_clear(struct documents *documents);

/* One JSON value from a file or standard input ("-"). STATUS_OK, or STATUS_FAILED after a sentence. */
enum exit_status document_read_one(const char *path, cJSON **ret);
