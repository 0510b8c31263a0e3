/* SPDX-License-Identifier: MIT */
/* The walls of a program that makes or checks a file system. Such a program is not ours, and makes many calls: what it
 * must not do is refused with EPERM, and all else is allowed. */
#include "ublkd/filesystems/filesystem_walls.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/call_arch.h"
#include "ublkd/kernel/kernel_walls.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NO_GROUP = 65534, CPU_SECONDS = 120, FILES_MAX = 64 };

#define MEMORY_MAX (UINT64_C(4) << 30)

/* ---- resources ---- */

static int limit_resources(void)
{
        static const struct {
                __rlimit_resource_t resource;
                rlim_t value;
        } limits[] = {
                {RLIMIT_AS,      MEMORY_MAX },
                {RLIMIT_CPU,     CPU_SECONDS},
                {RLIMIT_CORE,    0          },
                {RLIMIT_MEMLOCK, 0          },
                {RLIMIT_NOFILE,  FILES_MAX  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
                if (setrlimit(limits[i].resource, &(const struct rlimit){limits[i].value, limits[i].value})
                        < 0)
                        return -errno;
        return 0;
}

/* ---- files ---- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444 /* the same for every CPU */
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum {
        RULE_PATH_BENEATH = 1,
        FS_EXECUTE = 1 << 0,
        FS_WRITE_FILE = 1 << 1,
        FS_READ_FILE = 1 << 2,
        FS_READ_DIR = 1 << 3,
        FS_TRUNCATE = 1 << 14,
        FS_IOCTL_DEV = 1 << 15,
        SCOPES = (1 << 0) | (1 << 1), /* abstract sockets, signals */
};

struct ruleset_attr {
        uint64_t fs, net, scoped;
};

struct __attribute__((packed)) path_beneath_attr {
        uint64_t allowed;
        int32_t parent;
};

/* Return the rights over files that a version of Landlock knows. */
static uint64_t known_rights(int version)
{
        static const uint64_t rights[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
        size_t last = ARRAY_SIZE(rights) - 1;

        return rights[(size_t)version < last ? (size_t)version : last];
}

static int add_rule(int ruleset, int fd, uint64_t rights)
{
        const struct path_beneath_attr attr = {.allowed = rights, .parent = fd};

        return syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

/* A path that is not there needs no rule. */
static int allow_path(int ruleset, const char *path, uint64_t rights)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

        return fd < 0 ? 0 : add_rule(ruleset, fd, rights);
}

static int allow_paths(int ruleset, const struct filesystem_walls *walls, uint64_t known)
{
        static const char *const programs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"};
        static const char *const facts[] = {"/proc", "/sys"};
        uint64_t disk = FS_READ_FILE | FS_IOCTL_DEV | (walls->writes ? FS_WRITE_FILE | FS_TRUNCATE : 0);
        int r = add_rule(ruleset, walls->disk, disk & known);

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(programs); i++)
                r = allow_path(ruleset, programs[i], FS_EXECUTE | FS_READ_FILE | FS_READ_DIR);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(facts); i++)
                r = allow_path(ruleset, facts[i], FS_READ_FILE | FS_READ_DIR);
        if (r >= 0)
                r = allow_path(ruleset, "/dev/null", FS_READ_FILE | FS_WRITE_FILE);
        return r >= 0 ? allow_path(ruleset, "/dev/urandom", FS_READ_FILE) : r;
}

static int close_files(const struct filesystem_walls *walls)
{
        int version = kernel_landlock(), r;
        size_t size = version >= 6 ? sizeof(struct ruleset_attr) : offsetof(struct ruleset_attr, net);
        uint64_t known = known_rights(version);
        struct ruleset_attr attr = {.fs = known, .scoped = version >= 6 ? SCOPES : 0};
        _cleanup_close_ int ruleset = -1;

        if (version <= 0) /* without a capability it still owns the files of root */
                return version < 0 ? version : -EOPNOTSUPP;
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
        if (ruleset < 0)
                return -errno;
        r = allow_paths(ruleset, walls, known);
        if (r < 0)
                return r;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

/* ---- rights ---- */

/* Root that executes a program gets all capabilities that it is not barred from. */
static int bar_capabilities(void)
{
        enum {
                LOCKED = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED
                         | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE
                         | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED
        };

        for (unsigned long right = 0; prctl(PR_CAPBSET_READ, right, 0, 0, 0) >= 0; right++)
                if (prctl(PR_CAPBSET_DROP, right, 0, 0, 0) < 0)
                        return -errno;
        return prctl(PR_SET_SECUREBITS, LOCKED, 0, 0, 0) < 0 ? -errno : 0;
}

/* rights: of the first 32 capabilities. */
static int keep_capabilities(uint32_t rights)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        const struct __user_cap_data_struct kept[2] = {
                {.permitted = rights, .effective = rights}
        };

        return syscall(SYS_capset, &header, kept) < 0 ? -errno : 0;
}

/* A change of ids clears PR_SET_PDEATHSIG. */
static int leave_root(int disk, pid_t parent)
{
        struct stat node;
        int r;

        if (fstat(disk, &node) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        r = bar_capabilities();
        if (r < 0)
                return r;
        if (setgroups(0, NULL) < 0 || setresgid(NO_GROUP, NO_GROUP, NO_GROUP) < 0
                || setresuid(node.st_uid, node.st_uid, node.st_uid) < 0)
                return -errno;
        r = keep_capabilities(0);
        if (r < 0)
                return r;
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return -errno;
        return getppid() == parent ? 0 : -ESRCH;
}

/* ---- system calls ---- */

#ifdef CALLS_ARCH

static const uint16_t refused[] = {
        /* other machines and processes */
        SYS_socket,
        SYS_socketpair,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_pidfd_open,
        SYS_pidfd_getfd,
        SYS_pidfd_send_signal,
        SYS_kill,
        SYS_shmget,
        SYS_shmat,
        SYS_semget,
        SYS_msgget,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        /* ways around this filter, and much of the kernel */
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        /* namespaces and mounts */
        SYS_unshare,
        SYS_setns,
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_fsopen,
        SYS_open_tree,
        SYS_move_mount,
        SYS_mknodat,
};

/* mkfs.xfs sets the block size of the page cache of the disk (BLKBSZSET), and has it written and dropped (BLKFLSBUF). The
 * kernel wants CAP_SYS_ADMIN for both, and the program ends if it cannot. Both succeed, and do nothing: no file system
 * depends on that size, and the process that has started the program has the cache written. */

enum {
        PROLOGUE = 5,
        IOCTL_SIZE = 6,
        X32_BIT = 0x40000000,
        PROGRAM_SIZE = PROLOGUE + ARRAY_SIZE(refused) + IOCTL_SIZE + 1
};

#define LOW_WORD(argument)                                                                                   \
        (offsetof(struct seccomp_data, args[argument]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))

/* The last instruction refuses, and those above it jump there. */
static int filter_calls(void)
{
        struct sock_filter program[PROGRAM_SIZE] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS_ARCH, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                /* the same calls by other numbers */
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, PROGRAM_SIZE - PROLOGUE - 1, 0),
        };
        static const struct sock_filter pretend[IOCTL_SIZE] = {
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW_WORD(1)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BLKBSZSET, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BLKFLSBUF, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
        };
        const struct sock_fprog filter = {.len = PROGRAM_SIZE, .filter = program};
        size_t at = PROLOGUE;

        for (size_t i = 0; i < ARRAY_SIZE(refused); i++, at++)
                program[at] = (struct sock_filter)BPF_JUMP(
                        BPF_JMP | BPF_JEQ | BPF_K, refused[i], (uint8_t)(PROGRAM_SIZE - at - 2), 0);
        memcpy(program + at, pretend, sizeof(pretend));
        program[PROGRAM_SIZE - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

#else

static int filter_calls(void)
{
        return 0;
}

#endif

int filesystem_walls_raise(const struct filesystem_walls *walls)
{
        int r = leave_root(walls->disk, walls->parent);

        if (r >= 0)
                r = close_files(walls);
        if (r >= 0)
                r = limit_resources();
        return r >= 0 ? filter_calls() : r;
}

int filesystem_walls_keep_mounts(void)
{
        int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : bar_capabilities();

        return r < 0 ? r : keep_capabilities(UINT32_C(1) << CAP_SYS_ADMIN | UINT32_C(1) << CAP_DAC_OVERRIDE);
}
