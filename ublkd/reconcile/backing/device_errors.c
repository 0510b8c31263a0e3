/* SPDX-License-Identifier: MIT */
/* Reports the failed requests of a disk.
 *
 * A worker sends NEWS of its errors once a second at most; the supervisor finds later errors by a look of its own.
 * After an event, no other event of that operation follows for QUIET_USEC. The next event counts all requests that
 * failed meanwhile.
 *
 * If the cause has an event of its own (a fault, no room), that event reports the failed requests. They count as
 * reported only when the database has that event. */
#include "ublkd/reconcile/backing/device_errors.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/backing/device_space.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_reports.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/view/error_condition.h"
#include "ublkd/reconcile/view/fault_condition.h"
#include "ublkd/reconcile/view/turn_view.h"

#include "ublkd/base/clock.h"

enum {
        AGAIN_USEC = 2 * 1000 * 1000,
        QUIET_USEC = 60 * 1000 * 1000,
        TIMER_ACCURACY_USEC = 500 * 1000,
        CAUSE_SHIFT = 56,
};

/* The event that reports failed requests. Their count and this value make the value of a report in the region. */
enum cause { CAUSE_NONE, CAUSE_FLUSH, CAUSE_CUT, CAUSE_FULL, CAUSE_ROOM, _CAUSE_MAX };

#define COUNT_MASK ((UINT64_C(1) << CAUSE_SHIFT) - 1)

/* ---- when to look again ---- */

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        device_wake(userdata);
        return 0;
}

/* at: CLOCK_MONOTONIC. On failure the next turn looks. */
static void look_at(struct managed_device *device, uint64_t at)
{
        struct device_errors *errors = &device->errors;

        if (!errors->timer) {
                (void)sd_event_add_time(device->env->config.event, &errors->timer, CLOCK_MONOTONIC, at,
                        TIMER_ACCURACY_USEC, on_timer, device);
                return;
        }
        (void)sd_event_source_set_time(errors->timer, at);
        (void)sd_event_source_set_enabled(errors->timer, SD_EVENT_ONESHOT);
}

static bool is_unreported(const struct error_report *report)
{
        return report->count > report->reported;
}

/* Return when the next event is due; UINT64_MAX: no event is. */
static uint64_t next_event(const struct device_errors *errors)
{
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < _STATS_OP_MAX; i++)
                if (is_unreported(&errors->seen.of[i]) && errors->quiet_until[i] < next)
                        next = errors->quiet_until[i];
        return next;
}

/* changed: there were new errors in this look. */
static void plan_look(struct managed_device *device, bool changed)
{
        uint64_t now = monotonic_now(), wall = clock_usec(CLOCK_REALTIME),
                 end = error_condition_end(&device->errors.seen, wall), event = next_event(&device->errors);

        if (changed)
                look_at(device, now + AGAIN_USEC);
        else if (event != UINT64_MAX)
                look_at(device, event);
        else if (end > wall)
                look_at(device, now + (end - wall));
}

/* ---- events ---- */

/* Return the event that has already reported why requests of `op` fail: a fault, or StoreFull if all requests that
 * failed since the last event found no room. When there is room again, StoreHasRoom stands for the earlier StoreFull. */
static enum cause cause_of(const struct managed_device *device, enum stats_op op)
{
        const struct device_errors *errors = &device->errors;
        struct device_faults faults;

        device_faults_list(device, &faults);
        if (faults.cut > 0)
                return CAUSE_CUT;
        if (faults.flush > 0 && op == STATS_FLUSH)
                return CAUSE_FLUSH;
        if (errors->others[op] != errors->others_reported[op])
                return CAUSE_NONE;
        if (device_space_is_full(device))
                return CAUSE_FULL;
        return device_space_has_ended(device) ? CAUSE_ROOM : CAUSE_NONE;
}

/* The event of a cause, and the number of its report in the region. */
struct cause_event {
        enum event_type type;
        enum condition_reason reason;
        unsigned what;
};

static struct cause_event cause_event(enum cause cause, enum stats_op op)
{
        switch (cause) {
        case CAUSE_FLUSH:
                return (struct cause_event){EVENT_WARNING, fault_reason(REGION_FAULT_FLUSH),
                        REGION_REPORT_FAULTS + REGION_FAULT_FLUSH};
        case CAUSE_CUT:
                return (struct cause_event){EVENT_WARNING, fault_reason(REGION_FAULT_CUT),
                        REGION_REPORT_FAULTS + REGION_FAULT_CUT};
        case CAUSE_FULL:
                return (struct cause_event){EVENT_WARNING, REASON_STORE_FULL, REGION_REPORT_FULL};
        case CAUSE_ROOM:
                return (struct cause_event){EVENT_NORMAL, REASON_STORE_HAS_ROOM, REGION_REPORT_FULL};
        default:
                return (struct cause_event){EVENT_WARNING, error_reason(op), REGION_REPORT_ERRORS + op};
        }
}

/* Count the failed requests of `op` as reported once the database has the event of `cause`. Events are written in their
 * order, so the last event stands for all earlier events that requests wait for. */
static void note_explained(struct managed_device *device, int fd, enum stats_op op, enum cause cause,
        const struct region_report *reports)
{
        const struct cause_event event = cause_event(cause, op);
        const uint64_t count = device->errors.seen.of[op].count;
        struct region_report *waiting = &device->errors.waiting[op];

        if (reports[event.what].revision > waiting->revision
                && device_report_waits(device, &reports[event.what], event.type, event.reason))
                *waiting = (struct region_report){
                        .revision = reports[event.what].revision, .value = (uint64_t)cause << CAUSE_SHIFT};
        if (waiting->revision == 0) {
                (void)region_error_mark_reported(fd, op, count);
                return;
        }
        waiting->value = (waiting->value & ~COUNT_MASK) | count;
        (void)region_report_write(fd, REGION_REPORT_ERRORS + op, waiting);
}

static void note_reported(struct device_errors *errors, enum stats_op op)
{
        errors->seen.of[op].reported = errors->seen.of[op].count;
        errors->others_reported[op] = errors->others[op];
}

static void report(struct managed_device *device, int fd, enum stats_op op)
{
        const struct error_report *found = &device->errors.seen.of[op];
        _cleanup_free_ char *text = NULL;

        if (error_explain(op, found->count - found->reported, found, &text) < 0)
                return;
        device_emit(device, EVENT_WARNING, error_reason(op), "%s", text);
        device->errors.waiting[op] = device_report_note(device, fd, REGION_REPORT_ERRORS + op, found->count);
        note_reported(&device->errors, op);
}

/* reports: as the region has them. */
static void report_new(struct managed_device *device, int fd, const struct region_report *reports)
{
        struct device_errors *errors = &device->errors;
        uint64_t now = monotonic_now();

        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                const enum stats_op op = (enum stats_op)i;
                enum cause cause;

                if (!is_unreported(&errors->seen.of[i]))
                        continue;
                cause = cause_of(device, op);
                if (cause != CAUSE_NONE) {
                        note_explained(device, fd, op, cause, reports);
                        note_reported(errors, op);
                } else if (now >= errors->quiet_until[i]) {
                        report(device, fd, op);
                        errors->quiet_until[i] = now + QUIET_USEC;
                }
        }
}

/* Count the requests that failed with another errno than ENOSPC. The number of those that an earlier ublkd has reported
 * is not known: assume that as many unreported requests as possible have another errno. */
static void count_others(struct managed_device *device, int fd)
{
        struct device_errors *errors = &device->errors;
        uint64_t counts[_STATS_OP_MAX][_REGION_ERRNO_MAX];

        if (region_errors_read_counts(fd, counts) < 0)
                return;
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                const struct error_report *seen = &errors->seen.of[i];
                uint64_t unreported = is_unreported(seen) ? seen->count - seen->reported : 0, others = 0;

                for (unsigned k = 0; k < _REGION_ERRNO_MAX; k++)
                        if (k != REGION_ERRNO_ENOSPC && k != REGION_ERRNO_EOPNOTSUPP)
                                others += counts[i][k];
                errors->others[i] = others;
                if (!errors->are_known)
                        errors->others_reported[i] = others > unreported ? others - unreported : 0;
        }
        errors->are_known = true;
}

static enum event_fate fate_of(
        const struct managed_device *device, int fd, enum stats_op op, const struct region_report *report)
{
        const uint64_t cause = report->value >> CAUSE_SHIFT;
        const struct cause_event event = cause_event(cause < _CAUSE_MAX ? (enum cause)cause : CAUSE_NONE, op);

        return device_report_fate(device, fd, REGION_REPORT_ERRORS + op, report, event.type, event.reason);
}

/* Take account of events that the database may not have yet, and mark in the region the errors of saved events as
 * reported. An older ublkd, which had no such notes, may have marked more errors. Call it before report_new(), which
 * may merge its events with these. */
static void find_reported(
        struct managed_device *device, int fd, const struct region_report *reports, struct io_errors *found)
{
        for (unsigned i = 0; i < _STATS_OP_MAX; i++) {
                const enum stats_op op = (enum stats_op)i;
                const struct region_report *report = &reports[REGION_REPORT_ERRORS + i];
                const uint64_t count = report->value & COUNT_MASK;
                const bool is_more = count > found->of[i].reported;
                enum event_fate fate = fate_of(device, fd, op, report);

                device->errors.waiting[i] = fate == EVENT_WAITS ? *report : (struct region_report){};
                if (fate == EVENT_LOST)
                        continue;
                if (fate == EVENT_SAVED && (!is_more || region_error_mark_reported(fd, op, count) >= 0))
                        (void)region_report_clear(fd, REGION_REPORT_ERRORS + i);
                if (is_more)
                        found->of[i].reported = count;
        }
}

/* ---- the look ---- */

/* Keep the time of an error while no other error follows. A time in the future (the clock was set back) is read as the
 * present time at each look. */
static void keep_times(const struct io_errors *seen, struct io_errors *found)
{
        for (size_t i = 0; i < _STATS_OP_MAX; i++)
                if (found->of[i].count == seen->of[i].count && found->of[i].at > seen->of[i].at)
                        found->of[i].at = seen->of[i].at;
}

void device_errors_read(struct managed_device *device)
{
        _cleanup_close_ int fd = runtime_dir_open_region(device->env->config.runtime_dir, device->id.uid);
        struct region_report reports[_REGION_REPORT_MAX] = {};
        struct io_errors found;
        bool changed;

        if (fd < 0)
                return;
        device_shared_report_loss(device, fd);
        if (region_errors_read(fd, found.of) < 0)
                return;
        keep_times(&device->errors.seen, &found);
        (void)region_reports_read(fd, reports); /* on failure: no reports */
        find_reported(device, fd, reports, &found);
        changed = !io_errors_equal(&found, &device->errors.seen);
        device->errors.seen = found;
        if (changed || !device->errors.are_known)
                count_others(device, fd);
        report_new(device, fd, reports);
        plan_look(device, changed);
}

void device_errors_drop(struct managed_device *device)
{
        sd_event_source_disable_unref(device->errors.timer);
}

const struct io_errors *device_errors_list(const struct managed_device *device)
{
        return &device->errors.seen;
}

int device_errors_condition(
        const struct managed_device *device, const struct device_record *record, struct device_condition *ret)
{
        if (turn_view_is_off(&device->view, record))
                return 0;
        return error_condition(&device->errors.seen, clock_usec(CLOCK_REALTIME), ret);
}
