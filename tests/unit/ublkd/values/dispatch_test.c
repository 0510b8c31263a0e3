/* SPDX-License-Identifier: MIT */
/* Reading JSON by option tables, with tables of every kind. */
#include "tests/unit/check.h"
#include "ublkd/values/dispatch.h"

#include <stddef.h>

struct inner {
        bool flag;
        char *text;
};

struct sample {
        char *string;
        bool boolean;
        int64_t integer, chosen, automatic;
        uint64_t bytes, duration;
        int choice, silent;
        struct inner inner;
        cJSON *map, *document, *list, *objects;
};

static const struct option_field inner_options[] = {
        {.name = "flag", .kind = OPTION_BOOL, .offset = offsetof(struct inner, flag), .preset.integer = 1},
        {.name = "text",
         .kind = OPTION_STRING,
         .offset = offsetof(struct inner, text),
         .length_max = 8,
         .preset.string = "preset"},
};
static const struct option_table inner_table = {
        .options = inner_options,
        .count = ARRAY_SIZE(inner_options),
        .struct_size = sizeof(struct inner),
};
static const char *const choices[] = {"red", "green", NULL};
static const char *const silent_choices[] = {"", "one", "two", NULL};
static const int64_t powers[] = {512, 1024, 4096};
static const char *const ignored[] = {"type", NULL};

static const struct option_field list_items[] = {
        {.kind = OPTION_STRING,  .length_min = 1, .length_max = 4, .hint = "a word or a number from 1 to 9"},
        {.kind = OPTION_INTEGER, .minimum = 1,    .maximum = 9,    .hint = "a number from 1 to 9"          },
};
static const struct option_field object_items[] = {
        {.kind = OPTION_OBJECT, .table = &inner_table, .hint = "an object"},
};

#define FIELD(field) .offset = offsetof(struct sample, field)
static const struct option_field options[] = {
        {.name = "string",
         .kind = OPTION_STRING,
         FIELD(string),
         .required = true,
         .length_min = 1,
         .length_max = 4,
         .pattern = "^[^x]*$",
         .hint = "one to four letters"},
        {.name = "boolean", .kind = OPTION_BOOL, FIELD(boolean)},
        {.name = "queueDepth",
         .kind = OPTION_INTEGER,
         FIELD(integer),
         .minimum = 1,
         .maximum = 4096,
         .hint = "a number from 1 to 4096",
         .preset.integer = 128},
        {.name = "chosen",
         .kind = OPTION_INTEGER,
         FIELD(chosen),
         .minimum = 512,
         .maximum = 4096,
         .values = powers,
         .value_count = ARRAY_SIZE(powers)},
        {.name = "automatic",
         .kind = OPTION_AUTO_INTEGER,
         FIELD(automatic),
         .minimum = 1,
         .maximum = 64,
         .preset.integer = OPTION_AUTO},
        {.name = "bytes",
         .kind = OPTION_BYTES,
         FIELD(bytes),
         .minimum = 512,
         .maximum = INT64_C(1) << 52,
         .multiple_of = 512,
         .preset.integer = 512},
        {.name = "duration", .kind = OPTION_DURATION, FIELD(duration), .maximum = INT64_MAX},
        {.name = "choice", .kind = OPTION_ENUM, FIELD(choice), .names = choices, .preset.integer = 1},
        {.name = "silent", .kind = OPTION_ENUM, FIELD(silent), .names = silent_choices},
        {.name = "inner", .kind = OPTION_OBJECT, FIELD(inner), .table = &inner_table},
        {.name = "map",
         .kind = OPTION_STRING_MAP,
         FIELD(map),
         .length_max = 3,
         .value_length_max = 4,
         .pattern = "^[a-z~/]+$",
         .hint = "small letters"},
        {.name = "document", .kind = OPTION_DOCUMENT, FIELD(document)},
        {.name = "list",
         .kind = OPTION_LIST,
         FIELD(list),
         .length_min = 1,
         .length_max = 3,
         .items = list_items,
         .item_count = ARRAY_SIZE(list_items)},
        {.name = "objects",
         .kind = OPTION_OBJECT_MAP,
         FIELD(objects),
         .length_max = 2,
         .pattern = "^[a-z]+$",
         .items = object_items,
         .item_count = ARRAY_SIZE(object_items)},
};
static const struct option_table table = {
        .options = options,
        .count = ARRAY_SIZE(options),
        .struct_size = sizeof(struct sample),
        .ignored = ignored,
};

/* What came of one text. */
struct outcome {
        struct sample sample;
        struct problem_list problems;
        int result;
};

static struct outcome read_text(const char *text)
{
        struct outcome outcome = {};
        cJSON *json = cJSON_Parse(text);

        memset(&outcome.sample, 0xa5, sizeof(outcome.sample)); /* dispatch() must not care */
        if (!CHECK(json))
                fprintf(stderr, "    %s\n", text);
        outcome.result = dispatch(json, &table, "/base", &outcome.sample, &outcome.problems);
        CHECK_INT(outcome.result, outcome.problems.count > 0 ? -EINVAL : 0);
        cJSON_Delete(json);
        return outcome;
}

static void outcome_clear(struct outcome *outcome)
{
        dispatch_release(&outcome->sample, &table);
        dispatch_release(&outcome->sample, &table); /* once more does no harm */
        problem_list_clear(&outcome->problems);
}

/* The text has exactly one fault: with this pointer, reason and (unless NULL) sentence. */
static void check_fault(const char *text, const char *pointer, const char *reason, const char *detail)
{
        struct outcome outcome = read_text(text);
        bool good = CHECK_INT(outcome.problems.count, 1);

        if (outcome.problems.count > 0) {
                good = CHECK_STR(outcome.problems.items[0].pointer, pointer) && good;
                good = CHECK_STR(outcome.problems.items[0].reason, reason) && good;
                if (detail)
                        good = CHECK_STR(outcome.problems.items[0].detail, detail) && good;
                CHECK_INT(outcome.problems.items[0].error, EINVAL);
        }
        if (!good)
                fprintf(stderr, "    for %s\n", text);
        outcome_clear(&outcome);
}

static void check_good(const char *text)
{
        struct outcome outcome = read_text(text);

        if (!CHECK_INT(outcome.result, 0))
                fprintf(stderr, "    for %s: %s\n", text, outcome.problems.items[0].detail);
        outcome_clear(&outcome);
}

static void test_defaults(void)
{
        struct outcome outcome = read_text("{\"string\":\"a\"}");
        const struct sample *sample = &outcome.sample;

        CHECK_INT(outcome.result, 0);
        CHECK_STR(sample->string, "a");
        CHECK(!sample->boolean);
        CHECK_INT(sample->integer, 128);
        CHECK_INT(sample->automatic, OPTION_AUTO);
        CHECK_INT(sample->bytes, 512);
        CHECK_INT(sample->duration, 0);
        CHECK_INT(sample->choice, 1);
        CHECK_INT(sample->silent, 0);
        CHECK(sample->inner.flag);
        CHECK_STR(sample->inner.text, "preset");
        CHECK(!sample->map && !sample->document);
        outcome_clear(&outcome);
}

static void test_values(void)
{
        struct outcome outcome =
                read_text("{\"string\":\"a\",\"boolean\":true,\"queueDepth\":4096,\"chosen\":1024,"
                          "\"automatic\":64,\"bytes\":\"1MiB\",\"duration\":\"2s\",\"choice\":\"red\","
                          "\"silent\":\"two\",\"inner\":{\"flag\":false,\"text\":\"abc\"},\"type\":7,"
                          "\"map\":{\"a\":\"1\"},\"document\":{\"x\":[1,{\"y\":null}]}}");
        const struct sample *sample = &outcome.sample;

        CHECK_INT(outcome.result, 0);
        CHECK(sample->boolean);
        CHECK_INT(sample->integer, 4096);
        CHECK_INT(sample->chosen, 1024);
        CHECK_INT(sample->automatic, 64);
        CHECK_INT(sample->bytes, 1048576);
        CHECK_INT(sample->duration, 2000000);
        CHECK_INT(sample->choice, 0);
        CHECK_INT(sample->silent, 2);
        CHECK(!sample->inner.flag);
        CHECK_STR(sample->inner.text, "abc");
        CHECK_STR(cJSON_GetObjectItem(sample->map, "a")->valuestring, "1");
        CHECK(cJSON_IsArray(cJSON_GetObjectItem(sample->document, "x")));
        outcome_clear(&outcome);
}

#define WITH(member) "{\"string\":\"a\"," member "}"

static void test_numbers(void)
{
        check_good(WITH("\"queueDepth\":1.0"));
        check_good(WITH("\"queueDepth\":1e2"));
        check_good(WITH("\"queueDepth\":40960e-1"));
        check_good(WITH("\"automatic\":\"auto\""));
        check_good(WITH("\"bytes\":4503599627370496"));
        check_fault(WITH("\"queueDepth\":0"), "/base/queueDepth", "OutOfRange",
                "queueDepth is 0, below 1; give a number from 1 to 4096");
        check_fault(WITH("\"queueDepth\":4097"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":-1e300"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":1e999"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":-1e999"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":9007199254740993"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":18446744073709551617"), "/base/queueDepth", "OutOfRange", NULL);
        check_fault(WITH("\"queueDepth\":1.5"), "/base/queueDepth", "WrongType",
                "queueDepth is 1.5, not a whole number; give a number from 1 to 4096");
        check_fault(WITH("\"queueDepth\":0.1"), "/base/queueDepth", "WrongType",
                "queueDepth is 0.1, not a whole number; give a number from 1 to 4096");
        check_fault(WITH("\"queueDepth\":\"7\""), "/base/queueDepth", "WrongType",
                "queueDepth is \"7\", not a number; give a number from 1 to 4096");
        check_fault(WITH("\"queueDepth\":null"), "/base/queueDepth", "WrongType", NULL);
        check_fault(WITH("\"queueDepth\":true"), "/base/queueDepth", "WrongType", NULL);
        check_fault(WITH("\"queueDepth\":[1]"), "/base/queueDepth", "WrongType", NULL);
        check_fault(WITH("\"queueDepth\":\"auto\""), "/base/queueDepth", "WrongType", NULL);
        check_fault(WITH("\"chosen\":2048"), "/base/chosen", "BadValue", NULL);
        check_fault(WITH("\"automatic\":0"), "/base/automatic", "OutOfRange", NULL);
        check_fault(WITH("\"automatic\":-1"), "/base/automatic", "OutOfRange", NULL);
        check_fault(WITH("\"automatic\":\"Auto\""), "/base/automatic", "WrongType", NULL);
}

static void test_quantities(void)
{
        check_fault(WITH("\"bytes\":0"), "/base/bytes", "OutOfRange", NULL);
        check_fault(WITH("\"bytes\":513"), "/base/bytes", "NotMultiple", NULL);
        check_fault(WITH("\"bytes\":\"513\""), "/base/bytes", "NotMultiple",
                "bytes is \"513\", not a multiple of 512; give another value");
        check_fault(WITH("\"bytes\":\"4097TiB\""), "/base/bytes", "OutOfRange", NULL);
        check_fault(WITH("\"bytes\":\"9999999999999TiB\""), "/base/bytes", "OutOfRange", NULL);
        check_fault(WITH("\"bytes\":\"1GB\""), "/base/bytes", "BadFormat", NULL);
        check_fault(WITH("\"bytes\":\"\""), "/base/bytes", "BadFormat", NULL);
        check_fault(WITH("\"bytes\":-512"), "/base/bytes", "OutOfRange", NULL);
        check_fault(WITH("\"bytes\":{}"), "/base/bytes", "WrongType", NULL);
        check_fault(WITH("\"duration\":0"), "/base/duration", "WrongType", NULL);
        check_fault(WITH("\"duration\":\"5 min\""), "/base/duration", "BadFormat", NULL);
}

static void test_strings(void)
{
        check_good("{\"string\":\"\\u00e4\\ud83d\\ude00bc\"}"); /* four code points, eight bytes */
        check_fault("{\"string\":\"\"}", "/base/string", "BadLength", NULL);
        check_fault("{\"string\":\"abcde\"}", "/base/string", "BadLength",
                "string is \"abcde\", too long; give one to four letters");
        check_fault("{\"string\":\"axb\"}", "/base/string", "BadFormat", NULL);
        check_fault("{\"string\":null}", "/base/string", "WrongType", NULL);
        check_fault("{\"string\":false}", "/base/string", "WrongType",
                "string is false, not a string; give one to four letters");
        check_fault("{}", "/base/string", "MissingField", "string is missing; give one to four letters");
        /* What is quoted is cut between characters, and nothing in it can disturb a terminal. */
        check_fault("{\"string\":\"\\u001b\\n"
                    "\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4"
                    "\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4"
                    "\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4"
                    "\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\\u00e4\"}",
                "/base/string", "BadLength",
                "string is \"\?\?ääääääääääääääääääääääääääääääääääääää...\", too long; give one to four "
                "letters");
}

static void test_enums(void)
{
        check_fault(WITH("\"choice\":\"blue\""), "/base/choice", "BadValue", NULL);
        check_fault(WITH("\"choice\":\"\""), "/base/choice", "BadValue", NULL);
        check_fault(WITH("\"choice\":0"), "/base/choice", "WrongType", NULL);
        check_fault(WITH("\"silent\":\"\""), "/base/silent", "BadValue", NULL);
        check_fault(WITH("\"boolean\":\"true\""), "/base/boolean", "WrongType", NULL);
        check_fault(WITH("\"boolean\":1"), "/base/boolean", "WrongType", NULL);
}

static void test_names(void)
{
        check_fault(WITH("\"queueDeph\":1"), "/base/queueDeph", "UnknownField",
                "unknown field \"queueDeph\"; did you mean \"queueDepth\"?");
        check_fault(WITH("\"queue_depth\":1"), "/base/queue_depth", "UnknownField",
                "unknown field \"queue_depth\"; did you mean \"queueDepth\"?");
        check_fault(WITH("\"zebra\":1"), "/base/zebra", "UnknownField", "unknown field \"zebra\"; remove it");
        check_fault(WITH("\"\":1"), "/base/", "UnknownField", NULL);
        check_fault(WITH("\"a/b~c\":1"), "/base/a~1b~0c", "UnknownField", NULL);
        check_fault(WITH("\"string\":\"b\""), "/base/string", "DuplicateField",
                "string is given twice; give it once");
        check_fault(WITH("\"type\":1,\"type\":1"), "/base/type", "DuplicateField", NULL);
        check_fault(WITH("\"inner\":{\"flagg\":true}"), "/base/inner/flagg", "UnknownField", NULL);
        check_fault(WITH("\"inner\":{\"text\":\"123456789\"}"), "/base/inner/text", "BadLength", NULL);
        check_fault(WITH("\"inner\":[]"), "/base/inner", "WrongType", NULL);
        check_fault(WITH("\"document\":7"), "/base/document", "WrongType", NULL);
}

static void test_maps(void)
{
        check_good(WITH("\"map\":{}"));
        check_good(WITH("\"map\":{\"a\":\"\",\"b\":\"\\u00e4\\u00e4\\u00e4\\u00e4\",\"c\":\"1\"}"));
        check_fault(WITH("\"map\":[]"), "/base/map", "WrongType", NULL);
        check_fault(WITH("\"map\":{\"A\":\"\"}"), "/base/map/A", "BadFormat",
                "the name \"A\" is not of the right form; give small letters");
        check_fault(WITH("\"map\":{\"\":\"\"}"), "/base/map/", "BadFormat", NULL);
        check_fault(WITH("\"map\":{\"~a/\":\"12345\"}"), "/base/map/~0a~1", "BadLength", NULL);
        check_fault(WITH("\"map\":{\"a\":1}"), "/base/map/a", "WrongType", NULL);
        check_fault(
                WITH("\"map\":{\"a\":\"1\",\"b\":\"\",\"a\":\"1\"}"), "/base/map/a", "DuplicateField", NULL);
        check_fault(WITH("\"map\":{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\"}"), "/base/map", "TooMany",
                "map has 4 entries; give 0 to 3");
}

/* Every fault, in the order of the document; what was good is there, what was bad holds its default. */
static void test_all_at_once(void)
{
        static const char *const pointers[] = {"/base/queueDepth", "/base/nonsense", "/base/inner/text",
                "/base/inner/nonsense", "/base/map/A", "/base/map/b", "/base/string"};
        struct outcome outcome = read_text("{\"queueDepth\":0,\"nonsense\":{},\"automatic\":3,"
                                           "\"inner\":{\"flag\":false,\"text\":1,\"nonsense\":1},"
                                           "\"map\":{\"A\":\"\",\"b\":null}}");

        CHECK_INT(outcome.problems.count, ARRAY_SIZE(pointers));
        for (size_t i = 0; i < outcome.problems.count && i < ARRAY_SIZE(pointers); i++)
                CHECK_STR(outcome.problems.items[i].pointer, pointers[i]);
        CHECK_INT(outcome.sample.integer, 128);
        CHECK_INT(outcome.sample.automatic, 3);
        CHECK(!outcome.sample.inner.flag);
        CHECK_STR(outcome.sample.inner.text, "preset");
        CHECK(!outcome.sample.map);
        outcome_clear(&outcome);
}

static void test_not_an_object(void)
{
        static const char *const texts[] = {"[]", "null", "7", "\"text\"", "true"};

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                check_fault(texts[i], "/base", "WrongType", NULL);
}

/* A body that is nothing but faults costs no more than the list holds. */
static void test_many_faults(void)
{
        struct outcome outcome = {};
        cJSON *json = cJSON_CreateObject();

        for (int i = 0; i < 20000; i++) {
                char name[16];

                snprintf(name, sizeof(name), "queueDept%d", i);
                cJSON_AddNullToObject(json, name);
        }
        CHECK_INT(dispatch(json, &table, "", &outcome.sample, &outcome.problems), -EINVAL);
        CHECK_INT(outcome.problems.count, PROBLEM_LIST_MAX);
        CHECK_INT(outcome.problems.dropped, 20000 + 1 - PROBLEM_LIST_MAX);
        outcome_clear(&outcome);
        cJSON_Delete(json);
}

static void test_lists(void)
{
        struct outcome outcome = read_text("{\"string\":\"a\",\"list\":[\"ab\",7]}");

        CHECK_INT(cJSON_GetArraySize(outcome.sample.list), 2);
        CHECK_INT(cJSON_GetArrayItem(outcome.sample.list, 1)->valueint, 7);
        outcome_clear(&outcome);
        check_fault("{\"string\":\"a\",\"list\":{}}", "/base/list", "WrongType", NULL);
        check_fault("{\"string\":\"a\",\"list\":[]}", "/base/list", "TooFew", NULL);
        check_fault("{\"string\":\"a\",\"list\":[1,1,1,10]}", "/base/list", "TooMany", NULL);
        check_fault("{\"string\":\"a\",\"list\":[1,10]}", "/base/list/1", "OutOfRange", NULL);
        check_fault("{\"string\":\"a\",\"list\":[\"long word\"]}", "/base/list/0", "BadLength", NULL);
        check_fault("{\"string\":\"a\",\"list\":[true]}", "/base/list/0", "WrongType",
                "0 is true, not a string; give a word or a number from 1 to 9");
}

static void test_maps_of_objects(void)
{
        struct outcome outcome =
                read_text("{\"string\":\"a\",\"objects\":{\"a\":{\"flag\":false},\"b\":{}}}");
        struct sample other = {};

        CHECK_INT(cJSON_GetArraySize(outcome.sample.objects), 2);
        CHECK_INT(option_defaults(&table, &other), 0);
        CHECK(!dispatch_equal(&outcome.sample, &other, &table, NULL));
        dispatch_release(&other, &table);
        outcome_clear(&outcome);
        check_fault("{\"string\":\"a\",\"objects\":[]}", "/base/objects", "WrongType", NULL);
        check_fault("{\"string\":\"a\",\"objects\":{\"A\":{}}}", "/base/objects/A", "BadFormat", NULL);
        check_fault("{\"string\":\"a\",\"objects\":{\"a\":1}}", "/base/objects/a", "WrongType", NULL);
        check_fault("{\"string\":\"a\",\"objects\":{\"a\":{\"flap\":true}}}", "/base/objects/a/flap",
                "UnknownField", NULL);
        check_fault("{\"string\":\"a\",\"objects\":{\"a\":{\"text\":\"a very long text\"}}}",
                "/base/objects/a/text", "BadLength", NULL);
        check_fault("{\"string\":\"a\",\"objects\":{\"a\":{},\"a\":{}}}", "/base/objects/a", "DuplicateField",
                NULL);
}

int main(void)
{
        test_defaults();
        test_values();
        test_numbers();
        test_quantities();
        test_strings();
        test_enums();
        test_names();
        test_maps();
        test_lists();
        test_maps_of_objects();
        test_all_at_once();
        test_not_an_object();
        test_many_faults();
        return check_report();
}
