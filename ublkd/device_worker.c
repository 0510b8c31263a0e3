/* A device and its worker: started, found again, and mourned. */
#include "ublkd/managed_device.h"

#include "ublkd/base/json_print.h"

#include <string.h>

enum { HELLO_USEC = 5 * 1000 * 1000 }; /* one that was found speaks within milliseconds, if it runs at all */

/* The user hears the reason that the worker gave, or else how it ended. */
static void note_death(struct managed_device *device, bool served)
{
        const struct worker_death *death = worker_proc_death(device->worker);
        const struct problem_list *problems = worker_proc_problems(device->worker);

        if (problems->count > 0) {
                device_note(device, problems->items[0].reason, "%s%s", problems->items[0].detail,
                        full_stop(problems->items[0].detail));
                device_claim_name_holder(device, &problems->items[0]);
        } else if (device->tie != WORKER_KILLED)
                device_note(device, "WorkerDied", "The worker (pid %d) %s%s.",
                        (int)worker_proc_pid(device->worker), death->sentence,
                        served ? "" : " before it could serve");
}

/* A worker that says why it cannot serve has not died: what is told is its reason. */
static void tell_death(const struct managed_device *device, bool served)
{
        const struct problem_list *problems = worker_proc_problems(device->worker);

        device_tell(device, EVENT_WARNING, problems->count > 0 ? problems->items[0].reason : "WorkerDied",
                "%s %s.", device->note.sentence ? device->note.sentence : "The worker died.",
                served ? "Its disk is recovered as the spec says"
                       : "A new worker is started after a back-off");
}

/* One that could not serve for the reason of the one before it is no news. */
static bool is_news(const struct managed_device *device, const char *sentence_before)
{
        const char *sentence = device->note.sentence;

        return !sentence || !sentence_before || strcmp(sentence, sentence_before) != 0;
}

/* It was found, and died before it was heard: as good as dead before, while there was no supervisor. */
static bool died_unheard(const struct managed_device *device)
{
        return worker_proc_adopted(device->worker) && device->tie != WORKER_KILLED
               && !worker_proc_params(device->worker) && worker_proc_problems(device->worker)->count == 0;
}

void device_take_death(struct managed_device *device)
{
        _cleanup_free_ char *before = device->note.sentence ? strdup(device->note.sentence) : NULL;
        const struct device_record *record = device_store_get(device->reconciler->config.store, device->name);
        bool served = device->facts.worker == PLAN_WORKER_SERVING, retired = device->attempt.retired;
        bool unheard = died_unheard(device);
        bool wanted = !unheard && !retired && record && !record->deleting && record->spec
                      && record->spec->options.enabled && worker_proc_epoch(device->worker) == record->epoch;

        if (wanted)
                note_death(device, served);
        if (wanted && device->tie != WORKER_KILLED && (served || is_news(device, before)))
                tell_death(device, served);
        if (retired) {
                device_tell(device, EVENT_NORMAL, "WorkerRetired",
                        "Worker %d has left, as it was told; another one takes its place.",
                        (int)worker_proc_pid(device->worker));
                device_note(device, "WorkerRetired", "Worker %d has left, as it was told.",
                        (int)worker_proc_pid(device->worker));
        }
        if (served && wanted)
                device->died_at = worker_proc_died_at(device->worker);
        if (!unheard)
                attempt_worker_died(&device->attempt, monotonic_now());
        device->worker = worker_proc_free(device->worker);
        device->tie = unheard ? WORKER_NEVER : WORKER_LOST;
        (void)runtime_dir_forget_worker(
                device->reconciler->config.runtime_dir, device->uid); /* a stale one is replaced */
}

/* In whole tenths, as it is told: one half of a tenth would be rounded up in one place and down in another.
 */
static double ms_since(uint64_t usec)
{
        return (double)((monotonic_now() - usec + 50) / 100) / 10;
}

void device_recovered(struct managed_device *device)
{
        if (!device->died_at)
                return;
        device->history.last_recovery_ms = ms_since(device->died_at);
        device->history.recoveries++;
        device->died_at = 0;
        device_shared_keep_history(device);
        device_tell(device, EVENT_NORMAL, "Recovered", "Recovered %.1f ms after its worker was found dead.",
                device->history.last_recovery_ms);
}

static void on_worker_changed(void *userdata, struct worker_proc *worker)
{
        if (worker_proc_death(worker))
                device_trial_give_up(userdata);
        device_wake(userdata);
}

static uint16_t queues_for(const struct managed_device *device, const struct device_record *record)
{
        int64_t queues = record->spec->options.queues;
        unsigned cpus = device->reconciler->config.host->cpus;

        if (record->spec->target->flags & TARGET_ONE_QUEUE)
                return 1;
        if (queues == OPTION_AUTO)
                return (uint16_t)(cpus < QUEUES_AUTO_MAX ? cpus : QUEUES_AUTO_MAX);
        return (uint16_t)(queues < cpus ? queues : cpus); /* the kernel clamps to the CPUs as well */
}

static int set_number(cJSON *object, const char *name, double value)
{
        cJSON *number = cJSON_CreateNumber(value);

        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        if (number && cJSON_AddItemToObject(object, name, number))
                return 0;
        cJSON_Delete(number);
        return -ENOMEM;
}

/* Live: for a trial only. */
static bool has_disk(const struct managed_device *device)
{
        return device->facts.kernel == KERNEL_DOWN || device->facts.kernel == KERNEL_LIVE;
}

/* The spec for the worker. A disk that is there keeps the size that it has: a file that has grown since is
 * served as before, one that has shrunk is refused by the worker as too small. */
static int spec_text(const struct managed_device *device, const struct device_record *record, char **ret)
{
        cJSON *document = cJSON_Duplicate(record->spec->document, true);
        int r = document ? 0 : -ENOMEM;

        if (r >= 0 && has_disk(device))
                r = device->geometry_error;
        if (r >= 0 && has_disk(device))
                r = set_number(document, "size", (double)device->disk_size);
        if (r >= 0 && has_disk(device))
                r = set_number(document, "blockSize", device->disk_block_size);
        if (r >= 0) {
                *ret = json_print(document);
                r = *ret ? 0 : -ENOMEM;
        }
        cJSON_Delete(document);
        return r;
}

int device_start_worker(struct managed_device *device, const struct device_record *record, const char *name,
        const char *uid, enum worker_lock lock, worker_proc_changed changed, struct worker_proc **ret)
{
        const struct reconciler_config *config = &device->reconciler->config;
        bool down = has_disk(device);
        struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config =
                        {
                                 .name = (char *)name,
                                 .uid = (char *)uid, /* only read */
                                .epoch = record->epoch,
                                 .restart = record->restart,
                                 .queues = down ? device->kernel.queues : queues_for(device, record),
                                 .queue_depth = down ? device->kernel.queue_depth
                                                    : (uint16_t)record->spec->options.queue_depth,
                                 .max_io_size = down ? device->kernel.max_io_size
                                                    : (uint32_t)record->spec->options.max_io_size,
                                 .reissue = device_spec_on_crash(record->spec) == ON_CRASH_REISSUE,
                                 .lock = lock,
                                 },
        };
        _cleanup_free_ char *spec = NULL;
        int r = spec_text(device, record, &spec);

        if (r < 0)
                return r;
        msg.config.spec = spec;
        return worker_proc_spawn(
                config->event, config->runtime_dir, config->worker_start, &msg, changed, device, ret);
}

/* In a recovery requests of the dead worker may still be on their way, and keep its lock, until the driver
 * says that they are not. Not so where another worker has found the store in use since: it may not say so
 * then, for a disk whose recovery was begun once too often is given up. */
static enum worker_lock wanted_lock(const struct managed_device *device)
{
        bool in_use = device->note.reason && strcmp(device->note.reason, "BackingInUse") == 0;

        return device->facts.kernel == KERNEL_DOWN && !in_use ? WORKER_LOCK_TO_SERVE : WORKER_LOCK_TO_OPEN;
}

int device_spawn(struct managed_device *device, const struct device_record *record)
{
        return device_start_worker(device, record, record->name, record->uid, wanted_lock(device),
                on_worker_changed, &device->worker);
}

uint64_t device_speaks_by(const struct managed_device *device)
{
        bool silent = device->action == ACTION_WAIT && device->facts.worker == PLAN_WORKER_STARTING
                      && worker_proc_adopted(device->worker);

        return silent ? device->attempt.seen_since + HELLO_USEC : 0;
}

void device_adopt(struct managed_device *device)
{
        struct reconciler *reconciler = device->reconciler;
        int r = worker_proc_adopt(reconciler->config.event, reconciler->config.runtime_dir,
                reconciler->config.worker_start, device->name, device->uid, on_worker_changed, device,
                &device->worker);

        device->tie = r >= 0 ? WORKER_HELD : r == -ENOENT ? WORKER_NEVER : WORKER_UNREACHED;
        if (device->tie == WORKER_UNREACHED)
                device_note(device, "WorkerUnreachable",
                        "The worker that serves it cannot be reached: %s; it is called again.", strerror(-r));
}
