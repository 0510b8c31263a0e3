/* SPDX-License-Identifier: MIT */
/* What the kernel serves from the bytes of a backing store.
 *
 * The files of other loop devices and of exports are looked at, and those may lie on a server that does not
 * answer. That does not keep this disk from being served: a process apart looks, with a limit. */
#include "targets/loop/backing_users.h"

#include "targets/loop/backing_stack.h"
#include "targets/loop/block_device.h"
#include "targets/loop/loop_node.h"
#include "targets/loop/look_apart.h"
#include "targets/loop/mount_table.h"

#include "ublkd/base/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { PATIENCE_MSEC = 2000 };

struct search {
        const struct backing_claims *claims;
        const char *path;
        struct problem_list *sharing;
};

/* ---- loop devices ---- */

static bool lies_on(const struct backing_claims *claims, dev_t disk)
{
        char key[64];

        snprintf(key, sizeof(key), "disk:%u:%u", major(disk), minor(disk));
        for (size_t i = 0; i < claims->count; i++)
                if (strcmp(claims->items[i].key, key) == 0)
                        return true;
        return false;
}

static bool is_on_disk(const struct mount_row *row, const void *data)
{
        dev_t disk;
        uint64_t start;

        if (major(row->device) == 0)
                return false;
        block_device_place(row->device, &disk, &start);
        return disk == *(const dev_t *)data;
}

static int add_loop(const struct search *search, const char *name, dev_t disk)
{
        _cleanup_mount_row_ struct mount_row row = {};
        bool mounted = mount_table_find(is_on_disk, &disk, &row) >= 0;

        return problem_add(search->sharing, EBUSY, "/target/path", "BackingInUse",
                "%s holds the bytes of /dev/%s, too, which is %s%s; two that write there would destroy the "
                "data. %s it ('losetup --detach /dev/%s'), or make both read-only.",
                search->path, name, mounted ? "mounted on " : "attached", mounted ? row.point : "",
                mounted ? "Unmount it and detach" : "Detach", name);
}

static int add_unreadable(const struct search *search, const char *name, int error)
{
        if (error == ENOMEM)
                return -ENOMEM;
        return problem_add(search->sharing, 0, "/target/path", "BackingShareUnknown",
                "What /dev/%s lies on cannot be found out: %s. If it lies on %s, make sure that no "
                "other program writes there.",
                name, strerror(error), search->path);
}

static int check_loop(const struct search *search, const char *name, dev_t disk)
{
        _cleanup_claims_ struct backing_claims claims = {};
        struct loop_backing backing;
        struct backing_stack stack = {.path = name, .size = UINT64_MAX, .claims = &claims};
        int r = loop_node_read(disk, &backing);

        stack.writes = !backing.read_only;
        if (r >= 0)
                r = backing_stack_walk_loop(&stack, disk);
        if (r == -ENXIO) /* detached a moment ago */
                return 0;
        if (r < 0)
                return add_unreadable(search, name, -r);
        return backing_claims_collide(search->claims, &claims) ? add_loop(search, name, disk) : 0;
}

/* Whether it is an attached loop device: then *ret is its number. */
static bool is_attached(int folder, const char *name, dev_t *ret)
{
        char path[NAME_MAX + 32];

        if (strncmp(name, "loop", strlen("loop")) != 0)
                return false;
        snprintf(path, sizeof(path), "%s/loop/backing_file", name);
        if (faccessat(folder, path, F_OK, 0) < 0)
                return false;
        snprintf(path, sizeof(path), "%s/dev", name);
        return read_device_at(folder, path, ret) >= 0;
}

static int check_loops(const struct search *search)
{
        DIR *folder = opendir("/sys/block");
        const struct dirent *entry;
        dev_t disk;
        int r = 0;

        if (!folder)
                return add_unreadable(search, "loop*", errno);
        while (r >= 0 && (entry = readdir(folder)))
                if (is_attached(dirfd(folder), entry->d_name, &disk) && !lies_on(search->claims, disk))
                        r = check_loop(search, entry->d_name, disk);
        closedir(folder);
        return r;
}

/* ---- exports ---- */

static const struct {
        const char *pattern; /* of the attributes that hold a path */
        const char *words;
} exports[] = {
        {"/sys/kernel/config/nvmet/subsystems/*/namespaces/*/device_path", "the NVMe target"},
        {"/sys/kernel/config/target/core/*/*/udev_path",                   "the SCSI target"},
};

static bool is_enabled(const char *attribute)
{
        char path[PATH_MAX], text[8];

        snprintf(path, sizeof(path), "%.*s/enable", (int)(strrchr(attribute, '/') - attribute), attribute);
        return read_line_at(AT_FDCWD, path, text, sizeof(text)) <= 0 || text[0] != '0';
}

/* The target opened this path once; what it leads to now is the best that can be known. */
static int check_export(const struct search *search, const char *attribute, const char *words)
{
        _cleanup_claims_ struct backing_claims claims = {};
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        struct backing_stack stack = {.path = path, .size = UINT64_MAX, .writes = true, .claims = &claims};

        if (!is_enabled(attribute) || read_line_at(AT_FDCWD, attribute, path, sizeof(path)) <= 0)
                return 0;
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return 0;
        if (backing_stack_walk(&stack, fd, 0) == -ENOMEM)
                return -ENOMEM;
        if (!backing_claims_collide(search->claims, &claims))
                return 0;
        return problem_add(search->sharing, EBUSY, "/target/path", "BackingInUse",
                "%s is exported by %s as %s; two that write there would destroy the data. End the export, or "
                "use another backing store.",
                search->path, words, path);
}

static int check_exports(const struct search *search, const char *pattern, const char *words)
{
        glob_t paths = {};
        int r = glob(pattern, GLOB_NOSORT, NULL, &paths) == GLOB_NOSPACE ? -ENOMEM : 0;

        for (size_t i = 0; r >= 0 && i < paths.gl_pathc; i++)
                r = check_export(search, paths.gl_pathv[i], words);
        globfree(&paths);
        return r;
}

/* ---- all of them ---- */

static int look_at_all(const void *data, struct problem_list *sharing)
{
        struct search search = *(const struct search *)data;
        int r;

        search.sharing = sharing;
        r = check_loops(&search);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(exports); i++)
                r = check_exports(&search, exports[i].pattern, exports[i].words);
        return r;
}

static bool has_loops(const struct search *search)
{
        DIR *folder = opendir("/sys/block");
        const struct dirent *entry;
        bool found = !folder; /* look_at_all() says why */
        dev_t disk;

        while (!found && (entry = readdir(folder)))
                found = is_attached(dirfd(folder), entry->d_name, &disk) && !lies_on(search->claims, disk);
        if (folder)
                closedir(folder);
        return found;
}

static bool has_exports(const char *pattern)
{
        glob_t paths = {};
        int r = glob(pattern, GLOB_NOSORT, NULL, &paths);

        globfree(&paths);
        return r != GLOB_NOMATCH;
}

/* Most machines have none, and a recovery is not to wait for a process then. */
static bool has_any(const struct search *search)
{
        bool any = has_loops(search);

        for (size_t i = 0; !any && i < ARRAY_SIZE(exports); i++)
                any = has_exports(exports[i].pattern);
        return any;
}

static int add_unknown(const struct search *search, int error)
{
        if (error == ENOMEM)
                return -ENOMEM;
        return problem_add(search->sharing, 0, "/target/path", "BackingShareUnknown",
                "What the loop devices and exports of this machine lie on cannot be found out: %s. If one of "
                "them lies on %s, make sure that no other program writes there.",
                error == ETIMEDOUT ? "a file system does not answer"
                : error == EPIPE   ? "the look ended early"
                                   : strerror(error),
                search->path);
}

int backing_users_find(const struct backing_claims *claims, const char *path, struct problem_list *sharing)
{
        const struct search search = {.claims = claims, .path = path, .sharing = sharing};
        int r = has_any(&search) ? look_apart(look_at_all, &search, PATIENCE_MSEC, sharing) : 0;

        return r < 0 ? add_unknown(&search, -r) : 0;
}
