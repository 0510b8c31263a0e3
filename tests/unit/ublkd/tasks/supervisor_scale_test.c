/* SPDX-License-Identifier: MIT */
/* What the supervisor does beside the reconciler for one device takes as much work among 10,000 devices as among 100, except
 * for a logarithm: the replacement of workers, the usage of a tenant, its list, the look at mounts. The line for the service manager
 * (service_line.c) counts all devices, at most once a second. The test counts instructions: see reconciler_scale_test.c. */
#include "ublkd/tasks/worker_upgrade.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"
#include "tests/unit/step_count.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        FEW = 100,
        MANY = 10000 /* the limit of the API */,
        TENANTS = 50,
        FIRST_TENANT = 1000,
        OF_SMALL_TENANT = 2,
};

#define SMALL_TENANT "uid:500"

enum operation {
        CHANGE, /* the status of a device changes while workers of another version are to be replaced */
        USAGE,  /* a tenant has a PUT checked */
        LIST,   /* a tenant with few devices lists them */
        MOUNT,  /* a device is mounted, and the mounts are looked at */
        _OPERATION_MAX
};

static const char *const words[_OPERATION_MAX] = {
        [CHANGE] = "change", [USAGE] = "usage", [LIST] = "list", [MOUNT] = "mount"};

struct figures {
        unsigned count;
        uint64_t instructions[_OPERATION_MAX];
};

struct world {
        sd_event *event;
        struct device_store *store;
        struct host host;
        struct worker_upgrade *upgrade;
        char name[32]; /* of the device that is measured */
};

/* Each has a worker of another version, which is kept: the last flush of the disk has failed. */
static void show(struct world *world, const char *name, pid_t pid)
{
        struct device_status status = {.phase = PHASE_LIVE,
                .reason = REASON_LIVE,
                .number = -1,
                .message = (char *)"The message.",
                .converged = true,
                .worker.pid = pid};

        (void)device_condition_set(
                &status.conditions.of[CONDITION_NEEDS_RESTART], CONDITION_TRUE, REASON_OTHER_VERSION, "Old.");
        (void)device_condition_set(
                &status.conditions.of[CONDITION_DURABLE], CONDITION_FALSE, REASON_OTHER, "Bad.");
        CHECK_INT(device_store_set_status(world->store, name, &status), 0);
}

static void run_loop(struct world *world)
{
        while (sd_event_run(world->event, 0) > 0) {}
}

static void begin(struct world *world, unsigned count)
{
        const struct device_backend *backend;
        void *context;

        *world = (struct world){};
        CHECK(sd_event_new(&world->event) >= 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &world->store), 0);
        CHECK_INT(worker_upgrade_new(world->event, world->store, &world->host, NULL, &world->upgrade), 0);
        worker_upgrade_set(world->upgrade, true);
        for (unsigned i = 0; i < count; i++) {
                char text[256], tenant[TENANT_SIZE];

                if (count - i <= OF_SMALL_TENANT)
                        snprintf(tenant, sizeof(tenant), "%s", SMALL_TENANT);
                else
                        tenant_of_user(FIRST_TENANT + i % TENANTS, tenant);
                snprintf(world->name, sizeof(world->name), "device-%05u", i);
                snprintf(text, sizeof(text),
                        "{\"name\":\"%s\",\"target\":{\"type\":\"null\"},\"size\":\"1MiB\",\"recovery\":{"
                        "\"onCrash\":"
                        "\"reissue\"}}",
                        world->name);
                CHECK_INT(put_device_of(world->store, text, tenant), 0);
                show(world, world->name, 1);
        }
        run_loop(world);
        snprintf(world->name, sizeof(world->name), "device-%05u", count / 2);
}

static void end(struct world *world)
{
        worker_upgrade_free(world->upgrade);
        device_store_free(world->store);
        host_clear(&world->host);
        sd_event_unref(world->event);
}

static void measured(struct world *world, enum operation operation, unsigned count)
{
        struct store_usage usage;
        unsigned listed = 0;

        switch (operation) {
        case CHANGE:
                show(world, world->name, 2);
                run_loop(world);
                break;
        case USAGE:
                usage = device_store_usage(world->store, FIRST_TENANT + 1, FIRST_TENANT + 1, world->name);
                CHECK_INT(usage.devices, count / TENANTS);
                break;
        case LIST:
                for (const struct device_record *record =
                                device_store_next_of(world->store, SMALL_TENANT, NULL);
                        record; record = device_store_after_of(record))
                        listed++;
                CHECK_INT(listed, OF_SMALL_TENANT);
                break;
        case MOUNT:
                CHECK_INT(device_store_set_mount(world->store, world->name, "/mnt"), 0);
                DEVICE_STORE_FOREACH_MOUNTED (record, world->store)
                        CHECK_STR(record->name, world->name);
                break;
        default:
                break;
        }
}

static void run(void *userdata)
{
        const struct figures *figures = userdata;
        struct world world;

        begin(&world, figures->count);
        for (unsigned i = 0; i < _OPERATION_MAX; i++) {
                step_count_begin();
                measured(&world, i, figures->count);
                step_count_end();
                run_loop(&world);
        }
        CHECK_INT(device_store_get(world.store, world.name)->restart, 0);
        end(&world);
        if (check_failures > 0)
                _exit(EXIT_FAILURE);
}

static void counted(void *userdata, unsigned piece, uint64_t instructions)
{
        struct figures *figures = userdata;

        figures->instructions[piece] = instructions;
}

int main(void)
{
        struct figures few = {.count = FEW}, many = {.count = MANY};
        int r = step_count(run, counted, &few);

        if (r == CHECK_SKIP) /* tracing is not permitted here */
                return CHECK_SKIP;
        CHECK_INT(r, 0);
        CHECK_INT(step_count(run, counted, &many), 0);
        for (unsigned i = 0; i < _OPERATION_MAX; i++) {
                uint64_t before = few.instructions[i], after = many.instructions[i];

                printf("%-8s %8" PRIu64 " instructions among %d devices, %8" PRIu64 " among %d\n", words[i],
                        before, FEW, after, MANY);
                CHECK(before > 0 && after > 0);
                CHECK(after <= 3 * before); /* the logarithms of both numbers are 7 and 14 */
        }
        return check_report();
}
