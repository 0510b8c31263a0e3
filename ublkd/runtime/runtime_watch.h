/* SPDX-License-Identifier: MIT */
/* Notices that the runtime directory of a running supervisor was removed, and recreates it. Runs on the
 * supervisor's loop. */
#pragma once

#include "ublkd/runtime/runtime_dir.h"

#include <systemd/sd-event.h>

enum runtime_change {
        RUNTIME_KEPT,   /* an entry was removed that ublkd does not have open; also by ublkd itself */
        RUNTIME_REMADE, /* the directory was removed, and the watch has recreated it, empty */
        RUNTIME_GONE,   /* the directory was removed; recreating failed with `error`; the watch tries again */
        _RUNTIME_CHANGE_MAX
};

struct runtime_watch;

/* Create a watch, which calls `changed` some time after the last change, from the loop. error: 0; -errno: see
 * RUNTIME_GONE, or else the directory cannot be watched again, and the watch looks at it every few seconds
 * until it can. `dir` outlives the watch. Return 0 or -errno. */
int runtime_watch_new(sd_event *event, struct runtime_dir *dir,
        void (*changed)(void *userdata, enum runtime_change change, int error), void *userdata,
        struct runtime_watch **ret);
/* Free the watch. NULL is fine. Return NULL. */
struct runtime_watch *runtime_watch_free(struct runtime_watch *watch);
