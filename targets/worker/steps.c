/* SPDX-License-Identifier: MIT */
/* The steps of a worker: open the backend, lock its store, open the node of its disk, start the queues, serve, leave. How far
 * it has got is one value, `stage`, and each step is taken when its facts are there. */
#include "targets/worker/disk/disk_start.h"
#include "targets/worker/disk/store_locks.h"
#include "targets/worker/os/device_node.h"
#include "targets/worker/os/round_clock.h"
#include "targets/worker/os/sandbox.h"
#include "targets/worker/queue/queue_threads.h"
#include "targets/worker/queue/ublk_queue.h"
#include "targets/worker/worker.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/log.h"
#include "ublkd/base/ram.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/proto/region_faults.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum {
        NODE_PATIENCE = 10000, /* milliseconds until /dev/ublkcN must be open */
        NODE_RETRY = 5,        /* milliseconds between tries */
        /* Milliseconds until the backing store must be locked. Of a dead worker the kernel may close the file
         * a moment after the driver's node, which is when the driver reports that its requests are done. */
        LOCK_PATIENCE_TO_OPEN = 1000,
        LOCK_PATIENCE_TO_SERVE = 2000,
        LOCK_RETRY = 1,       /* milliseconds between tries */
        READERS_RETRY = 1000, /* likewise, while only readers are in the way */
};

static int64_t now(void)
{
        return clock_msec(CLOCK_MONOTONIC);
}

/* Before anything is allocated for the queues, so that their memory comes from the right node. */
static int choose_cpus(const struct worker_config *config, struct problem_list *problems)
{
        int r;

        if (!config->cpus_given || sched_setaffinity(0, sizeof(config->cpus), &config->cpus) == 0)
                return 0;
        r = problem_add(problems, errno, "/cpus", "CpusUnavailable",
                "None of these CPUs can be used here: %s; correct cpus, or leave it out.", strerror(errno));
        return r < 0 ? r : -EINVAL;
}

/* Nothing but the mapping is left of the descriptor. */
static int map_region(struct worker *worker, int fd, struct problem_list *problems)
{
        int r = worker_config_map_region(&worker->config, fd, &worker->shared.region, problems);

        close_fd(fd);
        return r;
}

/* A spare has room for any name, a worker that was started for one device for that device's name. */
void worker_show_name(struct worker *worker, const char *name)
{
        size_t size = strlen(name) < worker->shown_room ? strlen(name) : worker->shown_room;

        memset(worker->shown, 0, worker->shown_room);
        memcpy(worker->shown, name, size);
}

/* What lay beyond the end of the store is lost, and the store may be as long as before when the next worker
 * looks: it must not serve zeroes then. So latch before FAILED is sent. Nothing is lost of a disk that the
 * kernel does not have yet, or that was served from another store than this one. */
void worker_latch_cut(struct worker *worker)
{
        bool was_served = worker->config.expected_served || worker->disk.device.store.as_given;
        bool has_data = (worker->config.exists && was_served) || worker->stage >= WORKER_STAGE_READY;
        uint64_t end;

        if (has_data && disk_is_cut(&worker->disk, &end))
                (void)region_fault_latch(device_region_control(worker->shared.region), REGION_FAULT_CUT,
                        STATS_OTHER, EIO, end);
}

/* ---- the lock on the backing store ---- */

static void wait_for_lock(struct worker *worker, int64_t patience)
{
        worker->lock_next_try = now();
        worker->lock_deadline = worker->lock_next_try + patience;
}

static bool lock_wanted(const struct worker *worker)
{
        return worker->disk.lock == DISK_LOCK_WANTED
               && (worker->stage == WORKER_STAGE_OPENING || worker->stage == WORKER_STAGE_FETCHING);
}

static bool whole_lock_wanted(const struct worker *worker)
{
        return worker->disk.lock == DISK_LOCK_BESIDE_READERS;
}

static enum exit_status refuse_store(struct worker *worker)
{
        _cleanup_problems_ struct problem_list problems = {};
        pid_t holder;

        if (disk_lock_explain(&worker->disk, &problems, &holder) < 0)
                return fail_with(worker, -EBUSY, "BackingInUse", "The backing store is locked");
        if (worker->stage == WORKER_STAGE_OPENING) /* later the supervisor has it */
                (void)report_locked_backing(worker);
        return fail_locked(worker, &problems, holder);
}

/* Tries. What cannot be locked at all is served without. */
static int lock_store(struct worker *worker)
{
        bool was_beside = worker->disk.lock == DISK_LOCK_BESIDE_READERS;
        int r = disk_lock(&worker->disk);

        if (!was_beside && worker->disk.lock == DISK_LOCK_BESIDE_READERS)
                report_readers(worker);

        if (r < 0 && r != -EAGAIN)
                log_warning(worker->name,
                        "The backing store cannot be locked: %s; serving it all the same, and nothing keeps "
                        "another server off it.",
                        strerror(-r));
        return r == -EAGAIN ? r : 0;
}

/* The worker has opened its own store, and no other. */
static enum exit_status become_open(struct worker *worker)
{
        bool serves = worker->config.lock != WORKER_LOCK_NEVER;

        worker->node_folder = device_node_prepare();
        if (worker->node_folder < 0)
                return fail_with(worker, worker->node_folder, "NoDeviceFolder", "/dev cannot be opened");
        if (!serves)
                walls_rehearse(&worker->walls);
        if (!walls_hold(&worker->walls))
                return fail_unconfined(worker);
        worker->stage = WORKER_STAGE_OPEN;
        if (!worker->disk.device.store.as_given) /* else the supervisor has it */
                (void)report_backing(worker);
        (void)report_params(worker);
        /* The supervisor works on the messages sent so far; GO is read after this. */
        if (serves)
                walls_leave_files(&worker->walls);
        return STAY;
}

static enum exit_status try_lock(struct worker *worker)
{
        int64_t time = now();

        if (!lock_wanted(worker) || time < worker->lock_next_try)
                return STAY;
        if (lock_store(worker) >= 0)
                return worker->stage == WORKER_STAGE_OPENING ? become_open(worker) : STAY;
        if (time >= worker->lock_deadline)
                return refuse_store(worker);
        worker->lock_next_try = time + LOCK_RETRY;
        return STAY;
}

static enum exit_status begin_to_lock(struct worker *worker)
{
#ifdef UBLKD_TEST_WITHOUT_FENCE
        worker->disk.lock = DISK_LOCK_NONE; /* it is a fence, too */
#endif
        if (worker->disk.lock == DISK_LOCK_WANTED && worker->config.lock == WORKER_LOCK_TO_OPEN) {
                wait_for_lock(worker, LOCK_PATIENCE_TO_OPEN);
                return try_lock(worker);
        }
        (void)lock_store(worker);
        return become_open(worker);
}

/* A preflight worker is of no use to the next ublkd, which does not look for it. It may be in a call that waits for
 * the store, and not see that its channel is closed: so the kernel ends it with ublkd. Return whether ublkd is there. */
static bool end_with_ublkd(const struct worker *worker)
{
        struct pollfd channel = {.fd = worker->chan.connection};

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        return poll(&channel, 1, 0) == 0;
}

/* From here on this process is the worker of one device. Sets those descriptors to -1 that it takes over. */
enum exit_status worker_open(struct worker *worker, const struct worker_msg *msg, int *fds)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r;

        worker_show_name(worker, msg->config.hide_name ? WORKER_HIDDEN_NAME : msg->config.name);
        snprintf(worker->name_of_disk, sizeof(worker->name_of_disk), "%s", msg->config.name);
        worker->name = worker->name_of_disk;
        if (msg->config.lock == WORKER_LOCK_NEVER && !end_with_ublkd(worker))
                return EXIT_LEFT;
        r = chan_listen(&worker->chan, TAKE_FD(fds[CONFIG_FD_LISTENER]));
        if (r < 0)
                return fail_with(worker, r, "NotStartedByUblkd", "The device's socket cannot be listened on");
        r = worker_config_parse(msg, &worker->config, &problems);
        if (r >= 0)
                r = worker_config_take_stores(&worker->config, &fds[CONFIG_FD_STORE], &problems);
        if (r >= 0)
                r = map_region(worker, TAKE_FD(fds[CONFIG_FD_REGION]), &problems);
        if (r >= 0)
                r = choose_cpus(&worker->config, &problems);
        if (r >= 0) {
                walls_fit_target(&worker->walls, worker->config.target->desc->needs);
                r = disk_open(&worker->config, TAKE_FD(fds[CONFIG_FD_STORE]), &worker->disk, &problems);
        }
        worker_latch_cut(worker);
        if (r < 0)
                (void)report_backing(worker);
        if (r < 0)
                return fail_backend(worker, r, &problems, "The backend cannot be opened");
        worker->shared.ticks = round_clock_has_ticks();
        worker->shared.pagemap = sandbox_open_unprivileged("/proc/self/pagemap", O_RDONLY);
        return begin_to_lock(worker);
}

void worker_begin_fetching(struct worker *worker, int number, const struct data_route *route)
{
        worker->number = number;
        worker->route = *route;
        if (worker->route.path == DATA_PATH_AUTO)
                worker->route.path = DATA_PATH_COPY;
        worker->stage = WORKER_STAGE_FETCHING;
        worker->node_next_try = now();
        worker->node_deadline = worker->node_next_try + NODE_PATIENCE;
        wait_for_lock(worker, LOCK_PATIENCE_TO_SERVE);
}

static enum exit_status start_queues(struct worker *worker)
{
        const cpu_set_t *cpus = worker->config.cpus_given ? &worker->config.cpus : NULL;
        _cleanup_problems_ struct problem_list problems = {};
        int r = disk_start(&worker->disk, device_region_control(worker->shared.region), &problems);

        if (r < 0)
                return fail_backend(worker, r, &problems, "The backend cannot be started");
        chan_links(&worker->chan, worker->shared.links);
        r = queue_threads_start(&worker->disk, &worker->shared, &worker->route, worker->node, cpus,
                worker->queue_cpus, &worker->threads);
        return r < 0 ? fail_with(worker, r, "OutOfResources", "The queues' threads cannot be started") : STAY;
}

static bool node_wanted(const struct worker *worker)
{
        return worker->stage == WORKER_STAGE_FETCHING && !worker->threads && !lock_wanted(worker);
}

static enum exit_status try_node(struct worker *worker)
{
        int64_t time = now();
        int r;

        if (!node_wanted(worker) || time < worker->node_next_try)
                return STAY;
        r = device_node_open(worker->node_folder, worker->number);
        if (r == -EAGAIN && time < worker->node_deadline) {
                worker->node_next_try = time + NODE_RETRY;
                return STAY;
        }
        if (r < 0)
                return fail_with(worker, r, "DeviceNotOpened", "The driver's device node cannot be opened");
        worker->node = r;
        worker->node_folder = close_fd(worker->node_folder);
        walls_close_access(&worker->walls);
        return walls_hold(&worker->walls) ? start_queues(worker) : fail_unconfined(worker);
}

/* The readers may have gone. */
static void try_whole_lock(struct worker *worker)
{
        int64_t time = now();

        if (!whole_lock_wanted(worker) || time < worker->lock_next_try)
                return;
        (void)lock_store(worker);
        worker->lock_next_try = time + READERS_RETRY;
}

/* Wait for what no message of the supervisor brings. */
enum exit_status worker_go_on(struct worker *worker)
{
        enum exit_status status = try_lock(worker);

        try_whole_lock(worker);
        return status == STAY ? try_node(worker) : status;
}

/* Every queue has fetched: the rings hold the device now, if they are to, and no thread needs privileges any
 * more. */
static enum exit_status become_ready(struct worker *worker)
{
        if (!ublk_queue_needs_node(&worker->disk.device, &worker->route))
                worker->node = close_fd(worker->node);
        (void)ram_keep_mapped(); /* all that a request needs is mapped, and later none can be locked */
        walls_close(&worker->walls);
        if (!walls_hold(&worker->walls))
                return fail_unconfined(worker);
        report_missing_wall(worker);
        worker->stage = WORKER_STAGE_READY;
        (void)report(worker, &(struct worker_msg){.type = WORKER_MSG_READY});
        return STAY;
}

static enum exit_status leave(struct worker *worker)
{
        worker->stage = WORKER_STAGE_LEAVING;
        worker->threads = queue_threads_free(worker->threads);
        free(worker->queue_cpus);
        worker->queue_cpus = NULL;
        disk_close(&worker->disk);
        worker->node = close_fd(worker->node);
        worker_config_clear(&worker->config);
        return EXIT_LEFT;
}

enum exit_status worker_look_at_queues(struct worker *worker)
{
        const char *what = NULL;
        char sentence[96];
        int error = 0;

        news_send(&worker->news, &worker->shared, &worker->chan);
        switch (queue_threads_state(worker->threads, &error, &what)) {
        case QUEUE_THREADS_STARTING:
                return STAY;
        case QUEUE_THREADS_FETCHED:
                return worker->stage == WORKER_STAGE_FETCHING ? become_ready(worker) : STAY;
        case QUEUE_THREADS_LEFT:
                return AWAY;
        case QUEUE_THREADS_GONE:
                return leave(worker);
        case QUEUE_THREADS_FAILED:
                snprintf(sentence, sizeof(sentence), "A thread of the worker could not %s", what);
                return fail_with(worker, error, "QueueFailed", sentence);
        case QUEUE_THREADS_PRIVILEGED:
                walls_note_privileges(&worker->walls, error);
                return fail_unconfined(worker);
        }
        return STAY;
}

int worker_time_left(const struct worker *worker)
{
        int64_t left;

        if (!node_wanted(worker) && !lock_wanted(worker) && !whole_lock_wanted(worker))
                return -1;
        left = (node_wanted(worker) ? worker->node_next_try : worker->lock_next_try) - now();
        return left > 0 ? (int)left : 0;
}
