/* SPDX-License-Identifier: MIT */
/* store_usage: the sums of ranges of users, and the devices of a user in the order of their names, against a plain look at
 * every device, while devices come, change and go. */
#include "ublkd/store/store_usage.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <stdlib.h>

enum { SEED = 20261126, DEVICES = 200, USERS = 12, ROUNDS = 4000 };

struct device {
        struct store_share share;
        struct device_record record;
        struct device_spec spec;
};

static const struct target_desc keeping = {.name = "keeping", .kept_disk_bytes = 77};
static struct target_tree tree = {.nodes = &(struct target_node){.desc = &keeping}, .count = 1};
static struct device devices[DEVICES];
static char names[DEVICES][16];
static struct tree users;

/* Some have no user, and some no spec that can be read. */
static void change(struct device *device)
{
        uid_t user = (uid_t)(random() % USERS);

        device->record.tenant[0] = '\0';
        if (user > 0)
                tenant_of_user(user, device->record.tenant);
        device->spec.options.size = (uint64_t)(random() % 1000);
        device->spec.tree = random() % 2 ? &tree : NULL;
        device->record.spec = random() % 8 ? &device->spec : NULL;
        store_usage_count(&users, &device->share, &device->record);
}

static uint64_t bytes_of(const struct device *device)
{
        return device->spec.options.size + (device->spec.tree ? keeping.kept_disk_bytes : 0);
}

static struct store_usage look(uid_t first, uid_t last)
{
        struct store_usage usage = {};

        for (size_t i = 0; i < DEVICES; i++) {
                const struct device *device = &devices[i];

                if (!device->share.counted || device->share.user < first || device->share.user > last)
                        continue;
                usage.devices++;
                usage.unreadable += !device->record.spec;
                usage.bytes += device->record.spec ? bytes_of(device) : 0;
        }
        return usage;
}

static void check_range(uid_t first, uid_t last)
{
        struct store_usage got = store_usage_of(&users, first, last), wanted = look(first, last);

        CHECK_INT(got.devices, wanted.devices);
        CHECK_INT(got.unreadable, wanted.unreadable);
        CHECK_INT(got.bytes, wanted.bytes);
}

/* The devices are in the order of their names. */
static const struct device *next_of(uid_t user, size_t from)
{
        for (size_t i = from; i < DEVICES; i++)
                if (devices[i].share.counted && devices[i].share.user == user)
                        return &devices[i];
        return NULL;
}

static void check_list(uid_t user)
{
        const struct store_share *share = store_usage_next(&users, user, NULL);
        size_t i = 0;

        for (const struct device *wanted; (wanted = next_of(user, i)); share = store_usage_after(share)) {
                if (!CHECK(share == &wanted->share))
                        return;
                if (i > 0)
                        CHECK(store_usage_next(&users, user, devices[i - 1].record.name) == share);
                i = (size_t)(wanted - devices) + 1;
        }
        CHECK(!share);
}

static void sums_are_those_of_the_devices(void)
{
        for (unsigned round = 0; round < ROUNDS && check_failures == 0; round++) {
                struct device *device = &devices[random() % DEVICES];
                uid_t first = (uid_t)(random() % USERS);

                if (random() % 4)
                        change(device);
                else
                        store_usage_take(&users, &device->share);
                check_range(first, first + (uid_t)(random() % USERS));
                check_range(first, first);
                check_list(first);
        }
        check_range(0, UINT32_MAX);
}

static void a_device_can_be_left_out(void)
{
        struct store_usage all, rest;

        change(&devices[0]);
        tenant_of_user(3, devices[0].record.tenant);
        devices[0].record.spec = &devices[0].spec;
        store_usage_count(&users, &devices[0].share, &devices[0].record);
        all = look(0, UINT32_MAX);
        rest = store_usage_without(all, &devices[0].share);
        CHECK_INT(rest.devices, all.devices - 1);
        CHECK_INT(rest.bytes, all.bytes - bytes_of(&devices[0]));
}

int main(void)
{
        srandom(SEED);
        for (size_t i = 0; i < DEVICES; i++) {
                snprintf(names[i], sizeof(names[i]), "device-%03zu", i);
                devices[i].record.name = names[i];
        }
        store_usage_init(&users);
        check_range(0, UINT32_MAX);
        sums_are_those_of_the_devices();
        a_device_can_be_left_out();
        return check_report();
}
