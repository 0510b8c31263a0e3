/* SPDX-License-Identifier: MIT */
/* Read the files of the directory of a policy. */
#include "ublkd/policy/policy_files.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/reading.h"
#include "ublkd/base/trusted_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
        char **items;
        size_t count;
};

static void names_clear(struct names *names)
{
        for (size_t i = 0; i < names->count; i++)
                free(names->items[i]);
        free(names->items);
}

void policy_files_clear(struct policy_files *files)
{
        for (size_t i = 0; i < files->count; i++) {
                free(files->items[i].path);
                free(files->items[i].text);
        }
        free(files->items);
        *files = (struct policy_files){};
}

/* Return -EINVAL, or -ENOMEM. */
static int fail(struct problem_list *problems, int error, const char *path, const char *why)
{
        int r = problem_add(problems, error, "", "PolicyInvalid", "%s: %s", path, why);

        return r < 0 ? r : -EINVAL;
}

static bool is_policy_file(const char *name)
{
        size_t length = strlen(name);

        return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static int compare_names(const void *one, const void *other)
{
        return strcmp(*(char *const *)one, *(char *const *)other);
}

static int names_add(struct names *names, const char *name)
{
        char **items = reallocarray(names->items, names->count + 1, sizeof(*items));

        if (!items)
                return -ENOMEM;
        names->items = items;
        items[names->count] = strdup(name);
        if (!items[names->count])
                return -ENOMEM;
        names->count++;
        return 0;
}

/* Return 0; -E2BIG: there are too many; other -errno. */
static int list_names(int dir, struct names *ret)
{
        _cleanup_close_ int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
        _cleanup_closedir_ DIR *stream = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;
        int r = 0;

        if (!stream)
                return -errno;
        (void)TAKE_FD(copy);
        while (r >= 0 && (errno = 0, entry = readdir(stream)))
                if (is_policy_file(entry->d_name))
                        r = ret->count == POLICY_FILES_MAX ? -E2BIG : names_add(ret, entry->d_name);
        if (r >= 0 && errno != 0)
                return -errno;
        if (r >= 0 && ret->count > 0)
                qsort(ret->items, ret->count, sizeof(*ret->items), compare_names);
        return r;
}

static int read_text(int fd, struct policy_file *file, struct problem_list *problems)
{
        int r = read_to_end(fd, POLICY_FILE_SIZE_MAX, &file->text, &file->size);

        if (r >= 0 || r == -ENOMEM)
                return r;
        return fail(
                problems, -r, file->path, r == -EFBIG ? "it is larger than 1 MiB; divide it" : strerror(-r));
}

static int read_file(int dir, const char *name, struct policy_file *file, struct problem_list *problems)
{
        const char *why = NULL;
        _cleanup_close_ int fd = open_trusted(dir, name, &why);

        return fd < 0 ? fail(problems, -fd, file->path, why ? why : strerror(-fd))
                      : read_text(fd, file, problems);
}

/* All files are read, so that all faults are reported. */
static int read_files(int dir, const char *directory, const struct names *names, struct policy_files *files,
        struct problem_list *problems)
{
        int result = 0;

        files->items = calloc(names->count + 1, sizeof(*files->items));
        if (!files->items)
                return -ENOMEM;
        for (size_t i = 0; i < names->count; i++) {
                struct policy_file *file = &files->items[files->count];
                int r;

                if (asprintf(&file->path, "%s/%s", directory, names->items[i]) < 0) {
                        file->path = NULL;
                        return -ENOMEM;
                }
                files->count++;
                r = read_file(dir, names->items[i], file, problems);
                if (r == -ENOMEM)
                        return r;
                result = r < 0 ? r : result;
        }
        return result;
}

static int read_open(
        int dir, const char *directory, struct policy_files *files, struct problem_list *problems)
{
        _cleanup_(names_clear) struct names names = {};
        struct stat info;
        const char *why;
        int r;

        if (fstat(dir, &info) < 0)
                return fail(problems, errno, directory, strerror(errno));
        why = file_distrust(&info);
        if (why)
                return fail(problems, EPERM, directory, why);
        r = list_names(dir, &names);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return fail(problems, -r, directory,
                        r == -E2BIG ? "it has more than 256 files; remove some" : strerror(-r));
        return read_files(dir, directory, &names, files, problems);
}

int policy_files_read(const char *directory, struct policy_files *ret, struct problem_list *problems)
{
        _cleanup_close_ int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
        _cleanup_policy_files_ struct policy_files files = {};
        int r;

        if (dir < 0 && errno == ENOENT) {
                *ret = files;
                return 0;
        }
        if (dir < 0)
                return fail(problems, errno, directory, strerror(errno));
        r = read_open(dir, directory, &files, problems);
        if (r < 0)
                return r;
        *ret = files;
        files = (struct policy_files){};
        return 0;
}
