/* SPDX-License-Identifier: MIT */
/* A control group for each worker: it takes the limits of the device, and it ends all of a worker, a process that the
 * worker has forked included. Runs on the supervisor's loop; a thread waits for the kernel.
 *
 * Nothing depends on it: a worker without a group serves as well, and no start and no recovery waits for a group. */
#pragma once

#include "ublkd/cgroups/group_limits.h"
#include "ublkd/cgroups/group_place.h"

#include <systemd/sd-event.h>

struct worker_groups;
struct group_request;

/* Why a worker has no group. */
enum group_trouble {
        GROUP_FINE,
        GROUP_NO_HIERARCHY, /* cgroup v2 is not mounted */
        GROUP_NOT_VISIBLE,  /* ublkd is in a group that cannot be seen from its cgroup namespace */
        GROUP_NO_UNIT,      /* under systemd: the unit of the workers is not active */
        GROUP_NOT_WRITABLE, /* ublkd may not write there */
        GROUP_HAS_REMAINS,  /* processes of a dead worker are in it, and not dead yet */
        GROUP_FAILED,       /* something else: `error` */
        GROUP_UNAVAILABLE,  /* there is no struct worker_groups */
        _GROUP_TROUBLE_MAX
};

struct group_result {
        enum group_trouble trouble;
        int error;                    /* -errno of the trouble */
        int limits[_GROUP_LIMIT_MAX]; /* group_tree_limit(); 0: in force, or not set */
        int leftover;                 /* -errno: a limit that is not set any more is still in force; 0 */
};

/* Begin, and end what an earlier ublkd has left of dead workers. Return 0 or -errno. */
int worker_groups_new(sd_event *event, const struct group_sources *sources, struct worker_groups **ret);
/* Free it, after all requests; workers keep their groups. NULL is fine. Return NULL. */
struct worker_groups *worker_groups_free(struct worker_groups *groups);

/* Open the group that a process is born in (proc_spawn()): beside those of the workers, so that it is not in the group of
 * ublkd, whose service can end any moment. Return a descriptor, which the caller closes; -errno: it is born in the group
 * of ublkd. */
int worker_groups_open_rest(const struct worker_groups *groups);
/* Put a process into a group of its own, unless it is there, and set exactly these limits. pidfd: of the process;
 * stays the caller's. Moving a process holds up the whole machine for some milliseconds: not on the way of a recovery.
 * `done` is called once from the loop, never from within this call. Return 0 and a request that the caller frees, in
 * `done` or before; -errno. */
int worker_groups_hold(struct worker_groups *groups, pid_t pid, int pidfd, const struct group_limits *limits,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret);
/* Put a process into a group of its own, without limits; not if many wait for that. */
void worker_groups_prepare(struct worker_groups *groups, pid_t pid, int pidfd);
/* Move no process for a second: a worker starts, a recovery may be under way. */
void worker_groups_postpone(struct worker_groups *groups);
/* Free the request; its `done` is not called any more. NULL is fine. Return NULL. */
struct group_request *group_request_free(struct group_request *request);

/* Return whether the process is in a group of its own: it is a worker of some ublkd. False if unknown. */
bool worker_groups_has(const struct worker_groups *groups, pid_t pid);
/* Open memory.events, which shows whether the OOM killer was in the group of the process. It takes nearly a millisecond,
 * so call it before the process dies and a recovery waits. Return a descriptor, which the caller closes; -errno. */
int worker_groups_open_events(const struct worker_groups *groups, pid_t pid);
/* Return whether the kernel's OOM killer has killed a process of the group: 1; 0; -errno: unknown. events: from
 * worker_groups_open_events(), or -errno of it. Before worker_groups_end(). */
int worker_groups_oom_killed(int events);
/* End what is left of a worker that the caller has seen dead, in the background, in a tenth of a second: mostly nothing
 * is left, and the recovery has the CPUs till then. And as worker_groups_postpone(). */
void worker_groups_end(struct worker_groups *groups, pid_t pid);
