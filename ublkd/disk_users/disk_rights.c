/* SPDX-License-Identifier: MIT */
/* Which processes could open the disks by rights of their own, according to the modes and owners of the nodes in /dev.
 *
 * The search of a process without rights may stop early, even if it holds thousands of files: it can hold a disk open
 * only if another process passed it the descriptor. A right that cannot be determined counts as a right.
 *
 * A program that is set-uid root counts as the user who started it: else any user could start many of them, and pass
 * each of them thousands of descriptors, all of which the search would have to read. For the same reason a capability
 * counts only if a process can reach a node of /dev with it. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/file_io.h"
#include "ublkd/kernel/proc_status.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { STATUS_SIZE = 64 * 1024 };

#define CAPABILITY(number) (UINT64_C(1) << (number))

/* Capabilities that give access to a node, directly or by what they allow (capabilities(7)). Programs that every user
 * may start have other capabilities: CAP_NET_RAW, CAP_SYS_NICE. */
static const uint64_t leading_to_nodes =
        CAPABILITY(CAP_CHOWN) | CAPABILITY(CAP_DAC_OVERRIDE) | CAPABILITY(CAP_DAC_READ_SEARCH)
        | CAPABILITY(CAP_FOWNER) | CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_SETUID)
        | CAPABILITY(CAP_SYS_MODULE) | CAPABILITY(CAP_SYS_RAWIO) | CAPABILITY(CAP_SYS_PTRACE)
        | CAPABILITY(CAP_SYS_ADMIN) | CAPABILITY(CAP_MKNOD) | CAPABILITY(CAP_SETFCAP) | CAPABILITY(CAP_BPF);

/* Return whether one of the numbers of a line is `number`. */
static bool has_number(const char *line, unsigned number)
{
        const char *end = line + strcspn(line, "\n");

        while (line < end) {
                char *after;
                unsigned long value = strtoul(line, &after, 10);

                if (after == line || after > end)
                        return false;
                if (value == number)
                        return true;
                line = after + strspn(after, " \t");
        }
        return false;
}

struct rights {
        const char *uids, *gids, *groups; /* in uids and gids, the real id comes first */
        bool is_set_uid_root;             /* only the real ids count */
        bool capable;
};

static bool has_id(const struct rights *rights, const char *ids, unsigned number)
{
        return rights->is_set_uid_root ? strtoul(ids, NULL, 10) == number : has_number(ids, number);
}

static bool is_allowed(const struct rights *rights, const struct stat *node)
{
        if (rights->capable || (node->st_mode & 06) || has_id(rights, rights->uids, 0)
                || has_id(rights, rights->uids, node->st_uid))
                return true;
        return (node->st_mode & 060)
               && (has_id(rights, rights->gids, node->st_gid) || has_number(rights->groups, node->st_gid));
}

/* Capabilities count in the user namespace of this process only: any user has all capabilities in a namespace of its
 * own. */
static bool is_capable(const struct look *look, const struct process *process, const char *permitted)
{
        char namespace[sizeof(look->user_namespace)];
        unsigned long long bits;

        if (sscanf(permitted, "%llx", &bits) != 1)
                return true;
        return (bits & leading_to_nodes) != 0
               && (!look->user_namespace[0]
                       || look_read_link(process->directory, "ns/user", namespace, sizeof(namespace)) <= 0
                       || strcmp(namespace, look->user_namespace) == 0);
}

static bool has_rights(const struct look *look, const struct process *process, const char *status)
{
        const char *permitted = proc_status_field(status, "CapPrm");
        struct rights rights = {.uids = proc_status_field(status, "Uid"),
                .gids = proc_status_field(status, "Gid"),
                .groups = proc_status_field(status, "Groups")};

        if (!rights.uids || !rights.gids || !rights.groups || !permitted || look->device_count == 0)
                return true;
        rights.is_set_uid_root = strtoul(rights.uids, NULL, 10) != 0 && has_number(rights.uids, 0);
        rights.capable = !rights.is_set_uid_root && is_capable(look, process, permitted);
        for (size_t i = 0; i < look->device_count; i++) {
                dev_t device = look->devices[i].device;
                struct stat node;
                char path[PATH_MAX];

                snprintf(path, sizeof(path), "%s/%u:%u",
                        look->roots->nodes ? look->roots->nodes : "/dev/block", major(device), minor(device));
                if (stat(path, &node) < 0 || is_allowed(&rights, &node))
                        return true;
        }
        return false;
}

bool disk_rights_has(const struct look *look, const struct process *process, unsigned *ret_uid)
{
        _cleanup_free_ char *status = malloc(STATUS_SIZE);
        const char *uids;

        *ret_uid = 0;
        if (!status || read_text_at(process->directory, "status", status, STATUS_SIZE) <= 0)
                return true;
        uids = proc_status_field(status, "Uid");
        *ret_uid = uids ? (unsigned)strtoul(uids, NULL, 10) : 0;
        return has_rights(look, process, status);
}
