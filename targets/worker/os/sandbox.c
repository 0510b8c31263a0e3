/* SPDX-License-Identifier: MIT */
/* What the worker gives up, step by step, because it does not need it to serve. */
#include "targets/worker/os/sandbox.h"
#include "targets/worker/os/queue_place.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/call_paths.h"
#include "ublkd/kernel/kernel_walls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int first_error(int one, int other)
{
        return one < 0 ? one : other;
}

static int drop_bounding_set(void)
{
        for (unsigned long capability = 0;; capability++)
                if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
                        return errno == EINVAL && capability > 0 ? 0 : -errno; /* there are no more */
}

static int lock_secure_bits(void)
{
        /* Those that every kernel knows; that which keeps capabilities is off. Each is locked as it is. */
        static const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP
                                          | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED
                                          | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

        return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 ? -errno : 0;
}

int sandbox_begin(void)
{
        int r = drop_bounding_set();

        r = first_error(r, lock_secure_bits());
        return first_error(r, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0);
}

int sandbox_leave_host(int *ret_network)
{
        int network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

        *ret_network = network < 0 ? -errno : network;
        return unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

int sandbox_keep_network(int network)
{
        if (network < 0)
                return network;
        return setns(network, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* Empty the mount namespace of the calling thread, which no other process is in. */
static int unmount_all(void)
{
        /* Any directory that is always there; what is mounted on it here is seen nowhere else. */
        static const char *const place = "/dev";

        /* A slave still learns of what the host unmounts: if the next steps fail, it at least keeps nothing
         * alive. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return -errno;
        if (mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=0755")
                < 0)
                return -errno;
        if (chdir(place) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
                return -errno;
        /* The old root, which pivot_root() has put on top of the new one. */
        if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                return -errno;
        return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                       NULL) < 0
                       ? -errno
                       : 0;
}

/* A thread can have a mount namespace, a root and a current directory of its own. Writes the descriptor or -errno. */
static void *make_empty(void *result)
{
        _cleanup_close_ int fd = -1;
        int *const ret = result;

        *ret = -EINVAL;
        if (unshare(CLONE_FS | CLONE_NEWNS) == 0)
                fd = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                *ret = -errno;
        else
                *ret = unmount_all();
        if (*ret == 0)
                *ret = TAKE_FD(fd);
        return NULL;
}

/* The C library keeps the stack of a thread that has ended for the next one that asks for no more. So this is the
 * stack of the first queue's thread (queue_threads.c), unless that must lie on the node of the queue: its last
 * pages stay where they were first written to. 128 KiB are the least on arm64 (PTHREAD_STACK_MIN). */
static size_t stack_size(void)
{
        enum { OF_A_QUEUE = 256 * 1024, OF_THIS_THREAD = 128 * 1024 };

        return queue_place_matters() ? OF_THIS_THREAD : OF_A_QUEUE;
}

int sandbox_make_empty_namespace(void)
{
        pthread_attr_t attributes;
        pthread_t thread;
        int fd = -EINVAL, r = -pthread_attr_init(&attributes);

        if (r < 0)
                return r;
        r = -pthread_attr_setstacksize(&attributes, stack_size());
        if (r == 0)
                r = -pthread_create(&thread, &attributes, make_empty, &fd);
        (void)pthread_attr_destroy(&attributes);
        if (r == 0)
                r = -pthread_join(thread, NULL);
        return r < 0 ? r : fd;
}

static int enter_empty_namespace(int empty)
{
        if (empty >= 0 && setns(empty, CLONE_NEWNS) == 0)
                return 0;
        if (unshare(CLONE_NEWNS) < 0)
                return -errno;
        return unmount_all();
}

/* An older kernel has no such thing, and the empty namespace stands alone. */
static int refuse_paths(void)
{
        if (!kernel_refuses_paths())
                return 0;
        if (syscall(SYS_fchroot, FD_FAILFS_ROOT, 0U) < 0)
                return -errno;
        return fchdir(FD_FAILFS_ROOT) < 0 ? -errno : 0;
}

int sandbox_leave_files(int empty)
{
        int r = enter_empty_namespace(empty);

        return first_error(r, refuse_paths());
}

struct capabilities {
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int get_capabilities(struct capabilities *ret)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

        return syscall(SYS_capget, &header, ret->data) < 0 ? -errno : 0;
}

static int set_capabilities(const struct capabilities *capabilities)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

        return syscall(SYS_capset, &header, capabilities->data) < 0 ? -errno : 0;
}

/* The C library's setgroups() would change all threads, and each does this for itself. The same below. */
static int leave_groups(void)
{
        return syscall(SYS_setgroups, 0UL, NULL) < 0 ? -errno : 0;
}

static int become(uint32_t user)
{
        if (user == 0)
                return 0;
        if (syscall(SYS_setresgid, user, user, user) < 0 || syscall(SYS_setresuid, user, user, user) < 0)
                return -errno;
        return 0;
}

int sandbox_leave_user(uint32_t user)
{
        int r = leave_groups();

        return first_error(r, become(user));
}

int sandbox_drop_capabilities(void)
{
        return set_capabilities(&(const struct capabilities){});
}

int sandbox_hide_memory(void)
{
        static const struct rlimit none = {};

        if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_MEMLOCK, &none) < 0)
                return -errno;
        return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

int sandbox_open_unprivileged(const char *path, int flags)
{
        struct capabilities all, none;
        _cleanup_close_ int fd = -1;
        int r = get_capabilities(&all);

        if (r < 0)
                return r;
        none = all;
        for (size_t i = 0; i < ARRAY_SIZE(none.data); i++)
                none.data[i].effective = 0;
        r = set_capabilities(&none);
        if (r < 0)
                return r;
        fd = open(path, flags | O_CLOEXEC);
        if (fd < 0)
                r = -errno;
        if (set_capabilities(&all) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}
