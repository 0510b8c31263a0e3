/* SPDX-License-Identifier: MIT */
/* What others ask of a worker. */
#include "ublkd/workers/worker_proc_internal.h"

#include "ublkd/base/cleanup.h"

pid_t worker_proc_pid(const struct worker_proc *worker)
{
        return worker->pid;
}

int worker_proc_pidfd(const struct worker_proc *worker)
{
        return worker->pidfd;
}

bool worker_proc_adopted(const struct worker_proc *worker)
{
        return worker->adopted;
}

bool worker_proc_is_unreachable(const struct worker_proc *worker)
{
        return worker->unreachable;
}

enum worker_stage worker_proc_stage(const struct worker_proc *worker)
{
        return worker->stage;
}

uint16_t worker_proc_epoch(const struct worker_proc *worker)
{
        return worker->epoch;
}

bool worker_proc_acts(const struct worker_proc *worker)
{
        return worker->acts;
}

const char *worker_proc_version(const struct worker_proc *worker)
{
        return worker->version;
}

uint32_t worker_proc_restart(const struct worker_proc *worker)
{
        return worker->restart;
}

int worker_proc_number(const struct worker_proc *worker)
{
        return worker->number;
}

uint64_t worker_proc_started_at(const struct worker_proc *worker)
{
        return worker->started_at;
}

const struct disk_params *worker_proc_params(const struct worker_proc *worker)
{
        return worker->params.type == WORKER_MSG_PARAMS ? &worker->params.params : NULL;
}

const struct problem_list *worker_proc_problems(const struct worker_proc *worker)
{
        return &worker->problems;
}

pid_t worker_proc_holder(const struct worker_proc *worker)
{
        return worker->holder;
}

const struct worker_stores *worker_proc_stores(const struct worker_proc *worker)
{
        return worker->stores.count > 0 ? &worker->stores : NULL;
}

bool worker_proc_has_list(const struct worker_proc *worker)
{
        return worker->listed > 0 || worker->stores.is_list;
}

int worker_proc_take_store(struct worker_proc *worker, unsigned number)
{
        return TAKE_FD(worker->stores.items[number].fd);
}

struct problem_list *worker_proc_notices(struct worker_proc *worker)
{
        return &worker->notices;
}

const struct worker_death *worker_proc_death(const struct worker_proc *worker)
{
        return worker->died_at ? &worker->death : NULL;
}

uint64_t worker_proc_died_at(const struct worker_proc *worker)
{
        return worker->died_at;
}
