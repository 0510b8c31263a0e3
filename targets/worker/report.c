/* SPDX-License-Identifier: MIT */
/* What the worker reports to its supervisor. */
#include "targets/worker/disk/store_locks.h"
#include "targets/worker/worker.h"
#include "ublkd/base/log.h"
#include "ublkd/base/version.h"

#include <stdio.h>
#include <string.h>

static int send_with(
        struct worker *worker, const struct worker_msg *msg, const int fds[static _CONFIG_FD_MAX])
{
        int r = chan_send(&worker->chan, msg, fds);

        if (r < 0 && r != -EPIPE)
                log_warning(worker->name, "A report to the supervisor failed: %s; the worker goes on.",
                        strerror(-r));
        return r;
}

int report(struct worker *worker, const struct worker_msg *msg)
{
        static const int none[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1};

        return send_with(worker, msg, none);
}

static enum worker_stage current_stage(const struct worker *worker)
{
        bool served = worker->threads && queue_threads_served(worker->threads);

        return worker->stage == WORKER_STAGE_READY && served ? WORKER_STAGE_SERVING : worker->stage;
}

static int send_hello(struct worker *worker)
{
        static char no_uid[] = "";
        char version[WORKER_VERSION_SIZE];

        snprintf(version, sizeof(version), "%s", ublkd_version);
        return report(worker, &(struct worker_msg){
                                      .type = WORKER_MSG_HELLO,
                                      .hello = {.protocol = WORKER_PROTOCOL,
                                                .uid = worker->config.uid ? worker->config.uid : no_uid,
                                                .version = version,
                                                .epoch = worker->config.epoch,
                                                .restart = worker->config.restart,
                                                .started_at = worker->config.started_at,
                                                .pid = getpid(),
                                                .number = worker->number,
                                                .stage = current_stage(worker),
                                                .acts = true,
                                                .leaves = true}
        });
}

static bool is_known(const struct target_store *store)
{
        return store->kept >= 0 || !backing_identity_is_empty(&store->found);
}

static struct listed_store listed(const struct target_store *store, bool with_fd)
{
        return (struct listed_store){
                .identity = store->found,
                .has_fd = with_fd && store->kept >= 0,
                .claimed = store->claimed,
                .major = store->major,
                .minor = store->minor,
                .inode = store->inode,
        };
}

/* Each store, those that are open and the one that was refused. */
static int send_list(struct worker *worker, bool with_fds)
{
        static char empty[] = "";
        struct listed_store stores[STORE_LIST_MAX] = {};
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1};
        unsigned count = worker->config.store_count, next = 0;
        bool any = false;

        for (unsigned i = 0; i < count; i++) {
                any = any || is_known(&worker->config.stores[i]);
                stores[i] = listed(&worker->config.stores[i], with_fds);
                if (stores[i].has_fd)
                        fds[next++] = worker->config.stores[i].kept;
        }
        if (!any)
                return 0;
        return send_with(worker,
                &(struct worker_msg){
                        .type = WORKER_MSG_BACKING,
                        .backing = {.boot = empty, .lasting = empty, .stores = {stores, count}}
        },
                fds);
}

static int send_backing(struct worker *worker, bool with_fd)
{
        struct target_store *store = &worker->disk.device.store;
        const int fds[_CONFIG_FD_MAX] = {with_fd ? store->kept : -1, [1 ... _CONFIG_FD_MAX - 1] = -1};
        const struct worker_msg msg = {
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = store->found.boot,
                            .lasting = store->found.lasting,
                            .basis = (int)store->found.basis,
                            .is_disk = store->found.is_disk,
                            .major = store->major,
                            .minor = store->minor,
                            .inode = store->inode,
                            .claimed = store->claimed},
        };

        if (worker->config.stores)
                return send_list(worker, with_fd);
        return is_known(store) ? send_with(worker, &msg, fds) : 0;
}

int report_backing(struct worker *worker)
{
        return send_backing(worker, true);
}

int report_locked_backing(struct worker *worker)
{
        return send_backing(worker, false);
}

int report_params(struct worker *worker)
{
        return report(worker, &(struct worker_msg){.type = WORKER_MSG_PARAMS, .params = worker->disk.params});
}

void report_all(struct worker *worker)
{
        int r = send_hello(worker);

        if (r >= 0 && worker->stage >= WORKER_STAGE_OPEN)
                r = report_backing(worker);
        if (r >= 0 && worker->stage >= WORKER_STAGE_OPEN)
                r = report_params(worker);
        if (r >= 0 && worker->stage >= WORKER_STAGE_READY)
                (void)report(worker, &(struct worker_msg){.type = WORKER_MSG_READY});
}

enum exit_status fail_locked(struct worker *worker, const struct problem_list *problems, pid_t holder)
{
        int r = report(worker,
                &(struct worker_msg){
                        .type = WORKER_MSG_FAILED, .failed = {.problems = *problems, .holder = holder}
        });

        for (size_t i = 0; i < problems->count; i++) /* the supervisor reports it, with what it does next */
                log_line(r < 0 ? LOG_ERR : LOG_DEBUG, worker->name,
                        "%s (%s) Leaving; the supervisor decides when to try again.",
                        problems->items[i].detail, problems->items[i].reason);
        return EXIT_FAILED;
}

enum exit_status fail(struct worker *worker, const struct problem_list *problems)
{
        return fail_locked(worker, problems, 0);
}

enum exit_status fail_with(struct worker *worker, int error, const char *reason, const char *sentence)
{
        _cleanup_problems_ struct problem_list problems = {};

        (void)problem_add(&problems, -error, "", reason, "%s: %s.", sentence, strerror(-error));
        return fail(worker, &problems);
}

enum exit_status fail_backend(
        struct worker *worker, int error, const struct problem_list *problems, const char *sentence)
{
        if (error == -ENOMEM || problems->count == 0)
                return fail_with(worker, error, "OutOfResources", sentence);
        return fail(worker, problems);
}

enum exit_status fail_unconfined(struct worker *worker)
{
        _cleanup_problems_ struct problem_list problems = {};
        int error = worker->walls.error;

        (void)problem_add(&problems, -error, "", "SandboxIncomplete",
                "The worker cannot have %s: %s; allow it where ublkd runs, or start ublkd with --sandbox "
                "best-effort to serve without it.",
                worker->walls.missing, strerror(-error));
        return fail(worker, &problems);
}

void report_missing_wall(struct worker *worker)
{
        struct worker_msg msg = {.type = WORKER_MSG_NOTICE};

        if (worker->walls.error == 0)
                return;
        if (problem_add(&msg.notice, -worker->walls.error, "", "SandboxIncomplete",
                    "The worker serves without %s: %s.", worker->walls.missing,
                    strerror(-worker->walls.error))
                >= 0)
                (void)report(worker, &msg);
        worker_msg_clear(&msg);
}

/* The administrator learns of it once: a reader may see the disk in the middle of a change, and harms nothing.
 */
void report_readers(struct worker *worker)
{
        struct worker_msg msg = {.type = WORKER_MSG_NOTICE};
        _cleanup_problems_ struct problem_list problems = {};
        pid_t reader;

        if (disk_lock_explain(&worker->disk, &problems, &reader) < 0 || problems.count == 0)
                return;
        if (problem_add(&msg.notice, EBUSY, "/target", "BackingRead", "%s", problems.items[0].detail) >= 0)
                (void)report(worker, &msg);
        worker_msg_clear(&msg);
}
