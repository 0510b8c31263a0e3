/* SPDX-License-Identifier: MIT */
/* One search for the users of disks: what its parts share. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"
#include "ublkd/disks/disk_name.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

enum { BRIEF_SHARE = 64 };

int disk_users_compare(const void *one, const void *other)
{
        const struct disk_users *left = one, *right = other;

        return (left->number > right->number) - (left->number < right->number);
}

struct disk_users *look_find_disk(const struct look *look, int number)
{
        const struct disk_users key = {.number = number};

        return bsearch(&key, look->disks, look->disk_count, sizeof(key), disk_users_compare);
}

struct disk_users *look_find_disk_of_path(const struct look *look, const char *path)
{
        return look_find_disk(look, disk_name_number_in_path(path));
}

uid_t look_uid_of(int process)
{
        struct stat info;

        return fstat(process, &info) < 0 ? DISK_USER_UNKNOWN : info.st_uid;
}

int look_add_user(struct disk_users *disk, uid_t uid, const char *format, ...)
{
        va_list arguments;
        char *item;
        int n;

        va_start(arguments, format);
        n = vasprintf(&item, format, arguments);
        va_end(arguments);
        if (n < 0)
                return -ENOMEM;
        for (size_t i = 0; i < disk->count; i++)
                if (strcmp(disk->items[i], item) == 0) {
                        free(item);
                        return 0;
                }
        if (disk->count == DISK_USERS_MAX) {
                disk->dropped++;
                free(item);
                return 0;
        }
        disk->uids[disk->count] = uid;
        disk->items[disk->count++] = item;
        return 0;
}

bool look_is_gone(int error)
{
        return error == -ENOENT || error == -ESRCH;
}

void look_note_gap(struct look *look, const struct process *process, const char *what, int error)
{
        struct disk_users_gap *gap = look->roots->gap;

        if (look_is_gone(error) || look->error < 0)
                return;
        look->error = error;
        if (!gap)
                return;
        if (process)
                snprintf(gap->text, sizeof(gap->text), "the %s of process %s (%s) cannot be read: %s", what,
                        process->pid, process->comm, strerror(-error));
        else
                snprintf(gap->text, sizeof(gap->text), "%s: %s", what, strerror(-error));
}

size_t look_first_share(const struct look *look, size_t most)
{
        return monotonic_now() < look->brief_from ? most : most / BRIEF_SHARE;
}

void look_read_comm(struct process *process)
{
        (void)read_line_at(process->directory, "comm", process->comm, sizeof(process->comm));
}

ssize_t look_read_link(int directory, const char *name, char *text, size_t size)
{
        ssize_t n = readlinkat(directory, name, text, size);

        if (n < 0)
                return -errno;
        if ((size_t)n == size)
                return -ENAMETOOLONG;
        text[n] = '\0';
        return n;
}

FILE *look_open_file(int directory, const char *name)
{
        int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

        if (!file)
                close_fd(fd);
        return file;
}

DIR *look_open_directory(int directory, const char *name)
{
        int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir)
                close_fd(fd);
        return dir;
}
