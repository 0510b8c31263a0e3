/* SPDX-License-Identifier: MIT */
/* The looks at the host: when they begin, and what follows from what they see. */
#include "ublkd/manager_looks.h"

#include "api/api.h"
#include "ublkd/manager_internal.h"
#include "ublkd/tasks/manager_reports.h"
#include "ublkd/tasks/runtime_guard.h"
#include "ublkd/tasks/service_line.h"

#include <string.h>

/* A client is answered when both looks are done. */
static void answer_host(const struct manager *manager)
{
        if (manager->api && !manager->scanning && !manager->looking)
                api_host_seen(manager->api);
}

static void on_foreign_seen(void *userdata)
{
        struct manager *manager = userdata;

        manager->scanning = false;
        (void)adoptables_join(&manager->host.adoptable, &manager->host.foreign);
        (void)record_keeper_show_disks(manager->record_keeper, &manager->host.foreign);
        manager_report_disks(&manager->host.foreign, manager->store);
        answer_host(manager);
}

static int report_state(struct manager *manager, const struct state_room *room)
{
        return host_report_state(&manager->host, manager->state_dir, room,
                device_store_is_gone(manager->store) ? -ENOLINK : manager->events_error);
}

/* If there is room again, write the events first. Do not touch a database whose file system does not answer. */
static void on_state_seen(void *userdata, const struct state_seen *seen)
{
        struct manager *manager = userdata;

        manager->looking = false;
        memcpy(manager->host.database, seen->sizes, sizeof(manager->host.database));
        if (seen->database != DATABASE_NOT_SEEN)
                device_store_set_gone(manager->store, seen->database == DATABASE_GONE);
        if (report_state(manager, &seen->room) == 0 && seen->room.answer == STATE_ANSWERS
                && manager->events_error < 0) {
                event_writer_retry(manager->event_writer);
                (void)report_state(manager, &seen->room);
        }
        (void)runtime_guard_report(manager->runtime_guard, &manager->host.state);
        service_line_changed(manager->service_line);
        answer_host(manager);
}

bool manager_look_for_disks(struct manager *manager)
{
        (void)record_keeper_list(manager->record_keeper, ADOPTABLES_SHOWN_MAX, &manager->host.adoptable);
        if (foreign_scan_begin(manager->foreign_scan))
                return true;
        (void)adoptables_join(&manager->host.adoptable, &manager->host.foreign);
        return false;
}

void manager_look_at_state(void *userdata)
{
        (void)state_look_begin(
                ((struct manager *)userdata)->state_look); /* on failure the last look counts */
}

bool manager_look_at_host(void *userdata)
{
        struct manager *manager = userdata;
        int r = state_look_begin(manager->state_look);

        manager->looking = r > 0;
        if (r < 0)
                (void)report_state(manager, &(const struct state_room){.answer = STATE_NOT_SEEN});
        manager->scanning = manager_look_for_disks(manager);
        return manager->looking || manager->scanning;
}

int manager_open_foreign_scan(struct manager *manager)
{
        return foreign_scan_new(
                &(struct foreign_scan_config){
                        .event = manager->event,
                        .store = manager->store,
                        .adoptable = &manager->host.adoptable,
                        .found = &manager->host.foreign,
                        .done = on_foreign_seen,
                        .userdata = manager,
                },
                &manager->foreign_scan);
}

int manager_open_state_look(struct manager *manager)
{
        return state_look_new(
                &(struct state_look_config){
                        .event = manager->event,
                        .directory = manager->state_dir,
                        .store = manager->store,
                        .done = on_state_seen,
                        .userdata = manager,
                },
                &manager->state_look);
}
