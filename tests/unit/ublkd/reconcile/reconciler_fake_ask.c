/* SPDX-License-Identifier: MIT */
/* The getters of a fake worker. */
#include "reconciler_fake_worker.h"
#include "reconciler_fakes.h"

pid_t worker_proc_pid(const struct worker_proc *worker _unused_)
{
        return FAKE_PID;
}

enum worker_stage worker_proc_stage(const struct worker_proc *worker)
{
        return worker->stage;
}

uint16_t worker_proc_epoch(const struct worker_proc *worker)
{
        return worker->epoch;
}

const char *worker_proc_version(const struct worker_proc *worker _unused_)
{
        return "1";
}

bool worker_proc_adopted(const struct worker_proc *worker)
{
        return worker->adopted;
}

uint32_t worker_proc_restart(const struct worker_proc *worker)
{
        return worker->restart;
}

int worker_proc_number(const struct worker_proc *worker)
{
        return worker->number;
}

uint64_t worker_proc_started_at(const struct worker_proc *worker _unused_)
{
        return 1;
}

const struct disk_params *worker_proc_params(const struct worker_proc *worker)
{
        return worker->opened ? &worker->params : NULL;
}

const struct problem_list *worker_proc_problems(const struct worker_proc *worker)
{
        return &worker->problems;
}

pid_t worker_proc_holder(const struct worker_proc *worker)
{
        return worker->holder;
}
