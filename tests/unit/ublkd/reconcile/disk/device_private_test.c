/* SPDX-License-Identifier: MIT */
/* device_private: when the private node of a disk is made, shut and removed. The room of the nodes is pretended. */
#include "ublkd/reconcile/disk/device_private.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

static int given, shut, removed, recalled, result, events, notes;
static enum condition_reason reason;
static struct surroundings env = {.config.private_nodes = (struct private_nodes *)&env,
        .config.node_recall = (struct node_recall *)&env};
static struct device_spec with_node = {.options.private_node = true}, without_node;
static struct device_record tenants = {.tenant = "uid:1000", .uid = "11-22", .number = 7, .spec = &with_node},
                            host_record = {.number = 7};

int __wrap_private_node_give(struct private_nodes *nodes, const struct private_node *node);
int __wrap_private_node_shut(struct private_nodes *nodes, const char *uid);
int __wrap_private_node_remove(struct private_nodes *nodes, const char *uid);
void __wrap_node_recall_ask(struct node_recall *recall);
void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);
void __wrap_device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...);

int __wrap_private_node_give(struct private_nodes *nodes, const struct private_node *node)
{
        CHECK((void *)nodes == &env);
        CHECK_STR(node->uid, "11-22");
        CHECK_INT(node->number, 7);
        CHECK_INT(node->owner, 1000);
        given++;
        return result;
}

int __wrap_private_node_shut(struct private_nodes *nodes _unused_, const char *uid)
{
        CHECK_STR(uid, "11-22");
        shut++;
        return result;
}

int __wrap_private_node_remove(struct private_nodes *nodes _unused_, const char *uid)
{
        CHECK_STR(uid, "11-22");
        removed++;
        return result;
}

void __wrap_node_recall_ask(struct node_recall *recall)
{
        CHECK((void *)recall == &env);
        recalled++;
}

void __wrap_device_emit(const struct managed_device *device _unused_, enum event_type type,
        enum condition_reason of, const char *format _unused_, ...)
{
        CHECK_INT(type, EVENT_WARNING);
        reason = of;
        events++;
}

void __wrap_device_note(
        struct managed_device *device _unused_, enum condition_reason of, const char *format _unused_, ...)
{
        reason = of;
        notes++;
}

static struct managed_device device_on(enum plan_kernel kernel)
{
        struct managed_device device = {.env = &env, .id.uid = "11-22"};

        device.view.facts.kernel = kernel;
        given = shut = removed = recalled = result = events = notes = 0;
        reason = REASON_NONE;
        return device;
}

static const char *shown(const struct managed_device *device, bool disk)
{
        static struct device_status status;

        status = (struct device_status){.disk = disk};
        device_private_show(device, &status);
        return status.node;
}

static void test_a_device_of_the_administrators_has_no_node(void)
{
        struct managed_device device = device_on(KERNEL_ABSENT);

        device_private_give(&device, &host_record);
        CHECK_INT(device_private_shut(&device, &host_record), 0);
        CHECK_INT(device_private_remove(&device, &host_record), 0);
        device_private_follow(&device, &host_record);
        CHECK_INT(given + shut + removed, 0);
        CHECK_STR(shown(&device, true), "");
}

/* Nor one whose spec cannot be read: it may be such a device. One that it has had goes nevertheless. */
static void test_a_volume_has_no_node(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);
        struct device_record volume = tenants;

        volume.spec = &without_node;
        device_private_give(&device, &volume);
        volume.spec = NULL;
        device_private_give(&device, &volume);
        CHECK_INT(given, 0);
        CHECK_STR(shown(&device, true), "");
        CHECK_INT(device_private_shut(&device, &volume), 0);
        CHECK_INT(device_private_remove(&device, &volume), 0);
        CHECK_INT(shut, 1);
        CHECK_INT(removed, 1);
}

/* Also when the spec asks for one: the kernel reads as root what the tenant would write. */
static void test_a_mounted_disk_gets_no_node(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);
        struct device_record mounted = tenants, mounting = tenants, unmounting = tenants;

        snprintf(mounted.mount, sizeof(mounted.mount), "/mounts/11-22");
        mounting.mount_change = MOUNT_COMES;
        unmounting.mount_change = MOUNT_GOES; /* a copy may be left */
        device_private_give(&device, &mounted);
        device_private_give(&device, &mounting);
        device_private_give(&device, &unmounting);
        CHECK_INT(given, 0);
        CHECK_STR(shown(&device, true), "");
        device_private_give(&device, &tenants); /* after its end */
        CHECK_INT(given, 1);
}

static void test_a_served_disk_gets_its_node_once(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        device_private_give(&device, &tenants);
        device_private_give(&device, &tenants);
        device_private_follow(&device, &tenants);
        CHECK_INT(given, 1);
        CHECK_INT(removed, 0);
        CHECK_STR(shown(&device, true), "/dev/ublk/private/11-22");
        CHECK_STR(shown(&device, false), "");
}

static void test_a_failure_is_reported_once_and_tried_again(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        result = -EROFS;
        device_private_give(&device, &tenants);
        device_private_give(&device, &tenants);
        CHECK_INT(events, 1);
        CHECK_INT(reason, REASON_PRIVATE_NODE_NOT_MADE);
        CHECK_STR(shown(&device, true), "");
        result = 0;
        device_private_give(&device, &tenants);
        CHECK_INT(given, 3);
        CHECK_STR(shown(&device, true), "/dev/ublk/private/11-22");
}

/* Also after a restart, of which this ublkd knows nothing yet. */
static void test_a_disk_stops_without_its_node_or_not_at_all(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        result = -EROFS;
        CHECK_INT(device_private_shut(&device, &tenants), -EROFS);
        CHECK_INT(device_private_remove(&device, &tenants), -EROFS);
        CHECK_INT(notes, 2);
        CHECK_INT(reason, REASON_PRIVATE_NODE_NOT_REMOVED);
        result = 0;
        CHECK_INT(device_private_shut(&device, &tenants), 0);
        CHECK_STR(shown(&device, true), "");
        CHECK_INT(recalled, 0);
        CHECK_INT(device_private_remove(&device, &tenants), 0);
        CHECK_INT(removed, 2);
        CHECK_INT(recalled, 1); /* from containers, too */
        CHECK_INT(device_private_remove(&device, &tenants), 0);
        CHECK_INT(device_private_shut(&device, &tenants), 0);
        CHECK_INT(removed, 2);
        CHECK_INT(shut, 2);
}

static void test_a_refused_stop_opens_the_node_again(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        device_private_give(&device, &tenants);
        CHECK_INT(device_private_shut(&device, &tenants), 0);
        device_private_give(&device, &tenants);
        CHECK_INT(given, 2);
        CHECK_STR(shown(&device, true), "/dev/ublk/private/11-22");
}

static void test_a_disk_that_is_gone_has_no_node(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        device_private_give(&device, &tenants);
        device.view.facts.kernel = KERNEL_ABSENT;
        result = -EROFS;
        device_private_follow(&device, &tenants);
        device_private_follow(&device, &tenants);
        CHECK_INT(events, 1);
        CHECK_INT(reason, REASON_PRIVATE_NODE_NOT_REMOVED);
        result = 0;
        device_private_follow(&device, &tenants);
        device_private_follow(&device, &tenants);
        CHECK_INT(removed, 3);
        CHECK_INT(recalled, 1);
        device_private_give(&device, &tenants); /* of its next disk */
        CHECK_INT(given, 2);
}

int main(void)
{
        test_a_device_of_the_administrators_has_no_node();
        test_a_volume_has_no_node();
        test_a_mounted_disk_gets_no_node();
        test_a_served_disk_gets_its_node_once();
        test_a_failure_is_reported_once_and_tried_again();
        test_a_disk_stops_without_its_node_or_not_at_all();
        test_a_refused_stop_opens_the_node_again();
        test_a_disk_that_is_gone_has_no_node();
        return check_report();
}
