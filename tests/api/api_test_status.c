/* SPDX-License-Identifier: MIT */
/* Statuses of the fake reconciler of the API tests. */
#include "tests/api/api_test_status.h"

#include "ublkd/model/device_spec_store.h"
#include "ublkd/store/store_actions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set "CAUSE | WHAT IS DONE NEXT" for a failed attempt, or only a message. */
static int explain(struct device_status *status, enum condition_reason reason, const char *text)
{
        const char *bar = strstr(text, " | ");
        int cause = (int)(bar ? bar - text : 0), r;

        if (!bar)
                return device_status_explain(status, reason, "%s", text);
        status->attempts = 2;
        status->next_try_at = 1700000000123000;
        r = device_status_set_cause(status, "%.*s", cause, text);
        return r < 0 ? r : device_status_explain(status, reason, "%.*s%s", cause, text, bar + strlen(" |"));
}

/* Of the first store of a list the one was found, of the others another one: "wwid:found-1". */
static int set_stores(struct device_status *status, const struct device_spec *spec)
{
        unsigned count = spec && device_spec_has_list(spec) ? device_spec_stores(spec) : 0;

        status->stores = count > 0 ? calloc(count, sizeof(*status->stores)) : NULL;
        if (count > 0 && !status->stores)
                return -ENOMEM;
        status->store_count = count;
        for (unsigned i = 0; i < count; i++) {
                struct store_status *store = &status->stores[i];

                device_spec_store_pointer(spec, i, store->pointer);
                store->identity.basis = store->found.basis = BACKING_DISK_WWID;
                snprintf(store->identity.lasting, sizeof(store->identity.lasting), "wwid:%u", i);
                if (i > 0)
                        snprintf(store->found.lasting, sizeof(store->found.lasting), "wwid:found-%u", i);
        }
        return 0;
}

int api_test_set_status(struct device_store *store, uint64_t restarts, const struct device_record *record,
        enum device_phase phase, enum condition_reason reason, const char *text)
{
        struct device_status status = {
                .phase = phase,
                .observed_generation = record->generation,
                .observed_restart = record->restart,
                .observed_asked = record->asked,
                .converged = phase == PHASE_LIVE && reason != REASON_CANNOT_GROW,
                .number = record->number >= 0 ? record->number : 0,
                .size = phase == PHASE_LIVE && record->spec ? record->spec->options.size : 0,
                .disk = phase == PHASE_LIVE || phase == PHASE_RECOVERING || phase == PHASE_QUIESCED,
                .data_path = phase == PHASE_LIVE ? "copy" : NULL,
                .data_path_reason = phase == PHASE_LIVE ? "The test has nothing else." : NULL,
                .worker.restarts = restarts,
                .quoted = phase == PHASE_BACKOFF || phase == PHASE_STOPPING ? reason : REASON_NONE,
        };
        int r = reason == REASON_BACKING_CHANGED ? set_stores(&status, record->spec) : 0;

        if (phase == PHASE_LIVE && tenant_is_set(record->tenant))
                snprintf(status.node, sizeof(status.node), "/dev/ublk/private/%s", record->uid);
        if (reason == REASON_BACKING_IN_USE)
                status.disk = true; /* another writer came while it had no worker */
        if (reason == REASON_BACKING_CHANGED) {
                status.disk = true; /* its I/O waits */
                status.backing.known = true;
                status.backing.identity =
                        (struct backing_identity){.basis = BACKING_DISK_WWID, .lasting = "wwid:first"};
                status.backing.found =
                        (struct backing_identity){.basis = BACKING_DISK_SEQUENCE, .boot = "diskseq:9+0"};
        }
        if (reason == REASON_FLUSH_FAILED || reason == REASON_BACKING_TRUNCATED)
                status.faults = (struct device_faults){.flush = 1, .flush_at = 0x2a};
        if (reason == REASON_BACKING_TRUNCATED) {
                status.faults.cut = 2;
                status.faults.cut_at = 0x2b;
        }
        if (reason == REASON_RECORD_OUTDATED)
                status.disk = true; /* it is left as it is, with its worker */
        if (phase == PHASE_LIVE || reason == REASON_RECORD_OUTDATED) {
                status.worker.pid = getpid();
                status.worker.started_at = record->created_at;
                status.kernel_flags = 1 << 3;
        }
        if (r >= 0)
                r = explain(&status, reason, text);
        if (r >= 0)
                r = device_store_set_status(store, record->name, &status);
        device_status_clear(&status);
        return r;
}

int api_test_set_error(struct device_store *store, char *arguments)
{
        const char *name = strsep(&arguments, " ");
        const struct device_record *record = device_store_get(store, name);
        struct device_status changed;
        unsigned op = 0, length = 0;
        unsigned long long count = 0, offset = 0;
        int error = 0, r;

        if (!record || !arguments
                || sscanf(arguments, "%u %d %llu %llu %u", &op, &error, &count, &offset, &length) != 5
                || op >= _STATS_OP_MAX)
                return -EINVAL;
        r = device_status_copy(&record->status, &changed);
        if (r < 0)
                return r;
        changed.errors.of[op] = (struct error_report){
                .count = count, .at = 1700000000123000, .offset = offset, .length = length, .error = error};
        r = device_store_set_status(store, name, &changed);
        device_status_clear(&changed);
        return r;
}

/* numbers: how far it is, and how far it has to go; "": it has not begun. */
static int run_action(struct device_store *store, const char *name, uint64_t id, const char *numbers)
{
        unsigned long long done, total;
        int r = device_store_run_action(store, name, id);

        if (r >= 0 && sscanf(numbers, "%llu %llu", &done, &total) == 2)
                r = device_store_set_action_progress(store, name, id, done, total);
        return r;
}

int api_test_act(struct device_store *store, char *rest)
{
        const char *name = strsep(&rest, " ");
        const struct device_record *record = device_store_get(store, name);
        const struct device_action *action = record ? device_actions_current(record->actions) : NULL;
        bool good = rest && strcmp(rest, "succeed") == 0;

        if (!action)
                return -ENOENT;
        if (rest && strncmp(rest, "run", strlen("run")) == 0)
                return run_action(store, name, action->id, rest + strlen("run"));
        (void)device_store_set_action_progress(store, name, action->id, 4096, 1 << 20);
        return device_store_end_action(store, name, action->id,
                &(const struct action_end){.state = good ? DEVICE_ACTION_SUCCEEDED : DEVICE_ACTION_FAILED,
                        .reason = good ? REASON_ACTION_SUCCEEDED : REASON_ACTION_INTERRUPTED,
                        .message = "It is over.",
                        .result = "{\"bytesRead\":4096}"});
}
