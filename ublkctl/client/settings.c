/* SPDX-License-Identifier: MIT */
/* The options of the command line: one table for all verbs, parsed into one struct. */
#include "ublkctl/client/settings.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/quantity.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MEMBER(field) offsetof(struct settings, field)

enum { SECOND = 1000 * 1000 };

static const char default_socket[] = "/run/ublkd/ublkd.sock";

static const char *const output_names[] = {
        [OUTPUT_DEFAULT] = "default",
        [OUTPUT_JSON] = "json",
        [OUTPUT_YAML] = "yaml",
        [OUTPUT_WIDE] = "wide",
        [OUTPUT_TABLE] = "table",
        [OUTPUT_NAME] = "name",
        NULL,
};

/* For a verb whose output is more than devices. */
static const char *const output_names_no_name[] = {
        [OUTPUT_DEFAULT] = "default",
        [OUTPUT_JSON] = "json",
        [OUTPUT_YAML] = "yaml",
        [OUTPUT_WIDE] = "wide",
        [OUTPUT_TABLE] = "table",
        NULL,
};

static const char *const direct_io_names[] = {"auto", "on", "off", NULL};

static const char *const operation_names[] = {
        "all", "read", "write", "flush", "discard", "write-zeroes", "other", NULL};

static const char *const filesystem_type_names[] = {"ext4", "xfs", NULL};

static const char *const wait_names[] = {[WAIT_FOR_LIVE] = "live", [WAIT_FOR_GONE] = "gone", NULL};

/* clang-format off */
static const struct setting settings_table[] = {
        [SETTING_SOCKET] = {.name = "socket", .letter = 's', .kind = SETTING_KIND_TEXT, .offset = MEMBER(socket),
                .value = "PATH", .completion = COMPLETE_FILE,
                .help = "the socket of ublkd (default: $UBLKD_SOCKET, else /run/ublkd/ublkd.sock)"},
        [SETTING_URL] = {.name = "url", .kind = SETTING_KIND_TEXT, .offset = MEMBER(url), .value = "URL",
                .help = "connect to a ublkd at http://HOST:PORT instead (default: $UBLKD_URL)"},
        [SETTING_TOKEN_FILE] = {.name = "token-file", .kind = SETTING_KIND_TEXT, .offset = MEMBER(token_file),
                .value = "FILE", .completion = COMPLETE_FILE,
                .help = "the file with the token for --url (default: $UBLKD_TOKEN_FILE)"},
        [SETTING_NO_ASK_PASSWORD] = {.name = "no-ask-password", .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(no_ask_password),
                .help = "do not ask for a password if polkit wants one for a change; fail instead"},
        [SETTING_HELP] = {.name = "help", .letter = 'h', .kind = SETTING_KIND_FLAG, .offset = MEMBER(help),
                .help = "show this help and exit"},
        [SETTING_VERSION] = {.name = "version", .letter = 'V', .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(version), .help = "show the version and exit"},
        [SETTING_FILE] = {.name = "file", .letter = 'f', .kind = SETTING_KIND_TEXT, .offset = MEMBER(file),
                .value = "FILE", .completion = COMPLETE_FILE, .help = "read JSON from FILE; - is standard input"},
        [SETTING_FILES] = {.name = "file", .letter = 'f', .kind = SETTING_KIND_LIST, .offset = MEMBER(files),
                .value = "FILE|DIR", .completion = COMPLETE_FILE,
                .help = "read specs from FILE, from every *.json of DIR, or from standard input (-)"},
        [SETTING_OUTPUT] = {.name = "output", .letter = 'o', .kind = SETTING_KIND_CHOICE,
                .offset = MEMBER(output), .value = "FORMAT", .choices = output_names,
                .completion = COMPLETE_CHOICE, .help = "how to print: default, json, yaml, wide, table or name"},
        [SETTING_OUTPUT_NO_NAME] = {.name = "output", .letter = 'o', .kind = SETTING_KIND_CHOICE,
                .offset = MEMBER(output), .value = "FORMAT", .choices = output_names_no_name,
                .completion = COMPLETE_CHOICE, .help = "how to print: default, json, yaml, wide or table"},
        [SETTING_LABEL] = {.name = "label", .letter = 'l', .kind = SETTING_KIND_LIST, .offset = MEMBER(labels),
                .value = "KEY=VALUE",
                .help = "only devices with this label, or (KEY!=VALUE) without it; may be repeated"},
        [SETTING_PRUNE] = {.name = "prune", .kind = SETTING_KIND_FLAG, .offset = MEMBER(prune),
                .help = "also remove devices that have the labels of -l and no spec"},
        [SETTING_DRY_RUN] = {.name = "dry-run", .kind = SETTING_KIND_FLAG, .offset = MEMBER(dry_run),
                .help = "change nothing, show what would change"},
        [SETTING_FORCE] = {.name = "force", .kind = SETTING_KIND_FLAG, .offset = MEMBER(force),
                .help = "even if the disk is in use; its users get I/O errors and lose unwritten data"},
        [SETTING_PRUNE_IN_USE] = {.name = "prune-in-use", .kind = SETTING_KIND_LIST,
                .offset = MEMBER(prune_in_use), .value = "NAME", .completion = COMPLETE_DEVICE,
                .help = "with --prune, remove the device NAME even if its disk is in use; its users get "
                        "I/O errors; may be repeated"},
        [SETTING_ALLOW_SHRINK] = {.name = "allow-shrink", .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(allow_shrink),
                .help = "allow a disk to shrink, which cuts off everything beyond its new end"},
        [SETTING_ACCEPT_BACKING] = {.name = "accept-backing", .kind = SETTING_KIND_TEXT,
                .offset = MEMBER(accept_backing), .value = "IDENTITY",
                .help = "recover with the store of this identity, as describe shows it (unmount the disk "
                        "first), and give up the data on the store that the disk was created on"},
        [SETTING_STORE] = {.name = "store", .kind = SETTING_KIND_TEXT, .offset = MEMBER(store),
                .value = "POINTER",
                .help = "with --accept-backing, of a disk that lies in several stores: which one, by its "
                        "target (/target/children/0), as describe shows it"},
        [SETTING_ACCEPT_WRITE_ERRORS] = {.name = "accept-write-errors", .kind = SETTING_KIND_TEXT,
                .offset = MEMBER(accept_write_errors), .value = "TOKEN",
                .help = "accept the loss of data that describe shows with this token (Durable, "
                        "BackingWhole): flushes succeed again"},
        [SETTING_DROP_LAST_COPY] = {.name = "drop-last-copy", .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(drop_last_copy),
                .help = "even if the file of the disk was deleted, so that only the disk has its data: "
                        "they are lost"},
        [SETTING_WAIT] = {.name = "wait", .letter = 'w', .kind = SETTING_KIND_FLAG, .offset = MEMBER(wait),
                .help = "wait until it is done"},
        [SETTING_NO_WAIT] = {.name = "no-wait", .kind = SETTING_KIND_FLAG, .offset = MEMBER(no_wait),
                .help = "do not wait until it is done"},
        [SETTING_TIMEOUT] = {.name = "timeout", .letter = 't', .kind = SETTING_KIND_DURATION,
                .offset = MEMBER(timeout), .value = "TIME", .minimum = 1, .maximum = UINT64_C(24) * 3600 * SECOND,
                .help = "how long to wait, like 500ms, 30s or 2min (default: 60s)"},
        [SETTING_FOR] = {.name = "for", .kind = SETTING_KIND_CHOICE, .offset = MEMBER(wait_for),
                .value = "STATE", .choices = wait_names, .completion = COMPLETE_CHOICE,
                .help = "what to wait for: live (the default) or gone"},
        [SETTING_IGNORE_MISSING] = {.name = "ignore-missing", .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(ignore_missing), .help = "succeed if the device does not exist"},
        [SETTING_WHEN_UNUSED] = {.name = "when-unused", .kind = SETTING_KIND_FLAG, .offset = MEMBER(when_unused),
                .help = "wait until the disk is unused; --timeout limits that too"},
        [SETTING_TENANTS] = {.name = "tenants", .kind = SETTING_KIND_FLAG, .offset = MEMBER(tenants),
                .help = "the disks of all tenants, instead of names"},
        [SETTING_FOLLOW] = {.name = "follow", .letter = 'f', .kind = SETTING_KIND_FLAG, .offset = MEMBER(follow),
                .help = "continue and show new events, until interrupted"},
        [SETTING_SINCE] = {.name = "since", .kind = SETTING_KIND_COUNT, .offset = MEMBER(since),
                .value = "REVISION", .maximum = UINT64_C(1) << 53,
                .help = "only events after this revision, as -o wide and -o json show it"},
        [SETTING_BATCH] = {.name = "batch", .letter = 'b', .kind = SETTING_KIND_FLAG, .offset = MEMBER(batch),
                .help = "print tables one after the other instead of refreshing the terminal"},
        [SETTING_ROUNDS] = {.name = "rounds", .letter = 'n', .kind = SETTING_KIND_COUNT,
                .offset = MEMBER(rounds), .value = "COUNT", .minimum = 1, .maximum = UINT64_C(1) << 32,
                .help = "end after COUNT tables"},
        [SETTING_INTERVAL] = {.name = "interval", .letter = 'i', .kind = SETTING_KIND_DURATION,
                .offset = MEMBER(interval), .value = "TIME", .minimum = 100 * 1000,
                .maximum = UINT64_C(3600) * SECOND, .help = "time between two tables (default: 1s)"},
        [SETTING_READ_ONLY] = {.name = "read-only", .letter = 'r', .kind = SETTING_KIND_FLAG,
                .offset = MEMBER(read_only), .help = "let nothing be written to it"},
        [SETTING_NAME] = {.name = "name", .kind = SETTING_KIND_TEXT, .offset = MEMBER(name), .value = "NAME",
                .help = "the name of the device (default: made from the name of the file)"},
        [SETTING_OFFSET] = {.name = "offset", .kind = SETTING_KIND_TEXT, .offset = MEMBER(offset),
                .value = "BYTES", .help = "where the disk begins in the file, in bytes (default: 0)"},
        [SETTING_ALL] = {.name = "all", .letter = 'a', .kind = SETTING_KIND_FLAG, .offset = MEMBER(all),
                .help = "everything that can be adopted"},
        [SETTING_NEW_NAME] = {.name = "name", .kind = SETTING_KIND_TEXT, .offset = MEMBER(name), .value = "NAME",
                .help = "the name for the one device (default: the name in its record)"},
        [SETTING_FOLDER] = {.name = "output-dir", .letter = 'o', .kind = SETTING_KIND_TEXT, .offset = MEMBER(folder),
                .value = "DIR", .completion = COMPLETE_FILE,
                .help = "write NAME.json for each device into DIR (default: one array to standard output)"},
        [SETTING_COLUMNS] = {.name = "columns", .letter = 'c', .kind = SETTING_KIND_TEXT, .offset = MEMBER(columns),
                .value = "[+]COLUMN,...", .completion = COMPLETE_COLUMN,
                .help = "the columns of the table, as in NAME,AGE,LABELS; with + in addition to the usual ones"},
        [SETTING_SORT] = {.name = "sort", .letter = 'S', .kind = SETTING_KIND_TEXT, .offset = MEMBER(sort),
                .value = "[-]COLUMN", .completion = COMPLETE_COLUMN,
                .help = "sort by this column, also one that is not shown; with - the largest first"},
        [SETTING_SIZE] = {.name = "size", .kind = SETTING_KIND_TEXT, .offset = MEMBER(size), .value = "SIZE",
                .help = "the size of the disk, like 10GiB or 10G (default: all of the file from the offset on)"},
        [SETTING_SET_LABEL] = {.name = "label", .letter = 'l', .kind = SETTING_KIND_LIST, .offset = MEMBER(labels),
                .value = "KEY=VALUE", .help = "give the device this label; may be repeated"},
        [SETTING_DIRECT_IO] = {.name = "direct-io", .kind = SETTING_KIND_CHOICE, .offset = MEMBER(direct_io),
                .value = "auto|on|off", .choices = direct_io_names, .completion = COMPLETE_CHOICE,
                .help = "whether I/O bypasses the page cache; auto does where the file allows it (default: auto)"},
        [SETTING_TEMPORARY] = {.name = "temporary", .kind = SETTING_KIND_FLAG, .offset = MEMBER(temporary),
                .help = "do not attach the file again after the next boot"},
        [SETTING_OPERATION] = {.name = "operation", .kind = SETTING_KIND_CHOICE, .offset = MEMBER(operation),
                .value = "OPERATION", .choices = operation_names, .completion = COMPLETE_CHOICE,
                .help = "only this operation: read, write, flush, discard, write-zeroes or other (default: all)"},
        [SETTING_BEFORE] = {.name = "before", .kind = SETTING_KIND_TEXT, .offset = MEMBER(before), .value = "FILE",
                .completion = COMPLETE_FILE,
                .help = "compare with the output of -o json that was written to FILE earlier; - is standard input"},
        [SETTING_USERS] = {.name = "users", .letter = 'u', .kind = SETTING_KIND_FLAG, .offset = MEMBER(users),
                .help = "search for the users of the disk: processes, mounts, swap, devices on it"},
        [SETTING_FILESYSTEM_TYPE] = {.name = "type", .kind = SETTING_KIND_CHOICE, .offset = MEMBER(filesystem_type),
                .value = "TYPE", .choices = filesystem_type_names, .completion = COMPLETE_CHOICE,
                .help = "the file system to make: ext4 or xfs; has to be given"},
        [SETTING_REMAKE] = {.name = "remake", .kind = SETTING_KIND_TEXT, .offset = MEMBER(remake), .value = "UUID",
                .help = "make the file system again that was begun with this UUID and not finished, as describe "
                        "shows it, over what is on the disk"},
        [SETTING_NO_EXEC] = {.name = "no-exec", .kind = SETTING_KIND_FLAG, .offset = MEMBER(no_exec),
                .help = "do not let programs be executed from it"},
        [SETTING_HOLDER] = {.name = "holder", .kind = SETTING_KIND_TEXT, .offset = MEMBER(holder), .value = "WORD",
                .help = "for this holder: the mount stays until its last holder has ended it"},
        [SETTING_ALL_HOLDERS] = {.name = "all-holders", .kind = SETTING_KIND_FLAG, .offset = MEMBER(all_holders),
                .help = "end the mount for all holders, and in the containers that have it"},
        [SETTING_MOUNTED] = {.name = "mount", .letter = 'm', .kind = SETTING_KIND_FLAG, .offset = MEMBER(mounted),
                .help = "deliver the file system that 'ublkctl mount' has mounted, and not the node"},
        [SETTING_PID] = {.name = "pid", .kind = SETTING_KIND_COUNT, .offset = MEMBER(pid), .value = "PID",
                .minimum = 1, .maximum = UINT64_C(1) << 22,
                .help = "into the container of this process, and not into that of ublkctl; for administrators"},
        [SETTING_CANCEL] = {.name = "cancel", .kind = SETTING_KIND_FLAG, .offset = MEMBER(cancel),
                .help = "end the action that is under way"},
};
/* clang-format on */
static_assert(ARRAY_SIZE(settings_table) == _SETTING_MAX, "every option is described");
static_assert(_SETTING_MAX <= 64, "a mask holds them all");

const struct setting *setting_get(enum setting_id id)
{
        assert(id < _SETTING_MAX);
        return &settings_table[id];
}

static const char *environment(const char *name)
{
        const char *value = getenv(name);

        return value && *value ? value : NULL;
}

void settings_default(struct settings *ret)
{
        const char *path = environment("UBLKD_SOCKET");

        *ret = (struct settings){
                .socket = path ? path : default_socket,
                .url = environment("UBLKD_URL"),
                .token_file = environment("UBLKD_TOKEN_FILE"),
                .timeout = 60 * SECOND,
                .interval = SECOND,
        };
}

static int parse_count(const char *text, uint64_t *ret)
{
        return strspn(text, "0123456789") == strlen(text) ? parse_bytes(text, ret) : -EINVAL;
}

static enum exit_status usage_fault(
        const char *who, const struct setting *setting, const char *text, const char *wanted)
{
        fprintf(stderr, "%s: --%s %s: %s.\n", who, setting->name, text, wanted);
        return STATUS_USAGE;
}

static void format_number(bool duration, uint64_t value, char ret[static DURATION_SIZE])
{
        if (duration)
                format_duration(value, ret);
        else
                snprintf(ret, DURATION_SIZE, "%" PRIu64, value);
}

static enum exit_status store_number(
        const struct setting *setting, const char *who, const char *text, uint64_t *ret)
{
        bool duration = setting->kind == SETTING_KIND_DURATION;
        char least[DURATION_SIZE], most[DURATION_SIZE], wanted[96];
        uint64_t value;

        if ((duration ? parse_duration(text, &value) : parse_count(text, &value)) < 0)
                return usage_fault(who, setting, text,
                        duration ? "give a time with its unit, like 500ms, 30s or 2min" : "give a number");
        if (value < setting->minimum || value > setting->maximum) {
                format_number(duration, setting->minimum, least);
                format_number(duration, setting->maximum, most);
                snprintf(wanted, sizeof(wanted), "give %s from %s to %s", duration ? "a time" : "a number",
                        least, most);
                return usage_fault(who, setting, text, wanted);
        }
        *ret = value;
        return STATUS_OK;
}

static enum exit_status store_choice(
        const struct setting *setting, const char *who, const char *text, int *ret)
{
        for (int i = 0; setting->choices[i]; i++)
                if (strcmp(setting->choices[i], text) == 0) {
                        *ret = i;
                        return STATUS_OK;
                }
        fprintf(stderr, "%s: --%s %s is unknown; give one of", who, setting->name, text);
        for (size_t i = 0; setting->choices[i]; i++)
                fprintf(stderr, "%s %s", i ? "," : "", setting->choices[i]);
        fputs(".\n", stderr);
        return STATUS_USAGE;
}

static enum exit_status store_item(
        const struct setting *setting, const char *who, const char *text, struct text_list *list)
{
        if (list->count == TEXT_LIST_MAX)
                return usage_fault(who, setting, text, "given too often");
        list->items[list->count++] = text;
        return STATUS_OK;
}

static enum exit_status store(
        struct settings *settings, enum setting_id id, const char *who, const char *text)
{
        const struct setting *setting = setting_get(id);
        void *place = (char *)settings + setting->offset;

        settings->given |= SETTING_BIT(id);
        switch (setting->kind) {
        case SETTING_KIND_FLAG:
                *(bool *)place = true;
                return STATUS_OK;
        case SETTING_KIND_TEXT:
                *(const char **)place = text;
                return STATUS_OK;
        case SETTING_KIND_LIST:
                return store_item(setting, who, text, place);
        case SETTING_KIND_DURATION:
        case SETTING_KIND_COUNT:
                return store_number(setting, who, text, place);
        case SETTING_KIND_CHOICE:
                return store_choice(setting, who, text, place);
        default:
                assert(false);
                return STATUS_USAGE;
        }
}

/* The tables of getopt_long(). */
struct parser_tables {
        struct option options[_SETTING_MAX + 1];
        char letters[2 + 2 * _SETTING_MAX + 1];
        enum setting_id by_letter[128];
};

enum { LONG_OPTION_FIRST = 256 };

static void make_tables(uint64_t mask, bool leading, struct parser_tables *ret)
{
        size_t count = 0;
        char *letter = ret->letters;

        *ret = (struct parser_tables){};
        /* "+": stop at the first argument; ":": settings_parse() prints the faults */
        if (leading)
                *letter++ = '+';
        *letter++ = ':';
        for (int id = 0; id < _SETTING_MAX; id++) {
                const struct setting *setting = setting_get(id);

                if (!(mask & SETTING_BIT(id)))
                        continue;
                ret->options[count++] = (struct option){.name = setting->name,
                        .has_arg = setting->value ? required_argument : no_argument,
                        .val = LONG_OPTION_FIRST + id};
                if (!setting->letter)
                        continue;
                ret->by_letter[(unsigned char)setting->letter] = id;
                *letter++ = setting->letter;
                if (setting->value)
                        *letter++ = ':';
        }
        *letter = '\0';
}

/* Options that a verb had once, with the options that replaced them: the --force of an old script must not
 * get another meaning. */
static const struct {
        const char *word;
        enum setting_id now; /* a verb that has this option gets the sentence */
        const char *sentence;
} replaced[] = {
        {"--force", SETTING_PRUNE_IN_USE,
         "--force is not an option of this verb: use --allow-shrink to shrink a disk, and "
                "--prune-in-use NAME to remove a device whose disk is in use"        },
        {"--force", SETTING_ALLOW_SHRINK,
         "--force is not an option of this verb: use --allow-shrink to shrink a disk"},
};

/* Return the sentence; NULL: the word was never an option. */
static const char *what_replaced(uint64_t mask, const char *word)
{
        for (size_t i = 0; i < ARRAY_SIZE(replaced); i++)
                if ((mask & SETTING_BIT(replaced[i].now)) && strcmp(replaced[i].word, word) == 0)
                        return replaced[i].sentence;
        return NULL;
}

static enum exit_status refuse(const char *who, uint64_t mask, int result, const char *word)
{
        const char *fault = result == ':' ? "needs a value" : "is not an option of this verb";

        if (what_replaced(mask, word)) {
                fprintf(stderr, "%s: %s; try '%s --help'.\n", who, what_replaced(mask, word), who);
                return STATUS_USAGE;
        }
        if (optopt > 0 && optopt < LONG_OPTION_FIRST)
                fprintf(stderr, "%s: -%c %s; try '%s --help'.\n", who, optopt, fault, who);
        else
                fprintf(stderr, "%s: %s %s; try '%s --help'.\n", who, word, fault, who);
        return STATUS_USAGE;
}

enum exit_status settings_parse(struct settings *settings, uint64_t mask, const char *who, bool leading,
        int argc, char *argv[], int *ret_first)
{
        struct parser_tables tables;
        enum exit_status status = STATUS_OK;
        int result;

        make_tables(mask, leading, &tables);
        optind = 0; /* glibc: start again, with another set of options */
        while (status == STATUS_OK
                && (result = getopt_long(argc, argv, tables.letters, tables.options, NULL)) >= 0) {
                if (result == ':' || result == '?')
                        return refuse(who, mask, result, argv[optind - 1]);
                status = store(settings,
                        result >= LONG_OPTION_FIRST ? (enum setting_id)(result - LONG_OPTION_FIRST)
                                                    : tables.by_letter[result],
                        who, optarg);
        }
        *ret_first = optind;
        return status;
}
