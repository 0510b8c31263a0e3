/* SPDX-License-Identifier: MIT */
/* Knows which disks /dev/ublkbN hold swap, and notices swapon and swapoff. Runs on the loop. */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

struct swap_watch;

/* /dev/ublkbN begins or ceases to hold swap. Called from the loop, not by swap_watch_new(). */
typedef void (*swap_watch_handler)(void *userdata, int number);

/* Create a watch, which knows the swap of now. proc, sys: "/proc" and "/sys". Return 0; -ENOENT: the kernel has no swap;
 * other -errno. */
int swap_watch_new(sd_event *event, const char *proc, const char *sys, swap_watch_handler handler,
        void *userdata, struct swap_watch **ret);
/* Return whether /dev/ublkbN holds swap; watch: NULL: false. */
bool swap_watch_has(const struct swap_watch *watch, int number);
/* Free the watch. NULL is fine. Return NULL. */
struct swap_watch *swap_watch_free(struct swap_watch *watch);
