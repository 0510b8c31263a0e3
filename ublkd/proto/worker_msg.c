/* SPDX-License-Identifier: MIT */
/* Messages between supervisor and worker: one table of fields per type, both to write and to read.
 *
 * What comes in is not trusted: every field is checked for its type and range, and only then is anything
 * kept. */
#include "ublkd/proto/worker_msg.h"

#include "ublkd/proto/claims_json.h"
#include "ublkd/proto/json_u64.h"

#include "ublkd/base/utf8.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_util.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum field_kind {
        FIELD_BOOL,
        FIELD_INT, /* int */
        FIELD_U16,
        FIELD_U32,
        FIELD_U64,           /* as a decimal string */
        FIELD_STRING,        /* char *, owned */
        FIELD_STAGE,         /* enum worker_stage, by name */
        FIELD_PROBLEMS,      /* struct problem_list */
        FIELD_CLAIMS,        /* struct backing_claims; in several fields of the message, see claims_json.h */
        FIELD_WANTED_STORES, /* struct store_list, of CONFIG */
        FIELD_FOUND_STORES,  /* the same, of BACKING */
        _FIELD_KIND_MAX
};

struct field {
        const char *name;
        enum field_kind kind;
        size_t offset;     /* into struct worker_msg */
        bool optional;     /* a string that may be NULL; a field that older programs do not send */
        int64_t min, max;  /* FIELD_INT, FIELD_U16, FIELD_U32 */
        size_t length_max; /* FIELD_STRING, bytes */
};

enum {
        UID_LENGTH_MAX = 64,
        VERSION_LENGTH_MAX = WORKER_VERSION_SIZE - 1,
        NUMBER_MAX = (1 << 20) - 1,
        QUEUE_CPUS_MAX = WORKER_MSG_SIZE_MAX / 2,
        TOKEN_LENGTH_MAX = BACKING_TOKEN_SIZE - 1,
        NESTING_MAX = 8, /* of the brackets in a message; the deepest of ours has 3 */
        /* Sizes as text, with all characters that JSON has to escape. */
        PROBLEMS_TEXT_MAX = 18 * 1024, /* more than that of a list is cut off */
        PROBLEM_NAMES_MAX = 64,        /* of one problem, without its three strings */
        CLAIM_TEXT_MAX = 2 * BACKING_KEY_MAX + 128,
        CLAIMS_TEXT_MAX = (BACKING_CLAIMS_MAX + 1) * CLAIM_TEXT_MAX, /* the first is there twice */
        TOKEN_TEXT_MAX = 6 * TOKEN_LENGTH_MAX,
        HELLO_TEXT_MAX = 6 * (UID_LENGTH_MAX + VERSION_LENGTH_MAX),
        STORE_TEXT_MAX = 2 * TOKEN_TEXT_MAX + 256,
        NAMES_MAX = 1024, /* of all fields of a message, and their numbers */
};
static_assert(CLAIMS_TEXT_MAX + PROBLEMS_TEXT_MAX + 2 * WORKER_STABLE_PATH_MAX + NAMES_MAX
                      <= WORKER_REPORT_SIZE_MAX,
        "the largest PARAMS can be sent");
static_assert(HELLO_TEXT_MAX + NAMES_MAX <= WORKER_SHORT_SIZE_MAX, "the largest HELLO can be sent");
static_assert(2 * TOKEN_TEXT_MAX + NAMES_MAX <= WORKER_SHORT_SIZE_MAX,
        "the largest BACKING without a list can be sent to an older ublkd, which reads no more");
static_assert(STORE_LIST_MAX * STORE_TEXT_MAX + NAMES_MAX <= WORKER_REPORT_SIZE_MAX,
        "the largest BACKING can be sent");

#define AT(member) offsetof(struct worker_msg, member)

/* clang-format off */
static const struct field config_fields[] = {
        {.name = "name", .kind = FIELD_STRING, .offset = AT(config.name), .length_max = WORKER_NAME_MAX},
        {.name = "uid", .kind = FIELD_STRING, .offset = AT(config.uid), .length_max = UID_LENGTH_MAX},
        {.name = "hideName", .kind = FIELD_BOOL, .offset = AT(config.hide_name), .optional = true},
        {.name = "epoch", .kind = FIELD_U16, .offset = AT(config.epoch), .max = UINT16_MAX},
        {.name = "restart", .kind = FIELD_U32, .offset = AT(config.restart), .optional = true, .max = UINT32_MAX},
        {.name = "spec", .kind = FIELD_STRING, .offset = AT(config.spec), .length_max = WORKER_MSG_SIZE_MAX},
        {.name = "queues", .kind = FIELD_U16, .offset = AT(config.queues), .min = 1, .max = UINT16_MAX},
        {.name = "queueDepth", .kind = FIELD_U16, .offset = AT(config.queue_depth), .min = 1, .max = UINT16_MAX},
        {.name = "maxIoSize", .kind = FIELD_U32, .offset = AT(config.max_io_size), .max = UINT32_MAX},
        {.name = "startedAt", .kind = FIELD_U64, .offset = AT(config.started_at), .optional = true},
        {.name = "reissue", .kind = FIELD_BOOL, .offset = AT(config.reissue)},
        {.name = "lock", .kind = FIELD_INT, .offset = AT(config.lock), .optional = true, .max = _WORKER_LOCK_MAX - 1},
        {.name = "exists", .kind = FIELD_BOOL, .offset = AT(config.exists), .optional = true},
        {.name = "expectedBoot", .kind = FIELD_STRING, .offset = AT(config.expected_boot),
         .optional = true, .length_max = TOKEN_LENGTH_MAX},
        {.name = "expectedLasting", .kind = FIELD_STRING, .offset = AT(config.expected_lasting),
         .optional = true, .length_max = TOKEN_LENGTH_MAX},
        {.name = "expectedBasis", .kind = FIELD_INT, .offset = AT(config.expected_basis),
         .optional = true, .max = _BACKING_BASIS_MAX - 1},
        {.name = "expectedIsDisk", .kind = FIELD_BOOL, .offset = AT(config.expected_is_disk), .optional = true},
        {.name = "expectedInThisBoot", .kind = FIELD_BOOL, .offset = AT(config.expected_in_this_boot), .optional = true},
        {.name = "expectedServed", .kind = FIELD_BOOL, .offset = AT(config.expected_served), .optional = true},
        {.name = "shared", .kind = FIELD_BOOL, .offset = AT(config.shared), .optional = true},
        {.name = "hasData", .kind = FIELD_BOOL, .offset = AT(config.has_data), .optional = true},
        {.name = "storeUser", .kind = FIELD_U32, .offset = AT(config.store_user), .optional = true, .max = UINT32_MAX - 1},
        {.name = "stores", .kind = FIELD_WANTED_STORES, .offset = AT(config.stores), .optional = true},
};

static const struct field backing_fields[] = {
        {.name = "boot", .kind = FIELD_STRING, .offset = AT(backing.boot), .length_max = TOKEN_LENGTH_MAX},
        {.name = "lasting", .kind = FIELD_STRING, .offset = AT(backing.lasting), .length_max = TOKEN_LENGTH_MAX},
        {.name = "basis", .kind = FIELD_INT, .offset = AT(backing.basis), .max = _BACKING_BASIS_MAX - 1},
        {.name = "isDisk", .kind = FIELD_BOOL, .offset = AT(backing.is_disk)},
        {.name = "major", .kind = FIELD_U32, .offset = AT(backing.major), .max = UINT32_MAX},
        {.name = "minor", .kind = FIELD_U32, .offset = AT(backing.minor), .max = UINT32_MAX},
        {.name = "inode", .kind = FIELD_U64, .offset = AT(backing.inode)},
        {.name = "claimed", .kind = FIELD_BOOL, .offset = AT(backing.claimed)},
        {.name = "stores", .kind = FIELD_FOUND_STORES, .offset = AT(backing.stores), .optional = true},
};
/* clang-format on */

static const struct field notice_fields[] = {
        {.name = "problems", .kind = FIELD_PROBLEMS, .offset = AT(notice)},
};

static const struct field go_fields[] = {
        {.name = "queueCpus",
         .kind = FIELD_STRING,
         .offset = AT(go.queue_cpus),
         .optional = true,
         .length_max = QUEUE_CPUS_MAX},
        {.name = "number", .kind = FIELD_INT, .offset = AT(go.number), .max = NUMBER_MAX},
        {.name = "dataPath",
         .kind = FIELD_INT,
         .offset = AT(go.route.path),
         .optional = true,
         .max = _DATA_PATH_MAX - 1},
        {.name = "autoBuffers", .kind = FIELD_BOOL, .offset = AT(go.route.auto_buffers), .optional = true},
        {.name = "batch", .kind = FIELD_BOOL, .offset = AT(go.route.batch), .optional = true},
        {.name = "user", .kind = FIELD_U32, .offset = AT(go.user), .optional = true, .max = UINT32_MAX - 1},
};

static const struct field hello_fields[] = {
        {.name = "startedAt", .kind = FIELD_U64, .offset = AT(hello.started_at), .optional = true},
        {.name = "protocol", .kind = FIELD_INT, .offset = AT(hello.protocol), .max = INT_MAX},
        {.name = "uid", .kind = FIELD_STRING, .offset = AT(hello.uid), .length_max = UID_LENGTH_MAX},
        {.name = "version",
         .kind = FIELD_STRING,
         .offset = AT(hello.version),
         .length_max = VERSION_LENGTH_MAX},
        {.name = "epoch", .kind = FIELD_U16, .offset = AT(hello.epoch), .max = UINT16_MAX},
        {.name = "restart",
         .kind = FIELD_U32,
         .offset = AT(hello.restart),
         .optional = true,
         .max = UINT32_MAX},
        {.name = "pid", .kind = FIELD_INT, .offset = AT(hello.pid), .min = 1, .max = INT_MAX},
        {.name = "number", .kind = FIELD_INT, .offset = AT(hello.number), .min = -1, .max = NUMBER_MAX},
        {.name = "stage", .kind = FIELD_STAGE, .offset = AT(hello.stage)},
        {.name = "acts", .kind = FIELD_BOOL, .offset = AT(hello.acts), .optional = true},
        {.name = "leaves", .kind = FIELD_BOOL, .offset = AT(hello.leaves), .optional = true},
};

/* clang-format off */
static const struct field params_fields[] = {
        {.name = "size", .kind = FIELD_U64, .offset = AT(params.size)},
        {.name = "logicalBlockSize", .kind = FIELD_U32, .offset = AT(params.logical_block_size), .max = UINT32_MAX},
        {.name = "physicalBlockSize", .kind = FIELD_U32, .offset = AT(params.physical_block_size), .max = UINT32_MAX},
        {.name = "ioMin", .kind = FIELD_U32, .offset = AT(params.io_min), .max = UINT32_MAX},
        {.name = "ioOpt", .kind = FIELD_U32, .offset = AT(params.io_opt), .max = UINT32_MAX},
        {.name = "maxIoSize", .kind = FIELD_U32, .offset = AT(params.max_io_size), .max = UINT32_MAX},
        {.name = "discardGranularity", .kind = FIELD_U32, .offset = AT(params.discard_granularity), .max = UINT32_MAX},
        {.name = "maxDiscardSize", .kind = FIELD_U32, .offset = AT(params.max_discard_size), .max = UINT32_MAX},
        {.name = "maxWriteZeroesSize", .kind = FIELD_U32, .offset = AT(params.max_write_zeroes_size), .max = UINT32_MAX},
        {.name = "readOnly", .kind = FIELD_BOOL, .offset = AT(params.read_only)},
        {.name = "rotational", .kind = FIELD_BOOL, .offset = AT(params.rotational)},
        {.name = "volatileCache", .kind = FIELD_BOOL, .offset = AT(params.volatile_cache)},
        {.name = "fua", .kind = FIELD_BOOL, .offset = AT(params.fua)},
        {.name = "dmaAlignment", .kind = FIELD_U32, .offset = AT(params.dma_alignment), .optional = true, .max = UINT32_MAX},
        {.name = "maxSegmentSize", .kind = FIELD_U32, .offset = AT(params.max_segment_size),
         .optional = true, .max = UINT32_MAX},
        {.name = "maxSegments", .kind = FIELD_U16, .offset = AT(params.max_segments), .optional = true, .max = UINT16_MAX},
        {.name = "fastestPath", .kind = FIELD_INT, .offset = AT(params.fastest),
         .optional = true, .max = _DATA_PATH_MAX - 1},
        {.name = "queues", .kind = FIELD_U16, .offset = AT(params.queues), .max = UINT16_MAX},
        {.name = "queueDepth", .kind = FIELD_U16, .offset = AT(params.queue_depth), .max = UINT16_MAX},
        {.name = "sizeMax", .kind = FIELD_U64, .offset = AT(params.size_max), .optional = true},
        {.name = "claims", .kind = FIELD_CLAIMS, .offset = AT(params.claims), .optional = true},
        {.name = "pathMayChange", .kind = FIELD_BOOL, .offset = AT(params.path_may_change), .optional = true},
        {.name = "stablePath", .kind = FIELD_STRING, .offset = AT(params.stable_path),
         .optional = true, .length_max = WORKER_STABLE_PATH_MAX},
        {.name = "sharing", .kind = FIELD_PROBLEMS, .offset = AT(params.sharing), .optional = true},
};
/* clang-format on */

static const struct field failed_fields[] = {
        {.name = "problems", .kind = FIELD_PROBLEMS, .offset = AT(failed.problems)},
        {.name = "holder", .kind = FIELD_INT, .offset = AT(failed.holder), .optional = true, .max = INT_MAX},
};

static const struct field grow_fields[] = {
        {.name = "size", .kind = FIELD_U64, .offset = AT(grow.size)},
};

static const struct field grown_fields[] = {
        {.name = "size",     .kind = FIELD_U64,      .offset = AT(grown.size)    },
        {.name = "sizeMax",  .kind = FIELD_U64,      .offset = AT(grown.size_max)},
        {.name = "problems", .kind = FIELD_PROBLEMS, .offset = AT(grown.problems)},
};

static const struct field action_fields[] = {
        {.name = "id", .kind = FIELD_U64, .offset = AT(action.id)},
        {.name = "verb", .kind = FIELD_STRING, .offset = AT(action.verb), .length_max = WORKER_VERB_MAX},
        {.name = "arguments",
         .kind = FIELD_STRING,
         .offset = AT(action.arguments),
         .length_max = WORKER_ARGUMENTS_MAX},
};

/* clang-format off */
static const struct {
        const char *name;
        size_t size_max;
        const struct field *fields;
        size_t count;
} types[] = {
        [WORKER_MSG_CONFIG] = {"config", WORKER_MSG_SIZE_MAX, config_fields, ARRAY_SIZE(config_fields)},
        [WORKER_MSG_GO] = {"go", WORKER_MSG_SIZE_MAX, go_fields, ARRAY_SIZE(go_fields)},
        [WORKER_MSG_LIVE] = {"live", WORKER_MSG_SIZE_MAX, NULL, 0},
        [WORKER_MSG_GROW] = {"grow", WORKER_MSG_SIZE_MAX, grow_fields, ARRAY_SIZE(grow_fields)},
        [WORKER_MSG_HELLO] = {"hello", WORKER_SHORT_SIZE_MAX, hello_fields, ARRAY_SIZE(hello_fields)},
        [WORKER_MSG_PARAMS] = {"params", WORKER_REPORT_SIZE_MAX, params_fields, ARRAY_SIZE(params_fields)},
        [WORKER_MSG_READY] = {"ready", WORKER_SHORT_SIZE_MAX, NULL, 0},
        [WORKER_MSG_FAILED] = {"failed", WORKER_REPORT_SIZE_MAX, failed_fields, ARRAY_SIZE(failed_fields)},
        [WORKER_MSG_GROWN] = {"grown", WORKER_REPORT_SIZE_MAX, grown_fields, ARRAY_SIZE(grown_fields)},
        [WORKER_MSG_NEWS] = {"news", WORKER_SHORT_SIZE_MAX, NULL, 0},
        [WORKER_MSG_BACKING] = {"backing", WORKER_REPORT_SIZE_MAX, backing_fields, ARRAY_SIZE(backing_fields)},
        [WORKER_MSG_ACTION] = {"action", WORKER_MSG_SIZE_MAX, action_fields, ARRAY_SIZE(action_fields)},
        [WORKER_MSG_LEAVE] = {"leave", WORKER_MSG_SIZE_MAX, NULL, 0},
        [WORKER_MSG_NOTICE] = {"notice", WORKER_REPORT_SIZE_MAX, notice_fields, ARRAY_SIZE(notice_fields)},
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(types) == _WORKER_MSG_MAX, "every type has a row");

static const char *const stages[] = {
        [WORKER_STAGE_OPENING] = "opening",
        [WORKER_STAGE_OPEN] = "open",
        [WORKER_STAGE_FETCHING] = "fetching",
        [WORKER_STAGE_READY] = "ready",
        [WORKER_STAGE_SERVING] = "serving",
        [WORKER_STAGE_LEAVING] = "leaving",
};
_Static_assert(ARRAY_SIZE(stages) == _WORKER_STAGE_MAX, "every stage has a name");

const char *worker_stage_to_string(enum worker_stage stage)
{
        return (unsigned)stage < ARRAY_SIZE(stages) ? stages[stage] : "unknown";
}

size_t worker_msg_size_max(enum worker_msg_type type)
{
        return types[type].size_max;
}

/* ---- writing ---- */

/* What a byte adds to a message at most. */
static size_t byte_size(char byte)
{
        return (unsigned char)byte < ' ' ? strlen("\\u0000") : byte == '"' || byte == '\\' ? 2 : 1;
}

static size_t string_size(const char *string)
{
        size_t size = 0;

        for (; *string; string++)
                size += byte_size(*string);
        return size;
}

/* Cut the text before the character with which it would add more than `room` bytes. */
static void cut_text(char *text, size_t room)
{
        size_t at = 0, size = 0;

        while (text[at] && size + byte_size(text[at]) <= room)
                size += byte_size(text[at++]);
        while (text[at] && at > 0 && utf8_is_continuation(text[at]))
                at--;
        text[at] = '\0';
}

/* room: bytes that are left for the list. Add what there is room for of the problem. */
static bool add_problem(cJSON *array, const struct problem *problem, size_t *room)
{
        size_t size = PROBLEM_NAMES_MAX + string_size(problem->pointer) + string_size(problem->reason);
        _cleanup_free_ char *detail = strdup(problem->detail);
        cJSON *item;

        if (size >= *room || !detail)
                return detail;
        cut_text(detail, *room - size);
        *room -= size + string_size(detail);
        item = cJSON_CreateObject();
        return item && cJSON_AddItemToArray(array, item)
               && cJSON_AddNumberToObject(item, "error", problem->error)
               && cJSON_AddStringToObject(item, "pointer", problem->pointer)
               && cJSON_AddStringToObject(item, "reason", problem->reason)
               && cJSON_AddStringToObject(item, "detail", detail);
}

static bool add_problems(cJSON *object, const char *name, const struct problem_list *problems)
{
        cJSON *array = cJSON_AddArrayToObject(object, name);
        size_t room = PROBLEMS_TEXT_MAX;

        for (size_t i = 0; array && i < problems->count; i++)
                if (!add_problem(array, &problems->items[i], &room))
                        return false;
        return array;
}

static bool add_field(cJSON *object, const struct field *field, const struct worker_msg *msg)
{
        const void *value = (const char *)msg + field->offset;
        const char *string;

        switch (field->kind) {
        case FIELD_BOOL:
                return cJSON_AddBoolToObject(object, field->name, *(const bool *)value);
        case FIELD_INT:
                return cJSON_AddNumberToObject(object, field->name, *(const int *)value);
        case FIELD_U16:
                return cJSON_AddNumberToObject(object, field->name, *(const uint16_t *)value);
        case FIELD_U32:
                return cJSON_AddNumberToObject(object, field->name, *(const uint32_t *)value);
        case FIELD_U64:
                return json_add_u64(object, field->name, *(const uint64_t *)value);
        case FIELD_STRING:
                string = *(char *const *)value;
                return (!string && field->optional) || cJSON_AddStringToObject(object, field->name, string);
        case FIELD_STAGE:
                return cJSON_AddStringToObject(
                        object, field->name, worker_stage_to_string(*(const enum worker_stage *)value));
        case FIELD_PROBLEMS:
                return add_problems(object, field->name, value);
        case FIELD_CLAIMS:
                return claims_json_add(object, value);
        case FIELD_WANTED_STORES:
                return store_list_write(object, field->name, value, STORE_LIST_IN_CONFIG);
        case FIELD_FOUND_STORES:
                return store_list_write(object, field->name, value, STORE_LIST_IN_BACKING);
        case _FIELD_KIND_MAX:
                break;
        }
        return false;
}

int worker_msg_encode(const struct worker_msg *msg, char **ret_text)
{
        _cleanup_json_ cJSON *object = cJSON_CreateObject();
        char *text;

        if (!object || !cJSON_AddStringToObject(object, "type", types[msg->type].name))
                return -ENOMEM;
        for (size_t i = 0; i < types[msg->type].count; i++)
                if (!add_field(object, &types[msg->type].fields[i], msg))
                        return -ENOMEM;
        text = json_print(object);
        if (!text)
                return -ENOMEM;
        *ret_text = text;
        return 0;
}

/* ---- reading ---- */

/* cJSON recurses, and its own limit of 1000 brackets is more stack than a message is worth. */
static bool nesting_is_sane(const char *text, size_t size)
{
        bool in_string = false;
        unsigned depth = 0;

        for (size_t i = 0; i < size; i++) {
                if (in_string && text[i] == '\\')
                        i++;
                else if (text[i] == '"')
                        in_string = !in_string;
                else if (!in_string && (text[i] == '{' || text[i] == '[') && ++depth > NESTING_MAX)
                        return false;
                else if (!in_string && (text[i] == '}' || text[i] == ']') && depth > 0)
                        depth--;
        }
        return true;
}

static int read_integer(const cJSON *item, int64_t min, int64_t max, int64_t *ret)
{
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)min && item->valuedouble <= (double)max)
                || trunc(item->valuedouble) != item->valuedouble)
                return -EBADMSG;
        *ret = (int64_t)item->valuedouble;
        return 0;
}

static int read_string(const cJSON *item, size_t length_max, char **ret)
{
        char *copy;

        if (!cJSON_IsString(item) || strlen(item->valuestring) > length_max)
                return -EBADMSG;
        copy = strdup(item->valuestring);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

static int read_stage(const cJSON *item, enum worker_stage *ret)
{
        for (size_t i = 0; cJSON_IsString(item) && i < ARRAY_SIZE(stages); i++)
                if (strcmp(item->valuestring, stages[i]) == 0) {
                        *ret = (enum worker_stage)i;
                        return 0;
                }
        return -EBADMSG;
}

static int read_problems(const cJSON *array, struct problem_list *ret)
{
        const cJSON *item;

        if (!cJSON_IsArray(array))
                return -EBADMSG;
        cJSON_ArrayForEach (item, array) {
                const char *pointer = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "pointer"));
                const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "reason"));
                const char *detail = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "detail"));
                int64_t error;
                int r = read_integer(cJSON_GetObjectItemCaseSensitive(item, "error"), 0, INT_MAX, &error);

                if (r < 0 || !pointer || !reason || !detail)
                        return -EBADMSG;
                r = problem_add(ret, (int)error, pointer, reason, "%s", detail);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A number that has limits: FIELD_INT, FIELD_U16, FIELD_U32. */
static int read_limited(const cJSON *item, const struct field *field, void *ret)
{
        int64_t integer;
        int r = read_integer(item, field->min, field->max, &integer);

        if (r < 0)
                return r;
        if (field->kind == FIELD_INT)
                *(int *)ret = (int)integer;
        else if (field->kind == FIELD_U16)
                *(uint16_t *)ret = (uint16_t)integer;
        else
                *(uint32_t *)ret = (uint32_t)integer;
        return 0;
}

static int read_field(const cJSON *object, const struct field *field, struct worker_msg *msg)
{
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, field->name);
        void *value = (char *)msg + field->offset;

        if (!item && field->kind != FIELD_CLAIMS)
                return field->optional ? 0 : -EBADMSG;
        switch (field->kind) {
        case FIELD_BOOL:
                *(bool *)value = cJSON_IsTrue(item);
                return cJSON_IsBool(item) ? 0 : -EBADMSG;
        case FIELD_INT:
        case FIELD_U16:
        case FIELD_U32:
                return read_limited(item, field, value);
        case FIELD_U64:
                return json_read_u64(item, value);
        case FIELD_STRING:
                return read_string(item, field->length_max, value);
        case FIELD_STAGE:
                return read_stage(item, value);
        case FIELD_PROBLEMS:
                return read_problems(item, value);
        case FIELD_CLAIMS:
                return claims_json_read(object, value);
        case FIELD_WANTED_STORES:
                return store_list_read(item, STORE_LIST_IN_CONFIG, value);
        case FIELD_FOUND_STORES:
                return store_list_read(item, STORE_LIST_IN_BACKING, value);
        case _FIELD_KIND_MAX:
                break;
        }
        return -EBADMSG;
}

static int read_type(const cJSON *object, enum worker_msg_type *ret)
{
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "type"));

        for (size_t i = 0; name && i < ARRAY_SIZE(types); i++)
                if (strcmp(name, types[i].name) == 0) {
                        *ret = (enum worker_msg_type)i;
                        return 0;
                }
        return -EBADMSG;
}

int worker_msg_decode(const char *text, size_t size, struct worker_msg *ret)
{
        _cleanup_json_ cJSON *object = NULL;
        struct worker_msg msg;
        const char *end;
        int r;

        memset(&msg, 0, sizeof(msg)); /* all of the union, whichever member it is to be */
        /* What a worker writes ends up in answers to users. */
        if (size > WORKER_MSG_SIZE_MAX || !utf8_is_valid(text, size) || !nesting_is_sane(text, size))
                return -EBADMSG;
        object = cJSON_ParseWithLengthOpts(text, size, &end, false);
        if (!object || end != text + size || !cJSON_IsObject(object))
                return -EBADMSG;
        r = read_type(object, &msg.type);
        if (r >= 0 && size > types[msg.type].size_max)
                return -EBADMSG;
        for (size_t i = 0; r >= 0 && i < types[msg.type].count; i++)
                r = read_field(object, &types[msg.type].fields[i], &msg);
        if (r < 0) {
                worker_msg_clear(&msg);
                return r;
        }
        *ret = msg;
        return 0;
}

void worker_msg_clear(struct worker_msg *msg)
{
        for (size_t i = 0; i < types[msg->type].count; i++) {
                const struct field *field = &types[msg->type].fields[i];
                void *value = (char *)msg + field->offset;

                if (field->kind == FIELD_STRING) {
                        free(*(char **)value);
                        *(char **)value = NULL;
                } else if (field->kind == FIELD_PROBLEMS)
                        problem_list_clear(value);
                else if (field->kind == FIELD_CLAIMS)
                        backing_claims_clear(value);
                else if (field->kind == FIELD_WANTED_STORES || field->kind == FIELD_FOUND_STORES)
                        store_list_clear(value);
        }
}
