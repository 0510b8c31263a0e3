/* SPDX-License-Identifier: MIT */
/* The options of the command line: one table for all verbs, parsed into one struct. */
#pragma once

#include "ublkctl/text/exit_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A verb lists its options as a mask of these. Options with one meaning have one name in all verbs. */
enum setting_id {
        SETTING_SOCKET,
        SETTING_URL,
        SETTING_TOKEN_FILE,
        SETTING_NO_ASK_PASSWORD,
        SETTING_HELP,
        SETTING_VERSION,
        SETTING_FILE,
        SETTING_FILES,
        SETTING_OUTPUT,
        SETTING_OUTPUT_NO_NAME,
        SETTING_LABEL,
        SETTING_PRUNE,
        SETTING_DRY_RUN,
        SETTING_FORCE,
        SETTING_PRUNE_IN_USE,
        SETTING_ALLOW_SHRINK,
        SETTING_ACCEPT_BACKING,
        SETTING_STORE,
        SETTING_ACCEPT_WRITE_ERRORS,
        SETTING_DROP_LAST_COPY,
        SETTING_WAIT,
        SETTING_NO_WAIT,
        SETTING_TIMEOUT,
        SETTING_FOR,
        SETTING_IGNORE_MISSING,
        SETTING_WHEN_UNUSED,
        SETTING_TENANTS,
        SETTING_FOLLOW,
        SETTING_SINCE,
        SETTING_BATCH,
        SETTING_ROUNDS,
        SETTING_INTERVAL,
        SETTING_READ_ONLY,
        SETTING_NAME,
        SETTING_OFFSET,
        SETTING_ALL,
        SETTING_NEW_NAME,
        SETTING_FOLDER,
        SETTING_COLUMNS,
        SETTING_SORT,
        SETTING_SIZE,
        SETTING_SET_LABEL,
        SETTING_DIRECT_IO,
        SETTING_TEMPORARY,
        SETTING_OPERATION,
        SETTING_BEFORE,
        SETTING_USERS,
        SETTING_FILESYSTEM_TYPE,
        SETTING_REMAKE,
        SETTING_NO_EXEC,
        SETTING_HOLDER,
        SETTING_ALL_HOLDERS,
        SETTING_MOUNTED,
        SETTING_PID,
        SETTING_CANCEL,
        _SETTING_MAX
};

#define SETTING_BIT(id) (UINT64_C(1) << (id))

/* Options of every verb and of the program itself. */
#define SETTINGS_COMMON                                                                                      \
        (SETTING_BIT(SETTING_SOCKET) | SETTING_BIT(SETTING_URL) | SETTING_BIT(SETTING_TOKEN_FILE)            \
                | SETTING_BIT(SETTING_NO_ASK_PASSWORD) | SETTING_BIT(SETTING_HELP))

enum setting_kind {
        SETTING_KIND_FLAG,     /* bool */
        SETTING_KIND_TEXT,     /* const char *, from argv */
        SETTING_KIND_LIST,     /* struct text_list */
        SETTING_KIND_DURATION, /* uint64_t microseconds */
        SETTING_KIND_COUNT,    /* uint64_t */
        SETTING_KIND_CHOICE,   /* int, the index in `choices` */
        _SETTING_KIND_MAX
};

enum completion {
        COMPLETE_NOTHING,
        COMPLETE_FILE,
        COMPLETE_DEVICE,
        COMPLETE_NODE_OR_FILE,
        COMPLETE_ADOPTABLE,
        COMPLETE_COLUMN,
        COMPLETE_CHOICE
};

struct setting {
        const char *name; /* without dashes */
        char letter;      /* or '\0' */
        enum setting_kind kind;
        size_t offset;              /* into struct settings */
        const char *value;          /* its name in the help; NULL: a flag */
        const char *help;           /* one clause, without a full stop */
        const char *const *choices; /* SETTING_KIND_CHOICE, NULL-terminated */
        uint64_t minimum, maximum;  /* SETTING_KIND_DURATION, _COUNT */
        enum completion completion; /* of its value */
};

enum { TEXT_LIST_MAX = 64 };

struct text_list {
        const char *items[TEXT_LIST_MAX]; /* from argv */
        size_t count;
};

enum output_format { OUTPUT_DEFAULT, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_WIDE, OUTPUT_TABLE, OUTPUT_NAME };
enum wait_for { WAIT_FOR_LIVE, WAIT_FOR_GONE };

/* Return whether a format is for programs: data, whole. */
static inline bool output_is_data(int format)
{
        return format == OUTPUT_JSON || format == OUTPUT_YAML;
}

struct settings {
        uint64_t given;     /* mask of setting_id */
        const char *folder; /* --output-dir */
        bool all;
        const char *socket, *url, *token_file, *file, *name, *offset, *size, *accept_backing, *store,
                *accept_write_errors;
        const char *columns, *sort, *before, *remake, *holder;
        struct text_list files, labels, prune_in_use;
        int output, wait_for, direct_io, operation, filesystem_type;
        bool help, version, prune, dry_run, force, allow_shrink, wait, no_wait, ignore_missing, follow, batch,
                read_only, no_ask_password, drop_last_copy, when_unused, tenants, temporary, users, no_exec,
                all_holders, mounted, cancel;
        uint64_t timeout, interval; /* microseconds */
        uint64_t rounds, since, pid;
};

/* Return the description of an option; `id` is below _SETTING_MAX. */
const struct setting *setting_get(enum setting_id id);

/* Fill `ret` with the defaults, and with the values of the environment (UBLKD_SOCKET, UBLKD_URL,
 * UBLKD_TOKEN_FILE). */
void settings_default(struct settings *ret);

/* Parse the options of `mask` in argv into `settings`. getopt_long() permutes argv; with `leading` it stops
 * at the first word that is not an option. On a fault print a sentence on stderr that begins with `who`.
 * *ret_first is the index of the first argument. Return STATUS_OK or STATUS_USAGE. */
enum exit_status settings_parse(struct settings *settings, uint64_t mask, const char *who, bool leading,
        int argc, char *argv[], int *ret_first);
