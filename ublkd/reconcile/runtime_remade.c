/* SPDX-License-Identifier: MIT */
/* Writes the files of each device again after the runtime directory was removed and recreated. The record
 * keeper writes the records. Sockets and regions of running workers cannot be recreated: the next worker of
 * each device gets new ones. */
#include "ublkd/reconcile/runtime_remade.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/disk/device_node.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"

void reconciler_runtime_remade(struct reconciler *reconciler)
{
        MANAGED_DEVICE_FOREACH (device, reconciler) {
                device_claim_rewrite(device);
                device_backing_rewrite(device);
                (void)device_node_changed(device); /* the file that udev reads was removed */
                device_wake(device);
        }
}
