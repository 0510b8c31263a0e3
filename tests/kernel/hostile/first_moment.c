/* SPDX-License-Identifier: MIT */
/* What a worker that its store takes over can do first of all: eat memory, as soon as it knows its device and before its
 * supervisor sees anything of it. The test makes a file $UBLKD_HOSTILE_DIR/orders, which all workers map at their start, so a
 * spare takes orders, too. */
#include "ublkd/proto/worker_msg.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BITE = 1 << 20, BITES_MAX = 512 /* that the guest survives */, NAME_SIZE = 64 };

/* tests/kernel/harness/hostile.py has the same layout. */
struct orders {
        char eater[NAME_SIZE];  /* the name of the device whose workers eat */
        _Atomic uint32_t eaten; /* bites, the most of any worker */
        _Atomic uint32_t meals; /* workers that have begun to eat */
};

static struct orders *orders;

int __real_worker_msg_receive_fds(int fd, struct worker_msg *msg, int *fds);
int __wrap_worker_msg_receive_fds(int fd, struct worker_msg *msg, int *fds);

__attribute__((constructor)) static void map_orders(void)
{
        const char *directory = getenv("UBLKD_HOSTILE_DIR");
        char path[PATH_MAX];
        int fd;

        snprintf(path, sizeof(path), "%s/orders", directory ? directory : "");
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return;
        orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (orders == MAP_FAILED)
                abort();
        close(fd);
}

static void eat(void)
{
        atomic_fetch_add(&orders->meals, 1);
        for (uint32_t eaten = 1; eaten <= BITES_MAX; eaten++) {
                char *bite = mmap(NULL, BITE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

                if (bite == MAP_FAILED)
                        return;
                memset(bite, 'x', BITE);
                if (eaten > atomic_load(&orders->eaten))
                        atomic_store(&orders->eaten, eaten);
        }
}

int __wrap_worker_msg_receive_fds(int fd, struct worker_msg *msg, int *fds)
{
        int r = __real_worker_msg_receive_fds(fd, msg, fds);

        if (r > 0 && orders && msg->type == WORKER_MSG_CONFIG && strcmp(msg->config.name, orders->eater) == 0)
                eat();
        return r;
}
