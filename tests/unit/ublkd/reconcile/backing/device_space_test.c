/* SPDX-License-Identifier: MIT */
/* device_space: little room below a sparse file is a condition, and one event when it begins and when it ends. The path
 * watcher and the runtime directory are not there. */
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>

static struct path_view view = {.state = PATH_SAME};
static enum condition_reason emitted[8];
static size_t emitted_count;

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch);
int __wrap_runtime_dir_open_region(struct runtime_dir *dir, const char *uid);
void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch)
{
        (void)watch;
        return &view;
}

int __wrap_runtime_dir_open_region(struct runtime_dir *dir, const char *uid)
{
        (void)dir;
        (void)uid;
        return -ENOENT;
}

void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...)
{
        (void)device;
        CHECK_INT(type, reason == REASON_STORE_LOW ? EVENT_WARNING : EVENT_NORMAL);
        CHECK(*format);
        if (emitted_count < ARRAY_SIZE(emitted))
                emitted[emitted_count++] = reason;
}

static struct device_spec spec;
static const struct device_record record = {.spec = &spec};

static enum condition_reason look(struct managed_device *device)
{
        struct device_condition condition = {};

        device_space_read(device, &record);
        CHECK_INT(device_space_condition(device, &record, &condition), 0);
        free(condition.message);
        return condition.reason;
}

int main(void)
{
        const struct surroundings env = {};
        struct managed_device device = {
                .env = &env, .path.watch = (struct path_watch *)&view, .view.facts.kernel = KERNEL_LIVE};

        CHECK_INT(look(&device), REASON_NONE);
        view.room = (struct path_room){.known = true, .low = true, .missing = 1 << 30, .available = 1 << 20};
        CHECK_INT(look(&device), REASON_STORE_LOW);
        view.room.available /= 4;
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 1);
        CHECK_INT(emitted[0], REASON_STORE_LOW);
        view.room = (struct path_room){}; /* the file was deleted: its file system is as full as before */
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 1);
        view.room = (struct path_room){.known = true};
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 2);
        CHECK_INT(emitted[1], REASON_STORE_NOT_LOW);
        spec.options.read_only = true; /* no write can find none */
        view.room = (struct path_room){.known = true, .low = true, .missing = 1 << 30, .available = 1 << 20};
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 2);
        return check_report();
}
