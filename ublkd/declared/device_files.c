/* SPDX-License-Identifier: MIT */
/* Read the files that describe devices. */
#include "ublkd/declared/device_files.h"

#include "ublkd/base/file_io.h"
#include "ublkd/base/reading.h"
#include "ublkd/base/trusted_file.h"
#include "ublkd/declared/declared_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void device_files_clear(struct device_files *files)
{
        for (size_t i = 0; i < files->dir_count; i++) {
                free(files->dirs[i].path);
                free(files->dirs[i].fault);
        }
        for (size_t i = 0; i < files->count; i++) {
                free(files->items[i].path);
                free(files->items[i].text);
                free(files->items[i].fault);
        }
        free(files->dirs);
        free(files->items);
        *files = (struct device_files){};
}

const char *device_file_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* ---- one file ---- */

static int fault_file(struct device_file *file, const char *cause)
{
        file->state = FILE_FAULTY;
        return asprintf(&file->fault, "The file %s is not taken: %s.", file->path, cause) < 0 ? -ENOMEM : 0;
}

/* An empty file does not mask others: it may have been written just before a power cut. */
static bool is_mask(int dir, const char *name)
{
        char target[16];
        ssize_t n = readlinkat(dir, name, target, sizeof(target));

        return n == (ssize_t)strlen("/dev/null") && memcmp(target, "/dev/null", (size_t)n) == 0;
}

static int read_text(int fd, size_t room, struct device_file *file)
{
        size_t most = room < DEVICE_FILE_SIZE_MAX ? room : DEVICE_FILE_SIZE_MAX, size = 0;
        _cleanup_free_ char *text = NULL;
        int r = read_to_end(fd, most, &text, &size);

        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG)
                return fault_file(file, most < DEVICE_FILE_SIZE_MAX
                                                ? "all files together are larger than 12 MiB; remove some"
                                                : "it is larger than 1 MiB; divide it");
        if (r < 0)
                return fault_file(file, strerror(-r));
        if (size == 0)
                return fault_file(file, "it is empty; write a spec, or link it to /dev/null to mask files of "
                                        "its name");
        file->state = FILE_READ;
        file->size = size;
        file->text = TAKE_PTR(text);
        return 0;
}

static int read_file(int dir, const char *name, size_t room, struct device_file *file)
{
        _cleanup_close_ int fd = -1;
        const char *cause = NULL;

        if (is_mask(dir, name)) {
                file->state = FILE_MASKED;
                return 0;
        }
        fd = open_trusted(dir, name, &cause);
        if (fd >= 0)
                return read_text(fd, room, file);
        if (fd == -ENOENT)
                cause = "the link leads to nothing; correct it, or link it to /dev/null to mask the file";
        return fault_file(file, cause ? cause : strerror(-fd));
}

/* ---- all of them ---- */

static bool is_device_file(const char *name)
{
        size_t length = strlen(name);

        return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static bool has_file(const struct device_files *files, const char *name)
{
        for (size_t i = 0; i < files->count; i++)
                if (strcmp(device_file_name(files->items[i].path), name) == 0)
                        return true;
        return false;
}

/* Read a file unless a more important one has its name. */
static int add_file(
        struct device_files *files, int dir, const char *path, const char *name, bool unsure, size_t *room)
{
        struct device_file *file, *items;
        int r;

        if (has_file(files, name))
                return 0;
        items = reallocarray(files->items, files->count + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        files->items = items;
        file = &items[files->count];
        *file = (struct device_file){.state = FILE_UNSURE};
        if (asprintf(&file->path, "%s/%s", path, name) < 0) {
                file->path = NULL;
                return -ENOMEM;
        }
        files->count++;
        if (unsure)
                return 0;
        if (strlen(file->path) >= DEVICE_FILE_PATH_MAX)
                return fault_file(file, "its path is longer than 1023 bytes");
        r = read_file(dir, name, *room, file);
        *room -= file->size;
        return r;
}

static int fault_dir(struct device_dir *dir, const char *cause)
{
        dir->state = DIR_FAULTY;
        free(dir->fault);
        return asprintf(&dir->fault,
                       "The directory %s is not read: %s. No device is removed because of it, and files of "
                       "less "
                       "important directories are not applied.",
                       dir->path,
                       cause) < 0
                       ? -ENOMEM
                       : 0;
}

static int compare_names(const void *one, const void *other)
{
        return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Return 0; -E2BIG: there are too many; other -errno: the directory is not known. */
static int list_names(int fd, struct names *ret)
{
        DIR *stream = fdopendir(fd);
        const struct dirent *entry;
        int r = 0;

        if (!stream) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        while (r >= 0 && (errno = 0, entry = readdir(stream))) {
                if (is_device_file(entry->d_name))
                        r = ret->count == DEVICE_FILES_MAX ? -E2BIG : names_add(ret, entry->d_name);
        }
        if (r >= 0 && errno != 0)
                r = -errno;
        closedir(stream);
        if (r >= 0 && ret->count > 0)
                qsort(ret->items, ret->count, sizeof(*ret->items), compare_names);
        return r;
}

static int read_open_dir(
        struct device_files *files, struct device_dir *dir, int fd, bool unsure, size_t *room)
{
        _cleanup_(names_clear) struct names names = {};
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        int r = copy < 0 ? -errno : list_names(copy, &names);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return fault_dir(
                        dir, r == -E2BIG ? "it has more than 4096 files; remove some" : strerror(-r));
        for (size_t i = 0; r >= 0 && i < names.count; i++)
                r = add_file(files, fd, dir->path, names.items[i], unsure, room);
        return r;
}

static int read_dir(struct device_files *files, struct device_dir *dir, bool unsure, size_t *room)
{
        _cleanup_close_ int fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
        struct stat info;
        const char *cause;

        if (fd < 0 && errno == ENOENT) {
                dir->state = DIR_MISSING;
                return 0;
        }
        if (fd < 0 || fstat(fd, &info) < 0)
                return fault_dir(dir, strerror(errno));
        dir->device = info.st_dev;
        cause = file_distrust(&info);
        return cause ? fault_dir(dir, cause) : read_open_dir(files, dir, fd, unsure, room);
}

static bool is_in(const struct device_file *file, const struct device_dir *dir)
{
        size_t length = (size_t)(device_file_name(file->path) - file->path);

        return strlen(dir->path) + 1 == length && strncmp(dir->path, file->path, length - 1) == 0;
}

int device_files_doubt(struct device_files *files, size_t dir, const char *cause)
{
        int r = fault_dir(&files->dirs[dir], cause);

        for (size_t i = 0; r >= 0 && i < files->count; i++) {
                struct device_file *file = &files->items[i];

                for (size_t j = dir; j < files->dir_count; j++)
                        if (is_in(file, &files->dirs[j])) {
                                free(file->text);
                                free(file->fault);
                                *file = (struct device_file){.path = file->path, .state = FILE_UNSURE};
                        }
        }
        return r;
}

static int compare_files(const void *one, const void *other)
{
        const struct device_file *left = one, *right = other;

        return strcmp(device_file_name(left->path), device_file_name(right->path));
}

static int read_all(const char *const *dirs, size_t count, struct device_files *files)
{
        size_t room = DEVICE_FILES_SIZE_MAX;
        bool unsure = false;
        int r = 0;

        files->dirs = calloc(count + 1, sizeof(*files->dirs));
        if (!files->dirs)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < count; i++) {
                struct device_dir *dir = &files->dirs[i];

                dir->path = strdup(dirs[i]);
                if (!dir->path)
                        return -ENOMEM;
                files->dir_count++;
                r = read_dir(files, dir, unsure, &room);
                unsure = unsure || dir->state == DIR_FAULTY;
        }
        if (r >= 0 && files->count > 0)
                qsort(files->items, files->count, sizeof(*files->items), compare_files);
        return r;
}

int device_files_read(const char *const *dirs, size_t count, struct device_files *ret)
{
        _cleanup_device_files_ struct device_files files = {};
        int r = read_all(dirs, count, &files);

        if (r < 0)
                return r;
        *ret = files;
        files = (struct device_files){};
        return 0;
}
