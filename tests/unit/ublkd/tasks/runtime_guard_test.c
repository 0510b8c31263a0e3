/* SPDX-License-Identifier: MIT */
/* Which removals in the runtime directory the guard reports. */
#include "ublkd/tasks/runtime_guard.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_full; /* no record can be written */

int __real_runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text);
int __wrap_runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text);
int __wrap_runtime_dir_write_record(struct runtime_dir *dir, const char *uid, const char *text)
{
        return is_full ? -ENOSPC : __real_runtime_dir_write_record(dir, uid, text);
}

static unsigned warnings; /* that files of devices were removed */

void __wrap_log_record(int level, const struct log_fields *fields, const char *format, ...) _printf_(3, 4);
void __wrap_log_record(int level _unused_, const struct log_fields *fields _unused_, const char *format, ...)
{
        warnings += strncmp(format, "Files of devices in the runtime directory", 41) == 0;
}

static struct {
        unsigned count;
        bool remade;
} seen;

static void on_changed(void *userdata _unused_, bool remade)
{
        seen.count++;
        seen.remade = remade;
}

struct place {
        char path[64];
        sd_event *event;
        struct runtime_dir *dir;
        struct device_store *store;
};

static bool has_record(const struct place *place, const char *name)
{
        return runtime_dir_has_record(place->dir, device_store_get(place->store, name)->uid);
}

/* Run a command in the runtime directory, and wait until the guard has noticed it. */
static void run(const struct place *place, const char *command)
{
        char line[192];

        snprintf(line, sizeof(line), "cd %s; %s", place->path, command);
        CHECK_INT(system(line), 0);
        seen.count = 0;
        while (seen.count == 0 && sd_event_run(place->event, 10 * 1000 * 1000) > 0)
                ;
        CHECK_INT(seen.count, 1);
}

/* A worker that exits removes its socket. That is not a loss, also while records cannot be written. */
static void test_while_a_record_cannot_be_written(const struct place *place)
{
        CHECK_INT(put_null_disk(place->store, "one", ""), 0);
        is_full = true;
        CHECK_INT(put_null_disk(place->store, "two", ""), 0);
        CHECK(!has_record(place, "two"));
        run(place, "touch workers/x.sock; rm workers/x.sock");
        CHECK(!seen.remade);
        CHECK_INT(warnings, 0);
        is_full = false;
        run(place, "rm workers/*.record");
        CHECK(seen.remade);
        CHECK_INT(warnings, 1);
        CHECK(has_record(place, "one"));
        CHECK(has_record(place, "two"));
}

int main(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/runtime_guard_test.XXXXXX", command[64];
        const struct device_backend *backend;
        struct record_keeper *keeper = NULL;
        struct runtime_guard *guard = NULL;
        struct place place = {};
        void *context;

        if (!CHECK(mkdtemp(base)))
                return check_report();
        snprintf(place.path, sizeof(place.path), "%s/run", base);
        CHECK_INT(sd_event_default(&place.event) < 0, 0);
        CHECK_INT(runtime_dir_open(place.path, &place.dir, &problems), 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &place.store), 0);
        CHECK_INT(record_keeper_new(place.store, place.dir, &keeper), 0);
        CHECK_INT(runtime_guard_new(&(struct runtime_guard_config){.event = place.event,
                                            .dir = place.dir,
                                            .store = place.store,
                                            .record_keeper = keeper,
                                            .changed = on_changed},
                          &guard),
                0);
        test_while_a_record_cannot_be_written(&place);
        runtime_guard_free(guard);
        record_keeper_free(keeper);
        device_store_free(place.store);
        runtime_dir_free(place.dir);
        sd_event_unref(place.event);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
