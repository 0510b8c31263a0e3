/* SPDX-License-Identifier: MIT */
/* Where paths lead, as events.
 *
 * A watch has a slot for its whole life. An order waits in a queue until it fits into the socket: WATCH, when
 * the watch is new or the process is; DROP, which keeps the slot until it is sent. Without a process there
 * are not orders; the next one gets a WATCH for each watch that is not held back. */
#include "ublkd/paths/path_watch.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/paths/path_process.h"

#include <string.h>
#include <sys/queue.h>

enum {
        SLOTS_MIN = 16,
        PING_USEC = 10 * 1000 * 1000,
        PAUSE_USEC = 60 * 1000 * 1000,
        PAUSE_DOUBLINGS_MAX = 6, /* 64 minutes */
        ACCURACY_USEC = 10 * 1000,
};

enum watch_order { WATCH_ORDER_NONE, WATCH_ORDER_WATCH, WATCH_ORDER_DROP };

struct path_watch {
        struct path_watches *watches;
        struct path_id id;
        char *path;
        struct path_store store;
        path_watch_changed changed; /* NULL: it was freed, and waits for its DROP */
        void *userdata;
        bool is_known;
        struct path_view view;
        bool is_sent;           /* the process watches it */
        enum watch_order order; /* in the queue of orders, if any */
        TAILQ_ENTRY(path_watch) of_orders;
        uint64_t held_until; /* CLOCK_MONOTONIC: it hung, and is not looked at before; 0: it is */
        uint64_t hung_in;    /* the number of the process, which has not ended; 0 */
        unsigned hangs;      /* in a row */
};

struct path_watches {
        sd_event *event;
        struct path_process *process;
        uint64_t pause_usec;
        struct path_watch **slots; /* NULL: free */
        uint32_t *free_slots;      /* `slot_count - used` of them */
        size_t slot_count, used;
        size_t wanted; /* of those in use: not freed */
        uint32_t serial;
        TAILQ_HEAD(, path_watch) orders;
        struct path_id looking; /* what the process looks at now */
        bool is_looking;
        sd_event_source *resume;
};

DEFINE_CLEANUP(struct path_watches, path_watches_free);

/* ---- slots ---- */

/* Makes room for one more. 0, -ENOSPC or -ENOMEM. */
static int slots_grow(struct path_watches *watches)
{
        size_t count = watches->slot_count ? 2 * watches->slot_count : SLOTS_MIN;
        struct path_watch **slots;
        uint32_t *free_slots;

        if (watches->used < watches->slot_count)
                return 0;
        if (count > PATH_SLOTS_MAX)
                return -ENOSPC;
        free_slots = reallocarray(watches->free_slots, count, sizeof(*free_slots));
        if (!free_slots)
                return -ENOMEM;
        watches->free_slots = free_slots;
        slots = reallocarray(watches->slots, count, sizeof(struct path_watch *));
        if (!slots)
                return -ENOMEM;
        watches->slots = slots;
        for (size_t i = watches->slot_count; i < count; i++) {
                slots[i] = NULL;
                free_slots[i - watches->slot_count] = (uint32_t)i;
        }
        watches->slot_count = count;
        return 0;
}

static void slot_take(struct path_watches *watches, struct path_watch *watch)
{
        uint32_t slot = watches->free_slots[watches->slot_count - ++watches->used];

        watch->id = (struct path_id){.slot = slot, .serial = ++watches->serial};
        watches->slots[slot] = watch;
}

/* A watch that is still wanted. */
static struct path_watch *slot_find(const struct path_watches *watches, struct path_id id)
{
        struct path_watch *watch = id.slot < watches->slot_count ? watches->slots[id.slot] : NULL;

        return watch && watch->id.serial == id.serial && watch->changed ? watch : NULL;
}

static void order_remove(struct path_watch *watch)
{
        if (watch->order != WATCH_ORDER_NONE)
                TAILQ_REMOVE(&watch->watches->orders, watch, of_orders);
        watch->order = WATCH_ORDER_NONE;
}

static void slot_release(struct path_watch *watch)
{
        struct path_watches *watches = watch->watches;

        order_remove(watch);
        watches->slots[watch->id.slot] = NULL;
        watches->used--;
        watches->free_slots[watches->slot_count - watches->used - 1] = watch->id.slot;
        free(watch->path);
        free(watch);
}

/* ---- orders ---- */

static void order_add(struct path_watch *watch, enum watch_order order)
{
        order_remove(watch);
        watch->order = order;
        TAILQ_INSERT_TAIL(&watch->watches->orders, watch, of_orders);
}

static int send_order(const struct path_watch *watch)
{
        struct path_order order = {.type = PATH_ORDER_DROP, .id = watch->id};

        if (watch->order == WATCH_ORDER_WATCH) {
                order.type = PATH_ORDER_WATCH;
                order.store = watch->store;
                memcpy(order.path, watch->path, strlen(watch->path) + 1);
        }
        return path_process_send(watch->watches->process, &order);
}

/* As many as fit. A process that is gone is reported as lost. */
static void pump(struct path_watches *watches)
{
        struct path_watch *watch;

        while ((watch = TAILQ_FIRST(&watches->orders)) && send_order(watch) >= 0) {
                watch->is_sent = watch->order == WATCH_ORDER_WATCH;
                if (watch->is_sent)
                        order_remove(watch);
                else
                        slot_release(watch);
        }
}

/* What the process knew went with it; a DROP is not needed any more. */
static void drop_orders(struct path_watches *watches)
{
        watches->is_looking = false;
        for (size_t i = 0; i < watches->slot_count; i++) {
                struct path_watch *watch = watches->slots[i];

                if (!watch)
                        continue;
                watch->is_sent = false;
                if (watch->changed)
                        order_remove(watch);
                else
                        slot_release(watch);
        }
}

/* ---- views ---- */

static void set_view(struct path_watch *watch, const struct path_view *view)
{
        bool same = watch->is_known && path_view_equal(&watch->view, view);

        watch->is_known = true;
        watch->view = *view;
        if (!same && watch->changed)
                watch->changed(watch->userdata, &watch->view);
}

static void set_unknown(struct path_watch *watch, int error)
{
        set_view(watch, &(struct path_view){.state = PATH_UNKNOWN, .error = error});
}

/* ---- paths that hang ---- */

static void plan_resume(struct path_watches *watches, uint64_t at)
{
        int enabled = SD_EVENT_OFF;
        uint64_t planned = 0;

        (void)sd_event_source_get_enabled(watches->resume, &enabled); /* fails only for a dead source */
        (void)sd_event_source_get_time(watches->resume, &planned);
        if (enabled != SD_EVENT_OFF && planned <= at)
                return;
        (void)sd_event_source_set_time(watches->resume, at);
        (void)sd_event_source_set_enabled(watches->resume, SD_EVENT_ONESHOT);
}

static void hold_back(struct path_watch *watch, uint64_t process)
{
        struct path_watches *watches = watch->watches;

        watch->held_until = monotonic_now() + (watches->pause_usec << watch->hangs);
        if (watch->hangs < PAUSE_DOUBLINGS_MAX)
                watch->hangs++;
        watch->hung_in = process;
        plan_resume(watches, watch->held_until);
        set_unknown(watch, ETIMEDOUT);
}

/* A look that hangs at one file hangs at its neighbours. */
static bool is_neighbour(const struct path_watch *watch, const struct path_watch *hung)
{
        return watch == hung
               || (!watch->store.is_disk && !hung->store.is_disk
                       && watch->store.device == hung->store.device);
}

static void hold_back_neighbours(
        struct path_watches *watches, const struct path_watch *hung, uint64_t process)
{
        for (size_t i = 0; i < watches->slot_count; i++) {
                struct path_watch *watch = watches->slots[i];

                if (watch && watch->changed && watch->held_until == 0 && is_neighbour(watch, hung))
                        hold_back(watch, process);
        }
}

/* They are looked at once more. While the process that hung in one has not ended, another one would only hang
 * beside it. */
static int on_resume(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct path_watches *watches = userdata;
        uint64_t now = monotonic_now();

        for (size_t i = 0; i < watches->slot_count; i++) {
                struct path_watch *watch = watches->slots[i];

                if (!watch || watch->held_until == 0)
                        continue;
                if (watch->hung_in)
                        watch->held_until = now + watches->pause_usec;
                if (watch->held_until > now) {
                        plan_resume(watches, watch->held_until);
                        continue;
                }
                watch->held_until = 0;
                if (path_process_is_running(watches->process))
                        order_add(watch, WATCH_ORDER_WATCH);
        }
        pump(watches);
        return 0;
}

/* ---- the process ---- */

static void on_started(void *owner, uint64_t number _unused_)
{
        struct path_watches *watches = owner;

        for (size_t i = 0; i < watches->slot_count; i++)
                if (watches->slots[i] && watches->slots[i]->held_until == 0)
                        order_add(watches->slots[i], WATCH_ORDER_WATCH);
        pump(watches);
}

static void on_received(void *owner, const struct path_report *report)
{
        struct path_watches *watches = owner;
        struct path_watch *watch = slot_find(watches, report->id);

        watches->is_looking = report->type == PATH_REPORT_LOOKING;
        watches->looking = report->id;
        if (report->type != PATH_REPORT_VIEW || !watch)
                return;
        watch->hangs = 0;
        set_view(watch, &report->view);
}

static void on_has_room(void *owner)
{
        pump(owner);
}

/* A process that hangs does so where it looks. One that died may have been killed: a path is suspected only
 * when that happens twice. */
static void on_lost(void *owner, uint64_t number, enum path_process_loss loss)
{
        struct path_watches *watches = owner;
        struct path_watch *at = watches->is_looking ? slot_find(watches, watches->looking) : NULL;

        drop_orders(watches);
        if (!at)
                return;
        if (loss == PATH_PROCESS_DIED && at->hangs == 0)
                at->hangs = 1;
        else
                hold_back_neighbours(watches, at, number);
}

static void on_ended(void *owner, uint64_t number)
{
        struct path_watches *watches = owner;

        for (size_t i = 0; i < watches->slot_count; i++)
                if (watches->slots[i] && watches->slots[i]->hung_in == number)
                        watches->slots[i]->hung_in = 0;
}

static void on_not_started(void *owner, int error)
{
        struct path_watches *watches = owner;

        for (size_t i = 0; i < watches->slot_count; i++)
                if (watches->slots[i])
                        set_unknown(watches->slots[i], -error);
}

/* ---- watches ---- */

int path_watch_new(struct path_watches *watches, const char *path, const struct path_store *store,
        path_watch_changed changed, void *userdata, struct path_watch **ret)
{
        _cleanup_free_ struct path_watch *watch = NULL;
        int r;

        if (*path != '/' || strlen(path) >= PATH_MAX)
                return -EINVAL;
        r = slots_grow(watches);
        watch = r < 0 ? NULL : calloc(1, sizeof(*watch));
        if (!watch)
                return r < 0 ? r : -ENOMEM;
        *watch = (struct path_watch){.watches = watches,
                .path = strdup(path),
                .store = *store,
                .changed = changed,
                .userdata = userdata};
        if (!watch->path)
                return -ENOMEM;
        slot_take(watches, watch);
        watches->wanted++;
        path_process_want(watches->process, true);
        if (path_process_is_running(watches->process)) {
                order_add(watch, WATCH_ORDER_WATCH);
                pump(watches);
        }
        *ret = TAKE_PTR(watch);
        return 0;
}

struct path_watch *path_watch_free(struct path_watch *watch)
{
        struct path_watches *watches;

        if (!watch)
                return NULL;
        watches = watch->watches;
        watch->changed = NULL;
        if (watch->is_sent) {
                order_add(watch, WATCH_ORDER_DROP);
                pump(watches);
        } else {
                slot_release(watch);
        }
        if (--watches->wanted > 0)
                return NULL;
        path_process_want(watches->process, false); /* a supervisor without paths has no process for them */
        drop_orders(watches);
        return NULL;
}

const struct path_view *path_watch_view(const struct path_watch *watch)
{
        return watch->is_known ? &watch->view : NULL;
}

const char *path_watch_path(const struct path_watch *watch)
{
        return watch->path;
}

const struct path_store *path_watch_store(const struct path_watch *watch)
{
        return &watch->store;
}

/* ---- the whole ---- */

static const struct path_process_handlers handlers = {
        .started = on_started,
        .received = on_received,
        .has_room = on_has_room,
        .lost = on_lost,
        .ended = on_ended,
        .not_started = on_not_started,
};

int path_watches_new(sd_event *event, const struct path_watches_options *options, struct path_watches **ret)
{
        _cleanup_(path_watches_free_pointer) struct path_watches *watches = calloc(1, sizeof(*watches));
        int r;

        if (!watches)
                return -ENOMEM;
        watches->event = sd_event_ref(event);
        watches->pause_usec = options->pause_usec ? options->pause_usec : PAUSE_USEC;
        TAILQ_INIT(&watches->orders);
        r = path_process_new(event, options->program, options->ping_usec ? options->ping_usec : PING_USEC,
                &handlers, watches, &watches->process);
        if (r >= 0)
                r = sd_event_add_time(
                        event, &watches->resume, CLOCK_MONOTONIC, 0, ACCURACY_USEC, on_resume, watches);
        if (r >= 0)
                r = sd_event_source_set_enabled(watches->resume, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watches);
        return 0;
}

struct path_watches *path_watches_free(struct path_watches *watches)
{
        if (!watches)
                return NULL;
        path_process_free(watches->process);
        sd_event_source_disable_unref(watches->resume);
        sd_event_unref(watches->event);
        free(watches->slots);
        free(watches->free_slots);
        free(watches);
        return NULL;
}

pid_t path_watches_pid(const struct path_watches *watches)
{
        return path_process_pid(watches->process);
}

uint64_t path_watches_starts(const struct path_watches *watches)
{
        return path_process_starts(watches->process);
}
