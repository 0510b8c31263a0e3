/* SPDX-License-Identifier: MIT */
/* Reports whether the backing store has room for writes. */
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_reports.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/view/space_condition.h"
#include "ublkd/reconcile/view/turn_view.h"

#include "ublkd/proto/region_space.h"

#include <stdlib.h>
#include <string.h>

static int open_region(const struct managed_device *device)
{
        return runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
}

/* Return 0 or -errno. */
static int set_on_full(const struct managed_device *device, int fd, enum region_on_full on_full)
{
        int r = fd < 0 ? fd : region_space_set_on_full(fd, on_full);

        if (r < 0 && r != -ENOENT && r != -ENODATA && r != -EPROTO) /* no region yet, or an older worker's */
                device_emit(device, EVENT_WARNING, REASON_ON_FULL_NOT_SET,
                        "onFull cannot be passed to the worker: %s; ublkd retries at the next change of the "
                        "device.",
                        strerror(-r));
        return r;
}

void device_space_apply(struct managed_device *device, int fd, const struct device_record *record)
{
        bool waits = record->spec->options.on_full == ON_FULL_WAIT;

        if (set_on_full(device, fd, waits ? REGION_ON_FULL_WAIT : REGION_ON_FULL_ERROR) >= 0)
                device->space.waits = waits;
}

void device_space_end_waiting(const struct managed_device *device)
{
        _cleanup_close_ int fd = open_region(device);

        (void)set_on_full(device, fd, REGION_ON_FULL_ERROR);
}

bool device_space_is_full(const struct managed_device *device)
{
        return device->space.full_since > 0;
}

bool device_space_has_ended(const struct managed_device *device)
{
        return device->space.has_ended;
}

bool device_space_is_waited_for(const struct managed_device *device)
{
        _cleanup_close_ int fd = open_region(device);
        struct region_space space;

        return fd >= 0 && region_space_read(fd, &space) >= 0 && space.waiting > 0;
}

/* Of an episode that was reported, the event is one of its own: by now its writes wait, and do not fail. */
static void report_full(const struct managed_device *device, int fd, const struct region_space *space)
{
        static const char unknown[] = "The backing store has no room for a write.";
        struct region_missed missed;
        bool known = region_space_read_missed(fd, space->full_since, &missed) >= 0;
        _cleanup_free_ char *text = NULL;

        (void)space_explain_full(space->on_full == REGION_ON_FULL_WAIT, known ? &missed : NULL, &text);
        if (space->full_since == space->reported)
                device_emit_apart(device, EVENT_WARNING, REASON_STORE_FULL, text ? text : unknown);
        else
                device_emit(device, EVENT_WARNING, REASON_STORE_FULL, "%s", text ? text : unknown);
}

/* Return the number of the stores, and the room below each for what the disk may still write; not `known` if there is
 * nothing to go by. */
static unsigned rooms_of(const struct managed_device *device, const struct device_record *record,
        struct store_room ret[static TARGET_STORES_MAX])
{
        unsigned count = device_path_count(device);

        if (record->spec && record->spec->options.read_only)
                return 0;
        for (unsigned i = 0; i < count; i++)
                ret[i] = (struct store_room){
                        .room = device_path_room(device, i),
                        .place = device_path_place(device, i),
                };
        return count;
}

static void report_one(struct managed_device *device, unsigned number, const struct store_room *store)
{
        _cleanup_free_ char *text = NULL;

        /* Of a room that is unknown, as below a file that was deleted, there is no news. */
        if (!store->room.known || store->room.low == device_path_was_low(device, number)
                || (store->room.low && space_explain_low(store, &text) < 0))
                return;
        device_path_note_low(device, number, store->room.low);
        if (store->room.low)
                device_emit(device, EVENT_WARNING, REASON_STORE_LOW, "%s", text);
        else
                device_emit(device, EVENT_NORMAL, REASON_STORE_NOT_LOW,
                        "The file system of the backing file%s%s has enough space for the disk again.",
                        store->place ? " of " : "", store->place ? store->place : "");
}

static void report_low(struct managed_device *device, const struct device_record *record)
{
        struct store_room rooms[TARGET_STORES_MAX];
        unsigned count = rooms_of(device, record, rooms);

        for (unsigned i = 0; i < count; i++)
                report_one(device, i, &rooms[i]);
}

/* full_since and whether writes wait, in one number. */
static uint64_t reported_value(uint64_t full_since, bool waits)
{
        return full_since << 1 | waits;
}

/* Return whether the region has this episode as reported, by an older ublkd that knew of no notes: the note of another
 * one is older. */
static bool is_stale(const struct region_space *space, uint64_t full_since)
{
        return space->full_since > 0 && space->reported == space->full_since && full_since != space->reported;
}

/* Take account of an event that the database may not have yet, and mark in the region what it reports once it has.
 * Return the revision of one that waits; 0: none does. */
static uint64_t find_reported(const struct managed_device *device, int fd, struct region_space *space)
{
        struct region_report reports[_REGION_REPORT_MAX], *report = &reports[REGION_REPORT_FULL];
        uint64_t full_since;
        bool waits;
        enum event_fate fate;

        if (region_reports_read(fd, reports) < 0)
                return 0;
        full_since = report->value >> 1;
        waits = report->value & 1;
        if (report->revision > 0 && is_stale(space, full_since)) {
                (void)region_report_clear(fd, REGION_REPORT_FULL);
                return 0;
        }
        fate = full_since > 0 ? device_report_fate(device, fd, REGION_REPORT_FULL, report, EVENT_WARNING,
                                        REASON_STORE_FULL)
                              : device_report_fate(device, fd, REGION_REPORT_FULL, report, EVENT_NORMAL,
                                        REASON_STORE_HAS_ROOM);
        if (fate == EVENT_LOST)
                return 0;
        if (fate == EVENT_SAVED && region_space_mark_reported(fd, full_since, waits) >= 0)
                (void)region_report_clear(fd, REGION_REPORT_FULL);
        space->reported = full_since;
        space->reported_waits = waits;
        return fate == EVENT_WAITS ? report->revision : 0;
}

/* Note that writes do not wait any more. revision: of the event that waits; 0: the database has it. */
static void note_end_of_waiting(int fd, uint64_t revision, uint64_t full_since)
{
        const struct region_report report = {
                .revision = revision, .value = reported_value(full_since, false)};

        if (revision > 0)
                (void)region_report_write(fd, REGION_REPORT_FULL, &report);
        else
                (void)region_space_mark_reported(fd, full_since, false);
}

/* Report what has changed since the last event, whose revision find_reported() returned: the episode, or that its writes wait by now. */
static void report_episode(
        const struct managed_device *device, int fd, const struct region_space *space, uint64_t revision)
{
        bool is_full = space->full_since > 0, waits = is_full && space->on_full == REGION_ON_FULL_WAIT;
        bool is_new = space->full_since != space->reported;
        bool begins_to_wait = waits && space->waiting > 0 && !space->reported_waits;

        if (is_full && (is_new || begins_to_wait))
                report_full(device, fd, space);
        else if (is_new)
                device_emit(device, EVENT_NORMAL, REASON_STORE_HAS_ROOM,
                        "The backing store has room for writes again.");
        if (is_new || begins_to_wait)
                device_report_note(device, fd, REGION_REPORT_FULL, reported_value(space->full_since, waits));
        else if (space->reported_waits && !waits)
                note_end_of_waiting(fd, revision, space->full_since);
}

static void read_full(struct managed_device *device)
{
        _cleanup_close_ int fd = open_region(device);
        struct region_space space;
        uint64_t revision;

        device->space.full_since = 0;
        device->space.has_ended = false;
        if (fd < 0 || region_space_read(fd, &space) < 0)
                return;
        device->space.full_since = space.full_since;
        device->space.waits = space.on_full == REGION_ON_FULL_WAIT;
        revision = find_reported(device, fd, &space);
        device->space.has_ended = space.full_since == 0 && space.reported > 0;
        report_episode(device, fd, &space, revision);
}

void device_space_read(struct managed_device *device, const struct device_record *record)
{
        read_full(device);
        report_low(device, record);
}

int device_space_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        struct store_room rooms[TARGET_STORES_MAX];
        const struct space_facts facts = {
                .full_since = device->space.full_since,
                .waits = device->space.waits,
                .rooms = rooms,
                .count = rooms_of(device, record, rooms),
        };

        return turn_view_is_off(&device->view, record) ? 0 : space_condition(&facts, ret);
}
