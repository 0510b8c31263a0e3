/* What each step does. A step is one change of the world; whether it worked is read from the facts of the
 * next turn, its result only feeds patience and the sentence that the user reads. */
#include "ublkd/managed_device.h"

#include "ublkd/device_route.h"
#include "ublkd/disk_timeout.h"

#include <stdio.h>
#include <string.h>

/* ---- what this build and this kernel can do ---- */

static enum kernel_recovery wanted_recovery(const struct device_record *record)
{
        static const enum kernel_recovery by_on_crash[_ON_CRASH_MAX] = {
                [ON_CRASH_REISSUE] = KERNEL_RECOVERY_REISSUE,
                [ON_CRASH_QUEUE] = KERNEL_RECOVERY_QUEUE,
                [ON_CRASH_FAIL] = KERNEL_RECOVERY_FAIL,
                [ON_CRASH_NONE] = KERNEL_RECOVERY_NONE,
        };

        return by_on_crash[device_spec_on_crash(record->spec)];
}

/* What the disk must have. */
static uint64_t wanted_flags(const struct device_record *record)
{
        return ublk_ctl_flags(wanted_recovery(record))
               | ublk_ctl_path_flags((enum data_path)record->spec->options.data_path);
}

static const char *path_unsupported(const struct device_record *record, uint64_t got)
{
        enum data_path path = (enum data_path)record->spec->options.data_path;

        if (path == DATA_PATH_ZERO_COPY && !(record->spec->target->flags & TARGET_REGISTERED_BUFFERS))
                return "This target cannot do dataPath \"zero-copy\", because it has to see the bytes "
                       "('ublkctl targets', or GET /targets, lists the paths of each); set dataPath to "
                       "\"auto\".";
        if (ublk_ctl_missing(ublk_ctl_path_flags(path), got))
                return "This kernel cannot do what dataPath asks for ('ublkctl host', or GET /host, lists "
                       "the features that it has: user-copy needs USER_COPY, zero-copy needs "
                       "SUPPORT_ZERO_COPY); set dataPath to \"auto\", or use a newer kernel.";
        return NULL;
}

const char *device_unsupported(
        const struct managed_device *device, const struct device_record *record, const char **ret_reason)
{
        uint64_t got = device->reconciler->config.host->features & ~device->dropped_flags;
        const char *sentence = path_unsupported(record, got);

        *ret_reason = "NotSupported";
        if (sentence)
                return sentence;
        if (ublk_ctl_missing(wanted_flags(record), got))
                return "This kernel cannot do what recovery.onCrash asks for ('ublkctl host', or GET /host, "
                       "lists the features that it has); choose another recovery.onCrash, or a newer kernel.";
        return NULL;
}

/* ---- results ---- */

static void note_failure(struct managed_device *device, int number, int error)
{
        if (error == -EBUSY && device->action == ACTION_BEGIN_RECOVERY)
                return; /* the dead worker's last references; a matter of milliseconds */
        if (error == -EBUSY && device->action == ACTION_ADD_DEV && device->attempt.busy < ATTEMPT_RELEASES)
                return; /* the last disk's, likewise */
        if (error == -EALREADY)
                return; /* the note about what hangs stays true */
        if (error == -EBUSY && device->action == ACTION_STOP_DEV)
                device_holders_note(device, number, HOLD_BEFORE_STOP);
        else if (error == -EEXIST && device->action == ACTION_ADD_DEV)
                device_note(device, "NumberTaken",
                        "The kernel number %d is taken by a ublk device that is not ours; remove that one, "
                        "or give this one another \"id\".",
                        number);
        else if (error == -EBUSY && device->action == ACTION_ADD_DEV)
                device_note(device, "NumberTaken",
                        "The kernel number %d belongs to a ublk device that is deleted, and that the kernel "
                        "has not let go of; it is tried again, and another \"id\" works at once.",
                        number);
        else if (error == -ETIMEDOUT)
                device_note(device, "ControlPlaneHangs",
                        "The kernel has not answered \"%s\" for /dev/ublkb%d in time; it is "
                        "asked again once that call has ended.",
                        plan_action_to_string(device->action), number);
        else
                device_note(device, "ControlPlane", "%s for /dev/ublkb%d failed: %s.",
                        plan_action_to_string(device->action), number, strerror(-error));
}

/* The answer of a command has come. Returns it, noted when it is a failure. */
static int take_answer(struct managed_device *device, const struct device_record *record, int result)
{
        device->call = NULL;
        if (result == -ENODEV && (device->action == ACTION_STOP_DEV || device->action == ACTION_DEL_DEV))
                return 0; /* an earlier one, or somebody else, has taken it away */
        if (result < 0)
                note_failure(device, record->number, result);
        return result;
}

/* The same for a command after which the worker is told something. -ECONNRESET: it is gone, or not wanted. */
static int take_answer_for_worker(
        struct managed_device *device, const struct device_record *record, int result)
{
        int r = take_answer(device, record, result);

        return r >= 0 && (!device->worker || !record->spec) ? -ECONNRESET : r;
}

/* For commands after which nothing else is to be done. */
static void on_command_done(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        device_step_done(device, take_answer(device, record, result));
}

/* A command that could not even be sent is a command that failed. */
static void command_sent(struct managed_device *device, int result, ublk_ctl_done done)
{
        if (result < 0)
                done(device, result, NULL);
}

/* ---- SPAWN ---- */

static void count_restart(struct managed_device *device)
{
        device->history.restarts++;
        device_shared_keep_history(device);
}

static void step_spawn(struct managed_device *device, const struct device_record *record)
{
        int r;

        if (device->facts.kernel == KERNEL_ABSENT) /* somebody may have deleted the disk behind our back */
                device_hide_node(device, record);
        r = device_spawn(device, record);
        if (r >= 0)
                device_shared_apply(device, record);
        if (r < 0)
                device_note(device, "WorkerNotStarted", "The worker %s cannot be started: %s.",
                        worker_start_program(device->reconciler->config.worker_start), strerror(-r));
        else if (device->tie == WORKER_LOST)
                count_restart(device);
        if (r >= 0)
                device->tie = WORKER_HELD;
        device_step_done(device, r);
}

/* ---- ADD_DEV ---- */

/* Claims the store that the worker has opened, or has the worker let go of it: another try comes after the
 * back-off. */
static int claim_store(struct managed_device *device)
{
        int r = device_claim_take(device);

        if (r >= 0)
                return 0;
        worker_proc_kill(device->worker);
        device->tie = WORKER_KILLED;
        return r;
}

/* Flags are negotiated down without a word. Asking again would give the same answer. */
static void on_added(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        if (kernel && record->spec)
                device->dropped_flags = wanted_flags(record) & ~kernel->flags;
        on_command_done(userdata, attempt_add_result(result, device->stranger), kernel);
}

static void add_device(struct managed_device *device, const struct device_record *record)
{
        const struct disk_params *params = worker_proc_params(device->worker);
        uint64_t features = device->reconciler->config.host->features;
        enum kernel_recovery recovery = wanted_recovery(record);
        bool may_batch = recovery != KERNEL_RECOVERY_QUEUE && device_route_batches_pay(params->queue_depth);
        struct data_route route = device_route_choose(
                (enum data_path)record->spec->options.data_path, params->fastest, may_batch, features);
        struct kernel_device_request request = {
                .number = record->number,
                .cookie = device_cookie(record->uid, record->epoch),
                .flags = wanted_flags(record) | ublk_ctl_route_flags(&route)
                         | ublk_ctl_extra_flags(recovery, route.batch, features),
                .queues = params->queues,
                .queue_depth = params->queue_depth,
                .max_io_size = params->max_io_size,
        };

        command_sent(device, ublk_ctl_add(device->reconciler->ctl, &request, on_added, device, &device->call),
                on_added);
}

static bool number_is_reserved(const struct managed_device *device, int number)
{
        return device_store_number_owner(device->reconciler->config.store, number, device->name);
}

/* The number is written down before the kernel hears of it: a device of ours is never lost. */
static void take_number(struct managed_device *device, int number)
{
        struct device_store *store = device->reconciler->config.store;
        int r = device_store_assign_number(store, device->name, number);

        if (r < 0) {
                device_note(device, "StoreFailed", "The database cannot be written: %s.", strerror(-r));
                device_step_done(device, r);
                return;
        }
        add_device(device, device_store_get(store, device->name));
}

static void try_candidate(struct managed_device *device);

static void on_candidate(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;

        device->call = NULL;
        if (number_is_reserved(device, device->candidate)) { /* another device was faster */
                try_candidate(device);
                return;
        }
        if (result == -ENODEV) {
                take_number(device, device->candidate);
                return;
        }
        if (result < 0) {
                device_note(device, "ControlPlane",
                        "The kernel does not say whether /dev/ublkb%d is free: %s.", device->candidate,
                        strerror(-result));
                device_step_done(device, result);
                return;
        }
        device->candidate++;
        try_candidate(device);
}

static void try_candidate(struct managed_device *device)
{
        int r = device_store_free_number(
                device->reconciler->config.store, device->candidate, device->name, &device->candidate);

        if (r < 0) {
                device_note(device, "StoreFailed", "No number can be chosen: %s.", strerror(-r));
                device_step_done(device, r);
                return;
        }
        command_sent(device,
                ublk_ctl_get_info(
                        device->reconciler->ctl, device->candidate, on_candidate, device, &device->call),
                on_candidate);
}

static void step_add_dev(struct managed_device *device, const struct device_record *record)
{
        int64_t wanted = record->spec->options.id;
        /* Somebody else took it between our question and our ADD_DEV; nobody has seen it as ours yet. */
        bool snatched = device->stranger && record->number == device->candidate;
        int r = claim_store(device);

        if (r < 0) {
                device_step_done(device, r);
        } else if (((wanted >= 0 && wanted != record->number) || snatched)
                   && attempt_is_unsure(&device->attempt, monotonic_now())) {
                device_note(device, "NumberUnsure",
                        "The kernel has not answered when it was asked for /dev/ublkb%d, and may yet make "
                        "it; the device gets another number when that can happen no more.",
                        record->number);
                device_step_done(device, -EAGAIN);
        } else if (wanted >= 0 && wanted != record->number) {
                take_number(device, (int)wanted);
        } else if (record->number >= 0 && !snatched) {
                add_device(device, record);
        } else {
                device->candidate = 0;
                try_candidate(device);
        }
}

/* ---- SET_PARAMS, START_DEV ---- */

static int tell_go(struct managed_device *device, const struct device_record *record)
{
        struct data_route route = ublk_ctl_route(device->kernel.flags); /* what the driver has agreed to */
        int r = worker_proc_go(device->worker, record->number, &route, device->queue_cpus);

        if (r < 0)
                device_note(device, "WorkerUnreachable", "The worker does not listen: %s.", strerror(-r));
        return r;
}

/* For a new disk: what it is called must be known before it appears. */
static int announce_and_go(struct managed_device *device, const struct device_record *record)
{
        int r = device_announce_node(device, record);

        if (r < 0) {
                device_note(device, "RuntimeDirectory", "%s cannot be written: %s.",
                        runtime_dir_path(device->reconciler->config.runtime_dir), strerror(-r));
                return r;
        }
        return tell_go(device, record);
}

static void go_with_cpus(struct managed_device *device, int result)
{
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        bool first = device->action == ACTION_SET_PARAMS;

        if (!device->worker || !record->spec) {
                device_step_done(device, -ECONNRESET);
                return;
        }
        if (result < 0)
                device_tell(device, EVENT_WARNING, "QueuesAnywhere",
                        "The kernel does not say where its queues should run: %s; they run anywhere.",
                        strerror(-result));
        device_step_done(device, first ? announce_and_go(device, record) : tell_go(device, record));
}

static void on_params_set(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        result = take_answer_for_worker(device, record, result);
        if (result >= 0) {
                device_cpus_forget(device); /* a disk that was there before may have had other queues */
                device_cpus_learn(device, go_with_cpus);
                return;
        }
        device_step_done(device, result);
}

static void step_set_params(struct managed_device *device, const struct device_record *record)
{
        command_sent(device,
                ublk_ctl_set_params(device->reconciler->ctl, record->number,
                        worker_proc_params(device->worker), on_params_set, device, &device->call),
                on_params_set);
}

static void shorten_timeout(const struct managed_device *device, const struct device_record *record)
{
        int r = disk_timeout_shorten(record->number);

        if (r < 0)
                device_tell(device, EVENT_WARNING, "TimeoutNotSet",
                        "/sys/block/ublkb%d/queue/io_timeout cannot be set: %s; a recovery may take 30 s on "
                        "this kernel.",
                        record->number, strerror(-r));
}

/* The node of a disk that was recovered is the one that it had. What has to do with the node comes last: it
 * shares the CPUs with the I/O that had waited. */
static int mark_serving(struct managed_device *device, const struct device_record *record)
{
        int r;

        shorten_timeout(device, record);
        r = worker_proc_live(device->worker);
        device_recovered(device);
        if (device->action != ACTION_END_RECOVERY)
                device->shown_generation = 0; /* it may be a new node */
        device_show_node(device, record);
        return r;
}

/* START_DEV and END_USER_RECOVERY have the same end. */
static void on_live(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        result = take_answer_for_worker(device, record, result);
        device_step_done(device, result < 0 ? result : mark_serving(device, record));
}

static void step_start_dev(struct managed_device *device, const struct device_record *record)
{
        command_sent(device,
                ublk_ctl_start(device->reconciler->ctl, record->number, worker_proc_pid(device->worker),
                        on_live, device, &device->call),
                on_live);
}

static void step_mark_serving(struct managed_device *device, const struct device_record *record)
{
        device_step_done(device, mark_serving(device, record));
}

/* ---- recovery ---- */

int device_check_geometry(
        struct managed_device *device, const struct device_record *record, const struct disk_params *params)
{
        uint64_t size = device->disk_size;
        uint32_t block_size = device->disk_block_size;
        int r = device->geometry_error;

        if (r < 0) {
                device_note(device, "ControlPlane", "/sys does not tell the size of /dev/ublkb%d: %s.",
                        record->number, strerror(-r));
                return r;
        }
        if (params->size == size && params->logical_block_size == block_size)
                return 0;
        device_note(device, "BackingChanged",
                "The backing store is no longer what the disk was made from (%llu bytes in blocks of %u, the "
                "disk has %llu in blocks of %u); restore it, and the disk is recovered.",
                (unsigned long long)params->size, params->logical_block_size, (unsigned long long)size,
                block_size);
        return -ESTALE;
}

static void on_recovery_begun(void *userdata, int result, const struct kernel_device *kernel _unused_)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        int r = 0;

        take_answer(device, record, result);
        if (result >= 0 && !device->queue_cpus && device->worker && record->spec) {
                device_cpus_learn(device, go_with_cpus); /* of a disk that an earlier supervisor made */
                return;
        }
        if (attempt_says_go(result))
                r = device->worker && record->spec ? tell_go(device, record) : -ECONNRESET;
        device_step_done(device, r < 0 ? r : result);
}

static void step_begin_recovery(struct managed_device *device, const struct device_record *record)
{
        int r = device_check_geometry(device, record, worker_proc_params(device->worker));

        if (r >= 0)
                r = claim_store(device); /* a supervisor that has just started does not know the claim yet */
        if (r < 0) {
                device_step_done(device, r);
                return;
        }
        command_sent(device,
                ublk_ctl_begin_recovery(
                        device->reconciler->ctl, record->number, on_recovery_begun, device, &device->call),
                on_recovery_begun);
}

static void step_end_recovery(struct managed_device *device, const struct device_record *record)
{
        command_sent(device,
                ublk_ctl_end_recovery(device->reconciler->ctl, record->number,
                        worker_proc_pid(device->worker), on_live, device, &device->call),
                on_live);
}

/* ---- taking down ---- */

/* Whoever asked was told that nobody uses the disk; somebody may have come since. One that is not served may
 * be held open by those who wait for it. */
static bool may_refuse(const struct managed_device *device, const struct device_record *record)
{
        return device->facts.want == WANT_ABSENT && !record->forced && device->facts.kernel == KERNEL_LIVE
               && device->facts.worker == PLAN_WORKER_SERVING
               && kernel_can(device->kernel.flags, KERNEL_ABILITY_TRY_STOP);
}

static void step_stop_dev(struct managed_device *device, const struct device_record *record)
{
        struct ublk_ctl *ctl = device->reconciler->ctl;
        int r;

        if (may_refuse(device, record)) {
                r = ublk_ctl_try_stop(ctl, record->number, on_command_done, device, &device->call);
        } else {
                device_shared_lift(device);
                r = ublk_ctl_stop(ctl, record->number, on_command_done, device, &device->call);
        }
        command_sent(device, r, on_command_done);
}

/* DEL_DEV_ASYNC only asks for it: the number is free once the last reference is gone. */
static void on_deleted(void *userdata, int result, const struct kernel_device *kernel)
{
        struct managed_device *device = userdata;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        if (result == 0 && device->attempt.tries > 0)
                device_holders_note(device, record->number, HOLD_AFTER_DELETE);
        on_command_done(userdata, result, kernel);
}

static void step_del_dev(struct managed_device *device, const struct device_record *record)
{
        device_hide_node(device, record);
        command_sent(device,
                ublk_ctl_del(device->reconciler->ctl, record->number, on_deleted, device, &device->call),
                on_deleted);
}

static void step_stop_worker(struct managed_device *device, const struct device_record *record _unused_)
{
        worker_proc_kill(device->worker);
        device->tie = WORKER_KILLED;
        device_step_done(device, 0);
}

/* Without QUIESCE_DEV what it has in hand is lost with it: replayed by the kernel where onCrash is "reissue";
 * where it is not, a restart under users was refused. */
static void retire_worker(struct managed_device *device, int result)
{
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);

        if (result < 0) {
                device_step_done(device, result);
                return;
        }
        device_shared_lift(device); /* until the next worker is started */
        if (kernel_can(device->kernel.flags, KERNEL_ABILITY_QUIESCE))
                command_sent(device,
                        ublk_ctl_quiesce(device->reconciler->ctl, record->number, on_command_done, device,
                                &device->call),
                        on_command_done);
        else
                step_stop_worker(device, record);
}

static void step_retire_worker(struct managed_device *device, const struct device_record *record)
{
        device_trial_begin(device, record, retire_worker);
}

/* What it answers is heard between turns. */
static void step_extend_worker(struct managed_device *device, const struct device_record *record _unused_)
{
        uint64_t size = device->size_wanted > device->disk_size ? device->size_wanted : device->disk_size;
        int r = device_claim_extend(device, size);

        if (r >= 0)
                r = worker_proc_grow(device->worker, size);
        if (r < 0 && r != -EBUSY)
                device_note(device, "WorkerUnreachable", "The worker does not listen: %s.", strerror(-r));
        device_step_done(device, r);
}

static void step_grow_disk(struct managed_device *device, const struct device_record *record)
{
        command_sent(device,
                ublk_ctl_update_size(device->reconciler->ctl, record->number, device->size_wanted,
                        on_command_done, device, &device->call),
                on_command_done);
}

void device_step(struct managed_device *device, const struct device_record *record)
{
        static void (*const steps[_ACTION_MAX])(struct managed_device *, const struct device_record *) = {
                [ACTION_SPAWN] = step_spawn,
                [ACTION_ADD_DEV] = step_add_dev,
                [ACTION_SET_PARAMS] = step_set_params,
                [ACTION_START_DEV] = step_start_dev,
                [ACTION_BEGIN_RECOVERY] = step_begin_recovery,
                [ACTION_END_RECOVERY] = step_end_recovery,
                [ACTION_MARK_SERVING] = step_mark_serving,
                [ACTION_STOP_DEV] = step_stop_dev,
                [ACTION_DEL_DEV] = step_del_dev,
                [ACTION_STOP_WORKER] = step_stop_worker,
                [ACTION_RETIRE_WORKER] = step_retire_worker,
                [ACTION_EXTEND_WORKER] = step_extend_worker,
                [ACTION_GROW_DISK] = step_grow_disk,
        };

        steps[device->action](device, record);
}
