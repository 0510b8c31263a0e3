/* SPDX-License-Identifier: MIT */
/* The backend that stores nothing, for tests. */
#include "ublkd/store/device_store.h"

typedef int (*load_each)(void *userdata, const struct device_record *record, const char *document);

static int memory_load(
        void *context _unused_, load_each each _unused_, void *userdata _unused_, struct store_stamp *ret)
{
        *ret = (struct store_stamp){};
        return 0;
}

static int memory_save(void *context _unused_, const struct device_record *record _unused_,
        const char *document _unused_, uint64_t revision _unused_, const struct device_event *event _unused_)
{
        return 0;
}

static int memory_erase(void *context _unused_, const char *name _unused_, uint64_t revision _unused_,
        const struct device_event *event _unused_)
{
        return 0;
}

static int memory_save_revision(void *context _unused_, uint64_t revision _unused_)
{
        return 0;
}

static int memory_load_events(void *context _unused_,
        int (*each)(void *userdata, const struct device_event *event) _unused_, void *userdata _unused_,
        uint64_t *ret_compacted)
{
        *ret_compacted = 0;
        return 0;
}

static int memory_save_events(void *context _unused_, const struct device_event *const *events _unused_,
        size_t count _unused_, uint64_t compacted _unused_, const struct event_floors *floors _unused_)
{
        return 0;
}

static void memory_close(void *context _unused_)
{
}

static const struct device_backend memory_backend = {
        .name = "memory",
        .load = memory_load,
        .save = memory_save,
        .erase = memory_erase,
        .save_revision = memory_save_revision,
        .load_events = memory_load_events,
        .save_events = memory_save_events,
        .close = memory_close,
};

int store_memory_open(const struct device_backend **ret_backend, void **ret_context)
{
        *ret_backend = &memory_backend;
        *ret_context = NULL;
        return 0;
}
