/* SPDX-License-Identifier: MIT */
/* private_node: real nodes of a loop disk, below /dev; only the tree of /sys is made up. Needs root. */
#include "ublkd/nodes/private_node.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { TENANT = 1000, STRANGER = 1001, LOOP_MAJOR = 7 };

static const char uid[] = "11111111-2222-4333-8444-555555555555";
static char dev[64], sys[64];

static void write_file(const char *path, const char *text)
{
        _cleanup_fclose_ FILE *file = fopen(path, "we");

        if (CHECK(file))
                CHECK(fputs(text, file) >= 0);
}

static void write_sys(const char *name, const char *text)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", sys, name);
        write_file(path, text);
}

static void make_dir(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", sys, name);
        CHECK_INT(mkdir(path, 0755), 0);
}

/* /dev/ublkb7 is loop0, with this sequence number. */
static void set_disk(const char *sequence)
{
        write_sys("block/ublkb7/dev", "7:0\n");
        write_sys("block/ublkb7/diskseq", sequence);
        write_sys("dev/block/7:0/diskseq", sequence);
}

static struct private_nodes *open_as(const char *instance)
{
        struct private_nodes *nodes = NULL;

        CHECK_INT(private_nodes_open(
                          &(const struct private_nodes_config){.dev = dev, .sys = sys, .instance = instance},
                          &nodes),
                0);
        return nodes;
}

static void path_of(const char *name, char ret[static 256])
{
        snprintf(ret, 256, "%s/ublk/private/%s", dev, name);
}

static int give(struct private_nodes *nodes)
{
        return private_node_give(
                nodes, &(const struct private_node){.uid = uid, .number = 7, .owner = TENANT});
}

/* Return 0 if this user can open the path, or the errno. */
static int open_of(uid_t user, const char *path)
{
        int status = 0;
        pid_t child = fork();

        if (child == 0) {
                if (setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0)
                        _exit(255);
                /* ENXIO: it may be opened, and this machine has no such disk */
                _exit(open(path, O_RDWR | O_CLOEXEC) < 0 && errno != ENXIO ? errno : 0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        return WEXITSTATUS(status);
}

static struct stat look(const char *path)
{
        struct stat st = {};

        CHECK_INT(lstat(path, &st), 0);
        return st;
}

static void test_only_the_owner_opens_it(struct private_nodes *nodes)
{
        char path[256];
        struct stat st;

        path_of(uid, path);
        CHECK_INT(give(nodes), 1);
        st = look(path);
        CHECK(S_ISBLK(st.st_mode));
        CHECK_INT(st.st_mode & 07777, 0600);
        CHECK_INT(st.st_uid, TENANT);
        CHECK_INT(st.st_gid, 0);
        CHECK_INT(st.st_rdev, makedev(LOOP_MAJOR, 0));
        CHECK_INT(open_of(TENANT, path), 0);
        CHECK_INT(open_of(STRANGER, path), EACCES);
        CHECK_INT(give(nodes), 0);
        CHECK_INT(look(path).st_ino, st.st_ino);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK(access(path, F_OK) < 0);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(private_node_shut(nodes, uid), 0);
}

static void test_no_user_lists_the_nodes(void)
{
        char path[256];

        path_of("", path);
        CHECK_INT(look(path).st_mode & 07777, 0711);
        CHECK_INT(look(path).st_uid, 0);
}

/* As in a container that ublkd does not know. */
static void test_a_bind_mount_loses_its_rights(struct private_nodes *nodes)
{
        char path[256], bound[256];

        path_of(uid, path);
        snprintf(bound, sizeof(bound), "%s/bound", dev);
        CHECK_INT(give(nodes), 1);
        write_file(bound, "");
        CHECK_INT(mount(path, bound, NULL, MS_BIND, NULL), 0);
        CHECK_INT(open_of(TENANT, bound), 0);
        CHECK_INT(private_node_shut(nodes, uid), 0);
        CHECK_INT(open_of(TENANT, bound), EACCES);
        CHECK_INT(give(nodes), 1); /* the disk is in use, and stays */
        CHECK_INT(open_of(TENANT, bound), 0);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(open_of(TENANT, bound), EACCES);
        CHECK_INT(give(nodes), 1);
        CHECK_INT(open_of(TENANT, bound), EACCES);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(umount2(bound, MNT_DETACH), 0);
        CHECK_INT(unlink(bound), 0);
}

/* Entry by entry: version 2, owner rw, user STRANGER rw, group none, mask rw, others none. */
static void test_an_acl_of_the_owner_goes_with_it(struct private_nodes *nodes)
{
        static const struct {
                uint32_t version;
                struct {
                        uint16_t tag, rights;
                        uint32_t id;
                } of[5];
        } acl = {
                2, {{1, 6, UINT32_MAX}, {2, 6, STRANGER}, {4, 0, UINT32_MAX}, {16, 6, UINT32_MAX},
                    {32, 0, UINT32_MAX}}
        };
        char path[256];

        path_of(uid, path);
        CHECK_INT(give(nodes), 1);
        if (setxattr(path, "system.posix_acl_access", &acl, sizeof(acl), 0) < 0)
                CHECK_INT(errno, EOPNOTSUPP);
        else
                CHECK_INT(open_of(STRANGER, path), 0);
        CHECK_INT(private_node_shut(nodes, uid), 0);
        CHECK_INT(open_of(STRANGER, path), EACCES);
        CHECK_INT(give(nodes), 1);
        CHECK_INT(open_of(STRANGER, path), EACCES);
        CHECK_INT(private_node_remove(nodes, uid), 0);
}

static void test_the_next_disk_of_the_number_gets_another_inode(struct private_nodes *nodes)
{
        char path[256];
        _cleanup_close_ int old = -1;
        struct stat before, st;

        path_of(uid, path);
        CHECK_INT(give(nodes), 1);
        old = open(path, O_PATH | O_CLOEXEC);
        CHECK(old >= 0 && fstat(old, &before) == 0);
        set_disk("1002");
        CHECK_INT(give(nodes), 1);
        CHECK(look(path).st_ino != before.st_ino);
        CHECK(fstat(old, &st) == 0);
        CHECK_INT(st.st_mode & 07777, 0);
        CHECK_INT(st.st_uid, 0);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        set_disk("1001");
}

static void test_no_node_without_a_disk_or_for_root(struct private_nodes *nodes)
{
        CHECK_INT(private_node_give(
                          nodes, &(const struct private_node){.uid = uid, .number = 8, .owner = TENANT}),
                -ENOENT);
        CHECK_INT(private_node_give(nodes, &(const struct private_node){.uid = uid, .number = 7, .owner = 0}),
                -EINVAL);
        write_sys("dev/block/7:0/diskseq", "1003"); /* the number is another disk's */
        CHECK_INT(give(nodes), -ENODEV);
        set_disk("1001");
}

static bool keep_all(void *userdata, const char *name, uid_t owner)
{
        (*(unsigned *)userdata)++;
        CHECK_STR(name, uid);
        CHECK_INT(owner, TENANT);
        return true;
}

static bool keep_none(void *userdata, const char *name, uid_t owner)
{
        (void)keep_all(userdata, name, owner);
        return false;
}

static void test_a_sweep_removes_what_leads_to_another_disk(struct private_nodes *nodes)
{
        char path[256];
        unsigned asked = 0;
        ino_t inode;

        path_of(uid, path);
        CHECK_INT(give(nodes), 1);
        inode = look(path).st_ino;
        CHECK_INT(private_nodes_sweep(nodes, keep_all, &asked), 0);
        CHECK_INT(look(path).st_ino, inode);
        CHECK_INT(asked, 1);
        write_sys("dev/block/7:0/diskseq", "1003");
        CHECK_INT(private_nodes_sweep(nodes, keep_all, &asked), 1);
        CHECK(access(path, F_OK) < 0);
        CHECK_INT(asked, 1);
        set_disk("1001");
        CHECK_INT(give(nodes), 1);
        CHECK_INT(private_nodes_sweep(nodes, keep_none, &asked), 1);
        CHECK(access(path, F_OK) < 0);
}

static void test_a_sweep_leaves_the_nodes_of_another_ublkd(struct private_nodes *nodes)
{
        struct private_nodes *other = open_as("/run/other");
        unsigned asked = 0;

        CHECK_INT(give(other), 1);
        CHECK_INT(private_nodes_sweep(nodes, keep_none, &asked), 0);
        CHECK_INT(asked, 0);
        write_sys("dev/block/7:0/diskseq", "1003"); /* whichever ublkd made the node */
        CHECK_INT(private_nodes_sweep(nodes, keep_none, &asked), 1);
        set_disk("1001");
        private_nodes_free(other);
}

/* ublkd was killed before the node had its seal, or before it had its name. */
static void test_a_sweep_removes_what_is_half_made(struct private_nodes *nodes)
{
        char path[256], fresh[256];
        unsigned asked = 0;

        path_of(uid, path);
        path_of(".11111111-2222-4333-8444-555555555555.new", fresh);
        CHECK_INT(mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, 0)), 0);
        CHECK_INT(private_nodes_sweep(nodes, keep_all, &asked), 1);
        CHECK_INT(give(nodes), 1);
        CHECK_INT(rename(path, fresh), 0);
        CHECK_INT(private_nodes_sweep(nodes, keep_all, &asked), 1);
        CHECK_INT(mknod(fresh, S_IFBLK | 0600, makedev(LOOP_MAJOR, 0)), 0);
        CHECK_INT(give(nodes), 1);
        CHECK(access(fresh, F_OK) < 0);
        CHECK_INT(asked, 0);
        CHECK_INT(private_node_remove(nodes, uid), 0);
}

static void test_a_planted_link_is_not_followed(struct private_nodes *nodes)
{
        char path[256], victim[256], link[256];
        unsigned asked = 0;

        path_of(uid, path);
        snprintf(victim, sizeof(victim), "%s/victim", dev);
        write_file(victim, "precious");
        CHECK_INT(symlink(victim, path), 0);
        CHECK_INT(private_node_shut(nodes, uid), 0);
        CHECK_INT(look(victim).st_mode & 07777, 0644);
        CHECK_INT(give(nodes), 1);
        CHECK(S_ISBLK(look(path).st_mode));
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(symlink(victim, path), 0);
        CHECK_INT(private_nodes_sweep(nodes, keep_all, &asked), 1);
        CHECK_INT(look(victim).st_mode & 07777, 0644);
        CHECK_INT(unlink(victim), 0);
        snprintf(link, sizeof(link), "%s-link", dev);
        CHECK_INT(symlink(dev, link), 0);
        CHECK_INT(private_nodes_open(
                          &(const struct private_nodes_config){.dev = link, .sys = sys, .instance = "/run/a"},
                          &nodes),
                -ELOOP);
        CHECK_INT(unlink(link), 0);
}

static void test_a_directory_of_another_user_is_refused(void)
{
        struct private_nodes *nodes = NULL;
        char path[256];

        path_of("", path);
        CHECK_INT(chown(path, STRANGER, 0), 0);
        CHECK_INT(private_nodes_open(
                          &(const struct private_nodes_config){.dev = dev, .sys = sys, .instance = "/run/a"},
                          &nodes),
                -EPERM);
        CHECK_INT(chown(path, 0, 0), 0);
        CHECK_INT(chmod(path, 0733), 0);
        CHECK_INT(private_nodes_open(
                          &(const struct private_nodes_config){.dev = dev, .sys = sys, .instance = "/run/a"},
                          &nodes),
                -EPERM);
        CHECK_INT(chmod(path, 0711), 0);
}

static bool can_make_nodes(void)
{
        char path[256];

        if (geteuid() != 0)
                return false;
        snprintf(dev, sizeof(dev), "/tmp/ublkd-test-dev-XXXXXX");
        snprintf(sys, sizeof(sys), "/tmp/ublkd-test-sys-XXXXXX");
        if (!mkdtemp(dev) || !CHECK(mkdtemp(sys)))
                return false;
        snprintf(path, sizeof(path), "%s/probe", dev);
        return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
               && mount("tmpfs", dev, "tmpfs", 0, "mode=0755") == 0
               && mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, 0)) == 0 && unlink(path) == 0;
}

int main(void)
{
        struct private_nodes *nodes;
        bool can = can_make_nodes();

        if (can) {
                make_dir("block");
                make_dir("block/ublkb7");
                make_dir("dev");
                make_dir("dev/block");
                make_dir("dev/block/7:0");
                set_disk("1001");
                nodes = open_as("/run/ublkd");
                test_no_user_lists_the_nodes();
                test_only_the_owner_opens_it(nodes);
                test_a_bind_mount_loses_its_rights(nodes);
                test_an_acl_of_the_owner_goes_with_it(nodes);
                test_the_next_disk_of_the_number_gets_another_inode(nodes);
                test_no_node_without_a_disk_or_for_root(nodes);
                test_a_sweep_removes_what_leads_to_another_disk(nodes);
                test_a_sweep_leaves_the_nodes_of_another_ublkd(nodes);
                test_a_sweep_removes_what_is_half_made(nodes);
                test_a_planted_link_is_not_followed(nodes);
                private_nodes_free(nodes);
                test_a_directory_of_another_user_is_refused();
        }
        (void)umount2(dev, MNT_DETACH);
        if (*dev)
                CHECK_INT(remove_tree(dev), 0);
        if (*sys)
                CHECK_INT(remove_tree(sys), 0);
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
