/* SPDX-License-Identifier: MIT */
/* sandbox: what a worker keeps open shows no more than it needs. */
#include "targets/worker/os/sandbox.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>

static char page[8192] __attribute__((aligned(4096)));

static uint64_t entry_of(int pagemap)
{
        uint64_t entry = 0;
        off_t at = (off_t)((uintptr_t)page / (size_t)sysconf(_SC_PAGESIZE) * sizeof(entry));

        CHECK_INT(pread(pagemap, &entry, sizeof(entry), at), sizeof(entry));
        return entry;
}

static uint32_t effective(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

        CHECK_INT(syscall(SYS_capget, &header, data), 0);
        return data[0].effective;
}

/* Where in the machine's memory it lies: with CAP_SYS_ADMIN the kernel tells. */
static uint64_t frame_of(uint64_t entry)
{
        return entry & ((UINT64_C(1) << 55) - 1);
}

int main(void)
{
        _cleanup_close_ int with = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                            without = sandbox_open_unprivileged("/proc/self/pagemap", O_RDONLY);
        uint32_t before = effective();

        memset(page, 'x', sizeof(page));
        CHECK(with >= 0 && without >= 0);
        CHECK(entry_of(without) >> 62 != 0); /* that it is there is all that is looked at */
        CHECK_INT(frame_of(entry_of(without)), 0);
        CHECK_INT(fcntl(without, F_GETFD), FD_CLOEXEC);
        CHECK_INT(effective(), before);
        CHECK_INT(sandbox_open_unprivileged("/nonexistent", O_RDONLY), -ENOENT);
        CHECK_INT(effective(), before);
        if (frame_of(entry_of(with)) == 0)
                return check_report() ? 1 : CHECK_SKIP; /* the two could not be told apart */
        return check_report();
}
