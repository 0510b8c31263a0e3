/* SPDX-License-Identifier: MIT */
/* What udev sends to all listeners about block devices, reduced to whole disks of the ublk driver. */
#include "ublkd/disks/disk_watch.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/disks/disk_name.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-device.h>
#include <unistd.h>

enum { BUFFER_SIZE = 16 << 20 }; /* all disks of a machine at once */

struct disk_watch {
        sd_device_monitor *monitor;
        disk_watch_handler handler;
        void *userdata;
        bool silent; /* udev did not come in time, and has not come since */
};

DEFINE_CLEANUP(struct disk_watch, disk_watch_free);

/* The kernel numbers all disks that it ever had. An event of an earlier disk of this name may come late. */
static bool is_current(sd_device *device, const char *name)
{
        char path[64], text[32];
        uint64_t of_event, now;

        snprintf(path, sizeof(path), "/sys/block/%s/diskseq", name);
        if (read_line_at(AT_FDCWD, path, text, sizeof(text)) < 0)
                return false; /* that disk is gone, too */
        now = strtoull(text, NULL, 10);
        return sd_device_get_diskseq(device, &of_event) < 0 || of_event == now;
}

static int on_device(sd_device_monitor *monitor _unused_, sd_device *device, void *userdata)
{
        struct disk_watch *watch = userdata;
        sd_device_action_t action;
        const char *name;
        int number;

        watch->silent = false;
        if (sd_device_get_action(device, &action) < 0 || action == SD_DEVICE_REMOVE
                || sd_device_get_sysname(device, &name) < 0)
                return 0;
        number = disk_name_number(name);
        if (number >= 0 && is_current(device, name))
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

/* Without it udev makes no link of ours, so there is nothing to wait for. */
static bool has_rule(void)
{
        static const char *const places[] = {
                "/etc/udev/rules.d/60-ublkd.rules",
                "/run/udev/rules.d/60-ublkd.rules",
                "/usr/local/lib/udev/rules.d/60-ublkd.rules",
                "/usr/lib/udev/rules.d/60-ublkd.rules",
                "/lib/udev/rules.d/60-ublkd.rules",
        };

        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (access(places[i], F_OK) == 0)
                        return true;
        return false;
}

bool disk_watch_has_udev(const struct disk_watch *watch)
{
        return watch && !watch->silent && has_rule() && access("/run/udev/control", F_OK) == 0;
}

void disk_watch_missed_udev(struct disk_watch *watch)
{
        watch->silent = true;
}

struct disk_watch *disk_watch_free(struct disk_watch *watch)
{
        if (!watch)
                return NULL;
        sd_device_monitor_unref(watch->monitor);
        free(watch);
        return NULL;
}
