/* SPDX-License-Identifier: MIT */
/* tenant_text: what a tenant reads of a message, for each reason. */
#include "ublkd/model/tenant_text.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/model/device_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE "It is in use by process 4211 (secret), mounted at /home/bob."

/* Their messages name others, or may quote one that does. A new reason is not shown in full until it has a row. */
static const enum condition_reason kept_from_tenants[] = {
        REASON_HOST_NOT_READY,
        REASON_CANNOT_GROW,
        REASON_CANNOT_RESTART,
        REASON_RECOVERING,
        REASON_WAITS_FOR_RECOVER,
        REASON_GAVE_UP,
        REASON_DELETING,
        REASON_DISABLING,
        REASON_DISABLED,
        REASON_STOPPED,
        REASON_REPLACING,
        REASON_RESTARTING,
        REASON_NOT_YET_KNOWN,
        REASON_QUARANTINED,
        REASON_RECORD_REMOVED,
        REASON_RECORD_OUTDATED,
        REASON_RECORD_NOT_KEPT,
        REASON_NOT_STORED,
        REASON_STORE_FAILED,
        REASON_RUNTIME_DIRECTORY_GONE,
        REASON_UPGRADE_STOPPED,
        REASON_UPGRADE_PASSED_OVER,
        REASON_NOT_STARTED_BY_UBLKD,
        REASON_IN_USE,
        REASON_STILL_HELD,
        REASON_DISK_OF_NO_DEVICE,
        REASON_BACKING_IN_USE,
        REASON_BACKING_SHARE_UNKNOWN,
        REASON_BACKING_STACK_UNREADABLE,
        REASON_BACKING_READ,
        REASON_PATH_LEADS_ELSEWHERE,
        REASON_NUMBER_RELEASED,
        REASON_ADOPTED,
        REASON_OWNED_BY_FILE,
        REASON_FILE_INVALID,
        REASON_FILE_REFUSED,
        REASON_FILE_GONE,
        REASON_SWAP_NEEDS_MEMORY,
        REASON_OTHER,
};

static bool is_kept(enum condition_reason reason)
{
        for (size_t i = 0; i < ARRAY_SIZE(kept_from_tenants); i++)
                if (kept_from_tenants[i] == reason)
                        return true;
        return false;
}

static void test_each_reason(void)
{
        for (int i = REASON_NONE; i < (int)_REASON_MAX; i++) {
                enum condition_reason reason = (enum condition_reason)i;
                const char *text = tenant_text(READER_TENANT, reason, MESSAGE);
                bool shown = text && strcmp(text, MESSAGE) == 0;

                CHECK_STR(tenant_text(READER_OF_ALL, reason, MESSAGE), MESSAGE);
                if (!CHECK_INT(shown, !is_kept(reason)) || !CHECK_INT(tenant_text_is_full(reason), shown))
                        fprintf(stderr, "that is %s\n", reason_to_string(reason));
                CHECK(text && *text && !strstr(text, "4211") && !strstr(text, "/home") ? !shown : shown);
        }
}

static void test_a_reason_of_another_version(void)
{
        enum condition_reason reason = reason_from_string("OfTheFuture");

        CHECK(reason >= _REASON_MAX);
        CHECK(!tenant_text_is_full(reason));
        CHECK(!strstr(tenant_text(READER_TENANT, reason, MESSAGE), "4211"));
}

static void test_no_message(void)
{
        CHECK(!tenant_text(READER_TENANT, REASON_IN_USE, NULL));
}

/* The JSON of the status has the message of Ready, the cause, and the messages of the other conditions. */
static void test_status(void)
{
        struct device_status status = {.number = -1, .phase = PHASE_BACKOFF};

        CHECK_INT(device_status_explain(&status, REASON_WAITS_FOR_RECOVER, MESSAGE), 0);
        CHECK_INT(device_status_set_cause(&status, MESSAGE), 0);
        CHECK_INT(device_condition_set(&status.conditions.of[CONDITION_SPACE], CONDITION_FALSE,
                          REASON_BACKING_IN_USE, MESSAGE),
                0);
        status.quoted = REASON_BACKING_IN_USE;
        for (int reader = READER_OF_ALL; reader <= READER_TENANT; reader++) {
                cJSON *object = device_status_to_json(&status, "data", (enum reader)reader);
                char *text = object ? cJSON_PrintUnformatted(object) : NULL;

                if (CHECK(text))
                        CHECK_INT(strstr(text, "4211") != NULL, reader == READER_OF_ALL);
                free(text);
                cJSON_Delete(object);
        }
        status.quoted = REASON_WORKER_DIED;
        CHECK_STR(device_status_message(&status, READER_TENANT), MESSAGE);
        device_status_clear(&status);
}

static void test_event(void)
{
        struct device_event event = {.device = (char *)"data",
                .uid = (char *)"u",
                .reason = REASON_WAITS_FOR_RECOVER,
                .message = (char *)MESSAGE};
        cJSON *object = device_event_to_json(&event, READER_TENANT);

        CHECK_STR(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "message")),
                reason_info(REASON_WAITS_FOR_RECOVER)->meaning);
        cJSON_Delete(object);
}

int main(void)
{
        test_each_reason();
        test_a_reason_of_another_version();
        test_no_message();
        test_status();
        test_event();
        return check_report();
}
