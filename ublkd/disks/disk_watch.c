/* SPDX-License-Identifier: MIT */
/* What udev tells everybody about block devices, reduced to whole disks of the ublk driver. */
#include "ublkd/disks/disk_watch.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/disks/disk_name.h"

#include <stdlib.h>
#include <systemd/sd-device.h>

enum { BUFFER_SIZE = 16 << 20 }; /* all disks of a machine at once */

struct disk_watch {
        sd_device_monitor *monitor;
        disk_watch_handler handler;
        void *userdata;
};

DEFINE_CLEANUP(struct disk_watch, disk_watch_free);

static int on_device(sd_device_monitor *monitor _unused_, sd_device *device, void *userdata)
{
        struct disk_watch *watch = userdata;
        sd_device_action_t action;
        const char *name;
        int number;

        if (sd_device_get_action(device, &action) < 0 || action == SD_DEVICE_REMOVE
                || sd_device_get_sysname(device, &name) < 0)
                return 0;
        number = disk_name_number(name);
        if (number >= 0)
                watch->handler(watch->userdata, number);
        return 0;
}

int disk_watch_new(sd_event *event, disk_watch_handler handler, void *userdata, struct disk_watch **ret)
{
        _cleanup_(disk_watch_free_pointer) struct disk_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return -ENOMEM;
        watch->handler = handler;
        watch->userdata = userdata;
        r = sd_device_monitor_new(&watch->monitor);
        if (r < 0)
                return r;
        /* What does not fit is lost. Without privileges it is what the machine allows. */
        (void)sd_device_monitor_set_receive_buffer_size(watch->monitor, BUFFER_SIZE);
        r = sd_device_monitor_filter_add_match_subsystem_devtype(watch->monitor, "block", "disk");
        if (r >= 0)
                r = sd_device_monitor_attach_event(watch->monitor, event);
        if (r >= 0)
                r = sd_device_monitor_start(watch->monitor, on_device, watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

struct disk_watch *disk_watch_free(struct disk_watch *watch)
{
        if (!watch)
                return NULL;
        sd_device_monitor_unref(watch->monitor);
        free(watch);
        return NULL;
}
