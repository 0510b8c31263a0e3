/* SPDX-License-Identifier: MIT */
/* Keeps the control device of the ublk driver: opens it, and tries again every few seconds while the driver does not
 * answer. The driver may be loaded later (modprobe), so ublkd runs without it and reports a problem of the host. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/host/host.h"

/* All pointers outlive the keeper. */
struct driver_keeper_config {
        const char *program; /* of the control helper; outlives the keeper. NULL: this very program */
        sd_event *event;
        struct host *host;         /* the keeper sets its features, and the problems of the driver */
        uint64_t ignored_features; /* bit N: kernel_feature_name(N) */
        /* From the loop, after each attempt. ctl: the keeper's, open until the next attempt; NULL: the driver does not
         * answer, and the keeper tries again. A negative result ends the loop with it. */
        int (*tried)(void *userdata, struct ublk_ctl *ctl);
        void *userdata;
};

struct driver_keeper;

/* Create a keeper; until the driver has answered the host has a problem. Return 0 or -errno. */
int driver_keeper_new(const struct driver_keeper_config *config, struct driver_keeper **ret);
/* Begin to open the control device, if the keeper has not begun yet. Return 0 or -errno. */
int driver_keeper_start(struct driver_keeper *keeper);
/* Close the control device and free the keeper. NULL is fine. Return NULL. */
struct driver_keeper *driver_keeper_free(struct driver_keeper *keeper);
