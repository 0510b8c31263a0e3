/* SPDX-License-Identifier: MIT */
/* Processes that have a disk open without using it: udev, and the control helpers of this ublkd.
 *
 * A process is not recognised by what it can choose itself, such as its name. udev is recognised by the file of
 * its program, if it runs as root of this user namespace; a control helper by its parent and its program. The
 * names of udev's processes only narrow that down, so that "udevadm lock" of an administrator counts as a user.
 */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/file_io.h"
#include "ublkd/kernel/proc_status.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static const char *const udev_programs[] = {
        "/usr/lib/systemd/systemd-udevd",
        "/lib/systemd/systemd-udevd",
        "/usr/bin/udevadm",
        "/bin/udevadm",
        "/usr/sbin/udevd",
        "/sbin/udevd",
        NULL,
};

static bool read_program(int directory, const char *name, struct known_program *ret)
{
        struct statx info;

        if (statx(directory, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO, &info) < 0)
                return false;
        *ret = (struct known_program){
                .device = makedev(info.stx_dev_major, info.stx_dev_minor), .inode = info.stx_ino};
        return true;
}

static bool is_same_program(const struct known_program *one, const struct known_program *other)
{
        return one->inode != 0 && one->inode == other->inode && one->device == other->device;
}

void disk_bystanders_learn(struct look *look)
{
        const char *const *path = look->roots->probers ? look->roots->probers : udev_programs;
        char name[PATH_MAX];

        for (; *path && look->prober_count < KNOWN_PROGRAMS_MAX; path++)
                if (read_program(AT_FDCWD, *path, &look->probers[look->prober_count]))
                        look->prober_count++;
        snprintf(name, sizeof(name), "%s/self/exe", look->roots->proc);
        (void)read_program(AT_FDCWD, look->roots->helper ? look->roots->helper : name,
                &look->helper); /* on failure no helper is recognised */
        snprintf(name, sizeof(name), "%s/self/ns/user", look->roots->proc);
        if (look_read_link(AT_FDCWD, name, look->user_namespace, sizeof(look->user_namespace)) < 0)
                look->user_namespace[0] = '\0';
}

/* Return the number at `index` in a field of /proc/PID/status; -1 if there is none. */
static int64_t read_status(const struct process *process, const char *field, unsigned index)
{
        char text[1024];

        return read_text_at(process->directory, "status", text, sizeof(text)) < 0
                       ? -1
                       : proc_status_number(text, field, index);
}

/* Compare the user namespace, too: any user can be root in a namespace of its own. */
static bool is_root_here(const struct look *look, const struct process *process)
{
        char namespace[sizeof(look->user_namespace)];

        return look->user_namespace[0]
               && look_read_link(process->directory, "ns/user", namespace, sizeof(namespace)) > 0
               && strcmp(namespace, look->user_namespace) == 0 && read_status(process, "Uid", 1) == 0;
}

static bool has_name_of_udev(const struct process *process)
{
        static const char *const names[] = {"systemd-udevd", "(udev-worker)", "udevd", "udev-worker"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(process->comm, names[i]) == 0)
                        return true;
        return false;
}

static bool is_prober(
        const struct look *look, const struct process *process, const struct known_program *program)
{
        if (!has_name_of_udev(process) || !is_root_here(look, process))
                return false;
        for (size_t i = 0; i < look->prober_count; i++)
                if (is_same_program(program, &look->probers[i]))
                        return true;
        return false;
}

/* The process runs the helper's program and is a child of the supervisor; a process cannot choose its parent. */
static bool is_control_helper(
        const struct look *look, const struct process *process, const struct known_program *program)
{
        return look->roots->supervisor > 0 && is_same_program(program, &look->helper)
               && read_status(process, "PPid", 0) == look->roots->supervisor;
}

bool disk_bystander_is(const struct look *look, const struct process *process)
{
        struct known_program program;

        return read_program(process->directory, "exe", &program)
               && (is_prober(look, process, &program) || is_control_helper(look, process, &program));
}
