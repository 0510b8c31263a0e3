/* SPDX-License-Identifier: MIT */
/* Names of the ublk driver's feature bits, and what a disk can do that has them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* What only some kernels can do to a live disk. */
enum kernel_feature {
        KERNEL_FEATURE_GROW,     /* UPDATE_SIZE */
        KERNEL_FEATURE_TRY_STOP, /* TRY_STOP_DEV */
        _KERNEL_FEATURE_MAX
};
/* Return whether a disk with these flags (as negotiated) has the feature. */
bool kernel_has_feature(uint64_t flags, enum kernel_feature feature);

/* Return whether QUIESCE_DEV may be sent to a disk with these flags; features: of the driver.
 *
 * Before 7.3 that can crash the machine. QUIESCE_DEV completes a command of which the worker's submission has not come to
 * ublk_prep_cancel() yet; io_uring_cmd_mark_cancelable() then puts the freed command into the list of the ring, and
 * io_uring_try_cancel_uring_cmd() walks it when the ring is freed. Seen on 7.2.12: one in 35 restarts of a queue of
 * depth 2 that is full. */
bool kernel_quiesces(uint64_t flags, uint64_t features);

/* Return whether the driver still cancels commands of a dead worker for a moment after it has shown the disk as QUIESCED;
 * features: of the driver.
 *
 * ublk_quiesce_work_fn() calls ublk_cancel_dev() after it has released the lock of the disk (ublk_drv.c of 6.12). If
 * START_USER_RECOVERY resets the queues meanwhile (ublk_queue_reinit()), io_uring_cmd_done() gets a null command, and the
 * machine goes down. Seen once on 6.12.95. The first driver with QUIESCE has no such work. */
bool kernel_cancels_late(uint64_t features);

/* Return whether the driver learns of the death of a worker that had all tags of a queue in flight only from the timeout of a
 * request; features: of the driver.
 *
 * Linux 6.15 has a release hook on /dev/ublkcN instead (ublk_ch_release()), and its ublk_timeout() looks for no dead worker any
 * more. No feature distinguishes that version from 6.12; QUIESCE came with 6.16. */
bool kernel_learns_by_timeout(uint64_t features);

/* Return the driver's name of flag bit N without UBLK_F_, or NULL. */
const char *kernel_feature_name(unsigned bit);
/* Return a JSON array of the names of all bits set, the caller's; NULL on ENOMEM. */
cJSON *kernel_features_to_json(uint64_t flags);
