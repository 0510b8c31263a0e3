/* SPDX-License-Identifier: MIT */
/* What the manager logs of its parts. */
#pragma once

#include "ublkd/host/foreign_disk.h"
#include "ublkd/store/device_store.h"

/* Report each new disk that no running ublkd looks after, in the log and as an event. */
void manager_report_disks(const struct foreign_disks *disks, struct device_store *store);
/* Report the first failure of writing events, and its end. error: 0 or -errno. */
void manager_report_events(int error);
/* Report that ublkd has created its state directory, so it starts without devices. */
void manager_report_new_state(const char *directory);
/* Report that SocketGroup= has no effect on a socket that systemd has opened. */
void manager_report_socket_group(const char *group);
/* Report to the service manager and in the log that ublkd stops, and that its disks do not. result: of the loop. */
void manager_report_stop(const struct device_store *store, int result);
