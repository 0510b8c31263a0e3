/* SPDX-License-Identifier: MIT */
/* Why the control plane cannot be had on this machine, in words. */
#include "ublkd/driver/ublk_ctl_check.h"

#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* These have "ublk: implement NUMA-aware memory allocation" without "ublk: reorder tag_set initialization
 * before queue allocation": ADD_DEV follows a null pointer in the kernel and never comes back. */
static const struct {
        const char *version;
        const char *flavour;           /* the end of the release; NULL: any build of that version */
        unsigned build_min, build_max; /* the number after the version; unused without a flavour */
} known_bad[] = {
        {.version = "6.18.4", .flavour = NULL,    .build_min = 0,    .build_max = 0   },
        {.version = "6.18.5", .flavour = NULL,    .build_min = 0,    .build_max = 0   },
        {.version = "6.17.0", .flavour = "azure", .build_min = 1015, .build_max = 1018},
        {.version = "6.17.0", .flavour = "aws",   .build_min = 1017, .build_max = 1017},
};

/* What follows `version` in `release`, or NULL when it is another version ("6.18.40" is not "6.18.4"). */
static const char *after_version(const char *release, const char *version)
{
        size_t length = strlen(version);

        if (strncmp(release, version, length) != 0 || (release[length] >= '0' && release[length] <= '9'))
                return NULL;
        return release + length;
}

bool ctl_kernel_is_known_bad(const char *release)
{
        for (size_t i = 0; i < ARRAY_SIZE(known_bad); i++) {
                const char *rest = after_version(release, known_bad[i].version);
                char flavour[32];
                unsigned build;

                if (!rest)
                        continue;
                if (!known_bad[i].flavour)
                        return *rest != '.'; /* "6.18.4.1" would be another version */
                if (sscanf(rest, "-%u-%31s", &build, flavour) == 2
                        && strcmp(flavour, known_bad[i].flavour) == 0 && build >= known_bad[i].build_min
                        && build <= known_bad[i].build_max)
                        return true;
        }
        return false;
}

int ctl_explain_known_bad(const char *release, struct problem_list *problems)
{
        (void)problem_add(problems, EOPNOTSUPP, "", "KernelKnownBad",
                "Linux %s crashes when a ublk device is added; install another kernel (6.18.6 has the fix)",
                release);
        return -EOPNOTSUPP;
}

/* 1: a line of the file names the module; 0 if none does; -errno if there is no such file. */
static int list_has_module(const char *root, const char *release, const char *list)
{
        char path[PATH_MAX], line[1024];
        FILE *file;
        int found = 0;

        if (snprintf(path, sizeof(path), "%s/lib/modules/%s/%s", root, release, list) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        file = fopen(path, "re");
        if (!file)
                return -errno;
        while (!found && fgets(line, sizeof(line), file)) {
                line[strcspn(line, ":\n")] = '\0'; /* after the colon: what it depends on */
                found = strstr(line, "/ublk_drv.ko") != NULL;
        }
        (void)fclose(file);
        return found;
}

enum ctl_module ctl_find_module(const char *root, const char *release)
{
        char path[PATH_MAX];
        int loadable;

        snprintf(path, sizeof(path), "%s/sys/module/ublk_drv", root);
        if (access(path, F_OK) == 0 || list_has_module(root, release, "modules.builtin") > 0)
                return CTL_MODULE_LOADED;
        loadable = list_has_module(root, release, "modules.dep");
        if (loadable < 0)
                return CTL_MODULE_UNKNOWN;
        return loadable ? CTL_MODULE_PRESENT : CTL_MODULE_ABSENT;
}

static int explain_no_driver(enum ctl_module module, const char *release, struct problem_list *problems)
{
        /* clang-format off */
        static const struct {
                const char *reason;
                const char *before, *after; /* the kernel's release */
        } words[_CTL_MODULE_MAX] = {
                [CTL_MODULE_LOADED] = {
                        .reason = "DriverNodeMissing",
                        .before = "The ublk driver is in Linux ",
                        .after = " but there is no /dev/ublk-control; is /dev a devtmpfs?",
                },
                [CTL_MODULE_PRESENT] = {
                        .reason = "DriverNotLoaded",
                        .before = "The ublk driver is not loaded into Linux ",
                        .after = "; load it with \"modprobe ublk_drv\"",
                },
                [CTL_MODULE_ABSENT] = {
                        .reason = "DriverMissing",
                        .before = "There is no ublk driver among the modules of Linux ",
                        .after = "; install a kernel that has it (CONFIG_BLK_DEV_UBLK)",
                },
                [CTL_MODULE_UNKNOWN] = {
                        .reason = "DriverMissing",
                        .before = "The ublk driver is not there, nor are any modules of Linux ",
                        .after = "; install a kernel that has it (CONFIG_BLK_DEV_UBLK), with its modules",
                },
        };
        /* clang-format on */

        (void)problem_add(problems, ENOENT, "", words[module].reason, "%s%s%s", words[module].before, release,
                words[module].after);
        return -ENOENT;
}

int ctl_explain_open(int error, enum ctl_module module, const char *release, struct problem_list *problems)
{
        switch (error) {
        case ENOENT:
        case ENODEV:
        case ENXIO:
                return explain_no_driver(module, release, problems);
        case EACCES:
        case EPERM:
                (void)problem_add(problems, error, "", "NotPermitted",
                        "/dev/ublk-control may not be opened: %s; start ublkd as root (CAP_SYS_ADMIN), and "
                        "allow the device in its container or unit",
                        strerror(error));
                return -error;
        default:
                (void)problem_add(problems, error, "", "ControlUnusable",
                        "/dev/ublk-control cannot be opened: %s", strerror(error));
                return -error;
        }
}

int ctl_io_uring_disabled(void)
{
        uint64_t value;

        return read_number_at(AT_FDCWD, "/proc/sys/kernel/io_uring_disabled", &value) < 0 ? -1 : (int)value;
}

int ctl_explain_ring(int error, int io_uring_disabled, struct problem_list *problems)
{
        if (error == ENOSYS)
                (void)problem_add(problems, error, "", "IoUringMissing",
                        "This kernel has no io_uring, or a system call filter hides it; ublk cannot work "
                        "without");
        else if (error == EPERM && io_uring_disabled > 0)
                (void)problem_add(problems, error, "", "IoUringDisabled",
                        "io_uring is switched off here; switch it on with \"sysctl "
                        "kernel.io_uring_disabled=0\"");
        else if (error == EPERM || error == EACCES)
                (void)problem_add(problems, error, "", "IoUringNotPermitted",
                        "io_uring may not be used: %s; a system call filter or a security module forbids it",
                        strerror(error));
        else if (error == EINVAL)
                (void)problem_add(problems, error, "", "KernelTooOld",
                        "This kernel's io_uring cannot pass commands to a driver; ublkd needs Linux 6.5 or "
                        "later");
        else
                (void)problem_add(problems, error, "", "IoUringUnusable", "io_uring cannot be set up: %s",
                        strerror(error));
        return -error;
}

int ctl_explain_features(int error, const char *release, struct problem_list *problems)
{
        if (error == EPERM || error == EACCES)
                (void)problem_add(problems, error, "", "NotPermitted",
                        "The ublk driver refuses control commands: %s; start ublkd as root (CAP_SYS_ADMIN)",
                        strerror(error));
        else
                (void)problem_add(problems, error, "", "KernelTooOld",
                        "The ublk driver of Linux %s does not report its features; ublkd needs Linux 6.5 or "
                        "later",
                        release);
        return -error;
}

int ctl_explain_helper(int error, const char *helper_path, struct problem_list *problems)
{
        if (error == ETIMEDOUT)
                (void)problem_add(problems, error, "", "ControlHangs",
                        "The ublk driver does not answer; look for a crash in the kernel's log, and reboot "
                        "if there is one");
        else
                (void)problem_add(problems, error, "", "HelperFailed",
                        "The control helper %s cannot be run: %s", helper_path, strerror(error));
        return -error;
}
