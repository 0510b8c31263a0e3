/* SPDX-License-Identifier: MIT */
/* The character device of a disk, /dev/ublkcN, by which alone a worker gets its queues. */
#pragma once

enum char_device {
        CHAR_DEVICE_HELD, /* a process has it open, or that cannot be known */
        CHAR_DEVICE_FREE, /* no process has it open: this one could */
        CHAR_DEVICE_GONE, /* the disk was deleted: no process can open it any more */
        _CHAR_DEVICE_MAX
};

/* Return who has /dev/ublkcN, which is opened for that and closed at once: for a disk that no worker is about to open.
 * The open waits for nothing (ublk_ch_open() in ublk_drv.c). number: of a disk that GET_DEV_INFO has answered for. */
enum char_device char_device_look(int number);
