/* SPDX-License-Identifier: MIT */
/* Landlock: no path, no network, no signal to others. The headers of Debian 12 know the first version only, and
 * no C library has its calls: what is needed is defined here, as <linux/landlock.h> has it. */
#include "targets/worker/os/landlock.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_walls.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444 /* the same for every CPU */
#define SYS_landlock_restrict_self 446
#endif

struct ruleset {
        uint64_t files, network, scopes;
};

/* What each version brought; none that is newer is asked for, because what it would forbid is not known. */
static const struct {
        int version;
        struct ruleset brought;
} versions[] = {
        {1,  {.files = (1 << 13) - 1}}, /* execute, read, write, list, make and remove of each kind */
        {2,  {.files = 1 << 13}      }, /* link or rename into another directory */
        {3,  {.files = 1 << 14}      }, /* truncate */
        {4,  {.network = 3}          }, /* bind and connect by TCP */
        {5,  {.files = 1 << 15}      }, /* ioctl of devices */
        {6,  {.scopes = 3}           }, /* abstract sockets, signals */
        {9,  {.files = 1 << 16}      }, /* connect to sockets by path */
        {10, {.network = 3 << 2}     }, /* bind, connect and send by UDP */
};

static struct ruleset ruleset_of(int version)
{
        struct ruleset ruleset = {};

        for (size_t i = 0; i < ARRAY_SIZE(versions) && versions[i].version <= version; i++) {
                ruleset.files |= versions[i].brought.files;
                ruleset.network |= versions[i].brought.network;
                ruleset.scopes |= versions[i].brought.scopes;
        }
        return ruleset;
}

enum { CONNECT_TCP = 1 << 1 }; /* of `network` */

/* An older kernel takes a longer structure as long as it ends with zeroes. */
int landlock_close(bool connects)
{
        int version = kernel_landlock();
        struct ruleset ruleset = ruleset_of(version);
        _cleanup_close_ int fd = -1;

        if (version <= 0)
                return version;
        if (connects)
                ruleset.network &= ~(uint64_t)CONNECT_TCP;
        fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
        if (fd < 0)
                return -errno;
        return syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
