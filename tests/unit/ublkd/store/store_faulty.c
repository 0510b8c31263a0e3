/* SPDX-License-Identifier: MIT */
/* Hands every call on, unless it is to fail. */
#include "tests/unit/ublkd/store/store_faulty.h"

static int faulty_load(void *context,
        int (*each)(void *userdata, const struct device_record *record, const char *document), void *userdata,
        struct store_stamp *ret)
{
        const struct store_faulty *faulty = context;

        return faulty->real->load(faulty->real_context, each, userdata, ret);
}

static int faulty_save(void *context, const struct device_record *record, const char *document,
        uint64_t revision, const struct device_event *event)
{
        const struct store_faulty *faulty = context;

        if (faulty->write_error)
                return faulty->write_error;
        return faulty->real->save(faulty->real_context, record, document, revision, event);
}

static int faulty_save_actions(void *context, const char *name, const char *actions, uint64_t revision,
        const struct device_event *event)
{
        const struct store_faulty *faulty = context;

        if (faulty->write_error)
                return faulty->write_error;
        return faulty->real->save_actions
                       ? faulty->real->save_actions(faulty->real_context, name, actions, revision, event)
                       : 0;
}

static int faulty_erase(void *context, const char *name, uint64_t revision, const struct device_event *event)
{
        const struct store_faulty *faulty = context;

        if (faulty->write_error || faulty->erase_error)
                return faulty->write_error ? faulty->write_error : faulty->erase_error;
        return faulty->real->erase(faulty->real_context, name, revision, event);
}

static int faulty_save_revision(void *context, uint64_t revision)
{
        const struct store_faulty *faulty = context;

        if (faulty->write_error)
                return faulty->write_error;
        return faulty->real->save_revision(faulty->real_context, revision);
}

static int faulty_load_events(void *context, int (*each)(void *userdata, const struct device_event *event),
        void *userdata, uint64_t *ret_compacted)
{
        const struct store_faulty *faulty = context;

        return faulty->real->load_events(faulty->real_context, each, userdata, ret_compacted);
}

static int faulty_save_events(void *context, const struct device_event *const *events, size_t count,
        uint64_t compacted, const struct event_floors *floors)
{
        const struct store_faulty *faulty = context;

        if (faulty->write_error)
                return faulty->write_error;
        return faulty->real->save_events(faulty->real_context, events, count, compacted, floors);
}

static int faulty_check(void *context)
{
        struct store_faulty *faulty = context;

        faulty->checks++;
        if (faulty->check_error)
                return faulty->check_error;
        return faulty->real->check ? faulty->real->check(faulty->real_context) : 0;
}

static void faulty_close(void *context)
{
        const struct store_faulty *faulty = context;

        faulty->real->close(faulty->real_context);
}

const struct device_backend store_faulty_backend = {
        .name = "faulty",
        .load = faulty_load,
        .save = faulty_save,
        .save_actions = faulty_save_actions,
        .erase = faulty_erase,
        .save_revision = faulty_save_revision,
        .load_events = faulty_load_events,
        .save_events = faulty_save_events,
        .check = faulty_check,
        .close = faulty_close,
};
