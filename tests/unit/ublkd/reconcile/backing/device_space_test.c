/* SPDX-License-Identifier: MIT */
/* device_space: little room below a sparse file is a condition, and one event when it begins and when it ends. The path
 * watcher and the runtime directory are not there. */
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct path_view views[2] = {{.state = PATH_SAME}, {.state = PATH_SAME}};
static enum condition_reason emitted[8];
static size_t emitted_count;
static char sentence[512]; /* of the last one */

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch);
int __wrap_runtime_dir_open_region(struct runtime_dir *dir, const char *uid);
void _printf_(4, 5) __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch)
{
        return (const struct path_view *)watch;
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
        va_list arguments;

        (void)device;
        va_start(arguments, format);
        (void)vsnprintf(sentence, sizeof(sentence), format, arguments);
        va_end(arguments);
        CHECK_INT(type, reason == REASON_STORE_LOW ? EVENT_WARNING : EVENT_NORMAL);
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

static void one_file(struct path_view *view)
{
        const struct surroundings env = {};
        struct watched_path path = {.watch = (struct path_watch *)view};
        struct managed_device device = {
                .env = &env, .path = {.paths = &path, .count = 1},
                     .view.facts.kernel = KERNEL_LIVE
        };

        CHECK_INT(look(&device), REASON_NONE);
        view->room = (struct path_room){.known = true, .low = true, .missing = 1 << 30, .available = 1 << 20};
        CHECK_INT(look(&device), REASON_STORE_LOW);
        view->room.available /= 4;
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 1);
        CHECK_INT(emitted[0], REASON_STORE_LOW);
        view->room = (struct path_room){}; /* the file was deleted: its file system is as full as before */
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 1);
        view->room = (struct path_room){.known = true};
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 2);
        CHECK_INT(emitted[1], REASON_STORE_NOT_LOW);
        CHECK(!strstr(sentence, "/target"));
        spec.options.read_only = true; /* no write can find none */
        view->room = (struct path_room){.known = true, .low = true, .missing = 1 << 30, .available = 1 << 20};
        CHECK_INT(look(&device), REASON_NONE);
        CHECK_INT(emitted_count, 2);
        spec.options.read_only = false;
}

/* Each is reported for itself, and named. */
static void two_files(void)
{
        static char places[2][32] = {"/target/children/0/path", "/target/children/1/path"};
        const struct surroundings env = {};
        struct watched_path paths[] = {
                {.watch = (struct path_watch *)&views[0], .number = 0, .place = places[0]},
                {.watch = (struct path_watch *)&views[1], .number = 1, .place = places[1]},
        };
        struct managed_device device = {
                .env = &env, .path = {.paths = paths, .count = 2},
                     .view.facts.kernel = KERNEL_LIVE
        };

        emitted_count = 0;
        views[0].room = views[1].room = (struct path_room){.known = true};
        CHECK_INT(look(&device), REASON_NONE);
        views[1].room.low = true;
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 1);
        CHECK(strstr(sentence, places[1]));
        views[0].room.low = true;
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 2);
        CHECK(strstr(sentence, places[0]));
        views[1].room.low = false;
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 3);
        CHECK_INT(emitted[2], REASON_STORE_NOT_LOW);
        CHECK(strstr(sentence, places[1]));
        paths[0] = (struct watched_path){.watch = paths[0].watch, .place = places[0]}; /* of another store */
        CHECK_INT(look(&device), REASON_STORE_LOW);
        CHECK_INT(emitted_count, 4);
        CHECK_INT(emitted[3], REASON_STORE_LOW);
        CHECK(strstr(sentence, places[0]));
}

int main(void)
{
        one_file(&views[0]);
        two_files();
        return check_report();
}
