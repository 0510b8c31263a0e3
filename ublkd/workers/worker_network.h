/* SPDX-License-Identifier: MIT */
/* The network namespaces of workers, which the kernel is not to take apart while their disks are recovered.
 *
 * The namespace of a worker ends with its last reference. The kernel then takes it apart in a worker thread of its own
 * (net/core/net_namespace.c, cleanup_net()), for milliseconds, and that is just when the next worker starts. So ublkd
 * has a reference to the namespace of each worker that serves, and drops it when all is calm again. */
#pragma once

enum { WORKER_NETWORKS_MAX = 64 };

/* Of workers that are gone. All zeroes: none. */
struct worker_networks {
        int fds[WORKER_NETWORKS_MAX];
        unsigned count;
};

/* Return a descriptor of the network namespace of a process, which the caller owns. -ENOTTY: the kernel has no such
 * call (before Linux 6.11); -ESRCH: the process is dead; -EACCES: it may not be seen; other -errno. */
int worker_network_open(int pidfd);

/* Keep a descriptor until worker_networks_drop(); one too many is closed at once, so that a crash of all workers keeps
 * no more than 64 namespaces. fd: owned from now on; < 0: nothing. */
void worker_networks_keep(struct worker_networks *networks, int fd);
/* Close all that are kept. */
void worker_networks_drop(struct worker_networks *networks);
