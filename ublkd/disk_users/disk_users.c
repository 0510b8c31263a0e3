/* SPDX-License-Identifier: MIT */
/* Finds the users of disks in /proc and /sys, in one pass for all disks.
 *
 * The answer is complete, or an error: if something could not be read, a disk without found users may have some.
 * Every thread is read, for it may have descriptors and a mount namespace of its own. Mappings take the longest
 * to read: they come last, and only while a disk without a found user is left. A process that has too much to be read at
 * once, or that hangs, does not keep the others from being read (disk_late.c), nor do many that have much
 * (look_first_share()). */
#include "ublkd/disk_users/disk_users.h"

#include "ublkd/disk_users/disk_look.h"
#include "ublkd/disks/disk_name.h"
#include "ublkd/disk_users/disk_stack.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"
#include "ublkd/values/quantity.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { TIME_USEC = 7 * 1000 * 1000 };

/* ---- processes ---- */

static void note_place(const struct look *look, const struct process *process)
{
        struct disk_users_place *place = look->roots->place;

        if (!place)
                return;
        snprintf(place->comm, sizeof(place->comm), "%s", process->comm);
        place->pid = atoi(process->pid);
}

/* Return whether a thread has a program: not a kernel thread, and not exited. */
static bool has_program(int directory)
{
        char byte;

        return readlinkat(directory, "exe", &byte, 1) >= 0 || errno != ENOENT;
}

/* The directory "task" has a link for each thread, and two more. */
static bool has_one_thread(int directory)
{
        struct stat info;

        return fstatat(directory, "task", &info, 0) >= 0 && info.st_nlink == 3;
}

static bool shares_files(const struct look *look, const char *pid, const char *tid)
{
        pid_t one = atoi(pid), other = atoi(tid);

        return look->roots->shares_files ? look->roots->shares_files(one, other)
                                         : syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) == 0;
}

/* A thread that exits has no program any more, and for a moment still its descriptors (do_exit(), kernel/exit.c): it does
 * not use them, and would look like a bystander. */
static int look_at_descriptors(struct look *look, const struct process *process)
{
        bool uses_none = disk_bystander_is(look, process) || !has_program(process->directory);

        return uses_none ? 0 : disk_openers_add(look, process);
}

static int look_at_leader(struct look *look, const struct process *process)
{
        int r = disk_mounts_add(look, process);

        return r < 0 ? r : look_at_descriptors(look, process);
}

/* Read a thread other than the first one. */
static int look_at_thread(struct look *look, int proc, const struct process *process, const char *tid)
{
        _cleanup_close_ int directory = openat(proc, tid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct process thread = {.pid = process->pid, .tid = tid, .directory = directory};
        int r;

        if (directory < 0) {
                look_note_gap(look, process, "threads", -errno);
                return 0;
        }
        memcpy(thread.comm, process->comm, sizeof(thread.comm));
        r = disk_mounts_add(look, &thread);
        /* A first thread that has a program still had one when its descriptors were read. */
        if (r < 0 || (shares_files(look, process->pid, tid) && has_program(process->directory)))
                return r;
        return look_at_descriptors(look, &thread);
}

static int look_at_threads(struct look *look, int proc, const struct process *process)
{
        _cleanup_closedir_ DIR *dir = look_open_directory(process->directory, "task");
        const struct dirent *entry;
        int r = 0;

        if (!dir)
                look_note_gap(look, process, "threads", -errno);
        while (dir && r >= 0) {
                errno = 0;
                entry = readdir(dir);
                if (!entry) {
                        if (errno)
                                look_note_gap(look, process, "threads", -errno);
                        break;
                }
                if (is_number(entry->d_name) && strcmp(entry->d_name, process->pid) != 0)
                        r = look_at_thread(look, proc, process, entry->d_name);
        }
        return r;
}

/* First pass: mounts and descriptors. */
static int look_at_process(struct look *look, int proc, const struct process *process)
{
        int r = look_at_leader(look, process);

        if (r < 0 || has_one_thread(process->directory))
                return r;
        return look_at_threads(look, proc, process);
}

/* Second pass: mappings. If the first thread has exited, any other thread has the same memory. */
static int look_at_memory(struct look *look, int proc, const struct process *process)
{
        _cleanup_closedir_ DIR *dir = NULL;
        const struct dirent *entry;

        if (has_program(process->directory))
                return disk_mappers_add(look, process);
        dir = look_open_directory(process->directory, "task");
        if (!dir)
                look_note_gap(look, process, "threads", -errno);
        while (dir && (entry = readdir(dir))) {
                _cleanup_close_ int directory =
                        is_number(entry->d_name)
                                ? openat(proc, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                : -1;
                struct process thread = *process;

                thread.directory = directory;
                if (directory >= 0 && has_program(directory))
                        return disk_mappers_add(look, &thread);
        }
        return 0;
}

typedef int (*look_pass)(struct look *look, int proc, const struct process *process);

static int visit(struct look *look, int proc, const char *pid, look_pass pass)
{
        _cleanup_close_ int directory = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct process process = {.pid = pid, .tid = pid, .directory = directory};

        look->saw_init = look->saw_init || strcmp(pid, "1") == 0;
        if (directory < 0) {
                look_note_gap(look, NULL, "a process of /proc cannot be looked at", -errno);
                return 0;
        }
        if (!has_program(directory) && has_one_thread(directory))
                return 0;
        look_read_comm(&process);
        note_place(look, &process);
        return pass(look, proc, &process);
}

static int visit_all(struct look *look, look_pass pass)
{
        _cleanup_closedir_ DIR *dir = opendir(look->roots->proc);
        int r = dir ? 0 : -errno;

        while (r >= 0) {
                const struct dirent *entry;

                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return -errno;
                if (is_number(entry->d_name))
                        r = visit(look, dirfd(dir), entry->d_name, pass);
        }
        return r;
}

/* ---- the disks ---- */

static int add_device(struct look *look, int number, const char *folder)
{
        struct disk_device *grown = realloc(look->devices, (look->device_count + 1) * sizeof(*grown));
        char path[PATH_MAX];
        dev_t device;
        int n = snprintf(path, sizeof(path), "%s/dev", folder), r;

        if (!grown)
                return -ENOMEM;
        look->devices = grown;
        r = n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : read_device_at(AT_FDCWD, path, &device);
        if (r < 0)
                return look_is_gone(r) || r == -ENODEV ? 0 : r; /* the disk was stopped: its name counts */
        look->devices[look->device_count++] = (struct disk_device){.device = device, .number = number};
        return 0;
}

/* Read the devices of a disk and of its partitions. */
static int learn_devices(struct look *look, int number)
{
        _cleanup_closedir_ DIR *dir = NULL;
        char folder[PATH_MAX / 2], part[PATH_MAX];
        const struct dirent *entry;
        int r;

        snprintf(folder, sizeof(folder), "%s/block/ublkb%d", look->roots->sys, number);
        r = add_device(look, number, folder);
        dir = r < 0 ? NULL : opendir(folder);
        if (r >= 0 && !dir)
                return look_is_gone(-errno) ? 0 : -errno;
        while (r >= 0 && (entry = readdir(dir))) {
                if (disk_name_number(entry->d_name) != number)
                        continue;
                snprintf(part, sizeof(part), "%s/%s", folder, entry->d_name);
                r = add_device(look, number, part);
        }
        return r;
}

static int add_stacked(void *userdata, int number, const char *phrase)
{
        struct disk_users *disk = look_find_disk(userdata, number);

        return disk ? look_add_user(disk, DISK_USER_UNKNOWN, "%s", phrase) : 0;
}

/* Add a file system, unless its mount was added already. */
static int add_file_system(void *userdata, int number, const char *phrase)
{
        struct disk_users *disk = look_find_disk(userdata, number);

        return disk && !disk->mounted ? look_add_user(disk, DISK_USER_UNKNOWN, "%s", phrase) : 0;
}

/* The device that lies on a disk says all; ublkd is named where its worker was not found. */
static int add_ublkd(const struct look *look, struct disk_users *disk)
{
        if (!disk->by_ublkd || disk->kinds & DISK_USER_DEVICE)
                return 0;
        disk->kinds |= DISK_USER_DEVICE;
        return look_add_user(disk, DISK_USER_UNKNOWN,
                "ublkd itself (process %d), for a device that lies on it", (int)look->roots->supervisor);
}

/* After add_ublkd(). Alone it keeps the descriptor of another service. */
static int add_keeper(const struct look *look, struct disk_users *disk)
{
        if (!disk->by_keeper || disk->kinds & DISK_USER_DEVICE)
                return 0;
        disk->by_keeper = false; /* once */
        disk->kinds |= DISK_USER_PROCESS;
        return look_add_user(
                disk, DISK_USER_UNKNOWN, "process %d (%s)", (int)look->roots->keeper, disk->keeper_comm);
}

/* Add the processes that are an item only where no other item is. After a pass over all processes. */
static int add_managers(const struct look *look)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < look->disk_count; i++) {
                r = add_ublkd(look, &look->disks[i]);
                if (r >= 0)
                        r = add_keeper(look, &look->disks[i]);
        }
        return r;
}

static bool has_every_disk_a_user(const struct look *look)
{
        for (size_t i = 0; i < look->disk_count; i++)
                if (look->disks[i].count == 0)
                        return false;
        return true;
}

/* Note a failure other than ENOMEM as a gap, and continue. Return 0 or -ENOMEM. */
static int go_on(struct look *look, int r, const char *what)
{
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, NULL, what, look_is_gone(r) ? -EIO : r);
        return 0;
}

/* Open the disks without other users exclusively. Not the others: no process can mount a disk during that time. That
 * also finds a mount in a namespace that was not read. */
static int ask_the_kernel(struct look *look)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < look->disk_count; i++) {
                if (look->disks[i].count > 0)
                        continue;
                if (look->disks[i].exclusively)
                        r = go_on(look, disk_exclusive_add(look, &look->disks[i]),
                                "the disk cannot be opened exclusively");
                else if (look->has_unread_mounts)
                        look_note_gap(look, NULL, "a mount namespace cannot be read in time", -ETIME);
        }
        return r;
}

static int look_everywhere(struct look *look)
{
        int r = 0;

        disk_bystanders_learn(look);
        for (size_t i = 0; r >= 0 && i < look->disk_count; i++)
                r = go_on(
                        look, learn_devices(look, look->disks[i].number), "the disk cannot be read in /sys");
        if (r >= 0)
                r = go_on(look, disk_stack_find(look->roots->sys, add_stacked, look),
                        "what is built on disks cannot be read in /sys");
        if (r >= 0)
                r = go_on(look, disk_swaps_add(look), "/proc/swaps cannot be read");
        if (r >= 0)
                r = go_on(look, visit_all(look, look_at_process), "/proc cannot be read");
        if (r >= 0)
                r = go_on(look, disk_mounts_finish(look), "/proc cannot be read");
        if (r >= 0)
                r = go_on(look, disk_openers_finish(look), "/proc cannot be read");
        if (r >= 0)
                r = add_managers(look);
        if (r >= 0 && !look->saw_init)
                look_note_gap(look, NULL, "/proc hides the processes of others (hidepid)", -EPERM);
        if (r >= 0)
                r = go_on(look, disk_stack_find_file_systems(look->roots->sys, add_file_system, look),
                        "/sys/fs cannot be read");
        look->brief_from = look->mappers_until - (look->mappers_until - look->openers_until) / 2;
        if (r >= 0 && !has_every_disk_a_user(look))
                r = go_on(look, visit_all(look, look_at_memory), "/proc cannot be read");
        if (r >= 0)
                r = go_on(look, disk_mappers_finish(look), "/proc cannot be read");
        if (r >= 0)
                r = add_managers(look);
        if (r >= 0)
                r = ask_the_kernel(look);
        return r < 0 ? r : look->error;
}

int disk_users_find(const struct disk_users_roots *roots, struct disk_users *disks, size_t count)
{
        uint64_t now = monotonic_now(), time = roots->time_usec ? roots->time_usec : TIME_USEC;
        struct look look = {.roots = roots,
                .disks = disks,
                .disk_count = count,
                .brief_from = now + time / 8,
                .mounts_until = now + time / 4,
                .openers_until = now + time / 2,
                .mappers_until = now + time,
                .reserve_usec = time / 8,
                .share_most_usec = time / 14};
        int r;

        qsort(disks, count, sizeof(*disks), disk_users_compare);
        r = look_everywhere(&look);
        seen_set_clear(&look.namespaces);
        seen_set_clear(&look.files);
        free(look.devices);
        seen_set_clear(&look.late_namespaces);
        free(look.late_mounts.items);
        free(look.late_openers.items);
        free(look.late_mappers.items);
        aside_free(look.aside);
        return r;
}
