/* SPDX-License-Identifier: MIT */
/* node_delivery: a node comes into real namespaces, by the real process. The node is that of a loop disk; only the tree
 * of /sys is made up. Needs root. */
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/private_node.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { TENANT = 1000, LOOP_MAJOR = 7, PATIENCE_USEC = 300 * 1000, DEADLINE_USEC = 20 * 1000 * 1000 };

static const char uid[] = "11111111-2222-4333-8444-555555555555";
static char dev[64], sys[64], there[64];
static struct private_nodes *nodes;
static sd_event *event;

/* ---- containers ---- */

static int write_to(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int become_tenant(void)
{
        return setresgid(TENANT, TENANT, TENANT) < 0 || setresuid(TENANT, TENANT, TENANT) < 0 ? -1 : 0;
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

static int enter_users(void)
{
        if (become_tenant() < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0
                || write_to("/proc/self/setgroups", "deny") < 0
                || write_to("/proc/self/uid_map", "0 1000 1") < 0
                || write_to("/proc/self/gid_map", "0 1000 1") < 0)
                return -1;
        return 0;
}

static int enter_rootless(void)
{
        return enter_users() < 0 ? -1 : make_there(MS_PRIVATE, "mode=0755");
}

/* As a rootless container that has made itself another root directory, without its mount namespace. */
static int enter_rootless_chroot(void)
{
        return enter_rootless() < 0 || chroot(there) < 0 ? -1 : 0;
}

static int enter_mounts(void)
{
        return unshare(CLONE_NEWNS) < 0 || make_there(MS_PRIVATE, "mode=0777") < 0 ? -1 : become_tenant();
}

static int enter_shared_mounts(void)
{
        return enter_users() < 0 ? -1 : make_there(MS_SHARED, "mode=0755");
}

/* As a sandbox in a container without a user namespace: its user namespace has no right over the mounts. */
static int enter_users_of_others_mounts(void)
{
        return enter_mounts() < 0 ? -1 : unshare(CLONE_NEWUSER);
}

static int stay(void)
{
        return become_tenant();
}

/* A file system whose server never answers. */
static int enter_silent(void)
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

struct container {
        pid_t pid;
        int pidfd, question, answer;
};

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

static struct container container_start(int (*enter)(void))
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

static int container_open(const struct container *container, const char *path)
{
        char text[128] = "";
        int error = -1;

        snprintf(text, sizeof(text), "%s", path);
        CHECK_INT(write(container->question, text, sizeof(text)), (ssize_t)sizeof(text));
        CHECK_INT(read(container->answer, &error, sizeof(error)), (ssize_t)sizeof(error));
        return error;
}

static void container_end(struct container *container)
{
        (void)kill(container->pid, SIGKILL);
        CHECK_INT(waitpid(container->pid, NULL, 0), container->pid);
        close(container->question);
        close(container->answer);
        close_fd(container->pidfd);
}

/* ---- deliveries ---- */

static struct node_deliveries *deliveries_new(void)
{
        struct node_deliveries *deliveries = NULL;

        CHECK_INT(node_deliveries_new(event, &(const struct delivery_limits){.patience_usec = PATIENCE_USEC},
                          &deliveries),
                0);
        return deliveries;
}

static void on_done(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

static int begin(struct node_deliveries *deliveries, const struct container *container, uid_t user,
        const char *path, struct delivery_report *report, struct node_delivery **ret)
{
        _cleanup_close_ int tree = private_node_clone(nodes, uid);

        CHECK(tree >= 0);
        report->outcome = _DELIVERY_OUTCOME_MAX;
        return node_delivery_begin(deliveries,
                &(const struct delivery_request){
                        .pid = container->pid,
                        .pidfd = container->pidfd,
                        .uid = user,
                        .gid = user,
                        .path = path,
                        .tree = tree,
                },
                on_done, report, ret);
}

static bool wait_for(const struct delivery_report *report)
{
        while (report->outcome == _DELIVERY_OUTCOME_MAX)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        return false;
        return true;
}

static struct delivery_report deliver_as(const struct container *container, uid_t user, const char *path)
{
        struct node_deliveries *deliveries = deliveries_new();
        struct node_delivery *delivery;
        struct delivery_report report;

        CHECK_INT(begin(deliveries, container, user, path, &report, &delivery), 0);
        (void)wait_for(&report);
        node_deliveries_free(deliveries);
        return report;
}

static struct delivery_report deliver(const struct container *container, const char *name)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", there, name);
        return deliver_as(container, TENANT, path);
}

static void check_report_is(struct delivery_report report, enum delivery_outcome outcome, int error)
{
        CHECK_INT(report.outcome, outcome);
        CHECK_INT(report.error, error);
}

static bool give(void)
{
        return CHECK(private_node_give(
                             nodes, &(const struct private_node){.uid = uid, .number = 7, .owner = TENANT})
                     >= 0);
}

static void path_there(const char *name, char ret[static 128])
{
        snprintf(ret, 128, "%s/%s", there, name);
}

/* ---- what is delivered ---- */

static void test_the_node_comes_into_a_container(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), 0);
        CHECK(access(path, F_OK) < 0); /* not here */
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        container_end(&container);
        (void)give();
}

/* Return whether the mount at the path gives what is mounted on it to other mounts, or gets it from them. */
static bool has_peers(pid_t pid, const char *path)
{
        char name[64], line[1024];
        bool found = false, peers = false;
        FILE *list;

        snprintf(name, sizeof(name), "/proc/%d/mountinfo", (int)pid);
        list = fopen(name, "re");
        while (list && fgets(line, sizeof(line), list))
                if (strstr(line, path)) {
                        found = true;
                        peers = strstr(line, " shared:") || strstr(line, " master:");
                }
        CHECK(found);
        if (list)
                (void)fclose(list);
        return peers;
}

/* Else the container could cover the node of the host, and ublkd would take back something else. */
static void test_what_is_mounted_on_the_node_stays_in_the_container(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
        CHECK(!has_peers(container.pid, path));
        container_end(&container);
}

static void test_the_root_directory_is_that_of_the_process(void)
{
        struct container container = container_start(enter_rootless_chroot);

        check_report_is(deliver_as(&container, TENANT, "/data"), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, "/data"), 0);
        check_report_is(deliver_as(&container, TENANT, "/../../etc/ublkd-data"), DELIVERY_NO_FILE, -ENOENT);
        container_end(&container);
}

/* ---- what is refused ---- */

static void test_no_file_is_covered_and_no_link_followed(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];

        check_report_is(deliver(&container, "file"), DELIVERY_NO_FILE, -EEXIST);
        check_report_is(deliver(&container, "link"), DELIVERY_NO_FILE, -EEXIST);
        check_report_is(deliver(&container, "link/data"), DELIVERY_NO_FILE, -ELOOP);
        check_report_is(deliver(&container, "none/data"), DELIVERY_NO_FILE, -ENOENT);
        check_report_is(deliver(&container, "file/data"), DELIVERY_NO_FILE, -ENOTDIR);
        check_report_is(deliver(&container, ".."), DELIVERY_NO_FILE, -EINVAL);
        check_report_is(deliver_as(&container, TENANT, "/proc/self/fd/3/data"), DELIVERY_NO_FILE, -ELOOP);
        path_there("file", path);
        CHECK_INT(container_open(&container, path), 0);
        container_end(&container);
}

/* It would be root of the container that creates the file, not the client. */
static void test_the_file_is_created_with_the_rights_of_the_client(void)
{
        struct container container = container_start(enter_rootless);

        check_report_is(deliver(&container, "closed/data"), DELIVERY_NO_FILE, -EACCES);
        check_report_is(deliver_as(&container, TENANT, "/etc/ublkd-data"), DELIVERY_NO_FILE, -EACCES);
        container_end(&container);
}

/* The right of the process that delivers ends at the user namespace of the client. */
static void test_mounts_of_another_user_namespace_stay_as_they_are(void)
{
        struct container container = container_start(enter_users_of_others_mounts);
        char path[128];

        check_report_is(deliver(&container, "data"), DELIVERY_NOT_MOUNTED, -EPERM);
        path_there("data", path);
        CHECK_INT(container_open(&container, path), ENOENT);
        container_end(&container);
}

static void test_a_shared_mount_is_refused(void)
{
        struct container container = container_start(enter_shared_mounts);
        char path[128];

        check_report_is(deliver(&container, "data"), DELIVERY_SHARED, 0);
        path_there("data", path);
        CHECK_INT(container_open(&container, path), ENOENT);
        container_end(&container);
}

static void test_a_process_without_users_of_its_own_is_refused(void)
{
        struct container container = container_start(stay);

        check_report_is(deliver(&container, "data"), DELIVERY_AT_HOME, 0);
        container_end(&container);
        container = container_start(enter_mounts);
        check_report_is(deliver(&container, "data"), DELIVERY_WITHOUT_USERS, 0);
        container_end(&container);
        container = container_start(enter_rootless);
        check_report_is(deliver_as(&container, 0, "/tmp/data"), DELIVERY_WITHOUT_USERS, 0);
        container_end(&container);
}

static void test_a_process_that_has_ended_gets_nothing(void)
{
        struct container container = container_start(enter_rootless);

        (void)kill(container.pid, SIGKILL);
        CHECK_INT(waitid(P_PID, (id_t)container.pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
        CHECK_INT(deliver(&container, "data").outcome, DELIVERY_ENDED);
        container_end(&container);
}

static void test_paths_that_name_no_file(void)
{
        struct container container = container_start(enter_rootless);
        struct node_deliveries *deliveries = deliveries_new();
        struct node_delivery *delivery;
        struct delivery_report report;

        CHECK_INT(begin(deliveries, &container, TENANT, "data", &report, &delivery), -EINVAL);
        CHECK_INT(begin(deliveries, &container, TENANT, "/", &report, &delivery), -EINVAL);
        CHECK_INT(begin(deliveries, &container, TENANT, "/data/", &report, &delivery), -EINVAL);
        CHECK_INT(begin(deliveries, &container, TENANT, "", &report, &delivery), -EINVAL);
        node_deliveries_free(deliveries);
        container_end(&container);
}

/* The third of the same user waits for none of the first two. */
static void test_a_file_system_that_does_not_answer_holds_up_its_user_alone(void)
{
        struct container silent = container_start(enter_silent), other = container_start(enter_rootless);
        struct node_deliveries *deliveries = deliveries_new();
        struct delivery_report reports[3];
        struct node_delivery *delivery;
        char path[128], good[128];

        path_there("silent/below/data", path);
        path_there("data", good);
        for (int i = 0; i < 2; i++)
                CHECK_INT(begin(deliveries, &silent, TENANT, path, &reports[i], &delivery), 0);
        CHECK_INT(begin(deliveries, &silent, TENANT, path, &reports[2], &delivery), -EBUSY);
        CHECK_INT(begin(deliveries, &other, TENANT + 1, good, &reports[2], &delivery), 0);
        (void)wait_for(&reports[2]);
        CHECK_INT(reports[0].outcome, _DELIVERY_OUTCOME_MAX);
        for (int i = 0; i < 2; i++)
                if (wait_for(&reports[i]))
                        check_report_is(reports[i], DELIVERY_LATE, -ETIMEDOUT);
        container_end(&silent);
        container_end(&other);
        node_deliveries_free(deliveries);
}

static void test_no_tree_of_a_node_that_is_shut(void)
{
        CHECK_INT(private_node_shut(nodes, uid), 0);
        CHECK_INT(private_node_clone(nodes, uid), -ENOENT);
        CHECK_INT(private_node_remove(nodes, uid), 0);
        CHECK_INT(private_node_clone(nodes, uid), -ENOENT);
        (void)give();
}

/* ---- the whole ---- */

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

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = can_make_nodes();
        CHECK(sd_event_new(&event) >= 0);
        if (can)
                make_node();
        if (can && nodes && give()) {
                test_the_node_comes_into_a_container();
                test_what_is_mounted_on_the_node_stays_in_the_container();
                test_the_root_directory_is_that_of_the_process();
                test_no_file_is_covered_and_no_link_followed();
                test_the_file_is_created_with_the_rights_of_the_client();
                test_mounts_of_another_user_namespace_stay_as_they_are();
                test_a_shared_mount_is_refused();
                test_a_process_without_users_of_its_own_is_refused();
                test_a_process_that_has_ended_gets_nothing();
                test_paths_that_name_no_file();
                if (access("/dev/fuse", R_OK | W_OK) == 0)
                        test_a_file_system_that_does_not_answer_holds_up_its_user_alone();
                test_no_tree_of_a_node_that_is_shut();
        }
        private_nodes_free(nodes);
        sd_event_unref(event);
        (void)umount2(dev, MNT_DETACH);
        if (*dev)
                CHECK_INT(remove_tree(dev), 0);
        if (*sys)
                CHECK_INT(remove_tree(sys), 0);
        if (*there)
                CHECK_INT(remove_tree(there), 0);
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
