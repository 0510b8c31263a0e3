/* SPDX-License-Identifier: MIT */
/* device_status: copies, comparison, and the JSON that the API shows. */
#include "ublkd/model/device_status.h"

#include "tests/unit/check.h"

static struct device_status live_status(void)
{
        struct device_status status = {
                .phase = PHASE_LIVE,
                .observed_generation = 3,
                .number = 0,
                .disk = true,
                .node = "/dev/ublk/private/11-22",
                .size = 4096,
                .worker = {.pid = 4211,
                           .restarts = 2,
                           .started_at = UINT64_C(1700000000123456),
                           .version = "0.1.0"},
                .data_path = "zero-copy",
                .data_path_reason = "The spec asks for it.",
                .batch = true,
                .kernel_flags = 1 << 3 | 1 << 6,
                .recoveries = {.count = 2, .last_ms = 14.249},
                .transition_at = UINT64_C(951782400000000), /* 29 February */
        };

        CHECK_INT(device_status_explain(&status, REASON_LIVE, "Serving %s.", "data"), 0);
        return status;
}

static void check_json(const struct device_status *status, const char *wanted)
{
        cJSON *object = device_status_to_json(status, "data", READER_OF_ALL);
        char *text = cJSON_PrintUnformatted(object);

        CHECK_STR(text, wanted);
        cJSON_free(text);
        cJSON_Delete(object);
}

static void check_condition_json(const cJSON *condition, const char *wanted)
{
        char *text = cJSON_PrintUnformatted(condition);

        CHECK_STR(text, wanted);
        cJSON_free(text);
}

static void test_json_of_a_live_device(void)
{
        struct device_status status = live_status();

        check_json(&status,
                "{\"phase\":\"Live\",\"observedGeneration\":3,\"device\":\"/dev/"
                "ublkb0\",\"node\":\"/dev/ublk/private/11-22\",\"id\":0,\"size\":4096,"
                "\"links\":[\"/dev/ublk/by-name/data\"],"
                "\"worker\":{\"pid\":4211,\"restarts\":2,\"startedAt\":\"2023-11-14T22:13:20.123Z\","
                "\"version\":\"0.1.0\"},\"needsRestart\":false,"
                "\"dataPath\":\"zero-copy\",\"dataPathReason\":\"The spec asks for it.\",\"batch\":true,"
                "\"kernelFeatures\":[\"USER_RECOVERY\",\"CMD_IOCTL_ENCODE\"],"
                "\"recoveries\":{\"count\":2,\"lastMs\":14.2},"
                "\"backing\":null,\"writeErrors\":null,\"ioErrors\":[],\"nextTryAt\":null,\"attempts\":0,"
                "\"cause\":null,"
                "\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"True\",\"reason\":"
                "\"Live\","
                "\"message\":\"Serving data.\",\"lastTransitionTime\":\"2000-02-29T00:00:00.000Z\"}]}");
        device_status_clear(&status);
}

/* It is there only if there is some. */
static void test_json_of_kept_memory(void)
{
        struct device_status status = live_status(), other = live_status();
        cJSON *object;

        CHECK(device_status_equal(&status, &other));
        status.kept_bytes = 65536;
        CHECK(!device_status_equal(&status, &other));
        object = device_status_to_json(&status, "data", READER_OF_ALL);
        CHECK_INT(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, "keptBytes")), 65536);
        cJSON_Delete(object);
        object = device_status_to_json(&other, "data", READER_OF_ALL);
        CHECK(!cJSON_GetObjectItemCaseSensitive(object, "keptBytes"));
        cJSON_Delete(object);
        device_status_clear(&status);
        device_status_clear(&other);
}

/* A flush has no place. */
static void test_json_of_io_errors(void)
{
        const struct io_errors errors = {
                .of[STATS_WRITE] = {.count = 17,
                                    .at = 1700000000123000,
                                    .offset = UINT64_C(1) << 42,
                                    .length = 4096,
                                    .error = ENOSPC},
                .of[STATS_FLUSH] = {.count = 1, .at = 1700000000123000, .error = 4000},
        };
        cJSON *object = cJSON_CreateObject();
        char *text;

        CHECK(io_errors_add(&errors, object, "ioErrors"));
        text = cJSON_PrintUnformatted(object);
        CHECK_STR(text,
                "{\"ioErrors\":[{\"op\":\"write\",\"count\":17,\"errno\":\"ENOSPC\","
                "\"at\":\"2023-11-14T22:13:20.123Z\",\"offset\":4398046511104,\"length\":4096},"
                "{\"op\":\"flush\",\"count\":1,\"errno\":\"other\",\"at\":\"2023-11-14T22:13:20.123Z\","
                "\"offset\":null,\"length\":null}]}");
        cJSON_free(text);
        cJSON_Delete(object);
}

static void test_json_without_disk_and_worker(void)
{
        const struct device_status status = {.phase = PHASE_PENDING, .number = -1};
        const struct device_status unknown = {
                .phase = PHASE_UNKNOWN, .number = -1, .reason = REASON_NOT_YET_KNOWN};
        const struct device_status numbered = {.phase = PHASE_DISABLED, .number = 7};

        check_json(&status,
                "{\"phase\":\"Pending\",\"observedGeneration\":0,\"device\":null,\"node\":null,\"id\":null,"
                "\"size\":null,"
                "\"links\":[],"
                "\"worker\":null,\"needsRestart\":false,"
                "\"dataPath\":null,\"dataPathReason\":null,\"batch\":null,"
                "\"kernelFeatures\":[],\"recoveries\":{\"count\":0,\"lastMs\":0},"
                "\"backing\":null,\"writeErrors\":null,\"ioErrors\":[],\"nextTryAt\":null,\"attempts\":0,"
                "\"cause\":null,"
                "\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"False\",\"reason\":"
                "\"Pending\",\"message\":"
                "\"\","
                "\"lastTransitionTime\":null}]}");
        check_json(&unknown,
                "{\"phase\":null,\"observedGeneration\":0,\"device\":null,\"node\":null,\"id\":null,\"size\":"
                "null,"
                "\"links\":[],"
                "\"worker\":null,\"needsRestart\":false,"
                "\"dataPath\":null,\"dataPathReason\":null,\"batch\":null,"
                "\"kernelFeatures\":[],\"recoveries\":{\"count\":0,\"lastMs\":0},"
                "\"backing\":null,\"writeErrors\":null,\"ioErrors\":[],\"nextTryAt\":null,\"attempts\":0,"
                "\"cause\":null,"
                "\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"Unknown\",\"reason\":"
                "\"NotYetKnown\","
                "\"message\":"
                "\"\","
                "\"lastTransitionTime\":null}]}");
        check_json(&numbered,
                "{\"phase\":\"Disabled\",\"observedGeneration\":0,\"device\":null,\"node\":null,\"id\":7,"
                "\"size\":null,"
                "\"links\":[],"
                "\"worker\":null,\"needsRestart\":false,"
                "\"dataPath\":null,\"dataPathReason\":null,\"batch\":null,"
                "\"kernelFeatures\":[],\"recoveries\":{\"count\":0,\"lastMs\":0},"
                "\"backing\":null,\"writeErrors\":null,\"ioErrors\":[],\"nextTryAt\":null,\"attempts\":0,"
                "\"cause\":null,"
                "\"conditions\":[{\"type\":"
                "\"Ready\",\"status\":\"False\",\"reason\":"
                "\"Disabled\","
                "\"message\":\"\","
                "\"lastTransitionTime\":null}]}");
}

static void test_copy_and_compare(void)
{
        struct device_status one = live_status(), other;

        if (!CHECK_INT(device_status_copy(&one, &other), 0))
                return;
        CHECK(device_status_equal(&one, &other));
        CHECK(one.message != other.message);
        CHECK_INT(device_status_explain(&other, REASON_LIVE, "Serving something else."), 0);
        CHECK(!device_status_equal(&one, &other));
        device_status_clear(&other);
        CHECK(!device_status_equal(&one, &other));
        CHECK_INT(other.number, -1);
        device_status_clear(&other);
        device_status_clear(&one);
}

static void test_json_of_a_store_that_was_replaced(void)
{
        struct device_status status = {
                .phase = PHASE_FAILED,
                .backing = {.known = true,
                            .kept = false,
                            .identity = {.basis = BACKING_DISK_WWID,
                                .is_disk = true,
                                .boot = "diskseq:3+0",
                                .lasting = "wwid:naa.5000"},
                            .found = {.basis = BACKING_DISK_SEQUENCE, .is_disk = true, .boot = "diskseq:9+0"}}
        };
        cJSON *object = device_status_to_json(&status, "data", READER_OF_ALL);
        const cJSON *backing = cJSON_GetObjectItem(object, "backing"),
                    *found = cJSON_GetObjectItem(backing, "found");

        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(backing, "identity")), "wwid:naa.5000");
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(backing, "basis")), "wwid");
        CHECK(cJSON_IsTrue(cJSON_GetObjectItem(backing, "lasting")));
        CHECK(cJSON_IsFalse(cJSON_GetObjectItem(backing, "kept")));
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(found, "identity")), "diskseq:9+0");
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(found, "basis")), "diskseq");
        CHECK(cJSON_IsFalse(cJSON_GetObjectItem(found, "lasting")));
        cJSON_Delete(object);
}

static void test_a_device_without_a_link(void)
{
        struct device_status status = live_status();
        cJSON *object = device_status_to_json(&status, NULL, READER_OF_ALL);

        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(object, "device")), "/dev/ublkb0");
        CHECK(cJSON_IsArray(cJSON_GetObjectItem(object, "links")));
        CHECK_INT(cJSON_GetArraySize(cJSON_GetObjectItem(object, "links")), 0);
        cJSON_Delete(object);
        device_status_clear(&status);
}

static void test_conditions_beside_ready(void)
{
        struct device_status one = live_status(), other;
        struct device_condition *path = &one.conditions.of[CONDITION_PATH_LEADS_TO_STORE];
        const cJSON *conditions;
        cJSON *object;

        CHECK_INT(device_condition_set(
                          path, CONDITION_UNKNOWN, REASON_PATH_UNKNOWN, "%d looks were in vain.", 3),
                0);
        if (!CHECK_INT(device_status_copy(&one, &other), 0))
                return;
        CHECK(device_status_equal(&one, &other));
        CHECK_INT(
                device_condition_set(path, CONDITION_TRUE, REASON_PATH_UNKNOWN, "3 looks were in vain."), 0);
        CHECK(!device_status_equal(&one, &other));
        object = device_status_to_json(&other, "data", READER_OF_ALL);
        conditions = cJSON_GetObjectItem(object, "conditions");
        CHECK_INT(cJSON_GetArraySize(conditions), 2);
        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(conditions, 0), "type")),
                "Ready");
        check_condition_json(cJSON_GetArrayItem(conditions, 1),
                "{\"type\":\"PathLeadsToStore\",\"status\":\"Unknown\",\"reason\":\"PathUnknown\","
                "\"message\":\"3 looks were in vain.\",\"lastTransitionTime\":null}");
        cJSON_Delete(object);
        device_status_clear(&other);
        device_status_clear(&one);
}

/* Its time is that of the last change between True, False and Unknown, whatever the sentence. */
static void test_times_of_conditions(void)
{
        struct device_conditions before = {}, after = {};
        struct device_condition *old = &before.of[0], *new = &after.of[0];

        device_conditions_set_times(&before, &after, 5);
        CHECK_INT(new->transition_at, 0);
        CHECK_INT(device_condition_set(old, CONDITION_TRUE, REASON_PATH_UNKNOWN, "one"), 0);
        device_conditions_set_times(&after, &before, 5);
        CHECK_INT(old->transition_at, 5);
        CHECK_INT(device_condition_set(new, CONDITION_TRUE, REASON_PATH_GONE, "two"), 0);
        device_conditions_set_times(&before, &after, 6);
        CHECK_INT(new->transition_at, 5);
        CHECK_INT(device_condition_set(new, CONDITION_FALSE, REASON_PATH_GONE, "two"), 0);
        device_conditions_set_times(&before, &after, 7);
        CHECK_INT(new->transition_at, 7);
        device_conditions_clear(&before);
        device_conditions_clear(&after);
}

int main(void)
{
        test_json_of_a_live_device();
        test_json_of_kept_memory();
        test_json_of_io_errors();
        test_json_without_disk_and_worker();
        test_json_of_a_store_that_was_replaced();
        test_copy_and_compare();
        test_a_device_without_a_link();
        test_conditions_beside_ready();
        test_times_of_conditions();
        return check_report();
}
