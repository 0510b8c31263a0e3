/* SPDX-License-Identifier: MIT */
/* The runtime directory was removed, and made again: what was written down of each device is written once more. The
 * records are the record keeper's; what workers have (their sockets, and the regions that they count in) cannot be
 * made again, and comes back with the next worker. */
#include "ublkd/reconcile/runtime_remade.h"
#include "ublkd/reconcile/parts/device_backing.h"
#include "ublkd/reconcile/parts/device_claim.h"
#include "ublkd/reconcile/parts/device_node.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

void reconciler_runtime_remade(struct reconciler *reconciler)
{
        MANAGED_DEVICE_FOREACH (device, reconciler) {
                device_claim_rewrite(device);
                device_backing_rewrite(device);
                (void)device_node_changed(device); /* what udev reads of it is gone */
                device_wake(device);
        }
}
