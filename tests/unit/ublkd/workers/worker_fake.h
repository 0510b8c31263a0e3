/* SPDX-License-Identifier: MIT */
/* Workers for the test of worker_proc, in several characters. */
#pragma once

enum {
        WORKER_FAKE_EPOCH = 3,
        WORKER_FAKE_NUMBER = 42,
        WORKER_FAKE_STARTED = 1700000000, /* reports it when it is adopted; microseconds */
};

/* Of the device that all of them serve, or should. */
extern const char worker_fake_uid[];

/* Behaves as `name` says, with the descriptors that a worker is started with; a spare behaves as the name in
 * its CONFIG says. Returns an exit status. */
int worker_fake(const char *name);

/* Answers supervisors that call there, like a worker that serves; does not return. */
void worker_fake_serve(int listener);
