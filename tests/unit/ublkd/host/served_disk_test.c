/* SPDX-License-Identifier: MIT */
/* served_disk_describe: which device the worker serves, as a phrase. */
#include "ublkd/host/served_disk.h"
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"

enum { WORKER = 53 };

#define SPEC "{\"name\":\"top\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\"}"

static void put(struct device_store *store)
{
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        struct problem_list problems = {};
        const struct device_record *record;
        struct device_spec *spec = NULL;
        enum put_outcome outcome;
        cJSON *document = cJSON_Parse(SPEC);

        CHECK_INT(device_spec_parse(document, NULL, &spec, &problems), 0);
        CHECK_INT(device_store_put(store, spec, &condition, &record, &outcome, &problems), 0);
        cJSON_Delete(document);
        problem_list_clear(&problems);
}

static void set_status(struct device_store *store, int number)
{
        struct device_status status = {.phase = PHASE_STARTING, .number = number, .worker.pid = WORKER};

        CHECK_INT(device_status_explain(&status, REASON_STARTING, "It starts."), 0);
        CHECK_INT(device_store_set_status(store, "top", &status), 0);
        device_status_clear(&status);
}

/* The record has the number -1 here: "/dev/ublkb-1" was shown. */
int main(void)
{
        const struct device_backend *backend;
        struct device_store *store = NULL;
        void *context;
        char text[160];

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        put(store);
        CHECK(!served_disk_describe(store, WORKER, text, sizeof(text)));
        set_status(store, -1);
        CHECK(served_disk_describe(store, WORKER, text, sizeof(text)));
        CHECK_STR(text, "the device top (served by process 53)");
        set_status(store, 9);
        CHECK(served_disk_describe(store, WORKER, text, sizeof(text)));
        CHECK_STR(text, "the device top (/dev/ublkb9, served by process 53)");
        CHECK(!served_disk_describe(store, WORKER + 1, text, sizeof(text)));
        device_store_free(store);
        return check_report();
}
