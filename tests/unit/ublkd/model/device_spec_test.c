/* SPDX-License-Identifier: MIT */
/* Device specs: what the contract promises of parsing and of comparison. */
#include "tests/unit/check.h"
#include "targets/loop/loop_options.h"
#include "ublkd/model/device_spec.h"

#define LOOP "\"target\":{\"type\":\"loop\",\"path\":\"/disk\"}"
#define KERNEL ",\"isolation\":\"kernel\",\"recovery\":{\"onCrash\":\"none\"}"
#define POOL "\"target\":{\"type\":\"loop\",\"pool\":\"fast\"}"
#define NAMED(members) "{\"name\":\"data\"," members "}"

static int parse_as(
        const char *text, const char *name, struct device_spec **ret, struct problem_list *problems)
{
        cJSON *json = cJSON_Parse(text);
        int r;

        if (!CHECK(json))
                fprintf(stderr, "    %s\n", text);
        r = device_spec_parse(json, name, ret, problems);
        cJSON_Delete(json); /* the spec has its own */
        return r;
}

static struct device_spec *parse_good(const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;

        if (!CHECK_INT(parse_as(text, NULL, &spec, &problems), 0))
                fprintf(stderr, "    for %s: %s\n", text,
                        problems.count > 0 ? problems.items[0].detail : "?");
        CHECK_INT(problems.count, 0);
        return spec;
}

/* Exactly these faults, as "pointer reason", separated by a space. */
static void check_faults(const char *text, const char *wanted)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;
        char got[1024] = "";

        CHECK_INT(parse_as(text, NULL, &spec, &problems), -EINVAL);
        CHECK(!spec);
        for (size_t i = 0; i < problems.count; i++) {
                size_t used = strlen(got);

                snprintf(got + used, sizeof(got) - used, "%s%s %s", i > 0 ? " " : "",
                        problems.items[i].pointer, problems.items[i].reason);
        }
        if (!CHECK_STR(got, wanted))
                fprintf(stderr, "    for %s\n", text);
}

static void test_defaults(void)
{
        _cleanup_device_spec_ struct device_spec *spec = parse_good(NAMED(LOOP));
        const struct device_options *options = &spec->options;
        const struct loop_options *loop = spec->tree->nodes[0].options;

        CHECK_STR(options->name, "data");
        CHECK_STR(spec->target->name, "loop");
        CHECK_STR(loop->path, "/disk");
        CHECK_INT(options->size, 0);
        CHECK_INT(options->block_size, 0);
        CHECK_INT(options->queues, OPTION_AUTO);
        CHECK_INT(options->queue_depth, 128);
        CHECK_INT(options->max_io_size, 1048576);
        CHECK(!options->read_only);
        CHECK_INT(options->data_path, DATA_PATH_AUTO);
        CHECK_INT(options->recovery.on_crash, ON_CRASH_DEFAULT);
        CHECK_INT(options->recovery.trigger, TRIGGER_AUTO);
        CHECK_INT(options->recovery.give_up_after, 0);
        CHECK_INT(options->id, -1);
        CHECK_INT(options->owner.uid, 0);
        CHECK_INT(options->owner.gid, -1);
        CHECK_STR(options->owner.mode, "0660");
        CHECK_STR(options->cpus, NULL);
        CHECK(!options->labels);
        CHECK(options->enabled);
        CHECK_INT(device_spec_on_crash(spec), ON_CRASH_REISSUE);
}

/* The example of the contract. */
static void test_everything(void)
{
        _cleanup_device_spec_ struct device_spec *spec = parse_good(NAMED(
                "\"target\":{\"type\":\"loop\",\"path\":\"/var/lib/disks/data.img\",\"offset\":\"1MiB\","
                "\"directIo\":\"off\"},\"size\":\"10GiB\",\"blockSize\":512,\"queues\":2,\"queueDepth\":64,"
                "\"maxIoSize\":\"512KiB\",\"readOnly\":true,\"dataPath\":\"zero-copy\",\"recovery\":{"
                "\"onCrash\":\"queue\",\"trigger\":\"manual\",\"giveUpAfter\":\"5min\"},\"id\":7,"
                "\"owner\":{\"uid\":1000,\"gid\":1001,\"mode\":\"0600\"},\"cpus\":\"0-3\","
                "\"labels\":{\"app\":\"db\"},\"enabled\":false"));
        const struct device_options *options = &spec->options;
        const struct loop_options *loop = spec->tree->nodes[0].options;

        CHECK_INT(loop->offset, 1048576);
        CHECK_INT(loop->direct_io, DIRECT_IO_OFF);
        CHECK_INT(options->size, INT64_C(10) << 30);
        CHECK_INT(options->block_size, 512);
        CHECK_INT(options->queues, 2);
        CHECK_INT(options->queue_depth, 64);
        CHECK_INT(options->max_io_size, 524288);
        CHECK(options->read_only);
        CHECK_INT(options->data_path, DATA_PATH_ZERO_COPY);
        CHECK_INT(options->recovery.on_crash, ON_CRASH_QUEUE);
        CHECK_INT(options->recovery.trigger, TRIGGER_MANUAL);
        CHECK_INT(options->recovery.give_up_after, 300000000);
        CHECK_INT(options->id, 7);
        CHECK_INT(options->owner.uid, 1000);
        CHECK_INT(options->owner.gid, 1001);
        CHECK_STR(options->owner.mode, "0600");
        CHECK_STR(options->cpus, "0-3");
        CHECK_STR(cJSON_GetObjectItem(options->labels, "app")->valuestring, "db");
        CHECK(!options->enabled);
        CHECK_INT(device_spec_on_crash(spec), ON_CRASH_QUEUE);
        CHECK(cJSON_IsString(cJSON_GetObjectItem(spec->document, "size"))); /* as the user wrote it */
}

static void test_schema_faults(void)
{
        check_faults("[]", " WrongType");
        check_faults("{}", "/name MissingField /target MissingField");
        check_faults(NAMED("\"target\":[]"), "/target WrongType");
        check_faults(NAMED("\"target\":{}"), "/target/type MissingField");
        check_faults(NAMED("\"target\":{\"type\":1}"), "/target/type WrongType");
        check_faults(NAMED("\"target\":{\"type\":\"floppy\"}"), "/target/type UnknownTarget");
        check_faults(NAMED("\"target\":{\"type\":\"loop\",\"path\":\"disk\"}"), "/target/path BadFormat");
        check_faults(NAMED("\"target\":{\"type\":\"loop\",\"path\":\"/disk\",\"type\":\"null\"}"),
                "/target/type DuplicateField");
        check_faults(NAMED("\"target\":{\"type\":\"null\",\"path\":\"/disk\"},\"size\":512"),
                "/target/path UnknownField");
        check_faults(
                NAMED(LOOP ",\"size\":null,\"id\":1048576,\"recovery\":{\"onCrash\":\"\"},"
                           "\"owner\":{\"mode\":\"0999\",\"user\":1},\"labels\":{\"-\":1},\"cpus\":\"all\""),
                "/size WrongType /id OutOfRange /recovery/onCrash BadValue /owner/mode BadFormat "
                "/owner/user UnknownField /labels/- BadFormat /labels/- WrongType /cpus BadFormat");
}

/* The length is a limit of its own: a pattern that counts takes the regular expressions of glibc a tenth of a millisecond. */
static void test_names(void)
{
        static const char *const bad[] = {"-", "a-", ".a", "A", "a b", "a/b", "a\\n", "\303\244"};
        char name[65], text[160];

        for (unsigned length = 1; length <= 64; length++) {
                snprintf(name, sizeof(name), "%.*s", (int)length,
                        "a.b_c-9876543210abcdefghijklmnopqrstuvwxyz.....___---0123456789abc");
                name[length - 1] = 'z'; /* not a dot */
                snprintf(text, sizeof(text), "{\"name\":\"%s\"," LOOP "}", name);
                if (length <= 63)
                        device_spec_free(parse_good(text));
                else
                        check_faults(text, "/name BadLength");
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                snprintf(text, sizeof(text), "{\"name\":\"%s\"," LOOP "}", bad[i]);
                check_faults(text, "/name BadFormat");
        }
}

static void test_rules(void)
{
        check_faults(NAMED("\"target\":{\"type\":\"null\"}"), "/size SizeRequired");
        /* A size that is there and bad is not missing as well. */
        check_faults(NAMED("\"target\":{\"type\":\"null\"},\"size\":1"), "/size OutOfRange");
        check_faults(NAMED(LOOP ",\"size\":1536,\"blockSize\":1024"), "/size SizeNotMultiple");
        check_faults(NAMED(LOOP ",\"size\":1536,\"blockSize\":1000"), "/blockSize BadValue");
        check_faults(NAMED(LOOP ",\"cpus\":\"3-1\""), "/cpus BadCpuList");
        check_faults(NAMED(LOOP ",\"isolation\":\"kernel\",\"dataPath\":\"zero-copy\""),
                "/recovery/onCrash NoRecoveryInKernelIsolation /dataPath CopyInKernelIsolation "
                "/owner/gid GroupInKernelIsolation");
        check_faults(NAMED(LOOP KERNEL
                             ",\"owner\":{\"gid\":7},\"onFull\":\"wait\",\"limits\":{\"read\":{\"iops\":1}}"),
                "/onFull WaitInKernelIsolation /limits LimitsInKernelIsolation");
        check_faults(
                NAMED(LOOP ",\"limits\":{\"read\":{\"iopsBurst\":5},\"write\":{\"bytesPerSecBurst\":4096}}"),
                "/limits/read/iopsBurst BurstWithoutLimit /limits/write/bytesPerSecBurst BurstWithoutLimit");
        check_faults(NAMED(LOOP ",\"resources\":{\"cpuWeight\":0,\"memoryMax\":\"1MiB\",\"pidsMax\":63,"
                                "\"ioMax\":{\"write\":{\"iops\":0}},\"swapMax\":1}"),
                "/resources/cpuWeight OutOfRange /resources/memoryMax OutOfRange /resources/pidsMax "
                "OutOfRange "
                "/resources/ioMax/write/iops OutOfRange /resources/swapMax UnknownField");
        check_faults(NAMED(LOOP ",\"limits\":{\"read\":{\"iops\":0,\"iopsBurst\":5}},\"busyPollUs\":10001"),
                "/limits/read/iops OutOfRange /busyPollUs OutOfRange");
        check_faults(NAMED(LOOP ",\"cpus\":\"4096\""), "/cpus BadCpuList");
        check_faults(
                NAMED("\"target\":{\"type\":\"loop\",\"path\":\"/disk\",\"offset\":512},\"blockSize\":4096"),
                "/target/offset OffsetNotMultiple");
        check_faults(
                NAMED("\"target\":{\"type\":\"loop\",\"path\":\"/disk\",\"offset\":7},\"blockSize\":4096"),
                "/target/offset NotMultiple");
        check_faults(NAMED("\"target\":{\"type\":\"loop\"}"), "/target PathOrPool");
        device_spec_free(parse_good(NAMED(LOOP ",\"size\":1536,\"cpus\":\"0-4095\"")));
        device_spec_free(parse_good(NAMED("\"target\":{\"type\":\"null\"},\"size\":\"1TiB\",\"queues\":64")));
}

/* Whether the pool exists is not for the parser. */
static void test_pools(void)
{
        check_faults(NAMED(POOL), "/size PoolNeedsSize");
        check_faults(NAMED("\"target\":{\"type\":\"loop\",\"pool\":\"Fast\"},\"size\":512"),
                "/target/pool BadFormat");
        check_faults(NAMED("\"target\":{\"type\":\"loop\",\"pool\":\"fast\",\"offset\":512},\"size\":512"),
                "/target/offset OffsetInPool");
        check_faults(NAMED("\"target\":{\"type\":\"loop\",\"path\":\"/disk\",\"keep\":true}"),
                "/target/keep KeepWithoutPool");
        device_spec_free(parse_good(NAMED(POOL ",\"size\":512")));
        device_spec_free(
                parse_good(NAMED("\"target\":{\"type\":\"loop\",\"pool\":\"fast\",\"path\":\"/disk\","
                                 "\"offset\":0,\"keep\":true},\"size\":512")));
}

static void test_sentences(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;

        CHECK_INT(problem_add(&problems, 0, "/size", "Earlier", "of the caller"), 0);
        CHECK_INT(parse_as(NAMED("\"target\":{\"type\":\"null\"},\"queueDepth\":0"), NULL, &spec, &problems),
                -EINVAL);
        if (!CHECK_INT(problems.count, 3))
                return;
        CHECK_STR(problems.items[1].detail, "queueDepth is 0, below 1; give a number from 1 to 4096");
        CHECK_STR(problems.items[2].detail,
                "size is missing, and the target null has none of its own; give one, like \"1GiB\"");
}

static void test_name(void)
{
        static const char *const good[] = {"a", "0", "data", "vm-7.swap", "a..b", "a_b",
                "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-0123456789"};
        static const char *const bad[] = {"", ".", "..", "-", "a.", ".a", "a-", "A", "a b", "a/b", "a\n",
                "\xc3\xa4", "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-01234567890"};
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                if (!CHECK_INT(device_name_is_valid(good[i]), strlen(good[i]) <= DEVICE_NAME_MAX))
                        fprintf(stderr, "    for \"%s\"\n", good[i]);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (!CHECK(!device_name_is_valid(bad[i])))
                        fprintf(stderr, "    for \"%s\"\n", bad[i]);

        CHECK_INT(parse_as("{" LOOP "}", "data", &spec, &problems), 0);
        if (CHECK(spec)) {
                CHECK_STR(spec->options.name, "data");
                CHECK_STR(cJSON_GetObjectItem(spec->document, "name")->valuestring, "data");
        }
        spec = device_spec_free(spec);
        CHECK_INT(parse_as(NAMED(LOOP), "data", &spec, &problems), 0);
        spec = device_spec_free(spec);
        CHECK_INT(parse_as(NAMED(LOOP), "other", &spec, &problems), -EINVAL);
        CHECK_INT(problems.count, 1);
        CHECK_STR(problems.items[0].pointer, "/name");
        CHECK_STR(problems.items[0].reason, "NameMismatch");
        CHECK(!spec);
        problem_list_clear(&problems);
        CHECK_INT(parse_as("{" LOOP "}", "Not A Name", &spec, &problems), -EINVAL);
        CHECK_STR(problems.items[0].reason, "BadFormat");
}

/* What going from one to the other needs: "same", "live", or the field that wants a new disk. */
static const char *change_of(const char *from_text, const char *to_text, const struct disk_now *now)
{
        _cleanup_device_spec_ struct device_spec *from = parse_good(from_text), *to = parse_good(to_text);
        struct disk_change change = {.field = "live"}, untouched = {.field = "untouched"};

        CHECK_INT(device_spec_equal(from, to), device_spec_equal(to, from));
        CHECK(device_spec_equal(from, from) && device_spec_equal(to, to));
        CHECK(!device_spec_needs_new_disk(to, to, now, &untouched));
        CHECK_STR(untouched.field, "untouched");
        if (device_spec_equal(from, to)) {
                CHECK(!device_spec_needs_new_disk(from, to, now, NULL));
                return "same";
        }
        CHECK_INT(device_spec_needs_new_disk(from, to, now, &change),
                device_spec_needs_new_disk(from, to, now, NULL));
        return change.field;
}

static const char *change(const char *from_text, const char *to_text)
{
        return change_of(from_text, to_text, &(struct disk_now){.number = -1});
}

static void test_what_the_disk_can_follow(void)
{
        static const struct disk_now no_disk = {.number = 3}, old_kernel = {.number = 3, .size = 1 << 20},
                                     disk = {.number = 3, .size = 1 << 20, .can_grow = true};
        static const char one[] = NAMED(LOOP ",\"size\":\"1MiB\""), two[] = NAMED(LOOP ",\"size\":\"2MiB\""),
                          half[] = NAMED(LOOP ",\"size\":\"512KiB\""), none[] = NAMED(LOOP);
        struct disk_change why = {};
        _cleanup_device_spec_ struct device_spec *from = parse_good(one), *to = parse_good(half);

        CHECK_STR(change_of(one, two, &disk), "live");
        CHECK_STR(change_of(none, two, &disk), "live");
        CHECK_STR(change_of(one, none, &disk), "live"); /* the disk keeps its size */
        CHECK_STR(change_of(two, one, &disk), "live");  /* the disk has not grown yet */
        CHECK_STR(change_of(one, half, &disk), "size");
        CHECK_STR(change_of(one, two, &old_kernel), "size");
        CHECK_STR(change_of(none, one, &old_kernel), "live"); /* the spec names the size of the disk */
        CHECK_STR(change_of(one, two, &no_disk), "size");
        CHECK_STR(change_of(none, NAMED(LOOP ",\"id\":3"), &disk), "live");
        CHECK_STR(change_of(NAMED(LOOP ",\"id\":3"), none, &disk), "live");
        CHECK_STR(change_of(none, NAMED(LOOP ",\"id\":4"), &disk), "id");
        CHECK(device_spec_needs_new_disk(from, to, &disk, &why));
        CHECK_STR(why.field, "size");
        CHECK(why.why);
}

static void test_comparison(void)
{
#define CHANGE(members, wanted) CHECK_STR(change(NAMED(LOOP), NAMED(LOOP members)), wanted)
        CHANGE("", "same");
        CHANGE(",\"queues\":\"auto\",\"queueDepth\":128.0,\"maxIoSize\":1048576,\"readOnly\":false", "same");
        CHANGE(",\"dataPath\":\"auto\",\"recovery\":{\"onCrash\":\"reissue\",\"giveUpAfter\":\"0s\"}",
                "same");
        CHANGE(",\"owner\":{\"uid\":0,\"mode\":\"0660\"},\"labels\":{},\"enabled\":true", "same");
        CHANGE(",\"labels\":{\"a\":\"b\"}", "live");
        CHANGE(",\"owner\":{\"uid\":1}", "live");
        CHANGE(",\"enabled\":false", "live");
        CHANGE(",\"isolation\":\"ublkd\"", "same");
        CHANGE(KERNEL ",\"owner\":{\"gid\":7}", "isolation");
        CHECK_STR(change(NAMED(LOOP KERNEL ",\"owner\":{\"gid\":7}"),
                          NAMED(LOOP KERNEL ",\"owner\":{\"gid\":8}")),
                "owner");
        CHECK_STR(change(NAMED(LOOP KERNEL ",\"owner\":{\"gid\":7}"),
                          NAMED(LOOP KERNEL ",\"owner\":{\"gid\":7,\"mode\":\"0600\"}")),
                "live");
        CHANGE(",\"limits\":{\"read\":{\"iops\":1000}}", "live");
        CHANGE(",\"resources\":{\"cpuWeight\":50,\"memoryMax\":\"64MiB\",\"pidsMax\":100}", "live");
        CHANGE(",\"resources\":{\"ioMax\":{\"write\":{\"bytesPerSec\":\"1MiB\"}}}", "live");
        CHANGE(",\"resources\":{\"ioMax\":{\"read\":{}}}", "same");
        CHANGE(",\"limits\":{\"write\":{\"bytesPerSec\":\"1MiB\",\"bytesPerSecBurst\":\"2MiB\"}}", "live");
        CHANGE(",\"limits\":{\"read\":{},\"write\":{}},\"busyPollUs\":0", "same");
        CHANGE(",\"busyPollUs\":50", "live");
        CHANGE(",\"onFull\":\"error\"", "same");
        CHANGE(",\"onFull\":\"wait\"", "live");
        CHANGE(",\"partitions\":true", "same");
        CHANGE(",\"partitions\":false", "live");
        CHANGE(",\"privateNode\":true", "same");
        CHANGE(",\"privateNode\":false", "privateNode");
        CHANGE(",\"temporary\":false", "same");
        CHANGE(",\"temporary\":true", "live");
        CHANGE(",\"recovery\":{\"trigger\":\"manual\"}", "live");
        CHANGE(",\"recovery\":{\"giveUpAfter\":\"1s\"}", "live");
        CHANGE(",\"recovery\":{\"onCrash\":\"queue\"}", "recovery.onCrash");
        CHANGE(",\"recovery\":{\"onCrash\":\"queue\",\"trigger\":\"manual\"}", "recovery.onCrash");
        CHANGE(",\"size\":512", "size");
        CHANGE(",\"blockSize\":512", "blockSize");
        CHANGE(",\"queues\":1", "queues");
        CHANGE(",\"queueDepth\":1", "queueDepth");
        CHANGE(",\"maxIoSize\":4096", "maxIoSize");
        CHANGE(",\"readOnly\":true", "readOnly");
        CHANGE(",\"dataPath\":\"copy\"", "dataPath");
        CHANGE(",\"id\":0", "id");
        CHANGE(",\"cpus\":\"0\"", "cpus");
        CHANGE(",\"labels\":{\"a\":\"b\"},\"cpus\":\"0\"", "cpus");
#undef CHANGE
        CHECK_STR(
                change(NAMED(LOOP), NAMED("\"target\":{\"path\":\"/disk\",\"offset\":0,\"type\":\"loop\"}")),
                "same");
        CHECK_STR(change(NAMED(LOOP), NAMED("\"target\":{\"type\":\"loop\",\"path\":\"/disc\"}")), "target");
        CHECK_STR(change(NAMED(LOOP ",\"size\":512"), NAMED("\"target\":{\"type\":\"null\"},\"size\":512")),
                "target");
        CHECK_STR(
                change(NAMED(POOL ",\"size\":512"),
                        NAMED("\"target\":{\"type\":\"loop\",\"pool\":\"fast\",\"keep\":true},\"size\":512")),
                "live");
        CHECK_STR(change(NAMED(POOL ",\"size\":512"),
                          NAMED("\"target\":{\"type\":\"loop\",\"pool\":\"slow\"},\"size\":512")),
                "target");
        CHECK_STR(change(NAMED(LOOP ",\"size\":\"1GiB\""), NAMED(LOOP ",\"size\":1073741824")), "same");
}

/* The order of the enums in C is that of the schema. */
static void test_enums(void)
{
        const char *const *paths = option_find(&device_spec_table, "dataPath")->names;
        const char *const *on_crash =
                option_find(option_find(&device_spec_table, "recovery")->table, "onCrash")->names;

        for (enum data_path path = 0; path < _DATA_PATH_MAX; path++)
                CHECK_STR(data_path_to_string(path), paths[path]);
        CHECK(!paths[_DATA_PATH_MAX]);
        CHECK_STR(on_crash[ON_CRASH_DEFAULT], "");
        CHECK_STR(on_crash[ON_CRASH_REISSUE], "reissue");
        CHECK_STR(on_crash[ON_CRASH_QUEUE], "queue");
        CHECK_STR(on_crash[ON_CRASH_FAIL], "fail");
        CHECK_STR(on_crash[ON_CRASH_NONE], "none");
        CHECK(!option_find(&device_spec_table, "dataPath")->names[_DATA_PATH_MAX]);
        CHECK(!on_crash[_ON_CRASH_MAX]);
        CHECK_STR(option_find(option_find(&device_spec_table, "recovery")->table, "trigger")
                          ->names[TRIGGER_MANUAL],
                "manual");
        CHECK_STR(option_find(&device_spec_table, "isolation")->names[ISOLATION_KERNEL], "kernel");
        CHECK(!option_find(&device_spec_table, "isolation")->names[_ISOLATION_MAX]);
        CHECK_INT(option_find(&device_spec_table, "queues")->maximum, QUEUES_MAX);
        CHECK_INT(option_find(&device_spec_table, "id")->maximum, DEVICE_NUMBER_MAX);
        CHECK_INT(option_find(&device_spec_table, "name")->length_max, DEVICE_NAME_MAX);
}

int main(void)
{
        test_defaults();
        test_everything();
        test_schema_faults();
        test_names();
        test_rules();
        test_pools();
        test_sentences();
        test_name();
        test_comparison();
        test_what_the_disk_can_follow();
        test_enums();
        CHECK(!device_spec_free(NULL));
        return check_report();
}
