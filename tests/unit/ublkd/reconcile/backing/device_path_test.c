/* SPDX-License-Identifier: MIT */
/* device_path: the descriptor shows whether the file still has a name. The path watcher is a fake. */
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct path_view view;
static struct path_store served = {.device = 0x801, .inode = 12};

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch);
const char *__wrap_path_watch_path(const struct path_watch *watch);
const struct path_store *__wrap_path_watch_store(const struct path_watch *watch);

const struct path_view *__wrap_path_watch_view(const struct path_watch *watch)
{
        (void)watch;
        return &view;
}

const char *__wrap_path_watch_path(const struct path_watch *watch)
{
        (void)watch;
        return "/srv/i.img";
}

const struct path_store *__wrap_path_watch_store(const struct path_watch *watch)
{
        (void)watch;
        return &served;
}

/* The message must contain two words, and must not contain a third (NULL: none). */
static void check_state(const struct managed_device *device, enum condition_status status, const char *reason,
        const char *words, const char *more, const char *lie)
{
        const struct device_record record = {.number = 3};
        struct device_condition shown = {};

        CHECK_INT(device_path_condition(device, &record, &shown), 0);
        CHECK_INT(shown.status, status);
        CHECK_STR(reason_to_string(shown.reason), reason);
        if (!CHECK(strstr(shown.message, words)) || !CHECK(strstr(shown.message, more))
                || !CHECK(!lie || !strstr(shown.message, lie)))
                fprintf(stderr, "%s\n", shown.message);
        free(shown.message);
}

static void init_device(struct managed_device *device, int fd, enum plan_worker worker)
{
        *device = (struct managed_device){
                .path.watch = (struct path_watch *)&view,
                .backing = {.stores = &device->backing.single,
                            .count = 1,
                            .single = {.held = true, .fd = fd}},
                .view.facts.worker = worker
        };
}

static void a_file_without_a_name_cannot_be_moved_back(void)
{
        char path[] = "/tmp/device-path-XXXXXX";
        int fd = mkstemp(path);
        struct managed_device device;

        init_device(&device, fd, PLAN_WORKER_SERVING);
        view = (struct path_view){
                .state = PATH_OTHER, .is_store = true, .found = {.device = 0x801, .inode = 13}
        };
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "inode 13 of device 8:1",
                "Move that file back", "deleted");
        CHECK_INT(device_path_state(&device), PATH_OTHER);
        CHECK_INT(unlink(path), 0);
        check_state(&device, CONDITION_FALSE, "PathLeadsElsewhere", "only this disk has its data",
                "copy its data to another file", "Move that file");
        view = (struct path_view){.state = PATH_GONE, .error = ENOENT};
        check_state(&device, CONDITION_FALSE, "PathGone", "only this disk has its data",
                "copy its data to another file", "Move that file");
        CHECK_INT(close(fd), 0);
}

int main(void)
{
        a_file_without_a_name_cannot_be_moved_back();
        return check_report();
}
