/* SPDX-License-Identifier: MIT */
/* A control group for each worker: it takes the limits of the device, and it ends all of a worker, a process that the
 * worker has forked included. Runs on the supervisor's loop; a thread waits for the kernel.
 *
 * Nothing depends on it: a worker without a group serves as well, and no start and no recovery waits for a group. A worker
 * whose device has limits has them from its first moment on all the same: it was a spare, whose group was made before and
 * gets the limits right before its CONFIG, or it is born in a group that has them (group_start.h). */
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
 * stays the caller's. start: the uid of a device whose start group gets them, too, and is made if it is missing
 * (group_start.h); NULL: none. Moving a process holds up the whole machine for some milliseconds: not on the way of a
 * recovery. `done` is called once from the loop, never from within this call. Return 0 and a request that the caller frees,
 * in `done` or before; -errno. */
int worker_groups_hold(struct worker_groups *groups, pid_t pid, int pidfd, const char *start,
        const struct group_limits *limits, void (*done)(void *userdata, const struct group_result *result),
        void *userdata, struct group_request **ret);
/* Put a process into a group of its own, without limits. Return as worker_groups_hold() does; -EAGAIN: many wait for that. */
int worker_groups_prepare(struct worker_groups *groups, pid_t pid, int pidfd,
        void (*done)(void *userdata, const struct group_result *result), void *userdata,
        struct group_request **ret);
/* Move no process for a second: a worker starts, a recovery may be under way. */
void worker_groups_postpone(struct worker_groups *groups);
/* Free the request; its `done` is not called any more. NULL is fine. Return NULL. */
struct group_request *group_request_free(struct group_request *request);

/* Open the group of a process that has one (O_PATH), for worker_groups_bound(). Return a descriptor, which the caller
 * closes; -errno. */
int worker_groups_open_own(const struct worker_groups *groups, pid_t pid);
/* Write the bounds of these limits (group_limits_bound()) into the group, at once. Return whether any is in force. */
bool worker_groups_bound(int group, const struct group_limits *limits);
/* Open the start group of a device, for a process that is to be born in it, with the bounds of these limits. Waits for
 * the lock of all groups where the group is missing: before the first worker of the device, after a start of ublkd,
 * where its limits are new, and for a preflight. Return a descriptor, which the caller closes; -errno: there is no
 * such group, or no bound can be in force. */
int worker_groups_open_start(
        const struct worker_groups *groups, const char *uid, const struct group_limits *limits);
/* Remove the start group of a device, in the background, as soon as no process is in it. */
void worker_groups_drop_start(struct worker_groups *groups, const char *uid);

/* Return whether the process is in a group of its own: it is a worker of some ublkd. False if unknown. */
bool worker_groups_has(const struct worker_groups *groups, pid_t pid);
/* Open memory.events, which shows whether the OOM killer was in the group of the process. It takes nearly a millisecond,
 * so call it before the process dies and a recovery waits. Return a descriptor, which the caller closes; -errno. */
int worker_groups_open_events(const struct worker_groups *groups, pid_t pid);
/* The same of the start group of a device. */
int worker_groups_open_start_events(const struct worker_groups *groups, const char *uid);
/* Return how many processes of the group the kernel's OOM killer has killed, INT_MAX at most; -errno: unknown. events: from
 * a call above, or -errno of it. Before worker_groups_end(). */
int worker_groups_oom_kills(int events);
/* End what is left of a worker that the caller has seen dead, in the background, in a tenth of a second: mostly nothing
 * is left, and the recovery has the CPUs till then. And as worker_groups_postpone(). */
void worker_groups_end(struct worker_groups *groups, pid_t pid);
