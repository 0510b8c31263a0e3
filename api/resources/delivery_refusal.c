/* SPDX-License-Identifier: MIT */
/* The answer to a delivery that has failed: a reason for programs, and one sentence with what to do. */
#include "api/resources/delivery_refusal.h"
#include "api/http/respond.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ANY = 0 };

struct refusal {
        enum delivery_outcome outcome;
        int error; /* ANY: each that is not in a row of its own */
        const char *reason, *detail;
};

/* The first row that fits counts. */
/* clang-format off */
static const struct refusal refusals[] = {
        {DELIVERY_AT_HOME, ANY, "AtHome",
         "The process that is to get it is on the host itself, where it is: open status.node of the device, or bind its status.mount."},
        {DELIVERY_WITHOUT_USERS, ANY, "NoUserNamespace",
         "The process has no user namespace of its own, so its root opens every node, and a device control group keeps "
         "it from the disk; start a container with --device ublkd.io/disk=NAME, or with --device and the path of the "
         "disk. In the unit of a service, set BindPaths= and DeviceAllow= of status.node, or BindPaths= of status.mount."},
        {DELIVERY_ENDED, ANY, "ClientEnded",
         "The process that is to get it has ended; keep the client, or the process that \"pid\" names, until the answer comes."},
        {DELIVERY_SHARED, ANY, "SharedMount",
         "The mount at the path is shared with other mount namespaces; choose a path on a mount that is "
         "private to the container."},
        {DELIVERY_TAKEN_BACK, ANY, "TakenBack",
         "The disk was stopped or removed meanwhile, and its node is gone; wait until the disk is Live, "
         "and repeat the request."},
        {DELIVERY_NO_MOUNT, -ENXIO, "NotMounted",
         "The file system of the device is not mounted by ublkd any more; mount it, and repeat the request."},
        {DELIVERY_NO_MOUNT, -ESTALE, "NotMounted",
         "What is mounted there is not the file system of the disk; unmount it, mount the device again, and repeat the request."},
        {DELIVERY_NO_MOUNT, -ENOENT, "NotMounted",
         "The disk was stopped or removed meanwhile; wait until it is Live, mount it, and repeat the request."},
        {DELIVERY_NO_MOUNT, ANY, "SystemError",
         "ublkd cannot look at the mount of the file system, or note beside it that the user has it; see whether /run is "
         "full, and repeat the request."},
        {DELIVERY_NOT_CLONED, -EINVAL, "NoTranslation",
         "The kernel does not translate the ids of this file system for containers; use ext4, or xfs of a kernel that "
         "does."},
        {DELIVERY_LATE, ANY, "Late",
         "It was not delivered in time: a file system on the path does not answer; see whether it "
         "is there, and repeat the request with another path."},
        {DELIVERY_NO_FILE, -EROFS, "ReadOnly",
         "The file system at the path is read-only in the container; choose a path on another one, such as "
         "a tmpfs of the container."},
        {DELIVERY_NO_FILE, -EEXIST, "Occupied",
         "Something is at the path already; choose a path where nothing is; for a file system, an empty directory of "
         "the user of the process will do."},
        {DELIVERY_NO_FILE, -ENOENT, "NoDirectory",
         "The directory of the path does not exist in the container; create it, or choose another path."},
        {DELIVERY_NO_FILE, -ENOTDIR, "NoDirectory",
         "A part of the path is not a directory in the container; choose another path."},
        {DELIVERY_NO_FILE, -ELOOP, "LinkInPath",
         "A symbolic link is in the path; give the path to which it leads."},
        {DELIVERY_NO_FILE, -EACCES, "NoRight",
         "The process may not create files at the path, or a security module forbids it to ublkd; choose a path to "
         "which the process may write, ask as root of the container, or look for a denial in the log of the kernel."},
        {DELIVERY_NO_FILE, -EPERM, "NoSockets",
         "The file system at the path takes no sockets, or forbids changes; choose a path on another one, "
         "such as a tmpfs of the container."},
        {DELIVERY_NOT_MOUNTED, -EPERM, "NotOwner",
         "The user namespace of the process does not own the mounts of its container; ask from outside of "
         "the sandbox in the container."},
        {DELIVERY_NOT_MOUNTED, -EACCES, "SecurityModule",
         "A security module of the host forbids the mount; look for the denial in the log of the kernel, "
         "and allow ublkd to mount in containers."},
        {DELIVERY_NOT_MOUNTED, -ENOSPC, "TooManyMounts",
         "The container has as many mounts as the kernel allows; unmount some, or raise fs.mount-max "
         "(sysctl)."},
        {DELIVERY_NOT_ENTERED, -EACCES, "SecurityModule",
         "A security module of the host forbids to enter the container; look for the denial in the log of "
         "the kernel, and allow ublkd to enter it."},
        {DELIVERY_NOT_ENTERED, -EPERM, "SecurityModule",
         "The host forbids ublkd to enter the container; check that the service has CAP_SYS_ADMIN, "
         "CAP_SYS_CHROOT and CAP_SYS_PTRACE, and look for a denial in the log of the kernel."},
};
/* clang-format on */

static const char *const failures[_DELIVERY_OUTCOME_MAX] = {
        [DELIVERY_NOT_ENTERED] = "Entering the container failed",
        [DELIVERY_NO_FILE] = "Creating the file or directory at the path failed",
        [DELIVERY_NOT_CLONED] = "Copying the mount for the container failed",
        [DELIVERY_NOT_MOUNTED] = "The mount at the path failed",
};

static const struct refusal *find(const struct delivery_report *report)
{
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
                if (refusals[i].outcome == report->outcome
                        && (refusals[i].error == ANY || refusals[i].error == report->error))
                        return &refusals[i];
        return NULL;
}

void reply_delivery_refused(struct request *request, const struct delivery_report *report)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct refusal *refusal = find(report);
        const char *failure = failures[report->outcome];

        if (refusal)
                (void)problem_add(&problems, EINVAL, "/path", refusal->reason, "%s", refusal->detail);
        else
                (void)problem_add(&problems, EINVAL, "/path", "SystemError", "%s: %s; choose another path.",
                        failure ? failure : "The delivery failed", strerror(-report->error));
        reply_problems(request, report->outcome == DELIVERY_LATE ? PROBLEM_TIMEOUT : PROBLEM_NOT_POSSIBLE_NOW,
                &problems);
}
