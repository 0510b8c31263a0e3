/* SPDX-License-Identifier: MIT */
/* sandbox: what a worker keeps open shows no more than it needs. */
#include "targets/worker/os/sandbox.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_walls.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

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

/* Where in the machine's memory it lies: with CAP_SYS_ADMIN the kernel shows that. */
static uint64_t frame_of(uint64_t entry)
{
        return entry & ((UINT64_C(1) << 55) - 1);
}

static bool differs(const char *link, const char *before)
{
        char now[64] = "";

        return readlink(link, now, sizeof(now) - 1) > 0 && strcmp(now, before) != 0;
}

static void check_powerless(uid_t user)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

        CHECK_INT(getuid(), user);
        CHECK_INT(geteuid(), user);
        CHECK_INT(getegid(), user);
        CHECK_INT(getgroups(0, NULL), 0);
        CHECK_INT(syscall(SYS_capget, &header, data), 0);
        CHECK_INT(data[0].permitted | data[1].permitted | data[0].effective | data[1].effective, 0);
        for (unsigned long capability = 0; capability < 38; capability++)
                CHECK_INT(prctl(PR_CAPBSET_READ, capability, 0, 0, 0), 0);
        CHECK_INT(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), 0xef);
        CHECK_INT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}

/* Not under the sanitizer of addresses, whose report at the end needs /proc: so with _exit(). */
static void check_no_files(void)
{
        CHECK(access("/proc", F_OK) < 0 && access("/etc", F_OK) < 0);
        CHECK(mkdir("/directory", 0700) < 0);
        CHECK(access("../proc", F_OK) < 0);
        CHECK_INT(access("..", F_OK), kernel_refuses_paths() ? -1 : 0);
}

static int leaves_files(void)
{
        _cleanup_close_ int empty = sandbox_make_empty_namespace();
        char mounts[64] = "", cwd[PATH_MAX] = "";

        CHECK(readlink("/proc/self/ns/mnt", mounts, sizeof(mounts) - 1) > 0);
        CHECK(empty >= 0);
        CHECK_INT(fcntl(empty, F_GETFD), FD_CLOEXEC);
        CHECK(!differs("/proc/self/ns/mnt", mounts)); /* so far only another thread was in it */
        CHECK(getcwd(cwd, sizeof(cwd)) && access("/proc", F_OK) == 0);
        CHECK_INT(sandbox_leave_files(empty), 0);
        check_no_files();
        _exit(check_report());
}

/* Also without CAP_SYS_CHROOT, which setns() asks for: a service of an older version lacks it. */
static int leaves_files_by_itself(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
        _cleanup_close_ int empty = sandbox_make_empty_namespace();

        CHECK_INT(syscall(SYS_capget, &header, data), 0);
        data[0].effective &= ~(UINT32_C(1) << CAP_SYS_CHROOT);
        CHECK_INT(syscall(SYS_capset, &header, data), 0);
        CHECK_INT(setns(empty, CLONE_NEWNS), -1);
        CHECK_INT(sandbox_begin(), 0);
        CHECK_INT(sandbox_leave_files(empty), 0);
        check_no_files();
        _exit(check_report());
}

static int leaves_files_without_preparation(void)
{
        CHECK_INT(sandbox_leave_files(-1), 0);
        check_no_files();
        _exit(check_report());
}

static int confined(void)
{
        char network[64] = "";
        int way_back = -1;

        CHECK(readlink("/proc/self/ns/net", network, sizeof(network) - 1) > 0);
        CHECK_INT(sandbox_begin(), 0);
        CHECK_INT(sandbox_leave_host(&way_back), 0);
        CHECK(differs("/proc/self/ns/net", network));
        CHECK_INT(sandbox_keep_network(-ENOENT), -ENOENT);
        CHECK_INT(sandbox_keep_network(way_back), 0);
        CHECK(!differs("/proc/self/ns/net", network));
        close_fd(way_back);
        CHECK_INT(sandbox_leave_user(70000), 0);
        CHECK_INT(sandbox_drop_capabilities(), 0);
        check_powerless(70000);
        CHECK_INT(sandbox_leave_user(70000), -EPERM); /* once is for good */
        CHECK_INT(sandbox_hide_memory(), 0);
        CHECK_INT(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
        return check_report();
}

static void check_in_child(int (*body)(void))
{
        pid_t child = fork();
        int status = 0;

        if (child == 0)
                _exit(body());
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

int main(void)
{
        _cleanup_close_ int with = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
                            without = sandbox_open_unprivileged("/proc/self/pagemap", O_RDONLY);
        uint32_t before = effective();

        if (geteuid() == 0) {
                check_in_child(confined);
                check_in_child(leaves_files);
                check_in_child(leaves_files_by_itself);
                check_in_child(leaves_files_without_preparation);
        }
        memset(page, 'x', sizeof(page));
        CHECK(with >= 0 && without >= 0);
        CHECK(entry_of(without) >> 62 != 0); /* that it is there is all that is looked at */
        CHECK_INT(frame_of(entry_of(without)), 0);
        CHECK_INT(fcntl(without, F_GETFD), FD_CLOEXEC);
        CHECK_INT(effective(), before);
        CHECK_INT(sandbox_open_unprivileged("/nonexistent", O_RDONLY), -ENOENT);
        CHECK_INT(effective(), before);
        if (frame_of(entry_of(with)) == 0)
                return check_report() ? 1 : CHECK_SKIP; /* the two could not be distinguished */
        return check_report();
}
