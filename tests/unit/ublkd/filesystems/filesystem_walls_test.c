/* SPDX-License-Identifier: MIT */
/* filesystem_walls: what a program behind them cannot do, asked of the kernel. Needs root. */
#include "ublkd/filesystems/filesystem_walls.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_walls.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static char disk_path[] = "/tmp/filesystem-walls-disk-XXXXXX",
            other_path[] = "/tmp/filesystem-walls-other-XXXXXX";

enum { PASSED = 0, NOT_RAISED = 200 };

static int reopen(int disk, int flags)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", disk);
        return open(path, flags | O_CLOEXEC);
}

/* Each returns 0, or the number of the line. */
static int has_its_disk(int disk)
{
        return reopen(disk, O_RDWR) >= 0 ? PASSED : __LINE__;
}

static int cannot_write_its_disk(int disk)
{
        return reopen(disk, O_RDWR) < 0 && errno == EACCES ? PASSED : __LINE__;
}

static int has_no_other_file(int disk _unused_)
{
        if (open(other_path, O_RDONLY) >= 0 || errno != EACCES)
                return __LINE__;
        if (open("/tmp/filesystem-walls-new", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
                return __LINE__;
        return open("/etc/passwd", O_RDONLY) >= 0 && open("/etc/passwd", O_RDWR) < 0 ? PASSED : __LINE__;
}

static int has_no_socket(int disk _unused_)
{
        return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM && socket(AF_INET, SOCK_STREAM, 0) < 0
                               && errno == EPERM
                       ? PASSED
                       : __LINE__;
}

static int has_no_other_process(int disk _unused_)
{
        return kill(getppid(), 0) < 0 && errno == EPERM && syscall(SYS_pidfd_open, getppid(), 0) < 0
                               && errno == EPERM
                       ? PASSED
                       : __LINE__;
}

static int has_no_namespace(int disk _unused_)
{
        return unshare(CLONE_NEWUSER) < 0 && errno == EPERM ? PASSED : __LINE__;
}

static int has_no_capability(int disk _unused_)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &header, data) < 0)
                return __LINE__;
        for (int i = 0; i < 2; i++)
                if (data[i].permitted || data[i].effective || data[i].inheritable)
                        return __LINE__;
        return prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN) == 0 && prctl(PR_CAPBSET_READ, CAP_DAC_OVERRIDE) == 0
                               && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
                       ? PASSED
                       : __LINE__;
}

/* mkfs.xfs ends if it cannot do these; the file of this test cannot have them done. */
static int changes_the_page_cache_in_vain(int disk)
{
        int size = 4096;

        return ioctl(disk, BLKBSZSET, &size) == 0 && ioctl(disk, BLKFLSBUF, 0) == 0
                               && ioctl(disk, BLKBSZGET, &size) < 0
                       ? PASSED
                       : __LINE__;
}

/* Root that executes a program would have all capabilities again. */
static int has_none_in_its_programs(int disk _unused_)
{
        static char *const arguments[] = {(char *)"sh", (char *)"-c",
                (char *)"! grep -E '^Cap(Prm|Eff|Bnd|Amb):' /proc/self/status | grep -q '[1-9a-f]$'", NULL};

        (void)execv("/bin/sh", arguments);
        return __LINE__;
}

static void check_behind_walls(int (*test)(int disk), bool writes, uid_t owner)
{
        _cleanup_close_ int disk = -1;
        int status = 0;
        pid_t parent = getpid(), child;

        CHECK_INT(chown(disk_path, owner, 0), 0);
        disk = open(disk_path, O_RDONLY | O_CLOEXEC);
        child = fork();
        if (child == 0)
                _exit(filesystem_walls_raise(&(const struct filesystem_walls){
                              .disk = disk, .writes = writes, .parent = parent})
                                        < 0
                                ? NOT_RAISED
                                : test(disk) % NOT_RAISED);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        if (!CHECK_INT(WEXITSTATUS(status), PASSED))
                fprintf(stderr, "the line, modulo %d, with owner %u\n", NOT_RAISED, (unsigned)owner);
}

static void test_no_landlock(void)
{
        int status = 0;
        pid_t parent = getpid(), child = fork();

        if (child == 0)
                _exit(filesystem_walls_raise(
                              &(const struct filesystem_walls){.disk = STDIN_FILENO, .parent = parent})
                                        == -EOPNOTSUPP
                                ? 0
                                : 1);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

/* The process that began it has ended before the program looked for it. */
static void test_a_parent_that_has_ended(void)
{
        int status = 0;
        pid_t other = fork(), child;

        if (other == 0)
                _exit(0);
        CHECK_INT(waitpid(other, NULL, 0), other);
        child = fork();
        if (child == 0)
                _exit(filesystem_walls_raise(
                              &(const struct filesystem_walls){.disk = STDIN_FILENO, .parent = other})
                                        == -ESRCH
                                ? 0
                                : 1);
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
}

int main(void)
{
        static int (*const tests[])(int disk) = {has_its_disk, has_no_other_file, has_no_socket,
                has_no_other_process, has_no_namespace, has_no_capability, changes_the_page_cache_in_vain,
                has_none_in_its_programs};
        static const uid_t owners[] = {0, 1000};

        if (getuid() != 0)
                return CHECK_SKIP;
        if (kernel_landlock() == 0) {
                test_no_landlock();
                return check_report();
        }
        close_fd(mkstemp(disk_path));
        close_fd(mkstemp(other_path));
        for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
                for (size_t j = 0; j < ARRAY_SIZE(owners); j++)
                        check_behind_walls(tests[i], true, owners[j]);
        check_behind_walls(cannot_write_its_disk, false, 0);
        test_a_parent_that_has_ended();
        (void)unlink(disk_path);
        (void)unlink(other_path);
        return check_report();
}
