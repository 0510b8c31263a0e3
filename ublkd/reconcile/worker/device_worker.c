/* SPDX-License-Identifier: MIT */
/* The worker of a device: starting, adopting, killing and reaping it. */
#include "ublkd/reconcile/worker/device_worker.h"
#include "ublkd/reconcile/backing/device_backing.h"
#include "ublkd/reconcile/backing/store_refusal.h"
#include "ublkd/reconcile/backing/device_claim.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/worker/device_found.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/worker/device_launch.h"
#include "ublkd/reconcile/parts/device_keys.h"
#include "ublkd/reconcile/parts/device_note.h"
#include "ublkd/reconcile/worker/device_preflight.h"
#include "ublkd/reconcile/worker/device_price.h"
#include "ublkd/reconcile/worker/device_program.h"
#include "ublkd/reconcile/parts/device_words.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/parts/managed_device.h"
#include "ublkd/reconcile/parts/reconciler_queue.h"
#include "ublkd/base/clock.h"
#include "ublkd/reconcile/view/observe.h"
#include "ublkd/reconcile/view/user_request.h"

#include "ublkd/base/sentence.h"

#include <signal.h>
#include <string.h>

enum {
        HELLO_USEC = 5 * 1000 * 1000
}; /* an adopted worker sends HELLO within milliseconds unless it is stopped */

bool device_worker_is_stale(const struct managed_device *device, const struct device_record *record)
{
        return device->process.worker
               && !user_request_equal(device->process.request, user_request_of(record));
}

/* Return whether the worker is opening its store or has opened it, and has got no other message. */
static bool is_opening(const struct managed_device *device)
{
        enum plan_worker stage = observe_worker(device->process.worker);

        return stage == PLAN_WORKER_STARTING || stage == PLAN_WORKER_PARAMS;
}

/* The epoch and size of a worker that this ublkd has started are known before its HELLO. A new size without a
 * disk needs no new epoch. */
bool device_worker_is_old(const struct managed_device *device, const struct device_record *record)
{
        if (observe_worker_is_old(device->process.worker, record->epoch))
                return true;
        if (!device->process.worker || worker_proc_adopted(device->process.worker) || !is_opening(device))
                return false;
        return worker_proc_epoch(device->process.worker) != record->epoch
               || (device->view.facts.kernel == KERNEL_ABSENT && record->spec
                       && record->spec->options.size != device->process.size);
}

struct kill_event {
        enum event_type type;
        enum condition_reason reason;
        const char *what; /* follows "Worker N"; NULL: event_of_kill() decides */
};

static const struct kill_event kill_events[_WORKER_KILL_MAX] = {
        [KILL_TO_REPLACE] = {EVENT_NORMAL,  REASON_WORKER_RETIRED,
                             "was killed to be replaced, because its program is too old to leave by itself, and ublkd "
                "cannot quiesce this disk (before Linux 7.3, or served in batches)"                       },
        [KILL_UNREACHABLE] = {EVENT_WARNING, REASON_WORKER_KILLED,
                             "did not take the message to leave, and was killed by ublkd"                 },
        [KILL_STOPPED] = {EVENT_WARNING, REASON_WORKER_HUNG,
                             "was stopped for recovery.hangAfter, and was killed by ublkd"                },
        [KILL_SPINNING] = {EVENT_WARNING, REASON_WORKER_HUNG,
                             "spun while no request ended for recovery.hangAfter, and was killed by ublkd"},
        [KILL_UNAWARE] = {EVENT_WARNING, REASON_WORKER_HUNG,
                             "did not take requests for recovery.hangAfter, and was killed by ublkd"      },
};

/* The event for a worker that ublkd kills. NULL: none. */
static const struct kill_event *event_of_kill(const struct managed_device *device, enum worker_kill why)
{
        static const struct kill_event
                stays = {EVENT_WARNING, REASON_WORKER_KILLED,
                        "was asked to exit, did not, and was killed by ublkd"},
                opens = {EVENT_WARNING, REASON_WORKER_HANGS,
                        "did not open its backing store in time, and was killed by "
                        "ublkd"},
                fetches = {EVENT_WARNING, REASON_WORKER_HANGS,
                        "did not take over the disk's queues in time, and was killed by ublkd"};

        if (kill_events[why].what)
                return &kill_events[why];
        if (why != KILL_STUCK || device->view.facts.want == WANT_ABSENT)
                return NULL;
        if (device->attempt.retired || device->view.facts.want == WANT_RENEWED)
                return &stays;
        return device->view.facts.worker == PLAN_WORKER_STARTING   ? &opens
               : device->view.facts.worker == PLAN_WORKER_FETCHING ? &fetches
                                                                   : NULL;
}

/* Report the kill at once, not at the death: a process that waits for a disk dies when the disk answers. */
static void report_kill(struct managed_device *device, enum worker_kill why)
{
        const struct kill_event *event = event_of_kill(device, why);
        int pid = (int)worker_proc_pid(device->process.worker);

        if (!event || device->process.kill_reported)
                return;
        device->process.kill_reported = true;
        device_note(device, event->reason, "Worker %d %s.", pid, event->what);
        device_emit(device, event->type, event->reason, "Worker %d %s; another worker replaces it.", pid,
                event->what);
}

void device_kill_worker(struct managed_device *device, enum worker_kill why)
{
        worker_proc_kill(device->process.worker);
        device->process.state = WORKER_KILLED;
        device->process.hung = kill_events[why].reason == REASON_WORKER_HUNG;
        report_kill(device, why);
}

/* Report the exit of a worker that ublkd asked to exit and did not kill. How it exited is unknown if it is
 * not a child of ublkd. */
static void report_retired(struct managed_device *device)
{
        const struct worker_death *death = worker_proc_death(device->process.worker);
        bool failed = death->fault != WORKER_FAULT_NONE || death->by_signal || death->code > 0;
        enum condition_reason reason = death->fault == WORKER_FAULT_PROTOCOL ? REASON_WORKER_BROKE_PROTOCOL
                                       : death->fault == WORKER_FAULT_STAYED ? REASON_WORKER_KILLED
                                       : failed                              ? REASON_WORKER_DIED
                                                                             : REASON_WORKER_RETIRED;
        const char *how = failed ? death->sentence : death->code < 0 ? "is gone" : "has exited";
        int pid = (int)worker_proc_pid(device->process.worker);

        device_note(device, reason, "Worker %d was asked to exit, and %s.", pid, how);
        device_emit(device, failed ? EVENT_WARNING : EVENT_NORMAL, reason,
                "Worker %d was asked to exit, and %s; another worker replaces it.", pid, how);
}

/* Return whether ublkd has killed the worker for what it sent. */
static bool broke_protocol(const struct managed_device *device)
{
        return worker_proc_death(device->process.worker)->fault == WORKER_FAULT_PROTOCOL;
}

/* Return whether the worker died by the OOM killer, and not by ublkd. How an adopted one ended is unknown. */
static bool ran_out_of_memory(struct managed_device *device)
{
        const struct worker_death *death = worker_proc_death(device->process.worker);
        bool killed = death->by_signal ? death->code == SIGKILL : death->code < 0;

        return killed && death->fault == WORKER_FAULT_NONE && device->process.state != WORKER_KILLED
               && device_group_oom_killed(device);
}

/* Note the reason that the worker gave, or else how it exited. */
static void note_death(
        struct managed_device *device, const struct device_record *record, bool served, bool out_of_memory)
{
        const struct worker_death *death = worker_proc_death(device->process.worker);
        const struct problem_list *problems = worker_proc_problems(device->process.worker);

        if (broke_protocol(device)) {
                device_note(device, REASON_WORKER_BROKE_PROTOCOL, "The worker (pid %d) %s.",
                        (int)worker_proc_pid(device->process.worker), death->sentence);
        } else if (problems->count > 0 && !store_refusal_explain(device, record)) {
                device_note(device, device_words_reason(&device->words, problems->items[0].reason), "%s%s",
                        problems->items[0].detail, full_stop(problems->items[0].detail));
                device_claim_name_holder(device, worker_proc_holder(device->process.worker));
        } else if (problems->count == 0 && out_of_memory)
                device_note(device, REASON_WORKER_OUT_OF_MEMORY,
                        "The worker (pid %d) was killed by the kernel's OOM killer%s.",
                        (int)worker_proc_pid(device->process.worker), served ? "" : " before it could serve");
        else if (problems->count == 0 && device->process.state != WORKER_KILLED)
                device_note(device, REASON_WORKER_DIED, "The worker (pid %d) %s%s.",
                        (int)worker_proc_pid(device->process.worker), death->sentence,
                        served ? "" : " before it could serve");
}

/* Report a death. For a worker that reported why it cannot serve, report its reason instead. */
static void report_death(struct managed_device *device, bool served, bool out_of_memory)
{
        const struct problem_list *problems = worker_proc_problems(device->process.worker);
        bool broke = broke_protocol(device);
        enum condition_reason reason =
                broke                 ? REASON_WORKER_BROKE_PROTOCOL
                : problems->count > 0 ? device_words_reason(&device->words, problems->items[0].reason)
                : out_of_memory       ? REASON_WORKER_OUT_OF_MEMORY
                                      : REASON_WORKER_DIED;

        device_emit(device, EVENT_WARNING, reason, "%s %s.",
                device->note.sentence ? device->note.sentence : "The worker died.",
                served && !broke ? "ublkd recovers the disk as the spec says"
                                 : "ublkd starts another worker after a back-off");
}

/* A worker that could not serve for the same reason as the last one makes no event. */
static bool is_news(const struct managed_device *device, const char *sentence_before)
{
        const char *sentence = device->note.sentence;

        return !sentence || !sentence_equal(sentence, sentence_before);
}

/* Return whether an adopted worker died before its HELLO: treat it as dead before the start of ublkd. */
static bool died_silently(const struct managed_device *device)
{
        return worker_proc_adopted(device->process.worker) && device->process.state != WORKER_KILLED
               && !worker_proc_params(device->process.worker)
               && worker_proc_problems(device->process.worker)->count == 0;
}

static bool is_wanted(const struct device_record *record)
{
        return record && !record->deleting && device_record_enabled(record);
}

/* Note and report the death of a worker that was to serve the device. */
static void explain_death(struct managed_device *device, const struct device_record *record, bool served)
{
        _cleanup_free_ char *before = device->note.sentence ? strdup(device->note.sentence) : NULL;
        bool broke = broke_protocol(device), out_of_memory = ran_out_of_memory(device);

        note_death(device, record, served, out_of_memory);
        if (broke || (device->process.state != WORKER_KILLED && (served || is_news(device, before))))
                report_death(device, served, out_of_memory);
        if (served || (broke && device->view.facts.kernel != KERNEL_ABSENT)) /* a recovery begins */
                device->process.died_at = worker_proc_died_at(device->process.worker);
}

void device_worker_drop(struct managed_device *device)
{
        device_keys_set_pid(device, 0);
        device->process.worker = worker_proc_free(device->process.worker);
}

void device_take_death(struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);
        bool served = device->view.facts.worker == PLAN_WORKER_SERVING || device->process.hung,
             retired = device->attempt.retired;
        bool again_at_once = store_refusal_take(device, served), broke = broke_protocol(device);
        bool silent = !broke && (died_silently(device) || again_at_once);
        bool stale = !broke && record && !served && device_worker_is_stale(device, record);

        if (!silent && !retired && !stale && is_wanted(record)
                && (broke || worker_proc_epoch(device->process.worker) == record->epoch))
                explain_death(device, record, served);
        if (retired && !device->process.kill_reported)
                report_retired(device);
        device_faults_read(device); /* it may have found a store that was cut off */
        if (broke)
                attempt_worker_broke(&device->attempt, monotonic_now());
        else if (!silent)
                attempt_worker_died(&device->attempt, monotonic_now());
        else if (!again_at_once)
                attempt_worker_lost(&device->attempt);
        if (stale && device->process.request.generation > 0)
                attempt_reset(&device->attempt); /* a later request of the user was not tried yet */
        device_group_end(device);
        device_worker_drop(device);
        device->process.state = silent ? WORKER_NONE : WORKER_DEAD;
}

static void note_since(uint64_t *since, bool is_so, uint64_t now)
{
        if (!is_so)
                *since = 0;
        else if (*since == 0)
                *since = now;
}

/* I/O waits from the moment that a disk is seen without a worker that serves it. FAIL_IO fails it instead. The driver
 * may show the disk as live for a little longer (plan_kernel()). */
void device_note_loss(struct managed_device *device, uint64_t now)
{
        enum kernel_state state = device->view.kernel.state;
        bool down = device->view.facts.kernel == KERNEL_DOWN;

        note_since(&device->process.lost_since, down && state != KERNEL_STATE_FAIL_IO, now);
        note_since(&device->process.down_since, down && state != KERNEL_STATE_LIVE, now);
}

/* Round to 0.1 ms, so that log and API agree. */
static double ms_since(uint64_t usec)
{
        return (double)((monotonic_now() - usec + 50) / 100) / 10;
}

void device_recovered(struct managed_device *device)
{
        if (!device->process.died_at)
                return;
        device->process.history.last_recovery_ms = ms_since(device->process.died_at);
        device->process.history.recoveries++;
        device->process.died_at = 0;
        device_shared_keep_history(device, &device->process.history);
        device_emit(device, EVENT_NORMAL, REASON_RECOVERED,
                "The disk was recovered %.1f ms after ublkd found its worker dead.",
                device->process.history.last_recovery_ms);
}

/* A worker that repeats a notice makes one event with a count. */
static void report_notices(struct managed_device *device, struct worker_proc *worker)
{
        struct problem_list *notices = worker_proc_notices(worker);

        for (size_t i = 0; i < notices->count; i++)
                if (device_words_takes_notice(&device->words, monotonic_now()))
                        device_emit(device, EVENT_WARNING,
                                device_words_reason(&device->words, notices->items[i].reason), "%s%s",
                                notices->items[i].detail, full_stop(notices->items[i].detail));
        problem_list_clear(notices);
}

/* The status shows the reason that it knows then (device_publish.c). */
static void note_refusal(struct managed_device *device, const struct worker_proc *worker)
{
        const struct problem_list *refusal = worker_proc_refusal(worker);

        if (refusal->count > 0)
                (void)device_words_reason(&device->words, refusal->items[0].reason);
}

static bool is_free(const struct managed_device *device, const struct device_record *record)
{
        const struct progress_price price = device_price_of_death(device, record);

        return progress_kill_is_free(&price);
}

/* What it would cost to replace it is for the user to judge, unless it costs nothing. */
static void end_without_channel(struct managed_device *device, struct worker_proc *worker)
{
        const struct device_record *record = device_store_get(device->env->config.store, device->id.name);

        if (!record || !record->spec || is_free(device, record)) {
                worker_proc_refuse(worker, "it closed its channel, and did not exit");
                return;
        }
        if (device->process.reported_channel)
                return;
        device->process.reported_channel = true;
        device_emit(device, EVENT_WARNING, REASON_WORKER_BROKE_PROTOCOL,
                "The worker (pid %d) closed its channel and serves on: the disk does not grow, and its "
                "faults are not reported. ublkd does not replace the worker, because requests would fail. "
                "Restart the device when its disk is not in use.",
                (int)worker_proc_pid(worker));
}

static void on_worker_changed(void *userdata, struct worker_proc *worker)
{
        if (worker_proc_death(worker))
                device_preflight_give_up(userdata);
        if (worker_proc_left_channel(worker))
                end_without_channel(userdata, worker);
        device_program_note(userdata, worker);
        device_judge_found(userdata);
        device_claim_note_worker(userdata);
        report_notices(userdata, worker);
        note_refusal(userdata, worker);
        device_wake(userdata);
}

/* In a recovery, requests of the dead worker may be in flight until the driver reports their end, and keep
 * its lock. So the next worker locks later. If a worker has found the store in use since, lock at once: each
 * recovery that begins and fails counts until ublkd gives up the disk. */
static enum worker_lock wanted_lock(const struct managed_device *device)
{
        bool in_use = device->note.reason == REASON_BACKING_IN_USE;

        return device->view.facts.kernel == KERNEL_DOWN && !in_use ? WORKER_LOCK_TO_SERVE
                                                                   : WORKER_LOCK_TO_OPEN;
}

/* Return whether the disk has lost its worker while no supervisor ran. */
static bool was_lost_unseen(const struct managed_device *device)
{
        return device->process.state == WORKER_NONE && device->view.facts.kernel == KERNEL_DOWN;
}

static void count_restart(struct managed_device *device, const struct target_tree *tree)
{
        if (was_lost_unseen(device) && device->process.died_at == 0)
                device->process.died_at = device->turn.began; /* time of death unknown: count from now */
        device->process.history.restarts++;
        device_shared_count_restart(device, tree, &device->process.history);
}

int device_spawn(struct managed_device *device, const struct device_record *record)
{
        int r = device_launch_worker(device, record, record->name, record->uid, wanted_lock(device),
                on_worker_changed, &device->process.worker);

        if (r < 0)
                return r;
        device_keys_set_pid(device, worker_proc_pid(device->process.worker));
        device->process.request = user_request_of(record);
        device->process.size = record->spec->options.size;
        device->process.kill_reported = device->process.hung = device->process.reported_channel = false;
        if (device->process.state == WORKER_DEAD || was_lost_unseen(device))
                count_restart(device, record->spec->tree);
        device->process.state = WORKER_HELD;
        return 0;
}

static void drop_stranger(struct managed_device *device)
{
        device_worker_drop(device);
        device->process.state = WORKER_NONE;
}

/* Such a worker has the queues of the disk open, so that no other worker can take them. Two must agree before it is
 * killed: the note of the ublkd that started it (worker_mark.h), and the driver. If the driver names no process, the
 * worker may be about to exit. One that is exiting has closed its socket with its main thread. */
bool device_end_unreachable(struct managed_device *device)
{
        struct worker_proc *worker = device->process.worker;
        pid_t server = device->view.facts.kernel != KERNEL_ABSENT ? device->view.kernel.server_pid : 0;

        if (!worker || !worker_proc_is_unreachable(worker)
                || worker_proc_stage(worker) == WORKER_STAGE_LEAVING)
                return false;
        if (server > 0 && server != worker_proc_pid(worker))
                drop_stranger(device);
        else if (server <= 0 || worker_proc_is_exiting(worker))
                worker_proc_expect_exit(worker);
        else
                worker_proc_refuse(worker, "it does not listen at its socket");
        return true;
}

uint64_t device_hello_deadline(const struct managed_device *device)
{
        bool silent = device->step.action == ACTION_WAIT && device->view.facts.worker == PLAN_WORKER_STARTING
                      && worker_proc_adopted(device->process.worker);

        return silent ? device->attempt.seen_since + HELLO_USEC : 0;
}

void device_adopt(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;
        int r = worker_proc_adopt(reconciler->env.config.event, reconciler->env.config.runtime_dir,
                reconciler->env.config.worker_start, device->id.name, device->id.uid, on_worker_changed,
                device, &device->process.worker);

        if (r >= 0)
                device_keys_set_pid(device, worker_proc_pid(device->process.worker));
        if (r >= 0 || r == -ENOENT)
                attempt_handover(&device->attempt, monotonic_now());
        if (r == -ENOENT) /* a removal may have waited for the next worker already */
                attempt_worker_lost(&device->attempt);
        device->process.request = (struct user_request){};
        device->process.kill_reported = device->process.hung = device->process.reported_channel = false;
        device->process.state = r >= 0 ? WORKER_HELD : r == -ENOENT ? WORKER_NONE : WORKER_UNKNOWN;
        if (device->process.state == WORKER_UNKNOWN)
                device_note(device, REASON_WORKER_UNREACHABLE,
                        "The worker that serves the disk cannot be reached: %s; ublkd tries again.",
                        strerror(-r));
}
