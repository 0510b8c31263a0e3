/* SPDX-License-Identifier: MIT */
/* The copy of a record in the runtime directory (workers/UID.record): a JSON document. If the database is lost
 * or is an older copy, ublkd recognises its disks by it. No I/O here. */
#pragma once

#include "ublkd/store/device_store.h"

enum {
        RECORD_FILE_VERSION = 1,
        RECORD_FILE_SIZE_MAX =
                2 * 1024 * 1024, /* bytes: the largest spec of a request, and the other members */
};

/* Zero-initialise. */
struct record_file {
        struct device_record record;     /* name and spec are owned; no status */
        char *text;                      /* the spec as it is stored; owned */
        char boot[UID_TEXT_SIZE];        /* boot id of the machine when ublkd wrote the file */
        char database[DATABASE_ID_SIZE]; /* the database that has the record */
        bool removed;                    /* the device was removed, but an older database still has it */
};

/* Write the document. The spec comes from file->record.spec, or from file->text if that is NULL. Return 0 and a
 * text that the caller frees, or -ENOMEM. */
int record_file_make(const struct record_file *file, char **ret);

/* Parse the document of the device `uid`. Return 0 and a file for record_file_clear(); -EBADMSG: the document is
 * torn, invalid, or of another device; -EPROTONOSUPPORT: another version wrote it; -ENOMEM. */
int record_file_parse(const char *text, const char *uid, struct record_file *ret);

/* Free what the file owns; NULL members are fine. */
void record_file_clear(struct record_file *file);
#define _cleanup_record_file_ _cleanup_(record_file_clear)

/* Compare `record`, of the database with the given stamp, with its copy `file` (NULL: none that is readable).
 * boot: the boot id; a file of another boot is ignored. behind: the database that ran last in this boot is a
 * newer copy, or another database. */
enum record_age record_file_compare(const struct record_file *file, const char *boot,
        const struct device_record *record, const struct store_stamp *stamp, bool behind);
