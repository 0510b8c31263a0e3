/* SPDX-License-Identifier: MIT */
/* Workers that do what a test calls. */
#include "tests/unit/ublkd/reconcile/reconciler_fake_worker.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/reconcile/reconciler_fakes.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { WORKERS = 1 << 15 }; /* at a time */

struct fake_workers fake_workers = TAILQ_HEAD_INITIALIZER(fake_workers);
unsigned fake_kills;
int fake_adopt_error = -ENOENT;

bool fake_acts, fake_leaves, fake_stays, fake_mark;
const char *fake_version = "1";

static struct fake_worker *by_index[WORKERS];
static unsigned last_index;
static struct device_store *devices;

void fake_workers_begin(struct device_store *store)
{
        devices = store;
        fake_kills = 0;
        fake_stays = fake_mark = false;
}

struct fake_worker *fake_worker(const char *name)
{
        struct fake_worker *worker;

        TAILQ_FOREACH (worker, &fake_workers, link)
                if (strcmp(worker->name, name) == 0)
                        return worker;
        return NULL;
}

enum worker_stage fake_worker_stage(const struct fake_worker *worker)
{
        return worker_proc_stage(worker->stand_in.proc);
}

/* ---- what ublkd does ---- */

static int add(const struct fake_worker *like, int *ret_index)
{
        struct fake_worker *worker = malloc(sizeof(*worker));

        if (!worker)
                abort();
        do
                last_index = (last_index + 1) % WORKERS;
        while (by_index[last_index]);
        *worker = *like;
        worker->index = *ret_index = (int)last_index;
        worker->number = -1;
        worker->store.fd = -1;
        by_index[last_index] = worker;
        TAILQ_INSERT_TAIL(&fake_workers, worker, link);
        return 0;
}

struct worker_stand_in *worker_stand_in_at(int index)
{
        return by_index[index] ? &by_index[index]->stand_in : NULL;
}

pid_t worker_stand_in_pid(int index _unused_)
{
        return FAKE_PID;
}

bool on_worker_exiting(pid_t pid _unused_)
{
        return !fake_stays;
}

int on_worker_start(const struct worker_msg *config, const int *stores, int *ret_index)
{
        const struct store_list *list = &config->config.stores;
        int r = add(
                &(const struct fake_worker){
                        .name = strdup(config->config.name),
                        .uid = strdup(config->config.uid),
                        .epoch = config->config.epoch,
                        .lock = config->config.lock,
                        .given = stores[0],
                        .listed = list->count,
                        .hide_name = config->config.hide_name,
                        .exists = config->config.exists,
                        .has_data = config->config.has_data,
                        .expected_served = config->config.expected_served,
                        .store_user = config->config.store_user,
                        .params = {.size = 1 << 20,
                                   .size_max = 1 << 20,
                                   .logical_block_size = 512,
                                   .queues = config->config.queues,
                                   .queue_depth = config->config.queue_depth,
                                   .max_io_size = config->config.max_io_size}
        },
                ret_index);

        for (unsigned i = 0; r >= 0 && i < FAKE_STORES; i++) {
                if (i < list->count)
                        by_index[*ret_index]->wanted[i] = list->items[i];
                by_index[*ret_index]->wanted_fds[i] = stores[i];
        }
        return r;
}

int on_worker_connect(const char *uid, int *ret_index)
{
        const struct device_record *record = device_store_find_uid(devices, uid);

        if (fake_adopt_error)
                return fake_adopt_error;
        return add(
                &(const struct fake_worker){
                        .name = strdup(record ? record->name : ""),
                        .uid = strdup(uid),
                        .given = -1,
                        .params = {.size = 1 << 20,
                                   .size_max = 1 << 20,
                                   .logical_block_size = 512,
                                   .queues = 1,
                                   .queue_depth = 128,
                                   .max_io_size = 1 << 20}
        },
                ret_index);
}

int on_worker_marked(const char *uid, int *ret_index)
{
        const struct device_record *record = device_store_find_uid(devices, uid);

        if (!fake_mark)
                return -ENOENT;
        return add(
                &(const struct fake_worker){
                        .name = strdup(record ? record->name : ""), .uid = strdup(uid), .given = -1},
                ret_index);
}

int on_worker_sent(int index, const struct worker_msg *msg)
{
        if (msg->type == WORKER_MSG_GO)
                by_index[index]->number = msg->go.number;
        else if (msg->type == WORKER_MSG_ACTION)
                by_index[index]->action = msg->action.id;
        else if (msg->type == WORKER_MSG_LEAVE)
                by_index[index]->leaves = true;
        else if (msg->type == WORKER_MSG_GROW) {
                by_index[index]->asked = msg->grow.size;
                by_index[index]->unanswered++;
        }
        return 0;
}

void on_worker_killed(int index _unused_)
{
        fake_kills++;
}

void on_worker_closed(int index _unused_)
{
}

/* The kernel frees its queues at once. */
static void release(struct fake_worker *worker)
{
        struct kernel_disk *disk = worker->number < 0 ? NULL : &fake_disks[worker->number];

        if (disk && disk->holder == worker->index)
                kernel_disk_release(disk);
}

static void clear_params(struct disk_params *params)
{
        struct worker_msg msg = {.type = WORKER_MSG_PARAMS, .params = *params};

        worker_msg_clear(&msg);
}

void on_worker_freed(int index)
{
        struct fake_worker *worker = TAKE_PTR(by_index[index]);

        release(worker); /* another fake worker stands for the process, if ublkd adopts it */
        TAILQ_REMOVE(&fake_workers, worker, link);
        free(worker->name);
        free(worker->uid);
        clear_params(&worker->params);
        close_fd(worker->store.fd);
        free(worker);
}

bool on_worker_waited(int index, siginfo_t *ret)
{
        bool crashes = by_index[index]->crashes, killed = by_index[index]->killed;

        ret->si_code = crashes ? CLD_DUMPED : killed ? CLD_KILLED : CLD_EXITED;
        ret->si_status = crashes ? SIGSEGV : killed ? SIGKILL : 0;
        return by_index[index]->dead;
}

/* ---- what it does ---- */

static void send_hello(struct fake_worker *worker, enum worker_stage stage)
{
        if (worker->greeted)
                return;
        worker->greeted = true;
        stand_in_sends(worker->index,
                &(const struct worker_msg){
                        .type = WORKER_MSG_HELLO,
                        .hello = {.protocol = WORKER_PROTOCOL,
                                  .uid = worker->uid,
                                  .version = (char *)fake_version,
                                  .epoch = worker->epoch,
                                  .started_at = 1,
                                  .acts = fake_acts,
                                  .leaves = fake_leaves,
                                  .pid = FAKE_PID,
                                  .number = worker->number,
                                  .stage = stage}
        },
                -1);
}

static void send_list(struct fake_worker *worker)
{
        static char empty[] = "";
        struct listed_store listed[FAKE_STORES];
        int fds[FAKE_STORES];
        unsigned next = 0;

        for (unsigned i = 0; i < worker->count; i++) {
                listed[i] = worker_store_listed(&worker->list[i]);
                if (listed[i].has_fd && !worker->loses_descriptors)
                        fds[next++] = TAKE_FD(worker->list[i].fd);
        }
        stand_in_sends_fds(worker->index,
                &(const struct worker_msg){
                        .type = WORKER_MSG_BACKING,
                        .backing = {.boot = empty, .lasting = empty, .stores = {listed, worker->count}}
        },
                fds, next);
        worker->count = 0;
}

/* The first messages of a worker in that stage. */
static void introduce(struct fake_worker *worker, enum worker_stage stage)
{
        send_hello(worker, stage);
        if (worker->speaks) {
                struct worker_msg msg = worker_store_message(&worker->store);

                worker->speaks = false;
                stand_in_sends(worker->index, &msg, TAKE_FD(worker->store.fd));
        }
        if (worker->count > 0)
                send_list(worker);
}

static void send_params(struct fake_worker *worker)
{
        stand_in_sends(worker->index,
                &(const struct worker_msg){.type = WORKER_MSG_PARAMS, .params = worker->params}, -1);
}

void fake_worker_open(struct fake_worker *worker, const char *key)
{
        if (key)
                (void)backing_claims_add(&worker->params.claims,
                        &(struct backing_claim){(char *)(uintptr_t)key, worker->start, 0, true, false});
        backing_claims_resize(&worker->params.claims, worker->params.size);
        introduce(worker, WORKER_STAGE_OPENING);
        send_params(worker);
}

static struct worker_store refused_store(const char *identity, int fd)
{
        struct worker_store store = {.identity = {.basis = BACKING_FILE_HANDLE}, .fd = -1};
        struct stat stat;

        snprintf(store.identity.boot, sizeof(store.identity.boot), "%s", identity);
        snprintf(store.identity.lasting, sizeof(store.identity.lasting), "%s", identity);
        if (fd < 0 || fstat(fd, &stat) < 0)
                return store;
        store.major = major(stat.st_dev);
        store.minor = minor(stat.st_dev);
        store.inode = stat.st_ino;
        return store;
}

void fake_worker_refuse_store(struct fake_worker *worker, const char *identity, int fd)
{
        worker->store = refused_store(identity, fd);
        worker->speaks = true;
}

void fake_worker_listed(
        struct fake_worker *worker, unsigned number, unsigned count, const char *identity, int fd)
{
        worker->list[number] = refused_store(identity, fd);
        worker->list[number].fd = fd;
        worker->count = count;
}

void fake_worker_store(struct fake_worker *worker, const char *identity, int fd)
{
        fake_worker_refuse_store(worker, identity, fd);
        worker->store.fd = fd;
}

void fake_worker_disk(struct fake_worker *worker, const char *identity, int fd, bool claimed)
{
        fake_worker_store(worker, identity, fd);
        worker->store.identity.basis = BACKING_DISK_WWID;
        worker->store.identity.is_disk = true;
        worker->store.claimed = claimed;
}

void fake_worker_advise(struct fake_worker *worker, const char *stable_path)
{
        free(worker->params.stable_path);
        worker->params.path_may_change = true;
        worker->params.stable_path = stable_path ? strdup(stable_path) : NULL;
}

void fake_worker_ready(struct fake_worker *worker)
{
        struct kernel_disk *disk = &fake_disks[worker->number];

        CHECK_INT(kernel_disk_check_attach(disk), 0);
        kernel_disk_attach(disk, worker->index);
        CHECK_INT(kernel_disk_fetch(disk, worker->index, true), 0);
        stand_in_sends(worker->index, &(const struct worker_msg){.type = WORKER_MSG_READY}, -1);
}

void fake_worker_greet_as(struct fake_worker *worker, uint16_t epoch, int number, enum worker_stage stage)
{
        worker->epoch = epoch;
        worker->number = number;
        fake_disks[number].holder = worker->index;
        fake_disks[number].fetched_any = fake_disks[number].fetched_all = true;
        introduce(worker, stage);
        send_params(worker);
}

void fake_worker_greet(struct fake_worker *worker, uint16_t epoch, int number)
{
        fake_worker_greet_as(worker, epoch, number, WORKER_STAGE_SERVING);
}

void fake_worker_leave(struct fake_worker *worker)
{
        stand_in_leaves(worker->index);
}

void fake_worker_die(struct fake_worker *worker)
{
        struct kernel_disk *disk = worker->number < 0 ? NULL : &fake_disks[worker->number];

        if (disk && disk->exists && disk->holder == worker->index)
                kernel_disk_lose_worker(disk, false);
        release(worker);
        worker->dead = true;
        stand_in_dies(worker->index);
}

/* Takes over the problems. */
static void fail(struct fake_worker *worker, struct problem_list *problems, pid_t holder)
{
        struct worker_msg msg = {
                .type = WORKER_MSG_FAILED, .failed = {.problems = *problems, .holder = holder}
        };

        introduce(worker, WORKER_STAGE_OPENING);
        stand_in_sends(worker->index, &msg, -1);
        worker_msg_clear(&msg);
        fake_worker_die(worker);
}

void fake_worker_find_locked(struct fake_worker *worker, pid_t holder, const char *detail)
{
        struct problem_list problems = {};

        (void)problem_add(&problems, EBUSY, "/target", "BackingInUse", "%s", detail);
        fail(worker, &problems, holder);
}

void fake_worker_refuse_at(
        struct fake_worker *worker, int error, const char *pointer, const char *reason, const char *detail)
{
        struct problem_list problems = {};

        (void)problem_add(&problems, error, pointer, reason, "%s", detail);
        fail(worker, &problems, 0);
}

void fake_worker_refuse(struct fake_worker *worker, const char *reason, const char *detail)
{
        struct problem_list problems = {};

        (void)problem_add(&problems, EBUSY, "/target", reason, "%s", detail);
        fail(worker, &problems, 0);
}

void fake_worker_refuse_size(struct fake_worker *worker, const char *detail)
{
        struct problem_list problems = {};

        (void)problem_add(&problems, ENOSPC, "/size", "BackingTooSmall", "%s", detail);
        fail(worker, &problems, 0);
}

void fake_worker_grow(struct fake_worker *worker, const char *refusal)
{
        struct worker_msg msg = {.type = WORKER_MSG_GROWN};

        if (refusal)
                (void)problem_add(&msg.grown.problems, ENOSPC, "/size", "BackingTooSmall", "%s", refusal);
        else
                worker->params.size = worker->params.size_max = worker->asked;
        msg.grown.size = worker->params.size;
        msg.grown.size_max = worker->params.size_max;
        for (; worker->unanswered > 0; worker->unanswered--)
                stand_in_sends(worker->index, &msg, -1);
        worker_msg_clear(&msg);
}
