/* SPDX-License-Identifier: MIT */
/* In place of the control helper, under the real ublkd/driver/ublk_ctl.c: a command goes to the simulated kernel of
 * the test (on_ctl_*, which that defines), and is answered when the test says so. One control plane at a time. */
#pragma once

#include "ublkd/driver/ublk_ctl_calls.h"

enum command_type {
        COMMAND_GET_INFO,
        COMMAND_GET_AFFINITY,
        COMMAND_ADD,
        COMMAND_SET_PARAMS,
        COMMAND_START,
        COMMAND_BEGIN_RECOVERY,
        COMMAND_END_RECOVERY,
        COMMAND_STOP,
        COMMAND_TRY_STOP,
        COMMAND_STOP_UNHELD,
        COMMAND_QUIESCE,
        COMMAND_UPDATE_SIZE,
        COMMAND_DEL,
        _COMMAND_MAX
};

/* What a command says. */
struct ctl_wish {
        enum command_type type;
        int number;
        pid_t worker; /* START, END_RECOVERY */
        bool guarded; /* send it only to the disk with that cookie */
        uint64_t cookie;
        uint64_t size;                        /* SET_PARAMS, UPDATE_SIZE: bytes */
        struct kernel_device_request request; /* ADD */
};

/* ---- by the test ---- */

/* 0 or -errno of ctl_calls_submit(). */
int on_ctl_submitted(const struct ctl_wish *wish, struct ctl_call *call);
/* Drop the call. */
void on_ctl_cancelled(struct ctl_call *call);

/* Whether the helper compares cookies, as ublkd sees it; true unless a test sets it. */
extern bool ctl_stand_in_guards;

/* ---- by the kernel ---- */

/* The driver is there, and can do that: the control plane is opened in the next turn of the loop. */
void ctl_stand_in_greets(uint64_t features);
/* Answer the call, which is freed. device: for GET_INFO, GET_AFFINITY and ADD. */
void ctl_stand_in_answers(struct ctl_call *call, int result, const struct kernel_device *device);
/* A command for that number was given up, and can have no effect any more. */
void ctl_stand_in_releases(int number);
