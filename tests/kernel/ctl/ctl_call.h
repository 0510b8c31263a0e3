/* SPDX-License-Identifier: MIT */
/* Calls to the control plane that wait for their answer, shared by the parts of ctl_test. */
#pragma once

#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/model/device_status.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/workers/worker_proc.h"

#include "tests/unit/check.h"

enum { NUMBER = 7, PATIENCE_USEC = 60 * 1000 * 1000 };

struct test {
        sd_event *event;
        struct ublk_ctl *ctl;
        uint64_t features;
        struct runtime_dir *dir;
        struct worker_start *starter;
        /* the answer to the call under way */
        bool done;
        int result;
        bool with_device;
        struct kernel_device device;
        /* from the worker */
        struct worker_proc *worker;
};

/* CLOCK_MONOTONIC, microseconds. */
uint64_t now_usec(void);
void on_done(void *userdata, int result, const struct kernel_device *device);
/* The result of a call that was submitted with `r`. */
int finish(struct test *test, int r);

/* CALL(add, &request): ublk_ctl_add() and its result. */
#define CALL(name, ...) finish(test, ublk_ctl_##name(test->ctl, __VA_ARGS__, on_done, test, NULL))

/* The answer of CALL(get_info, NUMBER). */
void check_device(struct test *test, enum kernel_state state);
/* Whether the disk of the last get_info has it. */
bool has(const struct test *test, enum kernel_feature feature);

/* ctl_stop.c: when a disk in use is stopped, and when not. In the end it is. */
void check_stop_unheld(struct test *test);
void check_stop(struct test *test);
