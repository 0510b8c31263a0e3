/* SPDX-License-Identifier: MIT */
/* The record beside the region: what is written is read back, no other text is accepted as a record, and the
 * database's revisions decide which of two records is newer. */
#include "tests/unit/check.h"
#include "ublkd/records/record_file.h"

#include "ublkd/store/device_record.h"

#include <errno.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";
static const char boot[] = "11111111-2222-3333-4444-555555555555";
static const char spec[] = "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\",\"labels\":{"
                           "\"a\":\"\xc3\xa4\"}}";

static struct record_file sample(void)
{
        struct record_file file = {
                .record = {.generation = 999999999999999,
                           .stored_revision = 17,
                           .epoch = 65535,
                           .restart = UINT32_MAX,
                           .restart_refused = 3,
                           .number = 1048575,
                           .deleting = true,
                           .forced = true,
                           .recover_requested = true,
                           .created_at = 1790000000123456},
                .removed = true,
        };

        file.record.name = strdup("data");
        strcpy(file.record.uid, uid);
        strcpy(file.record.held_boot, boot);
        strcpy(file.boot, boot);
        strcpy(file.database, "0123456789abcdef0123456789abcdef");
        file.text = strdup(spec);
        CHECK_INT(device_record_parse(&file.record, spec), 0);
        return file;
}

static void check_equal(const struct record_file *got, const struct record_file *wanted)
{
        CHECK_STR(got->record.name, wanted->record.name);
        CHECK_STR(got->record.uid, wanted->record.uid);
        CHECK_STR(got->record.held_boot, wanted->record.held_boot);
        CHECK_STR(got->boot, wanted->boot);
        CHECK_STR(got->database, wanted->database);
        CHECK_STR(got->text, wanted->text);
        CHECK_INT(got->removed, wanted->removed);
        CHECK(got->record.generation == wanted->record.generation);
        CHECK(got->record.stored_revision == wanted->record.stored_revision);
        CHECK_INT(got->record.epoch, wanted->record.epoch);
        CHECK_INT(got->record.restart, wanted->record.restart);
        CHECK_INT(got->record.restart_refused, wanted->record.restart_refused);
        CHECK_INT(got->record.number, wanted->record.number);
        CHECK_INT(got->record.deleting, wanted->record.deleting);
        CHECK_INT(got->record.forced, wanted->record.forced);
        CHECK_INT(got->record.recover_requested, wanted->record.recover_requested);
        CHECK(got->record.created_at == wanted->record.created_at);
        CHECK(got->record.spec && device_spec_equal(got->record.spec, wanted->record.spec));
}

static void test_round_trip(void)
{
        _cleanup_record_file_ struct record_file file = sample(), got = {};
        _cleanup_free_ char *text = NULL;

        CHECK_INT(record_file_make(&file, &text), 0);
        CHECK_INT(record_file_parse(text, uid, &got), 0);
        check_equal(&got, &file);
        record_file_clear(&got);
        free(text);
        file.record.number = -1;
        file.record.epoch = 1;
        file.removed = file.record.deleting = false;
        CHECK_INT(record_file_make(&file, &text), 0);
        CHECK_INT(record_file_parse(text, uid, &got), 0);
        check_equal(&got, &file);
}

static void test_torn_at_any_byte(void)
{
        _cleanup_record_file_ struct record_file file = sample(), got = {};
        _cleanup_free_ char *text = NULL;
        size_t length;

        CHECK_INT(record_file_make(&file, &text), 0);
        length = strlen(text);
        for (size_t i = 0; i < length; i++) {
                _cleanup_free_ char *torn = strndup(text, i);

                CHECK_INT(record_file_parse(torn, uid, &got), -EBADMSG);
        }
}

/* The document with one member replaced (NULL: without it). */
static int parse_with(const char *name, const char *value)
{
        _cleanup_record_file_ struct record_file file = sample(), got = {};
        _cleanup_free_ char *text = NULL;
        char *changed;
        cJSON *document;
        int r;

        CHECK_INT(record_file_make(&file, &text), 0);
        document = cJSON_Parse(text);
        cJSON_DeleteItemFromObjectCaseSensitive(document, name);
        if (value)
                cJSON_AddItemToObject(document, name, cJSON_Parse(value));
        changed = cJSON_PrintUnformatted(document);
        r = record_file_parse(changed, uid, &got);
        cJSON_free(changed);
        cJSON_Delete(document);
        return r;
}

static void test_invalid_records(void)
{
        static const struct {
                const char *name, *value;
        } table[] = {
                {"version",    NULL                                                      },
                {"version",    "\"1\""                                                   },
                {"name",       NULL                                                      },
                {"name",       "null"                                                    },
                {"name",       "\"other\""                                               }, /* not that of its spec */
                {"name",       "\"../data\""                                             },
                {"uid",        "\"1b7a1c9e-0000-4000-8000-1234567890ab\""                },
                {"uid",        "\"0b7a1c9e-0000-4000-8000-1234567890abcdef\""            },
                {"generation", "0"                                                       },
                {"generation", "1.5"                                                     },
                {"generation", "1e300"                                                   },
                {"generation", "\"1\""                                                   },
                {"epoch",      "0"                                                       },
                {"epoch",      "65536"                                                   },
                {"restart",    "-1"                                                      },
                {"number",     "-2"                                                      },
                {"number",     "99999999"                                                },
                {"number",     "null"                                                    },
                {"deleting",   "1"                                                       },
                {"heldBoot",   "7"                                                       },
                {"spec",       NULL                                                      },
                {"spec",       "[]"                                                      },
                {"spec",       "{\"name\":\"data\",\"target\":{\"type\":\"unheard-of\"}}"},
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (!CHECK_INT(parse_with(table[i].name, table[i].value), -EBADMSG))
                        fprintf(stderr, "it was %s: %s\n", table[i].name, table[i].value);
        CHECK_INT(parse_with("ofALaterVersion", "1"), 0);
}

static void test_another_version(void)
{
        CHECK_INT(parse_with("version", "2"), -EPROTONOSUPPORT);
        CHECK_INT(parse_with("version", "0"), -EPROTONOSUPPORT);
}

static void test_another_uid(void)
{
        _cleanup_record_file_ struct record_file file = sample(), got = {};
        _cleanup_free_ char *text = NULL;

        CHECK_INT(record_file_make(&file, &text), 0);
        CHECK_INT(record_file_parse(text, "1b7a1c9e-0000-4000-8000-1234567890ab", &got), -EBADMSG);
}

/* Both crashes: the database has it and the file not, and (of an older copy) the other way round. */
static void test_which_is_newer(void)
{
        _cleanup_record_file_ struct record_file file = sample(), other = sample();
        struct store_stamp same = {.revision = 100}, another = {.database = "ff", .revision = 100};
        struct device_record *record = &other.record;

        strcpy(same.database, file.database);
        file.removed = file.record.deleting = record->deleting = false;
        CHECK_INT(record_file_compare(NULL, boot, record, &same, false), RECORD_CURRENT);
        CHECK_INT(record_file_compare(NULL, boot, record, &same, true), RECORD_REMOVED);
        CHECK_INT(record_file_compare(&file, "another boot", record, &same, false), RECORD_CURRENT);
        CHECK_INT(record_file_compare(&file, boot, record, &same, true), RECORD_CURRENT);
        CHECK_INT(record_file_compare(&file, boot, record, &another, true), RECORD_CURRENT);
        record->epoch--;
        record->stored_revision--;
        CHECK_INT(record_file_compare(&file, boot, record, &same, false), RECORD_OUTDATED);
        record->stored_revision += 2; /* a crash before the file was written */
        CHECK_INT(record_file_compare(&file, boot, record, &same, false), RECORD_CURRENT);
        CHECK_INT(record_file_compare(&file, boot, record, &another, false), RECORD_OUTDATED);
        record->epoch++;
        record->number = -1; /* one that was given out since */
        CHECK_INT(record_file_compare(&file, boot, record, &another, false), RECORD_OUTDATED);
        record->number = file.record.number;
        file.removed = true;
        file.record.stored_revision = record->stored_revision + 1;
        CHECK_INT(record_file_compare(&file, boot, record, &same, false), RECORD_REMOVED);
}

int main(void)
{
        test_round_trip();
        test_torn_at_any_byte();
        test_invalid_records();
        test_another_version();
        test_another_uid();
        test_which_is_newer();
        return check_report();
}
