/* SPDX-License-Identifier: MIT */
/* Real containers, a private node of a loop disk, and its delivery. */
#include "tests/unit/ublkd/nodes/container_world.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { LOOP_MAJOR = 7, DEADLINE_USEC = 60 * 1000 * 1000 };

const char node_uid[] = "11111111-2222-4333-8444-555555555555";
struct private_nodes *nodes;
sd_event *event;
static char dev[64], sys[64], there[64];

/* ---- containers ---- */

static int write_to(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int become(uid_t user)
{
        return setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0 ? -1 : 0;
}

static int become_tenant(void)
{
        return become(TENANT);
}

/* There: a directory for the node, one that the tenant may not write to, a link, and a file. */
static int make_there(unsigned long propagation, const char *options)
{
        char path[128];

        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                || mount("tmpfs", there, "tmpfs", 0, options) < 0
                || mount(NULL, there, NULL, propagation, NULL) < 0)
                return -1;
        snprintf(path, sizeof(path), "%s/closed", there);
        if (mkdir(path, 0555) < 0)
                return -1;
        snprintf(path, sizeof(path), "%s/link", there);
        if (symlink(".", path) < 0)
                return -1;
        snprintf(path, sizeof(path), "%s/file", there);
        return write_to(path, "precious");
}

static int enter_users_of(uid_t user)
{
        char map[32];

        snprintf(map, sizeof(map), "0 %u 1", user);
        if (become(user) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0
                || write_to("/proc/self/setgroups", "deny") < 0 || write_to("/proc/self/uid_map", map) < 0
                || write_to("/proc/self/gid_map", map) < 0)
                return -1;
        return 0;
}

static int enter_users(void)
{
        return enter_users_of(TENANT);
}

int enter_rootless(void)
{
        return enter_users() < 0 ? -1 : make_there(MS_PRIVATE, "mode=0755");
}

int enter_rootless_of_another(void)
{
        return enter_users_of(ANOTHER) < 0 ? -1 : make_there(MS_PRIVATE, "mode=0755");
}

uid_t rootless_user;

int enter_rootless_of_any(void)
{
        return enter_users_of(rootless_user) < 0 ? -1 : make_there(MS_PRIVATE, "mode=0755");
}

/* As a rootless container that has made itself another root directory, without its mount namespace. */
int enter_rootless_chroot(void)
{
        return enter_rootless() < 0 || chroot(there) < 0 ? -1 : 0;
}

int enter_mounts(void)
{
        return unshare(CLONE_NEWNS) < 0 || make_there(MS_PRIVATE, "mode=0777") < 0 ? -1 : become_tenant();
}

int enter_shared_mounts(void)
{
        return enter_users() < 0 ? -1 : make_there(MS_SHARED, "mode=0755");
}

/* As a sandbox in a container without a user namespace: its user namespace has no right over the mounts. */
int enter_users_of_others_mounts(void)
{
        return enter_mounts() < 0 ? -1 : unshare(CLONE_NEWUSER);
}

int enter_nothing(void)
{
        return become_tenant();
}

/* A file system whose server never answers. */
int enter_silent(void)
{
        char path[128], options[128];
        int fuse;

        if (enter_rootless() < 0)
                return -1;
        snprintf(path, sizeof(path), "%s/silent", there);
        fuse = open("/dev/fuse", O_RDWR); /* it stays open */
        snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
        return fuse < 0 || mkdir(path, 0755) < 0 || mount("silent", path, "fuse", 0, options) < 0 ? -1 : 0;
}

/* Each path that comes: 0, or the errno. A node that may be opened, without its disk on this machine, counts as open. */
static void answer_questions(int question, int answer)
{
        char path[128];
        ssize_t n;

        while ((n = read(question, path, sizeof(path))) > 0) {
                int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 && errno != ENXIO ? errno : 0;

                close_fd(fd);
                if (write(answer, &error, sizeof(error)) != sizeof(error))
                        _exit(1);
        }
        _exit(0);
}

struct container container_start(int (*enter)(void))
{
        int question[2], answer[2], ready = -1;
        struct container container;

        CHECK(pipe2(question, O_CLOEXEC) == 0 && pipe2(answer, O_CLOEXEC) == 0);
        container.pid = fork();
        if (container.pid == 0) {
                int result = enter() < 0 ? errno : 0;

                close(question[1]);
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (write(answer[1], &result, sizeof(result)) == sizeof(result))
                        answer_questions(question[0], answer[1]);
                _exit(1);
        }
        close(question[0]);
        close(answer[1]);
        CHECK_INT(read(answer[0], &ready, sizeof(ready)), (ssize_t)sizeof(ready));
        CHECK_INT(ready, 0);
        container.pidfd = pidfd_open(container.pid, 0);
        container.question = question[1];
        container.answer = answer[0];
        return container;
}

int container_open(const struct container *container, const char *path)
{
        char text[128] = "";
        int error = -1;

        snprintf(text, sizeof(text), "%s", path);
        CHECK_INT(write(container->question, text, sizeof(text)), (ssize_t)sizeof(text));
        CHECK_INT(read(container->answer, &error, sizeof(error)), (ssize_t)sizeof(error));
        return error;
}

int run_inside(const struct container *container, int (*work)(const char *path), const char *path)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                if (setns(container->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0 || setresgid(0, 0, 0) < 0
                        || setresuid(0, 0, 0) < 0)
                        _exit(255);
                _exit(work(path) < 0 ? errno : 0);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int open_inside(const struct container *container, const char *path)
{
        char name[160];

        snprintf(name, sizeof(name), "/proc/%d/root%s", (int)container->pid, path);
        return open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void container_end(struct container *container)
{
        (void)kill(container->pid, SIGKILL);
        CHECK_INT(waitpid(container->pid, NULL, 0), container->pid);
        close(container->question);
        close(container->answer);
        close_fd(container->pidfd);
}

static int open_namespace(const struct container *container, const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)container->pid, name);
        return open(path, O_RDONLY | O_CLOEXEC);
}

static int answer_init(int fuse)
{
        static char request[FUSE_MIN_READ_BUFFER];
        const struct fuse_in_header *in = (const void *)request;
        struct {
                struct fuse_out_header head;
                struct fuse_init_out body;
        } answer = {
                .head = {.len = sizeof(answer)},
                .body = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096},
        };

        if (read(fuse, request, sizeof(request)) < (ssize_t)sizeof(*in) || in->opcode != FUSE_INIT)
                return -1;
        answer.head.unique = in->unique;
        return write(fuse, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : -1;
}

static int cover(int users, int mounts, const char *directory, const char *path)
{
        char options[128];
        int fuse;

        if (become_tenant() < 0 || setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0
                || mount("tmpfs", directory, "tmpfs", 0, "mode=0755") < 0 || write_to(path, "") < 0)
                return -1;
        fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC); /* it stays open */
        snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0,allow_other", fuse);
        return fuse < 0 || mount("silent", path, "fuse", MS_NOSUID | MS_NODEV, options) < 0
                       ? -1
                       : answer_init(fuse);
}

pid_t container_cover(const struct container *container, const char *directory, const char *path)
{
        int users = open_namespace(container, "user"), mounts = open_namespace(container, "mnt");
        int ready[2], result = -1;
        pid_t pid;

        CHECK(pipe2(ready, O_CLOEXEC) == 0);
        pid = fork();
        if (pid == 0) {
                result = cover(users, mounts, directory, path) < 0 ? errno : 0;
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (write(ready[1], &result, sizeof(result)) == sizeof(result))
                        (void)pause();
                _exit(1);
        }
        close(ready[1]);
        CHECK_INT(read(ready[0], &result, sizeof(result)), (ssize_t)sizeof(result));
        CHECK_INT(result, 0);
        close(ready[0]);
        close_fd(users);
        close_fd(mounts);
        return pid;
}

/* ---- deliveries ---- */

struct node_deliveries *deliveries_new_with(uint64_t patience_usec)
{
        struct node_deliveries *deliveries = NULL;

        CHECK_INT(node_deliveries_new(event, &(const struct delivery_limits){.patience_usec = patience_usec},
                          &deliveries),
                0);
        return deliveries;
}

struct node_deliveries *deliveries_new(void)
{
        return deliveries_new_with(DEADLINE_USEC);
}

static void on_done(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

int begin_delivery(struct node_deliveries *deliveries, const struct container *container, uid_t user,
        const char *path, struct delivery_report *report, struct node_delivery **ret)
{
        _cleanup_close_ int tree = private_node_clone(nodes, node_uid);

        CHECK(tree >= 0);
        report->outcome = _DELIVERY_OUTCOME_MAX;
        return node_delivery_begin(deliveries,
                &(const struct delivery_request){
                        .pid = container->pid,
                        .pidfd = container->pidfd,
                        .account = user,
                        .uid = user,
                        .gid = user,
                        .path = path,
                        .tree = tree,
                },
                on_done, report, ret);
}

bool wait_for_report(const struct delivery_report *report)
{
        while (report->outcome == _DELIVERY_OUTCOME_MAX)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        return false;
        return true;
}

struct delivery_report deliver_as(const struct container *container, uid_t user, const char *path)
{
        struct node_deliveries *deliveries = deliveries_new();
        struct node_delivery *delivery;
        struct delivery_report report;

        CHECK_INT(begin_delivery(deliveries, container, user, path, &report, &delivery), 0);
        (void)wait_for_report(&report);
        node_deliveries_free(deliveries);
        return report;
}

struct delivery_report deliver(const struct container *container, const char *name)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", there, name);
        return deliver_as(container, TENANT, path);
}

void check_report_is(struct delivery_report report, enum delivery_outcome outcome, int error)
{
        CHECK_INT(report.outcome, outcome);
        CHECK_INT(report.error, error);
}

bool give_node(void)
{
        return CHECK(private_node_give(nodes,
                             &(const struct private_node){.uid = node_uid, .number = 7, .owner = TENANT})
                     >= 0);
}

void path_there(const char *name, char ret[static 128])
{
        snprintf(ret, 128, "%s/%s", there, name);
}

static void write_sys(const char *name, const char *text)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", sys, name);
        CHECK_INT(write_to(path, text), 0);
}

static void make_dir(const char *name)
{
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", sys, name);
        CHECK_INT(mkdir(path, 0755), 0);
}

static bool can_make_nodes(void)
{
        char path[256];

        if (geteuid() != 0)
                return false;
        snprintf(dev, sizeof(dev), "/tmp/ublkd-test-dev-XXXXXX");
        snprintf(sys, sizeof(sys), "/tmp/ublkd-test-sys-XXXXXX");
        snprintf(there, sizeof(there), "/tmp/ublkd-test-there-XXXXXX");
        if (!mkdtemp(dev) || !CHECK(mkdtemp(sys)) || !CHECK(mkdtemp(there)))
                return false;
        CHECK_INT(chmod(there, 0755), 0);
        /* Shared, as systemd makes /dev. */
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                || mount("tmpfs", dev, "tmpfs", 0, NULL) < 0 || mount(NULL, dev, NULL, MS_SHARED, NULL) < 0)
                return false;
        snprintf(path, sizeof(path), "%s/probe", dev);
        return mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, 0)) == 0 && unlink(path) == 0;
}

static void make_node(void)
{
        make_dir("block");
        make_dir("block/ublkb7");
        make_dir("dev");
        make_dir("dev/block");
        make_dir("dev/block/7:0");
        write_sys("block/ublkb7/dev", "7:0\n");
        write_sys("block/ublkb7/diskseq", "1001");
        write_sys("dev/block/7:0/diskseq", "1001");
        CHECK_INT(private_nodes_open(
                          &(const struct private_nodes_config){
                                  .dev = dev, .sys = sys, .instance = "/run/ublkd"},
                          &nodes),
                0);
}

bool world_open(void)
{
        bool can = can_make_nodes();

        CHECK(sd_event_new(&event) >= 0);
        if (can)
                make_node();
        return can && nodes && give_node();
}

void world_close(void)
{
        private_nodes_free(nodes);
        sd_event_unref(event);
        (void)umount2(dev, MNT_DETACH);
        if (*dev)
                CHECK_INT(remove_tree(dev), 0);
        if (*sys)
                CHECK_INT(remove_tree(sys), 0);
        if (*there)
                CHECK_INT(remove_tree(there), 0);
}
