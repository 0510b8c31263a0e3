/* SPDX-License-Identifier: MIT */
/* The record of a device as a JSON document. The table has one row for each member of the document. */
#include "ublkd/records/record_file.h"

#include "ublkd/store/device_record.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum member_kind {
        MEMBER_TEXT,   /* char[size] */
        MEMBER_STRING, /* char *, owned; NULL is null */
        MEMBER_BOOL,
        MEMBER_NUMBER, /* an integer of `size` bytes, unsigned unless `minimum` is negative */
        _MEMBER_KIND_MAX
};

struct member {
        const char *name;
        enum member_kind kind;
        bool optional; /* added later: an older document lacks it, which means zero */
        size_t offset, size;
        double minimum, maximum; /* of a number */
};

#define EXACT_MAX 9007199254740991.0 /* 2^53 - 1: the largest integer that JSON keeps exactly */
#define AT(field)                                                                                            \
        .offset = offsetof(struct record_file, field), .size = sizeof(((struct record_file *)NULL)->field)

/* clang-format off */
static const struct member members[] = {
        {.name = "name", .kind = MEMBER_STRING, AT(record.name)},
        {.name = "uid", .kind = MEMBER_TEXT, AT(record.uid)},
        {.name = "boot", .kind = MEMBER_TEXT, AT(boot)},
        {.name = "database", .kind = MEMBER_TEXT, AT(database)},
        {.name = "removed", .kind = MEMBER_BOOL, AT(removed)},
        {.name = "generation", .kind = MEMBER_NUMBER, AT(record.generation), .minimum = 1, .maximum = EXACT_MAX},
        {.name = "revision", .kind = MEMBER_NUMBER, AT(record.stored_revision), .minimum = 0, .maximum = EXACT_MAX},
        {.name = "epoch", .kind = MEMBER_NUMBER, AT(record.epoch), .minimum = 1, .maximum = UINT16_MAX},
        {.name = "restart", .kind = MEMBER_NUMBER, AT(record.restart), .minimum = 0, .maximum = UINT32_MAX},
        {.name = "restartRefused", .kind = MEMBER_NUMBER, AT(record.restart_refused), .minimum = 0, .maximum = UINT32_MAX},
        {.name = "number", .kind = MEMBER_NUMBER, AT(record.number), .minimum = -1, .maximum = DEVICE_NUMBER_MAX},
        {.name = "createdAt", .kind = MEMBER_NUMBER, AT(record.created_at), .minimum = 0, .maximum = EXACT_MAX},
        {.name = "deleting", .kind = MEMBER_BOOL, AT(record.deleting)},
        {.name = "forced", .kind = MEMBER_BOOL, AT(record.forced)},
        {.name = "recoverRequested", .kind = MEMBER_BOOL, AT(record.recover_requested)},
        {.name = "heldBoot", .kind = MEMBER_TEXT, AT(record.held_boot)},
        {.name = "backingBasis", .kind = MEMBER_NUMBER, AT(record.backing.basis), .minimum = 0, .maximum = _BACKING_BASIS_MAX - 1},
        {.name = "backingIsDisk", .kind = MEMBER_BOOL, AT(record.backing.is_disk)},
        {.name = "backingNow", .kind = MEMBER_TEXT, AT(record.backing.boot)},
        {.name = "backingLasting", .kind = MEMBER_TEXT, AT(record.backing.lasting)},
        {.name = "backingBoot", .kind = MEMBER_TEXT, AT(record.backing_boot)},
        {.name = "source", .kind = MEMBER_STRING, .optional = true, AT(record.source)},
        {.name = "tenant", .kind = MEMBER_TEXT, .optional = true, AT(record.tenant)},
        {.name = "filesystem", .kind = MEMBER_TEXT, .optional = true, AT(record.filesystem)},
        {.name = "mountHolders", .kind = MEMBER_TEXT, .optional = true, AT(record.mount_holders)},
};
/* clang-format on */

/* ---- writing ---- */

static cJSON *text_to_json(const void *at, const struct member *member _unused_)
{
        return cJSON_CreateString(at);
}

static cJSON *string_to_json(const void *at, const struct member *member _unused_)
{
        const char *string = *(char *const *)at;

        return string ? cJSON_CreateString(string) : cJSON_CreateNull();
}

static cJSON *bool_to_json(const void *at, const struct member *member _unused_)
{
        return cJSON_CreateBool(*(const bool *)at);
}

static cJSON *number_to_json(const void *at, const struct member *member)
{
        uint64_t value = 0;

        if (member->minimum < 0)
                return cJSON_CreateNumber(*(const int *)at);
        memcpy(&value, at, member->size); /* little-endian */
        return cJSON_CreateNumber((double)value);
}

static bool add_member(cJSON *document, const struct record_file *file, const struct member *member)
{
        static cJSON *(*const makers[_MEMBER_KIND_MAX])(const void *, const struct member *) = {
                [MEMBER_TEXT] = text_to_json,
                [MEMBER_STRING] = string_to_json,
                [MEMBER_BOOL] = bool_to_json,
                [MEMBER_NUMBER] = number_to_json,
        };
        cJSON *item = makers[member->kind]((const char *)file + member->offset, member);

        if (item && cJSON_AddItemToObject(document, member->name, item))
                return true;
        cJSON_Delete(item);
        return false;
}

static bool add_spec(cJSON *document, const struct record_file *file)
{
        const struct device_spec *spec = file->record.spec;
        cJSON *item = spec ? cJSON_Duplicate(spec->document, true) : cJSON_Parse(file->text);

        if (item && cJSON_AddItemToObject(document, "spec", item))
                return true;
        cJSON_Delete(item);
        return false;
}

/* An older document has none, and an older ublkd does not read such a spec. */
static bool add_stores(cJSON *document, const struct device_record *record)
{
        _cleanup_free_ char *text = NULL;

        return record_stores_print(record->stores, &text) >= 0
               && cJSON_AddStringToObject(document, "stores", text);
}

int record_file_make(const struct record_file *file, char **ret)
{
        cJSON *document = cJSON_CreateObject();
        bool good = document && cJSON_AddNumberToObject(document, "version", RECORD_FILE_VERSION);
        char *text = NULL;

        for (size_t i = 0; good && i < ARRAY_SIZE(members); i++)
                good = add_member(document, file, &members[i]);
        if (good && add_stores(document, &file->record) && add_spec(document, file))
                text = cJSON_PrintUnformatted(document);
        cJSON_Delete(document);
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}

/* ---- reading ---- */

static int json_to_text(const cJSON *item, const struct member *member, void *at)
{
        if (!cJSON_IsString(item) || strlen(item->valuestring) >= member->size)
                return -EBADMSG;
        strcpy(at, item->valuestring);
        return 0;
}

static int json_to_string(const cJSON *item, const struct member *member _unused_, void *at)
{
        char *copy;

        if (cJSON_IsNull(item))
                return 0;
        if (!cJSON_IsString(item))
                return -EBADMSG;
        copy = strdup(item->valuestring);
        *(char **)at = copy;
        return copy ? 0 : -ENOMEM;
}

static int json_to_bool(const cJSON *item, const struct member *member _unused_, void *at)
{
        if (!cJSON_IsBool(item))
                return -EBADMSG;
        *(bool *)at = cJSON_IsTrue(item);
        return 0;
}

static int json_to_number(const cJSON *item, const struct member *member, void *at)
{
        double number = cJSON_IsNumber(item) ? item->valuedouble : member->minimum - 1;
        int64_t value;

        if (!(number >= member->minimum && number <= member->maximum) || number != (double)(int64_t)number)
                return -EBADMSG;
        value = (int64_t)number;
        memcpy(at, &value, member->size); /* little-endian */
        return 0;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a short integer is the beginning of a long one");

static int read_member(const cJSON *document, const struct member *member, struct record_file *file)
{
        static int (*const readers[_MEMBER_KIND_MAX])(const cJSON *, const struct member *, void *) = {
                [MEMBER_TEXT] = json_to_text,
                [MEMBER_STRING] = json_to_string,
                [MEMBER_BOOL] = json_to_bool,
                [MEMBER_NUMBER] = json_to_number,
        };
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(document, member->name);

        if (!item)
                return member->optional ? 0 : -EBADMSG;
        return readers[member->kind](item, member, (char *)file + member->offset);
}

static int read_version(const cJSON *document)
{
        const cJSON *version = cJSON_GetObjectItemCaseSensitive(document, "version");

        if (!cJSON_IsNumber(version))
                return -EBADMSG;
        return version->valuedouble == RECORD_FILE_VERSION ? 0 : -EPROTONOSUPPORT;
}

static int read_spec(const cJSON *document, struct record_file *file)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(document, "spec");
        int r;

        if (!cJSON_IsObject(spec))
                return -EBADMSG;
        file->text = cJSON_PrintUnformatted(spec);
        if (!file->text)
                return -ENOMEM;
        r = device_record_parse(&file->record, file->text);
        return r >= 0 && file->record.quarantine ? -EBADMSG : r;
}

static int read_stores(const cJSON *document, struct device_record *record)
{
        const cJSON *stores = cJSON_GetObjectItemCaseSensitive(document, "stores");
        int r;

        if (!stores)
                return 0;
        r = cJSON_IsString(stores) ? record_stores_parse(stores->valuestring, &record->stores) : -EBADMSG;
        return r >= 0 && record_stores_are_unreadable(record->stores) ? -EBADMSG : r;
}

static int read_document(const cJSON *document, const char *uid, struct record_file *file)
{
        int r = read_version(document);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(members); i++)
                r = read_member(document, &members[i], file);
        if (r >= 0)
                r = read_stores(document, &file->record);
        if (r < 0)
                return r;
        if (strcmp(file->record.uid, uid) != 0 || !file->record.name
                || !device_name_is_valid(file->record.name))
                return -EBADMSG;
        file->record.revision = file->record.stored_revision;
        return read_spec(document, file);
}

int record_file_parse(const char *text, const char *uid, struct record_file *ret)
{
        _cleanup_record_file_ struct record_file file = {};
        cJSON *document = cJSON_Parse(text);
        int r = document ? read_document(document, uid, &file) : -EBADMSG;

        cJSON_Delete(document);
        if (r < 0)
                return r;
        *ret = file;
        file = (struct record_file){};
        return 0;
}

void record_file_clear(struct record_file *file)
{
        device_record_clear(&file->record);
        free(file->text);
        *file = (struct record_file){};
}

/* ---- older and newer ---- */

/* Compare the fields that would damage a disk if ublkd used an older value from the database. */
static bool is_alike(const struct record_file *file, const struct device_record *record)
{
        const struct device_record *other = &file->record;

        return !file->removed && device_record_has_source(other, record->source)
               && other->generation == record->generation && other->epoch == record->epoch
               && other->restart == record->restart && other->number == record->number
               && other->deleting == record->deleting && strcmp(other->name, record->name) == 0
               && backing_identity_equal(&other->backing, &record->backing)
               && record_stores_equal(other->stores, record->stores) && record->spec
               && device_spec_equal(other->spec, record->spec);
}

enum record_age record_file_compare(const struct record_file *file, const char *boot,
        const struct device_record *record, const struct store_stamp *stamp, bool behind)
{
        if (!file || strcmp(file->boot, boot) != 0)
                return behind ? RECORD_REMOVED : RECORD_CURRENT;
        if (is_alike(file, record))
                return RECORD_CURRENT;
        /* Revisions can be compared only within one database. */
        if (strcmp(file->database, stamp->database) == 0
                && file->record.stored_revision <= record->stored_revision)
                return RECORD_CURRENT;
        return file->removed ? RECORD_REMOVED : RECORD_OUTDATED;
}
