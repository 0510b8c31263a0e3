/* SPDX-License-Identifier: MIT */
/* Files of the Container Device Interface. The text needs no escapes: names of devices and paths of nodes have none of the
 * characters that JSON would escape. */
#include "ublkd/nodes/cdi_spec.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/fd_path.h"
#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define SEAL_NAME "trusted.ublkd.cdi"
#define ACL_NAME "system.posix_acl_access"
/* The oldest that has all fields which are used: engines refuse a newer one than their own. */
#define CDI_VERSION "0.5.0"

enum { TEXT_SIZE = 1024, NAME_SIZE = 128, MODE_ROOT = 0400 };

struct cdi_specs {
        int dir;
        char instance[PATH_MAX];
};

DEFINE_CLEANUP(struct cdi_specs, cdi_specs_free);

/* No device has a name with "@", so that none has the file of a tenant's device. */
static void file_name(const struct cdi_spec *spec, char ret[static NAME_SIZE])
{
        if (spec->tenant != 0)
                snprintf(ret, NAME_SIZE, "ublkd-@%s.json", spec->uid);
        else
                snprintf(ret, NAME_SIZE, "ublkd-%s.json", spec->name);
}

/* ---- the text ---- */

/* A rootless engine makes no nodes, and its runtime may take the path in the container for that on the host: it gets a bind
 * mount. */
static int print_edits(const struct cdi_spec *spec, char *text, size_t size)
{
        if (spec->tenant != 0)
                return snprintf(text, size,
                        "\"mounts\": [{\"hostPath\": \"%s\", \"containerPath\": \"/dev/ublk/by-name/%s\", "
                        "\"type\": \"bind\", \"options\": [\"bind\", \"%s\", \"nosuid\", \"noexec\"]}]",
                        spec->node, spec->name, spec->read_only ? "ro" : "rw");
        return snprintf(text, size,
                "\"deviceNodes\": [{\"path\": \"/dev/ublk/by-name/%s\", \"hostPath\": \"%s\", "
                "\"type\": \"b\", \"major\": %u, \"minor\": %u, \"permissions\": \"%s\", \"uid\": "
                "%u, "
                "\"gid\": %u}]",
                spec->name, spec->node, major(spec->dev), minor(spec->dev), spec->read_only ? "r" : "rwm",
                spec->owner_uid, spec->owner_gid);
}

static int print(const struct cdi_spec *spec, char ret[static TEXT_SIZE])
{
        char edits[TEXT_SIZE / 2];
        int n;

        if (print_edits(spec, edits, sizeof(edits)) >= (int)sizeof(edits))
                return -ENAMETOOLONG;
        n = snprintf(ret, TEXT_SIZE,
                "{\"cdiVersion\": \"" CDI_VERSION "\", \"kind\": \"" CDI_KIND
                "\", \"devices\": [{\"name\": \"%s\", \"containerEdits\": {%s}}]}\n",
                spec->name, edits);
        return n < TEXT_SIZE ? 0 : -ENAMETOOLONG;
}

/* ---- one file ---- */

/* Return 1 if the file is one of this ublkd; 0 if not; -ENOENT; other -errno. */
static int is_ours(const struct cdi_specs *specs, const char *name)
{
        _cleanup_close_ int file = openat(specs->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char seal[PATH_MAX];
        struct stat st;
        ssize_t n;

        if (file < 0 || fstat(file, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return 0;
        n = getxattr(fd_path(file).text, SEAL_NAME, seal, sizeof(seal));
        if (n < 0)
                return errno == ENODATA || errno == EOPNOTSUPP || errno == ERANGE ? 0 : -errno;
        return (size_t)n == strlen(specs->instance) && memcmp(seal, specs->instance, (size_t)n) == 0;
}

struct acl_entry {
        uint16_t tag, rights;
        uint32_t id;
};

/* As the kernel takes it (linux/posix_acl_xattr.h), in little endian. */
struct acl {
        uint32_t version;
        struct acl_entry entries[5];
};

/* The tenant reads, as an owner could also write. */
static int let_read(int file, uid_t tenant)
{
        enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32, NONE = -1 };
        const struct acl acl = {
                .version = htole32(2),
                .entries = {{htole16(USER_OBJ), htole16(4), htole32((uint32_t)NONE)},
                            {htole16(USER), htole16(4), htole32(tenant)},
                            {htole16(GROUP_OBJ), 0, htole32((uint32_t)NONE)},
                            {htole16(MASK), htole16(4), htole32((uint32_t)NONE)},
                            {htole16(OTHER), 0, htole32((uint32_t)NONE)}},
        };

        return fsetxattr(file, ACL_NAME, &acl, sizeof(acl), 0) < 0 ? -errno : 0;
}

struct draft {
        const struct cdi_specs *specs;
        const struct cdi_spec *spec;
        char text[TEXT_SIZE];
};

static int make(int dir, const char *fresh, void *userdata)
{
        const struct draft *draft = userdata;
        size_t length = strlen(draft->text);
        _cleanup_close_ int file =
                openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE_ROOT);
        ssize_t n;

        if (file < 0 || fchmod(file, MODE_ROOT) < 0
                || fsetxattr(file, SEAL_NAME, draft->specs->instance, strlen(draft->specs->instance), 0) < 0)
                return -errno;
        n = write(file, draft->text, length);
        if (n != (ssize_t)length)
                return n < 0 ? -errno : -ENOSPC;
        return draft->spec->tenant != 0 ? let_read(file, draft->spec->tenant) : 0;
}

int cdi_spec_write(struct cdi_specs *specs, const struct cdi_spec *spec)
{
        struct draft draft = {.specs = specs, .spec = spec};
        char name[NAME_SIZE];
        int r = print(spec, draft.text);

        if (r < 0)
                return r;
        file_name(spec, name);
        r = is_ours(specs, name);
        if (r == 0)
                return -EEXIST;
        if (r < 0 && r != -ENOENT)
                return r;
        return replace_at(specs->dir, name, make, &draft);
}

static int remove_ours(struct cdi_specs *specs, const char *name)
{
        int r = is_ours(specs, name);

        if (r <= 0)
                return r == -ENOENT ? 0 : r;
        return unlinkat(specs->dir, name, 0) >= 0 ? 1 : errno == ENOENT ? 0 : -errno;
}

int cdi_spec_remove(struct cdi_specs *specs, const struct cdi_spec *spec)
{
        char name[NAME_SIZE];
        int r;

        file_name(spec, name);
        r = remove_ours(specs, name);
        return r < 0 ? r : 0;
}

/* ---- the directory ---- */

int cdi_specs_clear(struct cdi_specs *specs)
{
        int fd = openat(specs->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), removed = 0, error = 0;
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                return -errno;
        }
        while (errno = 0, (entry = readdir(dir))) {
                bool candidate = strncmp(entry->d_name, "ublkd-", strlen("ublkd-")) == 0
                                 || strncmp(entry->d_name, ".ublkd-", strlen(".ublkd-")) == 0;
                int r = candidate ? remove_ours(specs, entry->d_name) : 0;

                if (r < 0)
                        error = r;
                else
                        removed += r;
        }
        if (errno != 0)
                return -errno;
        return error < 0 ? error : removed;
}

int cdi_specs_open_existing(const char *directory, const char *instance, struct cdi_specs **ret)
{
        _cleanup_(cdi_specs_free_pointer) struct cdi_specs *specs = calloc(1, sizeof(*specs));

        if (!specs)
                return -ENOMEM;
        specs->dir = -1;
        if (snprintf(specs->instance, sizeof(specs->instance), "%s", instance)
                >= (int)sizeof(specs->instance))
                return -ENAMETOOLONG;
        specs->dir = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (specs->dir < 0)
                return errno == ENOTDIR ? -ELOOP : -errno;
        *ret = TAKE_PTR(specs);
        return 0;
}

int cdi_specs_open(const char *directory, const char *instance, struct cdi_specs **ret)
{
        _cleanup_(cdi_specs_free_pointer) struct cdi_specs *specs = NULL;
        struct stat st;
        bool created = mkdir(directory, 0755) >= 0;
        int r = !created && errno != EEXIST ? -errno : cdi_specs_open_existing(directory, instance, &specs);

        if (r < 0)
                return r;
        if (fstat(specs->dir, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return -EPERM;
        if (created && fchmod(specs->dir, 0755) < 0) /* whatever the umask is */
                return -errno;
        *ret = TAKE_PTR(specs);
        return 0;
}

struct cdi_specs *cdi_specs_free(struct cdi_specs *specs)
{
        if (!specs)
                return NULL;
        close_fd(specs->dir);
        free(specs);
        return NULL;
}
