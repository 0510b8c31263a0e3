/* A device and its worker: found again, and mourned. */
#include "ublkd/managed_device.h"

#include "ublkd/base/log.h"

#include <string.h>

/* The user hears the reason that the worker gave, or else how it ended. */
static void note_death(struct managed_device *device, bool served)
{
        const struct worker_death *death = worker_proc_death(device->worker);
        const struct problem_list *problems = worker_proc_problems(device->worker);

        if (problems->count > 0)
                device_note(device, problems->items[0].reason, "%s%s", problems->items[0].detail,
                        full_stop(problems->items[0].detail));
        else if (!device->worker_killed)
                device_note(device, "WorkerDied", "The worker (pid %d) %s%s.",
                        (int)worker_proc_pid(device->worker), death->sentence,
                        served ? "" : " before it could serve");
}

void device_take_death(struct managed_device *device)
{
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        bool served = device->facts.worker == PLAN_WORKER_SERVING;
        bool wanted = record && !record->deleting && record->spec && record->spec->options.enabled
                      && worker_proc_epoch(device->worker) == record->epoch;

        if (wanted)
                note_death(device, served);
        if (wanted && !device->worker_killed)
                device_tell(device, LOG_WARNING, "WorkerDied", "%s %s.",
                        device->note.sentence ? device->note.sentence : "The worker died.",
                        served ? "Its disk is recovered as the spec says"
                               : "Another one is started after a back-off");
        if (served && wanted)
                device->died_at = worker_proc_died_at(device->worker);
        attempt_worker_died(&device->attempt, monotonic_now());
        device->worker = worker_proc_free(device->worker);
        device->worker_killed = false;
        (void)runtime_dir_forget_worker(
                device->reconciler->config.runtime_dir, device->uid); /* a stale one is replaced */
}

static void on_worker_changed(void *userdata, struct worker_proc *worker _unused_)
{
        device_wake(userdata);
}

void device_adopt(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;
        int r = worker_proc_adopt(reconciler->config.event, reconciler->config.runtime_dir, device->name,
                device->uid, on_worker_changed, device, &device->worker);

        device->unreached = r < 0 && r != -ENOENT;
        if (r >= 0)
                device->had_worker = true;
        else if (device->unreached)
                device_note(device, "WorkerUnreachable",
                        "The worker that serves it cannot be reached: %s; it is called again.", strerror(-r));
}
