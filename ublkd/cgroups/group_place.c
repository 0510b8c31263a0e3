/* SPDX-License-Identifier: MIT */
/* Finds where the control groups of workers lie, and that of ublkd. */
#include "ublkd/cgroups/group_place.h"

#include "ublkd/base/cgroup_line.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DELEGATED "ublkd.slice/ublkd-workers.service"
#define BESIDE "ublkd-workers"

const struct group_sources group_sources_of_host = {
        .mount = "/sys/fs/cgroup",
        .own = "/proc/self/cgroup",
        .systemd = "/run/systemd/system",
        .pid_namespace = "/proc/self/ns/pid",
};

static const ino_t machine_pid_namespace = 0xEFFFFFFC; /* PROC_PID_INIT_INO; the kernel's, on every machine */

static int print_path(char path[static PATH_MAX], const char *one, const char *two, const char *three)
{
        int n = snprintf(path, PATH_MAX, "%s%s/%s", one, two, three);

        return n >= 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Only the second version of the hierarchy has this file at its root. */
static bool is_second_version(const char *root)
{
        char path[PATH_MAX];

        return print_path(path, root, "", "cgroup.controllers") == 0 && access(path, F_OK) == 0;
}

/* Where systemd still uses the first version, it mounts the second one below, without controllers: groups can be ended
 * there, and not limited. */
static int find_root(const char *mount, char root[static PATH_MAX])
{
        static const char *const below[] = {"", "/unified"};

        for (unsigned i = 0; i < ARRAY_SIZE(below); i++) {
                int n = snprintf(root, PATH_MAX, "%s%s", mount, below[i]);

                if (n > 0 && n < PATH_MAX && is_second_version(root))
                        return 0;
        }
        return -ENXIO;
}

static int find_own(const char *file, char *text, size_t size, char **ret)
{
        ssize_t n = read_text_at(AT_FDCWD, file, text, size);
        int r = n < 0 ? (int)n : cgroup_line_find(text, ret);

        return r == -ENODATA ? -ENXIO : r;
}

static int find_pid_namespace(const char *path, uint64_t *ret)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        *ret = st.st_ino == machine_pid_namespace ? 0 : st.st_ino;
        return 0;
}

int group_place_find(const struct group_sources *sources, struct group_place *ret)
{
        char root[PATH_MAX], text[CGROUP_TEXT_SIZE];
        struct group_place place = {.delegated = access(sources->systemd, F_OK) == 0};
        char *above = text;
        int r = find_root(sources->mount, root);

        *above = '\0';
        if (r >= 0 && !place.delegated)
                r = find_own(sources->own, text, sizeof(text), &above);
        if (r >= 0 && !place.delegated)
                *strrchr(above, '/') = '\0';
        if (r >= 0)
                r = print_path(place.path, root, above, place.delegated ? DELEGATED : BESIDE);
        if (r >= 0)
                r = find_pid_namespace(sources->pid_namespace, &place.pid_namespace);
        if (r >= 0)
                *ret = place;
        return r;
}

int group_place_find_own(const struct group_sources *sources, char ret[static PATH_MAX])
{
        char root[PATH_MAX], text[CGROUP_TEXT_SIZE], *own;
        int r = find_root(sources->mount, root), n;

        if (r >= 0)
                r = find_own(sources->own, text, sizeof(text), &own);
        if (r < 0)
                return r;
        n = snprintf(ret, PATH_MAX, "%s%s", root, own);
        return n >= 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}
