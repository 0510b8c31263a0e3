/* SPDX-License-Identifier: MIT */
/* What the manager logs of its parts. */
#include "ublkd/tasks/manager_reports.h"

#include "ublkd/base/log.h"
#include "ublkd/tasks/service_state.h"

#include <string.h>

void manager_report_disks(const struct foreign_disks *disks, struct device_store *store)
{
        for (size_t i = 0; i < disks->count; i++) {
                const struct foreign_disk *disk = &disks->items[i];

                if (!disk->is_new || !foreign_disk_is_problem(disk))
                        continue;
                log_record(LOG_WARNING,
                        &(const struct log_fields){.reason = reason_to_string(REASON_DISK_OF_NO_DEVICE)},
                        "%s", disk->detail);
                device_store_note_disk(
                        store, disk->number, EVENT_WARNING, REASON_DISK_OF_NO_DEVICE, disk->detail);
        }
}

void manager_report_events(int error)
{
        if (error < 0)
                log_errno(LOG_ERR, NULL, error,
                        "Writing events to the database failed: %s; keeping them in memory, and retrying "
                        "every 30 s",
                        strerror(-error));
        else
                log_info(NULL, "Events are written to the database again");
}

static size_t count_disks(const struct device_store *store)
{
        size_t count = 0;

        DEVICE_STORE_FOREACH (record, store)
                count += record->status.disk;
        return count;
}

void manager_report_new_state(const char *directory)
{
        log_line(LOG_NOTICE, NULL,
                "The state directory %s did not exist; ublkd has created it, empty, and knows no devices: if "
                "yours are in another directory, stop ublkd and correct --state-dir (StateDirectory=).",
                directory);
}

void manager_report_socket_group(const char *group)
{
        log_warning(NULL,
                "SocketGroup=%s is not in effect: systemd opened the socket, and ublkd.socket decides who "
                "may "
                "connect. Set SocketGroup=%s and SocketMode=0660 in its [Socket] section with 'systemctl "
                "edit "
                "ublkd.socket', then 'systemctl restart ublkd.socket ublkd.service'; 'ublkctl host' shows "
                "the "
                "group.",
                group, group);
}

void manager_report_stop(const struct device_store *store, int result)
{
        size_t disks = count_disks(store);

        service_state_stopping(disks);
        if (result >= 0)
                log_info(NULL,
                        "Stopping; %zu disks stay in service, without recovery until ublkd starts again; to "
                        "take them down use 'systemctl start ublkd' and 'systemctl stop ublkd.target', or "
                        "'ublkctl stop' for one of them",
                        disks);
}
