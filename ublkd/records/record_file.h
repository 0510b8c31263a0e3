/* SPDX-License-Identifier: MIT */
/* The record of a device as the runtime directory keeps it (workers/UID.record): a JSON document. A ublkd
 * whose database is lost, or is an older copy, finds in it what its disks are. No I/O here. */
#pragma once

#include "ublkd/store/device_store.h"

enum {
        RECORD_FILE_VERSION = 1,
        RECORD_FILE_SIZE_MAX = 2 * 1024 * 1024, /* bytes: the largest spec of a request, and the rest */
};

/* Zero-initialise. */
struct record_file {
        struct device_record record;     /* name and spec are owned; no status */
        char *text;                      /* the spec as it is stored; owned */
        char boot[UID_TEXT_SIZE];        /* boot id of the machine when it was written */
        char database[DATABASE_ID_SIZE]; /* whose record it is a copy of */
        bool removed; /* there is no such device any more: an older database has it still */
};

/* The document. Only file->record.spec is used of the spec, NULL: `text` is. 0 and an owned text, or -ENOMEM.
 */
int record_file_make(const struct record_file *file, char **ret);

/* Reads a document of the device `uid`. 0 and a file for record_file_clear(). -EBADMSG: it is torn, or about
 * another device, or says what no record says; -EPROTONOSUPPORT: another version wrote it; -ENOMEM. */
int record_file_parse(const char *text, const char *uid, struct record_file *ret);

/* NULL members are fine. */
void record_file_clear(struct record_file *file);
#define _cleanup_record_file_ _cleanup_(record_file_clear)

/* What `file` (NULL: there is none that can be read) means for `record` of the database with that stamp.
 * `behind`: the database is an older copy, or another one, than the database that ran last in this boot. A
 * file of another boot counts as none. */
enum record_age record_file_compare(const struct record_file *file, const char *boot,
        const struct device_record *record, const struct store_stamp *stamp, bool behind);
