/* SPDX-License-Identifier: MIT */
/* A change that needs a new disk takes the old one away first. Before that, a worker on trial opens the
 * backing store as the new spec wants it, and leaves: where it cannot, the disk that is served stays. It
 * serves nothing, claims nothing, locks nothing, and has a socket and a region of its own. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;
struct reconciler;
struct spec_trial;

/* Told once, from the loop. refusal: why the disk could not be made, one sentence; NULL: it could. !tried: another
 * trial of this device has ended, or the device has gone; to be asked again. */
typedef void (*spec_tried)(void *userdata, bool tried, const char *refusal);

/* Tries the device of `record` with `spec`, or waits for the end of another trial of it. 0 and a trial, which is the
 * caller's until it is told; -EBUSY: the store of an earlier one does not answer; -ENOENT: no such device; other
 * -errno. */
int spec_trial_begin(struct reconciler *reconciler, const struct device_record *record,
        const struct device_spec *spec, spec_tried then, void *userdata, struct spec_trial **ret);
/* Nobody is to be told any more. NULL is fine. Returns NULL. */
struct spec_trial *spec_trial_end(struct spec_trial *trial);
/* The device goes: a caller that waits for a trial of it learns nothing from it. */
void device_spec_trial_forget(struct managed_device *device);
