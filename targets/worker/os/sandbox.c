/* SPDX-License-Identifier: MIT */
/* What the worker gives up, step by step, because it does not need it to serve. */
#include "targets/worker/os/sandbox.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int sandbox_begin(void)
{
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

void sandbox_leave_files(void)
{
        /* Any directory that is always there; what is mounted on it here is seen nowhere else. */
        static const char *const place = "/dev";

#if defined(__SANITIZE_ADDRESS__)
        return; /* its report of leaks at exit needs /proc */
#endif
        if (unshare(CLONE_NEWNS) < 0)
                return;
        /* A slave still hears of what the host unmounts: if the next steps fail, it at least keeps nothing
         * alive. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return;
        if (mount("none", place, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=0755")
                < 0)
                return;
        if (chdir(place) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
                return;
        (void)umount2(".", MNT_DETACH); /* the old root, which pivot_root() has put on top of the new one */
        if (chdir("/") < 0)
                return;
        (void)mount(
                NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
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

int sandbox_drop_capabilities(void)
{
        return set_capabilities(&(const struct capabilities){});
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

void sandbox_mark_io_thread(void)
{
        (void)prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
}
