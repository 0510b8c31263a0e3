/* SPDX-License-Identifier: MIT */
/* How a step ends: by the answer of its control command, or by itself. */
#pragma once

#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/plan/plan.h"
#include "ublkd/reconcile/view/user_request.h"
#include "ublkd/store/device_store.h"

struct managed_device;

/* The step of this turn. Other files may read it; device_turn.c, device_steps.c, device_add.c and reconciler.c change it as
 * well. */
struct device_step {
        enum plan_action action;
        /* CLOCK_MONOTONIC: the kernel was asked then, and the view of the turn is its answer, or the step has a command that
         * looks itself; 0: there is no answer since, or the last one was not used */
        uint64_t seen_at;
        uint64_t asked_at; /* the same, of an answer that is under way */
        bool unasked; /* the turn goes by the view of an earlier one: only a command that looks itself may follow */
        struct ublk_ctl_call *call; /* NULL: none is under way */
        void (*done)(struct managed_device *device, int result);
        uint64_t dropped_flags;        /* that the driver has dropped from ADD_DEV, with this spec */
        int candidate;                 /* the number that a device without one tries now; -1: none */
        struct user_request grown_for; /* of the last GROW to the worker */
};

/* End the step of this turn. result: 0 or -errno. */
void device_step_done(struct managed_device *device, int result);
/* Note the result of a command if it failed, and return it. */
int device_take_result(struct managed_device *device, const struct device_record *record, int result);
/* Note the result as device_take_result(), of a command before a message to the worker. Return also
 * -ECONNRESET: the worker has exited, or is not wanted any more. */
int device_take_result_for_worker(
        struct managed_device *device, const struct device_record *record, int result);
/* End the step with the result of its command: a ublk_ctl_done; userdata is the device. */
void device_on_command_done(void *userdata, int result, const struct kernel_device *kernel);
/* Handle the result of sending a command: one that could not be sent has failed, and `done` is called. */
void device_command_sent(struct managed_device *device, int result, ublk_ctl_done done);
/* Return the driver's features for the disk: those of the host, without the flags that the driver has dropped from an
 * earlier ADD_DEV of this spec. */
uint64_t device_features(const struct managed_device *device);
