/* SPDX-License-Identifier: MIT */
/* device_cdi: when the file of a disk for container engines is written and removed. The files are pretended. */
#include "ublkd/reconcile/disk/device_cdi.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "tests/unit/check.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

static int written, removed, result, events, notes;
static enum condition_reason reason;
static mode_t disk_mode = S_IFBLK;
static char node[64];
static struct host host = {.disk_group = 6};
static struct surroundings env = {
        .config = {.host = &host, .cdi_specs = (struct cdi_specs *)&env}
};
static char owner_mode[] = "660", name[] = "data";
static struct device_spec spec = {
        .options = {.owner = {.gid = -1, .mode = owner_mode}, .private_node = true}
};
static struct device_record record = {
        .name = name, .uid = "11-22", .number = 7, .generation = 3, .spec = &spec};

int __wrap_stat(const char *path, struct stat *ret);
int __wrap_cdi_spec_write(struct cdi_specs *specs, const struct cdi_spec *given);
int __wrap_cdi_spec_remove(struct cdi_specs *specs, const struct cdi_spec *given);
void __wrap_device_emit(const struct managed_device *device, enum event_type type,
        enum condition_reason reason, const char *format, ...);
void __wrap_device_note(struct managed_device *device, enum condition_reason reason, const char *format, ...);

int __wrap_stat(const char *path, struct stat *ret)
{
        CHECK_STR(path, "/dev/ublkb7");
        *ret = (struct stat){.st_mode = disk_mode, .st_rdev = makedev(259, 4)};
        return 0;
}

int __wrap_cdi_spec_write(struct cdi_specs *specs, const struct cdi_spec *given)
{
        CHECK((void *)specs == &env);
        CHECK_STR(given->name, "data");
        CHECK_INT(given->dev, makedev(259, 4));
        CHECK_INT(given->owner_gid, given->tenant ? 0 : 6);
        snprintf(node, sizeof(node), "%s", given->node);
        written++;
        return result;
}

int __wrap_cdi_spec_remove(struct cdi_specs *specs _unused_, const struct cdi_spec *given)
{
        CHECK_STR(given->uid, "11-22");
        removed++;
        return result;
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
        written = removed = result = events = notes = 0;
        reason = REASON_NONE;
        record.generation = 3;
        return device;
}

static void test_a_served_disk_has_a_file_of_its_spec(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        device_cdi_write(&device, &record);
        device_cdi_write(&device, &record);
        device_cdi_follow(&device, &record);
        CHECK_INT(written, 1);
        CHECK_INT(removed, 0);
        CHECK_STR(node, "/dev/ublkb7");
        record.generation++; /* its owner may have changed */
        device_cdi_write(&device, &record);
        CHECK_INT(written, 2);
}

static void test_a_tenant_gets_the_private_node(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        snprintf(record.tenant, sizeof(record.tenant), "uid:1000");
        device_cdi_write(&device, &record);
        CHECK_STR(node, "/dev/ublk/private/11-22");
        device = device_on(KERNEL_LIVE);
        spec.options.private_node = false;
        device_cdi_write(&device, &record);
        spec.options.private_node = true;
        *record.tenant = '\0';
        CHECK_INT(written, 0);
}

static void test_a_disk_stops_without_its_file_or_not_at_all(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        result = -EROFS; /* of an earlier ublkd */
        CHECK_INT(device_cdi_remove(&device, &record), -EROFS);
        CHECK_INT(notes, 1);
        notes = removed = result = 0;
        device_cdi_write(&device, &record);
        result = -EROFS;
        CHECK_INT(device_cdi_remove(&device, &record), -EROFS);
        CHECK_INT(notes, 1);
        CHECK_INT(reason, REASON_CDI_SPEC_NOT_REMOVED);
        result = 0;
        CHECK_INT(device_cdi_remove(&device, &record), 0);
        CHECK_INT(removed, 2);
        device_cdi_write(&device, &record); /* the driver has refused the stop */
        CHECK_INT(written, 2);
}

static void test_a_failure_is_reported_once_and_tried_again(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        result = -ENOSPC;
        device_cdi_write(&device, &record);
        device_cdi_write(&device, &record);
        CHECK_INT(events, 1);
        CHECK_INT(reason, REASON_CDI_SPEC_NOT_WRITTEN);
        result = 0;
        device_cdi_write(&device, &record);
        CHECK_INT(written, 3);
}

static void test_a_disk_that_is_gone_has_no_file(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        device_cdi_write(&device, &record);
        device.view.facts.kernel = KERNEL_ADDED; /* another program has stopped it */
        result = -EROFS;
        device_cdi_follow(&device, &record);
        device_cdi_follow(&device, &record);
        CHECK_INT(events, 1);
        CHECK_INT(reason, REASON_CDI_SPEC_NOT_REMOVED);
        CHECK(device_cdi_is_left(&device));
        result = 0;
        device_cdi_follow(&device, &record);
        CHECK(!device_cdi_is_left(&device));
        CHECK_INT(removed, 3);
}

static void test_what_is_not_a_disk_has_no_file(void)
{
        struct managed_device device = device_on(KERNEL_LIVE);

        disk_mode = S_IFREG;
        device_cdi_write(&device, &record);
        disk_mode = S_IFBLK;
        CHECK_INT(written, 0);
        CHECK_INT(device.cdi.error, -ENOTBLK);
}

int main(void)
{
        test_a_served_disk_has_a_file_of_its_spec();
        test_a_tenant_gets_the_private_node();
        test_a_disk_stops_without_its_file_or_not_at_all();
        test_a_failure_is_reported_once_and_tried_again();
        test_a_disk_that_is_gone_has_no_file();
        test_what_is_not_a_disk_has_no_file();
        return check_report();
}
