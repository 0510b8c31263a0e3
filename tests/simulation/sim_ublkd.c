/* SPDX-License-Identifier: MIT */
/* A life of ublkd: its store and its reconciler are made, it decides, and it is SIGKILLed at any point.
 *
 * A SIGKILL in the middle of a call cannot unwind C. So from then on no seam has an effect, until its code
 * has returned to the loop; then it is freed, which must not have any effect either. */
#include "sim.h"

#include "ublkd/workers/worker_proc.h"

#include <string.h>
#include <systemd/sd-id128.h>

enum {
        STEPS_A_SECOND = 200, /* more is spinning */
        ASKS_A_SECOND = 800,
};

bool ublkd_acts(const struct world *world)
{
        return world->ublkd.alive && !world->broken;
}

const struct device_record *ublkd_record(const struct world *world)
{
        return world->ublkd.store ? device_store_get(world->ublkd.store, DEVICE) : NULL;
}

bool ublkd_is_held(const struct device_record *record)
{
        char boot[UID_TEXT_SIZE];
        sd_id128_t id;

        return sd_id128_get_boot(&id) >= 0
               && strcmp(record->held_boot, sd_id128_to_uuid_string(id, boot)) == 0;
}

/* ---- its end ---- */

void ublkd_die(struct world *world, const char *why)
{
        struct ublkd *ublkd = &world->ublkd;

        if (!ublkd->alive)
                return;
        TRACE(world, "ublkd %u: killed, %s", ublkd->incarnation, why);
        helper_drop_ublkd(world, ublkd->incarnation);
        ublkd->alive = false;
        for (int i = 0; i < world->process_count; i++)
                if (world->processes[i].alive && world->processes[i].connection == ublkd->incarnation)
                        process_send(world, i, MESSAGE_EOF, 0, ublkd->incarnation);
        world_at(world, world->now + world_between(world, 100 * MS, 2 * SECOND), EVENT_UBLKD_STARTS, 0, 0, 0);
}

bool ublkd_dies_here(struct world *world, const char *where)
{
        if (!ublkd_acts(world) || !world_bad_luck(world))
                return false;
        ublkd_die(world, where);
        return true;
}

/* A descriptor that is never closed would leak with every disk. */
static void check_descriptors(struct world *world)
{
        for (unsigned i = world->ublkd.descriptors; i < world->descriptor_count; i++)
                if (world->descriptors[i].open) {
                        world_break(world, "a descriptor of a store is leaked");
                        return;
                }
}

static void on_store_event(void *userdata, const struct store_event *event);

void ublkd_bury(struct world *world)
{
        struct ublkd *ublkd = &world->ublkd;

        if (!ublkd->store && !ublkd->reconciler)
                return;
        ublkd->reconciler = reconciler_free(ublkd->reconciler);
        ublkd->ctl = ublk_ctl_free(ublkd->ctl);
        if (ublkd->store)
                device_store_unsubscribe(ublkd->store, on_store_event, world);
        ublkd->store = device_store_free(ublkd->store);
        check_descriptors(world);
        for (int i = 0; i < SOURCES; i++)
                if (ublkd->sources[i].used)
                        world_break(world, "an event source is leaked");
        for (int i = 0; i < QUESTIONS; i++)
                if (ublkd->questions[i].used)
                        world_break(world, "a question is leaked");
}

/* ---- its beginning ---- */

static void on_boot_pass_done(void *userdata)
{
        struct world *world = userdata;

        if (world->ublkd.boot_pass_done)
                world_break(world, "that all devices were seen is reported twice");
        world->ublkd.boot_pass_done = true;
}

static void on_control_opened(
        void *userdata, int result, uint64_t features, struct problem_list *problems __attribute__((unused)))
{
        struct world *world = userdata;
        struct ublkd *ublkd = &world->ublkd;

        if (result < 0 || features != ublkd->host.features)
                world_break(world, "the control plane is not opened");
        ublkd->control = true;
        reconciler_set_control(ublkd->reconciler, ublkd->ctl);
        if (!world->database.exists && !world->calm)
                user_creates(world);
}

static int start(struct world *world)
{
        struct ublkd *ublkd = &world->ublkd;
        /* what the seams stand for is not looked at */
        const struct reconciler_config config = {
                .event = (sd_event *)world,
                .runtime_dir = (struct runtime_dir *)world,
                .record_keeper = (struct record_keeper *)world,
                .host = &ublkd->host,
                .worker_start = (struct worker_start *)world,
                .disk_search = (struct disk_search *)world,
                .disk_timeout = (struct disk_timeout *)world,
                .fd_store = (struct fd_store *)world,
                .boot_pass_done = on_boot_pass_done,
                .userdata = world,
        };
        struct reconciler_config with_store = config;
        int r = device_store_new(&database_backend, world, &ublkd->store);

        if (r < 0)
                return r;
        with_store.store = ublkd->store;
        r = reconciler_new(&with_store, &ublkd->reconciler);
        if (r >= 0)
                r = ublk_ctl_open(config.event,
                        &(const struct ublk_ctl_options){.opened = on_control_opened, .userdata = world},
                        &ublkd->ctl);
        return r < 0 ? r : device_store_subscribe(ublkd->store, on_store_event, world);
}

void ublkd_start(struct world *world)
{
        struct ublkd *ublkd = &world->ublkd;
        unsigned incarnation = ublkd->incarnation + 1;

        if (ublkd->alive)
                return;
        *ublkd = (struct ublkd){
                .alive = true,
                .incarnation = incarnation,
                .host = {.features = kernel_features(world), .cpus = 1, .ublk_available = true},
                .descriptors = world->descriptor_count,
        };
        TRACE(world, "ublkd %u: starts", incarnation);
        if (start(world) < 0 && ublkd_acts(world))
                world_break(world, "ublkd does not start");
        world_at(world, world->now + world_between(world, 1, world_chance(world, 200) ? SECOND : MS),
                EVENT_CONTROL, 0, 0, incarnation);
}

void ublkd_control_comes(struct world *world, unsigned incarnation)
{
        const struct ublkd *ublkd = &world->ublkd;

        if (!ublkd->alive || ublkd->incarnation != incarnation)
                return;
        ctl_stand_in_greets(ublkd->host.features);
}

/* ---- what it decides, and reports ---- */

void ublkd_count(struct world *world, bool step)
{
        if (world->now - world->window_since >= SECOND) {
                world->window_since = world->now;
                world->window_steps = world->window_asks = 0;
        }
        if (step) {
                world->steps++;
                if (++world->window_steps > STEPS_A_SECOND)
                        world_break(world, "the supervisor spins: too many steps in a second");
        } else {
                world->asks++;
                if (++world->window_asks > ASKS_A_SECOND)
                        world_break(world, "the supervisor spins: too many questions in a second");
        }
}

static const char *const trouble_names[_TROUBLE_MAX] = {
        [TROUBLE_NONE] = "none",
        [TROUBLE_STUCK] = "stuck",
        [TROUBLE_HOPELESS] = "hopeless",
};

enum plan_action __wrap_plan(const struct plan_facts *facts);

/* In place of plan(): the world's own, which may be a mutant. */
enum plan_action __wrap_plan(const struct plan_facts *facts)
{
        struct world *world = sim;
        struct ublkd *ublkd = &world->ublkd;
        enum plan_action action = world->plan(facts);

        if (!ublkd_acts(world))
                return action;
        if (world->on_facts)
                world->on_facts(facts);
        ublkd_count(world, false);
        ublkd->facts = *facts;
        ublkd->decided = true;
        TRACE(world, "ublkd: want %s, kernel %s, worker %s, trouble %s: %s", plan_want_to_string(facts->want),
                plan_kernel_to_string(facts->kernel), plan_worker_to_string(facts->worker),
                trouble_names[facts->trouble], plan_action_to_string(action));
        if (action == ACTION_NOTHING && facts->worker != PLAN_WORKER_NONE
                && facts->worker != PLAN_WORKER_SERVING)
                world_break(world, "nothing is done about a worker that does not serve");
        if (action == ACTION_NOTHING || facts->want == WANT_EXTENDED || facts->want == WANT_GROWN)
                ublkd->rested_at = world->now;
        (void)ublkd_dies_here(world, "having decided");
        return action;
}

/* Live is reported only of a disk that was live, and of this epoch, when the kernel was asked last, and that has
 * a worker. */
static void check_reported(struct world *world, const struct device_record *record)
{
        const struct kernel_disk *seen = &world->ublkd.seen;
        bool served = false;

        for (int i = 0; i < world->process_count; i++)
                served |= world->processes[i].stand_in.proc && !world->processes[i].preflight
                          && worker_proc_stage(world->processes[i].stand_in.proc) >= WORKER_STAGE_READY;
        if (record->number < 0 || !world->ublkd.looked || !seen->exists || seen->foreign
                || seen->state != KERNEL_STATE_LIVE)
                world_break(world, "a device is reported Live while its disk is not");
        else if (!served)
                world_break(world, "a device is reported Live while no worker serves it");
        else if (record->status.number != record->number)
                world_break(world, "a device is reported Live with the wrong number");
}

static void on_store_event(void *userdata, const struct store_event *event)
{
        struct world *world = userdata;

        if (!ublkd_acts(world) || event->kind != STORE_STATUS)
                return;
        TRACE(world, "ublkd: reports %s (%s): %s", device_phase_to_string(event->record->status.phase),
                reason_to_string(event->record->status.reason), event->record->status.message);
        if (event->record->status.phase == PHASE_LIVE)
                check_reported(world, event->record);
}
