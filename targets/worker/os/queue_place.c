/* SPDX-License-Identifier: MIT */
/* Where a queue's thread runs, and that its memory is near. */
#include "targets/worker/os/queue_place.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/values/cpu_list.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void pin(const char *queue_cpus, unsigned index)
{
        unsigned char mask[CPU_SETSIZE / 8];
        _cleanup_free_ char *list = NULL;
        cpu_set_t cpus;

        while (queue_cpus && index-- > 0) {
                queue_cpus = strchr(queue_cpus, ';');
                queue_cpus = queue_cpus ? queue_cpus + 1 : NULL;
        }
        list = queue_cpus ? strndup(queue_cpus, strcspn(queue_cpus, ";")) : NULL;
        if (!list || parse_cpu_list(list, mask, sizeof(mask)) < 0)
                return;
        CPU_ZERO(&cpus);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (mask[cpu / 8] & 1 << cpu % 8)
                        CPU_SET(cpu, &cpus);
        (void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

void queue_place_take(const char *queue_cpus, unsigned index)
{
        pin(queue_cpus, index);
        /* A kernel without NUMA has no such call, and no need for it. */
        (void)syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0UL);
}

bool queue_place_matters(void)
{
        struct queue_place allowed = {};
        unsigned count = 0;

        if (syscall(SYS_get_mempolicy, NULL, allowed.nodes, (unsigned long)QUEUE_PLACE_NODES_MAX, NULL,
                    (unsigned long)MPOL_F_MEMS_ALLOWED)
                < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(allowed.nodes); i++)
                count += (unsigned)__builtin_popcountl(allowed.nodes[i]);
        return count > 1;
}

bool queue_place_save(struct queue_place *ret)
{
        struct queue_place place = {};

        if (!queue_place_matters() || sched_getaffinity(0, sizeof(place.cpus), &place.cpus) < 0
                || syscall(SYS_get_mempolicy, &place.policy, place.nodes,
                           (unsigned long)QUEUE_PLACE_NODES_MAX, NULL, 0UL)
                           < 0)
                return false;
        *ret = place;
        return true;
}

void queue_place_restore(const struct queue_place *place)
{
        (void)sched_setaffinity(0, sizeof(place->cpus), &place->cpus);
        (void)syscall(SYS_set_mempolicy, place->policy, place->nodes, (unsigned long)QUEUE_PLACE_NODES_MAX);
}
