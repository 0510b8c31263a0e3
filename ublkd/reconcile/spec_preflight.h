/* SPDX-License-Identifier: MIT */
/* A change that needs a new disk removes the old one first. Before that, a preflight worker opens the backing
 * store as the new spec wants it, and exits. If it cannot open the store, the served disk stays. A preflight
 * worker serves nothing, claims nothing, locks nothing, and has a socket and a region of its own. */
#pragma once

#include "ublkd/store/device_store.h"

struct managed_device;
struct reconciler;
struct spec_preflight;

/* Called once, from the loop. refusal: why the disk could not be created, one sentence, which is of that reason; NULL: it could.
 * !tried: another preflight of this device has ended, or the device was removed; ask again. */
typedef void (*spec_tried)(void *userdata, bool tried, enum condition_reason reason, const char *refusal);

/* Try the device of `record` with `spec`, or wait for the end of another preflight of it. Return 0 and a
 * preflight, valid until `then` is called; -EBUSY: the store of an earlier preflight does not answer;
 * -ENOENT: no such device; other -errno. */
int spec_preflight_begin(struct reconciler *reconciler, const struct device_record *record,
        const struct device_spec *spec, spec_tried then, void *userdata, struct spec_preflight **ret);
/* End the preflight without calling back. NULL is fine. Return NULL. */
struct spec_preflight *spec_preflight_end(struct spec_preflight *preflight);
/* End the preflights of a removed device; their callers get !tried. */
void device_spec_preflight_drop(struct managed_device *device);
