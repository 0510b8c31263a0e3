/* SPDX-License-Identifier: MIT */
/* device_store: a disk that a client stops until the next boot. */
#include "ublkd/store/device_store.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include <errno.h>

int main(void)
{
        const struct device_backend *backend;
        const struct device_record *record;
        struct device_store *store = NULL;
        void *context;

        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK_INT(put_null_disk(store, "data", ""), 0);
        CHECK_INT(device_store_request_stop(store, "absent"), -ENOENT);
        CHECK_INT(device_store_request_start(store, "absent"), -ENOENT);
        record = device_store_get(store, "data");
        CHECK(device_record_enabled(record));
        CHECK_INT(device_store_request_recover(store, "data"), 0);
        CHECK_INT(device_store_request_stop(store, "data"), 0);
        CHECK_INT(device_store_request_stop(store, "data"), 0);
        CHECK(record->stopped && !device_record_enabled(record) && !record->recover_requested);
        CHECK_INT(record->generation, 1);
        CHECK_INT(put_null_disk(store, "data", ",\"queueDepth\":2"), 0);
        CHECK(record->stopped); /* no change of the spec starts it */
        CHECK_INT(device_store_request_start(store, "data"), 0);
        CHECK_INT(device_store_request_start(store, "data"), 0);
        CHECK(device_record_enabled(record));
        CHECK_INT(device_store_request_stop(store, "data"), 0);
        CHECK_INT(put_null_disk(store, "data", ",\"enabled\":false"), 0);
        CHECK(!record->stopped); /* the spec says it now: who enables it again wants a disk */
        device_store_free(store);
        return check_report();
}
