/* SPDX-License-Identifier: MIT */
/* Notices that the runtime directory was removed under a running supervisor, and makes it again. Runs on the
 * supervisor's loop. */
#pragma once

#include "ublkd/runtime/runtime_dir.h"

#include <systemd/sd-event.h>

enum runtime_change {
        RUNTIME_KEPT,   /* something in it was removed, but not what ublkd has open */
        RUNTIME_REMADE, /* it was removed, and is there again, empty */
        RUNTIME_GONE,   /* it was removed, and cannot be made again, for `error`; it is tried again */
        _RUNTIME_CHANGE_MAX
};

struct runtime_watch;

/* `changed` is called some time after the last change, from the loop; error: 0 or -errno. 0 or -errno. `dir` outlives
 * the watch. */
int runtime_watch_new(sd_event *event, struct runtime_dir *dir,
        void (*changed)(void *userdata, enum runtime_change change, int error), void *userdata,
        struct runtime_watch **ret);
/* NULL is fine. Returns NULL. */
struct runtime_watch *runtime_watch_free(struct runtime_watch *watch);
