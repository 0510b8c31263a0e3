/* SPDX-License-Identifier: MIT */
/* The character device of a disk, /dev/ublkcN, by which alone a worker gets its queues. */
#pragma once

#include <systemd/sd-event.h>

enum char_device {
        CHAR_DEVICE_HELD, /* a process has it open, or that cannot be known */
        CHAR_DEVICE_FREE, /* no process has it open: this one could */
        CHAR_DEVICE_GONE, /* the disk was deleted: no process can open it any more */
        _CHAR_DEVICE_MAX
};

/* Return who has /dev/ublkcN, which is opened for that and closed at once: for a disk that no worker is about to open.
 * The open waits for nothing (ublk_ch_open() in ublk_drv.c). number: of a disk that GET_DEV_INFO has answered for. */
enum char_device char_device_look(int number);

/* Have `on_closed` called when a process closes /dev/ublkcN: with the last descriptor, after which the driver releases the
 * device within microseconds (__fput() in fs/file_table.c notifies just before it calls ublk_ch_release()). A close before this
 * call is not reported. *ret is the caller's; who wants one report frees it in `on_closed`. Never switch it off instead: at the
 * next close, sd_event_run() would not return (event_inotify_data_process() in sd-event.c keeps an event that no source takes).
 * Return 0 or -errno: then no close is reported. */
int char_device_watch(sd_event *event, int number, sd_event_inotify_handler_t on_closed, void *userdata,
        sd_event_source **ret);
