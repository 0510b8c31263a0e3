/* SPDX-License-Identifier: MIT */
/* service_summary: the line that names what is wrong, and only that. */
#include "ublkd/host/service_summary.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

static struct device_store *store;

static void check_text(size_t host_problems, const char *wanted)
{
        char text[SERVICE_SUMMARY_SIZE];

        service_summary(store, host_problems, text);
        CHECK_STR(text, wanted);
}

static void set(const char *name, enum device_phase phase, enum condition_reason reason)
{
        CHECK_INT(device_store_set_status(store, name,
                          &(const struct device_status){.phase = phase, .reason = reason, .number = -1}),
                0);
}

static void set_condition(const char *name, enum condition_status condition)
{
        struct device_status status = {.phase = PHASE_LIVE, .reason = REASON_LIVE, .number = -1};

        CHECK_INT(device_condition_set(&status.conditions.of[CONDITION_DURABLE], condition,
                          REASON_FLUSH_FAILED, "A sentence."),
                0);
        CHECK_INT(device_store_set_status(store, name, &status), 0);
        device_status_clear(&status);
}

static void names_what_is_wrong(void)
{
        check_text(0, "0 devices, 0 Live");
        CHECK_INT(put_null_disk(store, "a", ""), 0);
        check_text(0, "1 device, 0 Live");
        set("a", PHASE_LIVE, REASON_LIVE);
        check_text(0, "1 device, 1 Live");
        set_condition("a", CONDITION_TRUE);
        check_text(0, "1 device, 1 Live");
        set_condition("a", CONDITION_FALSE);
        check_text(0, "1 device, 1 Live; a: FlushFailed");
        CHECK_INT(put_null_disk(store, "b", ""), 0);
        set("b", PHASE_BACKOFF, REASON_BACKING_CHANGED);
        check_text(1, "2 devices, 1 Live; a: FlushFailed; b: BackingChanged; 1 problem of the host, see "
                      "'ublkctl host'");
        for (int i = 0; i < _PHASE_MAX; i++) {
                bool is_well =
                        i != PHASE_BACKOFF && i != PHASE_QUIESCED && i != PHASE_FAILED && i != PHASE_UNKNOWN;
                char text[SERVICE_SUMMARY_SIZE];

                set("b", (enum device_phase)i, REASON_BACKING_CHANGED);
                service_summary(store, 0, text);
                CHECK(!strstr(text, "b: ") == is_well);
        }
}

static void names_three_devices(void)
{
        static const char *const names[] = {"c", "d", "e"};

        set("a", PHASE_LIVE, REASON_LIVE);
        set("b", PHASE_FAILED, REASON_BACKING_CHANGED);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                CHECK_INT(put_null_disk(store, names[i], ""), 0);
                set(names[i], PHASE_FAILED, REASON_BACKING_CHANGED);
        }
        check_text(0, "5 devices, 1 Live; b: BackingChanged; c: BackingChanged; d: BackingChanged; 1 more "
                      "with problems");
}

int main(void)
{
        const struct device_backend *backend;
        void *context;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        names_what_is_wrong();
        names_three_devices();
        device_store_free(store);
        return check_report();
}
