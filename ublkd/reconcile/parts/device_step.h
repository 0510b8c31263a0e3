/* SPDX-License-Identifier: MIT */
/* How a step ends: by the answer of its control command, or by itself. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/view/user_words.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* The step of this turn. */
struct device_step {
        enum plan_action action;
        struct ublk_ctl_call *call; /* NULL: none is under way */
        void (*done)(struct managed_device *device, int result);
        uint64_t dropped_flags; /* that the kernel has left out of what ADD_DEV asked for, with this spec */
        int candidate;          /* the number that is being tried for a device that had none; -1: not so */
        struct user_words grown_for; /* that its worker was asked to grow for last */
};

/* The step of this turn is over; result is 0 or -errno. */
void device_step_done(struct managed_device *device, int result);
/* The answer of a command has come. Returns it, noted when it is a failure. */
int device_take_answer(struct managed_device *device, const struct device_record *record, int result);
/* The same for a command after which the worker is told something. -ECONNRESET: it is gone, or not wanted. */
int device_take_answer_for_worker(
        struct managed_device *device, const struct device_record *record, int result);
/* A ublk_ctl_done for commands after which nothing else is to be done; userdata is the device. */
void device_on_command_done(void *userdata, int result, const struct kernel_device *kernel);
/* A command that could not even be sent is a command that failed. */
void device_command_sent(struct managed_device *device, int result, ublk_ctl_done done);
/* Return the driver's features that its disk can have: those of the host, without what the driver has left out of an
 * earlier ADD_DEV of this spec. */
uint64_t device_features(const struct managed_device *device);
