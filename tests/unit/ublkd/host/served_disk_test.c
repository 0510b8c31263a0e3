/* SPDX-License-Identifier: MIT */
/* served_disk_describe: which device the worker serves, as a phrase. */
#include "ublkd/host/served_disk.h"
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

enum { WORKER = 53 };

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
        CHECK_INT(put_null_disk(store, "top", ""), 0);
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
