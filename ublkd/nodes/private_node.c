/* SPDX-License-Identifier: MIT */
/* Private nodes: the directory, the nodes in it, and their seals.
 *
 * Every node is reached by a descriptor of the directory, never by a path from the root, and no symbolic link is
 * followed. A node gets its owner before it gets its name: under its name there is a whole node, or none. */
#include "ublkd/nodes/private_node.h"
#include "ublkd/base/fd_path.h"

#include "ublkd/base/file_io.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define SEAL_NAME "trusted.ublkd.disk"
#define ACL_NAME "system.posix_acl_access"

enum { MODE_OPEN = 0600, SEAL_SIZE = 32 + PATH_MAX, NAME_SIZE = 64 };

struct private_nodes {
        int dir;
        char sys[PATH_MAX];
        char instance[PATH_MAX];
};

DEFINE_CLEANUP(struct private_nodes, private_nodes_free);

struct disk_now {
        dev_t dev;
        uint64_t sequence; /* 0: there is no such disk */
};

/* ---- disks ---- */

static int read_sequence(const struct private_nodes *nodes, dev_t dev, uint64_t *ret)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/dev/block/%u:%u/diskseq", nodes->sys, major(dev), minor(dev))
                >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return read_number_at(AT_FDCWD, path, ret);
}

/* The disk may go, and its number may get another one, between two reads: the sequence number is that of the numbers
 * which are used. */
static int find_disk(const struct private_nodes *nodes, int number, struct disk_now *ret)
{
        char path[PATH_MAX];
        struct disk_now disk;
        uint64_t sequence;
        int r;

        if (snprintf(path, sizeof(path), "%s/block/ublkb%d/dev", nodes->sys, number) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        r = read_device_at(AT_FDCWD, path, &disk.dev);
        if (r < 0)
                return r;
        if (snprintf(path, sizeof(path), "%s/block/ublkb%d/diskseq", nodes->sys, number) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        r = read_number_at(AT_FDCWD, path, &disk.sequence);
        if (r >= 0)
                r = read_sequence(nodes, disk.dev, &sequence);
        if (r < 0)
                return r;
        if (disk.sequence == 0 || disk.sequence != sequence)
                return -ENODEV;
        *ret = disk;
        return 0;
}

/* ---- one inode ---- */

static int set_owner(int node, uid_t owner)
{
        return fchownat(node, "", owner, 0, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int set_mode(int node, mode_t mode)
{
        return chmod(fd_path(node).text, mode) < 0 ? -errno : 0;
}

/* The owner goes first: he could change the mode again. An ACL that he has set goes too. */
static int take_rights(int node)
{
        int r = set_owner(node, 0);

        if (r >= 0)
                r = set_mode(node, 0);
        if (r >= 0 && removexattr(fd_path(node).text, ACL_NAME) < 0 && errno != ENODATA
                && errno != EOPNOTSUPP)
                r = -errno;
        return r;
}

static int give_rights(int node, uid_t owner)
{
        int r = set_owner(node, owner);

        return r < 0 ? r : set_mode(node, MODE_OPEN);
}

static int write_seal(const struct private_nodes *nodes, int node, uint64_t sequence)
{
        char seal[SEAL_SIZE];
        int n = snprintf(seal, sizeof(seal), "%" PRIu64 " %s", sequence, nodes->instance);

        return setxattr(fd_path(node).text, SEAL_NAME, seal, (size_t)n, XATTR_CREATE) < 0 ? -errno : 0;
}

struct seal {
        uint64_t sequence; /* 0: no seal */
        bool is_ours;
};

static struct seal read_seal(const struct private_nodes *nodes, int node)
{
        char text[SEAL_SIZE];
        ssize_t n = getxattr(fd_path(node).text, SEAL_NAME, text, sizeof(text) - 1);
        struct seal seal = {};
        char *end;

        if (n < 0)
                return seal;
        text[n] = '\0';
        seal.sequence = strtoull(text, &end, 10);
        seal.is_ours = *end == ' ' && strcmp(end + 1, nodes->instance) == 0;
        return seal;
}

/* Open what has the name, without its disk. Return a descriptor, -ENOENT or another -errno. */
static int open_node(const struct private_nodes *nodes, const char *name, struct stat *ret)
{
        _cleanup_close_ int node = openat(nodes->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (node < 0 || fstat(node, ret) < 0)
                return -errno;
        return TAKE_FD(node);
}

/* A symbolic link has no rights to take. */
static int shut(const struct private_nodes *nodes, const char *name)
{
        struct stat st;
        _cleanup_close_ int node = open_node(nodes, name, &st);

        if (node < 0)
                return node == -ENOENT ? 0 : node;
        return S_ISLNK(st.st_mode) ? 0 : take_rights(node);
}

static int remove_name(const struct private_nodes *nodes, const char *name)
{
        int r = shut(nodes, name);

        if (r < 0)
                return r;
        return unlinkat(nodes->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* ---- a node ---- */

static bool is_of_disk(
        const struct private_nodes *nodes, int node, const struct stat *st, const struct disk_now *disk)
{
        struct seal seal = read_seal(nodes, node);

        return S_ISBLK(st->st_mode) && st->st_rdev == disk->dev && seal.sequence == disk->sequence
               && seal.is_ours;
}

/* Return 1: the node of this disk is open now; 0: it was; -ENOENT: there is none; other -errno. */
static int open_again(
        const struct private_nodes *nodes, const struct private_node *node, const struct disk_now *disk)
{
        struct stat st;
        _cleanup_close_ int fd = open_node(nodes, node->uid, &st);
        int r;

        if (fd < 0)
                return fd;
        if (!is_of_disk(nodes, fd, &st, disk)) {
                r = remove_name(nodes, node->uid);
                return r < 0 ? r : -ENOENT;
        }
        if (st.st_uid != 0) /* its owner may have given it to a user of his own user namespace */
                return 0;
        r = give_rights(fd, node->owner);
        return r < 0 ? r : 1;
}

static int finish(const struct private_nodes *nodes, const char *fresh, const struct private_node *node,
        const struct disk_now *disk)
{
        struct stat st;
        _cleanup_close_ int fd = open_node(nodes, fresh, &st);
        int r = fd < 0 ? fd : write_seal(nodes, fd, disk->sequence);

        if (r >= 0)
                r = give_rights(fd, node->owner);
        if (r >= 0 && renameat2(nodes->dir, fresh, nodes->dir, node->uid, RENAME_NOREPLACE) < 0)
                r = -errno;
        return r;
}

static int make(
        const struct private_nodes *nodes, const struct private_node *node, const struct disk_now *disk)
{
        char fresh[NAME_SIZE];
        int r;

        snprintf(fresh, sizeof(fresh), ".%s.new", node->uid);
        r = remove_name(nodes, fresh);
        if (r >= 0 && mknodat(nodes->dir, fresh, S_IFBLK, disk->dev) < 0)
                r = -errno;
        if (r < 0)
                return r;
        r = finish(nodes, fresh, node, disk);
        if (r < 0)
                (void)remove_name(nodes, fresh); /* the first failure counts; the next sweep removes it */
        return r < 0 ? r : 1;
}

int private_node_give(struct private_nodes *nodes, const struct private_node *node)
{
        struct disk_now disk, after;
        int r;

        assert(!strchr(node->uid, '/') && *node->uid != '.');
        if (node->owner == 0)
                return -EINVAL;
        r = find_disk(nodes, node->number, &disk);
        if (r < 0)
                return r;
        r = open_again(nodes, node, &disk);
        if (r == -ENOENT)
                r = make(nodes, node, &disk);
        if (r <= 0)
                return r;
        if (find_disk(nodes, node->number, &after) >= 0 && after.sequence == disk.sequence)
                return r;
        r = private_node_remove(nodes, node->uid);
        return r < 0 ? r : -ENODEV;
}

int private_node_shut(struct private_nodes *nodes, const char *uid)
{
        return shut(nodes, uid);
}

int private_node_remove(struct private_nodes *nodes, const char *uid)
{
        return remove_name(nodes, uid);
}

int private_node_clone(struct private_nodes *nodes, const char *uid)
{
        /* Not a peer of the mount that it is a clone of: what a container mounts on it stays in the container. */
        struct mount_attr attributes = {
                .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .propagation = MS_PRIVATE};
        _cleanup_close_ int tree =
                open_tree(nodes->dir, uid, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
        struct stat st;

        if (tree < 0 || fstat(tree, &st) < 0)
                return -errno;
        if (!S_ISBLK(st.st_mode) || st.st_uid == 0 || !read_seal(nodes, tree).is_ours)
                return -ENOENT;
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
                return -errno;
        return TAKE_FD(tree);
}

int private_nodes_directory(const struct private_nodes *nodes)
{
        return nodes->dir;
}

void private_node_path(const char *uid, char ret[static PRIVATE_NODE_PATH_SIZE])
{
        snprintf(ret, PRIVATE_NODE_PATH_SIZE, "/dev/ublk/private/%s", uid);
}

/* ---- the directory ---- */

static bool may_stay(const struct private_nodes *nodes, const char *name,
        bool (*keep)(void *userdata, const char *uid, uid_t owner), void *userdata)
{
        struct stat st;
        _cleanup_close_ int node = open_node(nodes, name, &st);
        struct seal seal;
        uint64_t sequence;

        if (node < 0 || !S_ISBLK(st.st_mode))
                return false;
        seal = read_seal(nodes, node);
        if (seal.sequence == 0 || read_sequence(nodes, st.st_rdev, &sequence) < 0
                || sequence != seal.sequence)
                return false;
        return !seal.is_ours || (*name != '.' && keep(userdata, name, st.st_uid));
}

int private_nodes_sweep(struct private_nodes *nodes,
        bool (*keep)(void *userdata, const char *uid, uid_t owner), void *userdata)
{
        int fd = openat(nodes->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), removed = 0, error = 0;
        _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                close_fd(fd);
                return -errno;
        }
        while (errno = 0, (entry = readdir(dir))) {
                int r;

                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0
                        || may_stay(nodes, entry->d_name, keep, userdata))
                        continue;
                r = remove_name(nodes, entry->d_name);
                if (r < 0)
                        error = r;
                else
                        removed++;
        }
        if (errno != 0)
                return -errno;
        return error < 0 ? error : removed;
}

static int open_dir(int parent, const char *path)
{
        const struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        int fd = (int)syscall(SYS_openat2, parent, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* Open a directory of our own, whose entries no other user changes. */
static int open_own_dir(int parent, const char *name, mode_t mode)
{
        bool created = mkdirat(parent, name, mode) >= 0;
        _cleanup_close_ int fd = created || errno == EEXIST ? open_dir(parent, name) : -errno;
        struct stat st;
        int r;

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
                return -EPERM;
        r = created || (st.st_mode & 07777) != mode ? set_mode(fd, mode) : 0; /* whatever the umask is */
        return r < 0 ? r : TAKE_FD(fd);
}

int private_nodes_open(const struct private_nodes_config *config, struct private_nodes **ret)
{
        _cleanup_(private_nodes_free_pointer) struct private_nodes *nodes = calloc(1, sizeof(*nodes));
        _cleanup_close_ int dev = -1, ublk = -1;

        if (!nodes)
                return -ENOMEM;
        nodes->dir = -1;
        if (snprintf(nodes->sys, sizeof(nodes->sys), "%s", config->sys) >= (int)sizeof(nodes->sys)
                || snprintf(nodes->instance, sizeof(nodes->instance), "%s", config->instance)
                           >= (int)sizeof(nodes->instance))
                return -ENAMETOOLONG;
        dev = open_dir(AT_FDCWD, config->dev);
        if (dev < 0)
                return dev;
        ublk = open_own_dir(dev, "ublk", 0755);
        if (ublk < 0)
                return ublk;
        nodes->dir = open_own_dir(ublk, "private", 0711); /* a user opens his node, and lists nothing */
        if (nodes->dir < 0)
                return nodes->dir;
        *ret = TAKE_PTR(nodes);
        return 0;
}

struct private_nodes *private_nodes_free(struct private_nodes *nodes)
{
        if (!nodes)
                return NULL;
        close_fd(nodes->dir);
        free(nodes);
        return NULL;
}
