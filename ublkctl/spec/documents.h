/* SPDX-License-Identifier: MIT */
/* Read specs from files: one, several in a row, arrays, and lists ("items"). */
#pragma once

#include "ublkctl/text/exit_status.h"

#include <cjson/cJSON.h>
#include <stddef.h>

struct document {
        cJSON *spec;
        const char *source; /* the file, or "standard input"; the list owns it */
};

struct documents {
        struct document *items;
        size_t count, capacity;
        char **sources;
        size_t source_count;
        char **unreadable; /* sources that documents_read() could not read completely */
        size_t unreadable_count;
};

/* Read a file, every *.json of a folder (in the order of their names), or standard input ("-"), and append
 * the specs. A device in the form of the API counts as its spec. For each fault print a sentence on stderr
 * and remember the file; append the valid specs nevertheless. Return STATUS_OK, or the status of the fault.
 */
enum exit_status documents_read(struct documents *documents, const char *path);
/* Parse specs as documents_read(), from a text that is called `source` in messages. */
enum exit_status documents_parse(struct documents *documents, const char *text, const char *source);
void documents_clear(struct documents *documents);

/* Read one JSON value from a file or standard input ("-"); the caller deletes it. advice: what it is, as the end
 * of a sentence ("a patch is ..."). Return STATUS_OK, or STATUS_FAILED after a sentence on stderr. */
enum exit_status document_read_one(const char *path, const char *advice, cJSON **ret);
