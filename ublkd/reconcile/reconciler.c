/* SPDX-License-Identifier: MIT */
/* The list of the devices, and the order of their turns (device_turn.c). */
#include "ublkd/reconcile/reconciler.h"
#include "ublkd/reconcile/device_turn.h"
#include "ublkd/reconcile/event_journal.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/backing/device_claim_lost.h"
#include "ublkd/reconcile/disk/device_cpus.h"
#include "ublkd/reconcile/disk/device_partitions.h"
#include "ublkd/reconcile/disk/device_release.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/parts/device_openers.h"
#include "ublkd/reconcile/backing/device_errors.h"
#include "ublkd/reconcile/backing/device_image.h"
#include "ublkd/reconcile/backing/device_path.h"
#include "ublkd/reconcile/worker/device_action.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/worker/device_program.h"
#include "ublkd/reconcile/worker/device_progress.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_devices.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/reconcile/reconciler_events.h"
#include "ublkd/reconcile/spec_preflight.h"
#include "ublkd/base/clock.h"

#include "ublkd/base/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>

DEFINE_CLEANUP(struct reconciler, reconciler_free);

/* ---- the first pass ---- */

/* Called from the loop, so not before everything else is set up. */
static void check_boot_pass(struct reconciler *reconciler)
{
        if (reconciler->boot_pass_done || reconciler->boot_pass_left > 0)
                return;
        reconciler->boot_pass_done = true;
        reconciler->env.config.boot_pass_done(reconciler->env.config.userdata);
}

/* ---- devices ---- */

static struct managed_device *device_free(struct managed_device *device)
{
        if (!device)
                return NULL;
        if (device->step.call)
                ublk_ctl_call_cancel(device->step.call);
        sd_event_source_disable_unref(device->turn.timer);
        device_worker_drop(device);
        device_note_clear(device);
        device_cpus_drop(&device->cpus);
        device_claim_drop(device);
        device_backing_drop(device);
        device_image_drop(device);
        device_path_drop(device);
        device_errors_drop(device);
        device_preflight_drop(device);
        device_progress_drop(device);
        device_group_drop(device);
        device_action_drop(device);
        device_spec_preflight_drop(device);
        device_openers_drop(&device->openers);
        device_partitions_drop(device);
        device_release_drop(device);
        free(device->id.name);
        free(device);
        return NULL;
}

DEFINE_CLEANUP(struct managed_device, device_free);

static void device_drop(struct managed_device *device)
{
        device_seen(device);
        reconciler_queue_remove(device);
        reconciler_devices_remove(device);
        device_free(device);
}

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        device_turn_timer(userdata);
        return 0;
}

static int device_new(
        struct reconciler *reconciler, const char *name, const char *uid, struct managed_device **ret)
{
        _cleanup_(device_free_pointer) struct managed_device *device = calloc(1, sizeof(*device));
        int r;

        if (!device)
                return -ENOMEM;
        device->reconciler = reconciler;
        device->env = &reconciler->env;
        device->step.candidate = -1;
        snprintf(device->id.uid, sizeof(device->id.uid), "%s", uid);
        device->id.name = strdup(name);
        if (!device->id.name)
                return -ENOMEM;
        r = sd_event_add_time(
                reconciler->env.config.event, &device->turn.timer, CLOCK_MONOTONIC, 0, 1, on_timer, device);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(device->turn.timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        reconciler_devices_add(device);
        *ret = TAKE_PTR(device);
        return 0;
}

/* ---- the queue ---- */

static bool has_record(const struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        return record && strcmp(record->uid, device->id.uid) == 0;
}

/* One turn for each iteration of the loop, so that answers and deaths that came meanwhile are handled first. */
static int on_run(sd_event_source *source, void *userdata)
{
        struct reconciler *reconciler = userdata;
        struct managed_device *device = reconciler_queue_pop(reconciler);

        if (TAILQ_EMPTY(&reconciler->queue.devices))
                (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (device && has_record(device))
                device_turn_begin(device);
        else if (device)
                device_drop(device);
        check_boot_pass(reconciler);
        return 0;
}

/* ---- the store ---- */

/* Load what an earlier ublkd has left of the device: its claim, its store, its history, its worker. */
static void device_find_again(struct managed_device *device, const struct device_record *record)
{
        device_claim_load(device);
        device_backing_load(device, record);
        device_shared_recall_history(device, &device->process.history);
        device_adopt(device);
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        struct reconciler *reconciler = userdata;
        struct managed_device *device = reconciler_find(reconciler, event->name);
        bool is_new;

        if (event->kind == STORE_STATUS || event->kind == STORE_NOTED || event->kind == STORE_REMOVED) {
                if (device && event->kind == STORE_REMOVED)
                        device_drop(device);
                return;
        }
        is_new = !device && event->record->generation == 1 && event->kind == STORE_SPEC;
        if (!device && device_new(reconciler, event->name, event->uid, &device) < 0) {
                log_error(event->name,
                        "The device cannot be started: out of memory; change it again, or restart ublkd");
                return;
        }
        if (is_new)
                device->first.unasked = true;
        if (event->kind == STORE_ADOPTED) {
                device->first.unseen = true;
                device_find_again(device, event->record);
        }
        if (event->kind == STORE_INTENT && event->record->recover_requested)
                device->handled.recover = false; /* a repeated request counts as a new one */
        device_wake(device);
}

static_assert((int)_ACTION_MAX <= (int)DAEMON_STEPS_MAX, "every step can be counted");

void reconciler_counters(const struct reconciler *reconciler, struct daemon_counters *ret)
{
        *ret = reconciler->counters;
        ret->step_count = _ACTION_MAX;
        for (int i = 0; i < _ACTION_MAX; i++)
                ret->steps[i].name = plan_action_to_string((enum plan_action)i);
        ret->waiting = reconciler->queue.waiting;
}

void reconciler_set_control(struct reconciler *reconciler, struct ublk_ctl *ctl)
{
        reconciler->env.ctl = ctl;
        if (ctl)
                ublk_ctl_on_released(ctl, reconciler_number_released, reconciler);
        MANAGED_DEVICE_FOREACH (device, reconciler)
                device_wake(device);
}

static int adopt_all(struct reconciler *reconciler)
{
        DEVICE_STORE_FOREACH (record, reconciler->env.config.store) {
                struct managed_device *device;
                int r = device_new(reconciler, record->name, record->uid, &device);

                if (r < 0)
                        return r;
                device->first.unseen = device->first.boot_pass_due = true;
                reconciler->boot_pass_left++;
                if (record->age == RECORD_CURRENT)
                        device_find_again(device, record);
                else
                        device_claim_load(device);
                device_wake(device);
        }
        return 0;
}

/* Optional: without it no condition reports swap. */
static void watch_swap(struct reconciler *reconciler)
{
        const struct reconciler_config *config = &reconciler->env.config;
        const struct progress_places *places = config->progress_places;
        int r = places ? swap_watch_new(config->event, places->proc, places->sys, reconciler_swap_changed,
                                 reconciler, &reconciler->env.swap_watch)
                       : -ENOENT;

        if (r < 0 && r != -ENOENT)
                log_errno(LOG_WARNING, NULL, r,
                        "Watching the list of swap areas failed: %s; ublkd does not warn of swap on disks; "
                        "restart it",
                        strerror(-r));
}

int reconciler_new(const struct reconciler_config *config, struct reconciler **ret)
{
        _cleanup_(reconciler_free_pointer) struct reconciler *reconciler = calloc(1, sizeof(*reconciler));
        sd_id128_t boot;
        int r;

        if (!reconciler)
                return -ENOMEM;
        reconciler->env.config = *config;
        TAILQ_INIT(&reconciler->queue.devices);
        reconciler_devices_init(reconciler);
        device_program_init(reconciler, config->version);
        device_keys_init(reconciler);
        claim_table_init(&reconciler->claims);
        watch_swap(reconciler);
        r = sd_id128_get_boot(&boot);
        if (r < 0)
                return r;
        (void)sd_id128_to_uuid_string(boot, reconciler->env.boot_id);
        r = sd_event_add_defer(config->event, &reconciler->queue.run, on_run, reconciler);
        if (r >= 0)
                r = event_journal_new(config->store, &reconciler->journal);
        if (r >= 0)
                r = device_store_subscribe(config->store, on_store_event, reconciler);
        if (r >= 0)
                r = reconciler_find_lost(reconciler);
        if (r >= 0)
                r = adopt_all(reconciler);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(reconciler);
        return 0;
}

struct reconciler *reconciler_free(struct reconciler *reconciler)
{
        struct managed_device *device;

        if (!reconciler)
                return NULL;
        device_store_unsubscribe(reconciler->env.config.store, on_store_event, reconciler);
        while ((device = reconciler_first(reconciler))) {
                reconciler_devices_remove(device);
                device_free(device);
        }
        event_journal_free(reconciler->journal);
        swap_watch_free(reconciler->env.swap_watch);
        sd_event_source_disable_unref(reconciler->queue.run);
        reconciler_drop_lost(reconciler);
        free(reconciler);
        return NULL;
}
