/* SPDX-License-Identifier: MIT */
/* The death of the worker, at one of the awaits of a request. await_watched() runs the rest of the request and counts
 * each suspension of its coroutine. Requests without a rule, and disks without a fault target, do not pay for that. */
#include "targets/fault/fault_death.h"

#include "targets/fault/fault.h"
#include "targets/target_wait.h"

#include <errno.h>
#include <unistd.h>

enum { NO_MEMORY_NSEC = 1000 * 1000 };

struct passage {
        struct target_io *io;
        int (*pass)(struct target_io *io);
        bool resumed;    /* it dies when it is about to continue */
        uint64_t awaits; /* until it dies */
};

void fault_die(void)
{
        _exit(FAULT_EXIT_STATUS);
}

static int pass_child(void *argument)
{
        const struct passage *passage = argument;

        return passage->pass(passage->io);
}

/* Wait one tick: the kernel then has the first operation of the request. */
static int die_child(void *argument)
{
        (void)await_timeout(argument, 1);
        fault_die();
}

static void count(void *argument, bool resumed)
{
        struct passage *passage = argument;

        if (resumed == passage->resumed && --passage->awaits == 0)
                fault_die();
}

static int pass_counted(struct passage *passage)
{
        struct target_child child = {.run = pass_child, .argument = passage};
        int r;

        while ((r = await_watched(passage->io->queue, &child, count, passage)) == -ENOMEM) {
                r = await_timeout(passage->io->queue, NO_MEMORY_NSEC);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : child.result;
}

int fault_die_at(struct target_io *io, const struct fault_rule *rule, int (*pass)(struct target_io *io))
{
        struct passage passage = {
                .io = io, .pass = pass, .resumed = rule->value == FAULT_RESUMED, .awaits = rule->await};
        struct target_child both[] = {
                {.run = pass_child, .argument = &passage },
                {.run = die_child,  .argument = io->queue}
        };

        if (fault_rule_counts_awaits(rule))
                return pass_counted(&passage);
        if (rule->value == FAULT_DURING)
                (void)await_all(io->queue, both, ARRAY_SIZE(both));
        if (rule->value == FAULT_AFTER)
                (void)pass(io);
        fault_die();
}
