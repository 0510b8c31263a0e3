/* SPDX-License-Identifier: MIT */
/* The device, its disk and the maker that the tests of file systems share. */
#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/remove_tree.h"

#include "tests/unit/ublkd/filesystems/maker_world.h"

#include "ublkd/filesystems/filesystem_sight.h"

#include "ublkd/base/cleanup.h"

#include "ublkd/kernel/kernel_walls.h"

#include <fcntl.h>
#include <stdlib.h>

char dev[] = "/tmp/filesystem-maker-XXXXXX";
char disk[64];
char mounts[64];
sd_event *event;
struct device_store *store;
struct filesystem_maker *maker;

const struct device_record *record(void)
{
        return device_store_get(store, "data");
}

struct filesystem noted(void)
{
        return filesystem_of_note(record()->filesystem);
}

/* ---- a device with a disk ---- */

void make_disk(void)
{
        _cleanup_close_ int fd = open(disk, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        CHECK(fd >= 0 && ftruncate(fd, DISK_SIZE) == 0);
}

void set_live(int number)
{
        struct device_status status = {
                .phase = number < 0 ? PHASE_STARTING : PHASE_LIVE, .number = number, .disk = number >= 0};

        CHECK_INT(device_store_set_status(store, "data", &status), 0);
}

static void open_maker(const struct filesystem_limits *limits)
{
        struct filesystem_limits here = limits ? *limits : (struct filesystem_limits){};

        here.dev = dev;
        CHECK_INT(filesystem_maker_new(
                          &(const struct filesystem_maker_config){
                                  .event = event, .store = store, .mounts = mounts, .limits = &here},
                          &maker),
                0);
}

void set_up(const struct filesystem_limits *limits)
{
        const struct device_backend *backend;
        void *context;

        make_disk();
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        put_device(store, "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":\"400MiB\"}");
        CHECK_INT(device_store_assign_number(store, "data", NUMBER), 0);
        set_live(NUMBER);
        open_maker(limits);
}

void tear_down(void)
{
        maker = filesystem_maker_free(maker);
        store = device_store_free(store);
}

/* ---- requests ---- */

void on_answer(void *userdata, const struct filesystem_answer *answer)
{
        struct outcome *outcome = userdata;

        *outcome = (struct outcome){.answered = true,
                .verdict = answer->verdict,
                .error = answer->error,
                .filesystem = answer->filesystem};
        snprintf(outcome->text, sizeof(outcome->text), "%s", answer->text);
}

int begin_wish(struct filesystem_wish wish, struct outcome *outcome)
{
        struct filesystem_making *making;

        *outcome = (struct outcome){};
        return filesystem_request(maker, record(), &wish, on_answer, outcome, &making);
}

int begin(enum filesystem_kind kind, struct outcome *outcome)
{
        return begin_wish((struct filesystem_wish){.kind = kind}, outcome);
}

void wait_for(const struct outcome *outcome)
{
        uint64_t now = 0, end;

        CHECK(sd_event_now(event, CLOCK_MONOTONIC, &now) >= 0);
        end = now + DEADLINE_USEC;
        while (!outcome->answered && now < end) {
                CHECK(sd_event_run(event, end - now) >= 0);
                CHECK(sd_event_now(event, CLOCK_MONOTONIC, &now) >= 0);
        }
        CHECK(outcome->answered);
}

struct outcome make(enum filesystem_kind kind)
{
        struct outcome outcome;

        CHECK_INT(begin(kind, &outcome), 0); /* the process of the request before has ended */
        wait_for(&outcome);
        return outcome;
}

void note(enum filesystem_stage stage, enum filesystem_kind kind, const char *uuid)
{
        struct filesystem filesystem = {.stage = stage, .kind = kind};
        char text[FILESYSTEM_NOTE_SIZE];

        snprintf(filesystem.uuid, sizeof(filesystem.uuid), "%s", uuid);
        filesystem_to_note(&filesystem, text);
        CHECK_INT(device_store_set_filesystem(store, "data", text), 0);
}

int sight(enum filesystem_kind kind, const char *uuid)
{
        _cleanup_close_ int fd = open(disk, O_RDONLY | O_CLOEXEC);

        return filesystem_sight(fd, kind, uuid);
}

void put_byte(off_t at)
{
        _cleanup_close_ int fd = open(disk, O_WRONLY | O_CLOEXEC);

        CHECK_INT(pwrite(fd, "x", 1, at), 1);
}

/* ---- the whole ---- */

bool world_opens(void)
{
        if (getuid() != 0 || kernel_landlock() == 0 || access("/usr/sbin/mkfs.ext4", X_OK) < 0
                || access("/usr/sbin/mkfs.xfs", X_OK) < 0)
                return false;
        CHECK(mkdtemp(dev) != NULL);
        snprintf(disk, sizeof(disk), "%s/ublkb%d", dev, NUMBER);
        snprintf(mounts, sizeof(mounts), "%s/mounts", dev);
        CHECK(sd_event_new(&event) >= 0);
        return true;
}

void world_close(void)
{
        sd_event_unref(event);
        CHECK_INT(remove_tree(dev), 0);
}
