/* What this machine can do: facts gathered at start, for GET /host and for checks of specs. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/foreign_disk.h"

#include <stdbool.h>
#include <stdint.h>

struct host {
        char *kernel;                 /* release, as uname(2) says */
        bool ublk_available;          /* the driver answered */
        uint64_t features;            /* GET_FEATURES, bit N: kernel_feature_name(N) */
        unsigned cpus;                /* online */
        struct problem_list problems; /* reason = title */
        struct foreign_disks foreign; /* as of when they were looked for last */
};

/* Fills in the kernel release and the CPUs; the rest is the control plane's to say. 0 or -errno. */
int host_read(struct host *host);
void host_clear(struct host *host);
