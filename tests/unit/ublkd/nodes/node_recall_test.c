/* SPDX-License-Identifier: MIT */
/* node_recall: a node that was taken back is unmounted in real containers, by the real process. */
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/container_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DEADLINE_USEC = 20 * 1000 * 1000, PAUSE_USEC = 300 * 1000, LOOKS_MAX = 10 };

/* Looks, until none follows. */
struct looks {
        bool ended;
        int error; /* of the last one */
};

static void on_ended(void *userdata)
{
        ((struct looks *)userdata)->ended = true;
}

static void on_failed(void *userdata, int error)
{
        ((struct looks *)userdata)->error = error;
}

/* Ask `asks` times at once, and wait until no process runs. Return the error. */
static int recall_times(int asks, uint64_t pause_usec)
{
        struct node_recall *recall = NULL;
        struct looks looks = {};

        CHECK_INT(node_recall_new(event, nodes,
                          &(const struct node_recall_options){.pause_usec = pause_usec,
                                  .ended = on_ended,
                                  .failed = on_failed,
                                  .userdata = &looks},
                          &recall),
                0);
        for (int i = 0; i < asks; i++)
                node_recall_ask(recall);
        while (!looks.ended)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
        node_recall_free(recall);
        return looks.error;
}

/* On a machine that has much to do, the containers of a user may need more time than a look gives them. */
static void recall_all(void)
{
        int error = -ETIMEDOUT;

        for (int i = 0; i < LOOKS_MAX && error == -ETIMEDOUT; i++)
                error = recall_times(1, 0);
        CHECK_INT(error, 0);
}

/* Return how many processes of our looks are left: they are our children, as main() asks for. A zombie is none. */
static int count_left_over(void)
{
        static const char name[] = "(ublkd-recall) ";
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        int count = 0;

        while (CHECK(proc) && (entry = readdir(proc))) {
                char path[300], text[128] = "", state;
                const char *rest;
                int parent;

                snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
                (void)read_line_at(AT_FDCWD, path, text, sizeof(text));
                rest = strstr(text, name);
                if (rest && sscanf(rest + strlen(name), "%c %d", &state, &parent) == 2 && state != 'Z'
                        && parent == getpid())
                        count++;
        }
        closedir(proc);
        return count;
}

/* As root of the host, in the mount namespace of the container; return 0 or the errno. */
static int do_in(const struct container *container, int (*act)(const char *path), const char *path)
{
        char name[64];
        int status = -1, mounts;
        pid_t pid;

        snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)container->pid);
        mounts = open(name, O_RDONLY | O_CLOEXEC);
        pid = fork();
        if (pid == 0)
                _exit(setns(mounts, CLONE_NEWNS) < 0 ? 255 : act(path) < 0 ? errno : 0);
        close_fd(mounts);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int act_unmount(const char *path)
{
        return umount2(path, MNT_DETACH);
}

static int act_cover(const char *path)
{
        return mount("tmpfs", path, "tmpfs", 0, "mode=0755");
}

static int act_let_others_write(const char *path)
{
        return chmod(path, 0666);
}

static int act_is_socket(const char *path)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return -1;
        errno = EINVAL;
        return S_ISSOCK(st.st_mode) ? 0 : -1;
}

static char node_path[256];

static int act_bind_node(const char *path)
{
        return mknod(path, S_IFREG | 0600, 0) < 0 ? -1 : mount(node_path, path, NULL, MS_BIND, NULL);
}

/* What is left is the socket of the delivery. */
static void check_is_unmounted(const struct container *container, const char *path)
{
        CHECK_INT(do_in(container, act_is_socket, path), 0);
}

static struct container container_with_node(char path[static 128])
{
        struct container container = container_start(enter_rootless);

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), 0);
        return container;
}

/* ---- what goes ---- */

static void test_a_node_that_was_taken_back_is_unmounted(void)
{
        char path[128];
        struct container container = container_with_node(path);

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        recall_all();
        check_is_unmounted(&container, path);
        (void)give_node();
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0); /* to the same path */
        CHECK_INT(container_open(&container, path), 0);
        container_end(&container);
}

static void test_all_containers_in_one_look(void)
{
        char path[128];
        struct container first = container_with_node(path), second = container_with_node(path);
        uint64_t begin;

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        begin = monotonic_now();
        (void)recall_times(3, PAUSE_USEC); /* the second look is for the last two */
        CHECK(monotonic_now() - begin >= PAUSE_USEC);
        recall_all();
        check_is_unmounted(&first, path);
        check_is_unmounted(&second, path);
        container_end(&first);
        container_end(&second);
        (void)give_node();
}

/* ---- what stays ---- */

static void test_a_node_in_use_stays(void)
{
        char path[128];
        struct container container = container_with_node(path);

        recall_all();
        CHECK_INT(container_open(&container, path), 0);
        CHECK_INT(private_node_shut(nodes, node_uid), 0); /* until the driver has refused to stop the disk */
        recall_all();
        CHECK_INT(container_open(&container, path), EACCES);
        (void)give_node();
        CHECK_INT(container_open(&container, path), 0);
        container_end(&container);
}

/* Where the node was, no program writes into a file instead. */
static void test_a_socket_is_below_the_node(void)
{
        char path[128];
        struct container container = container_with_node(path);

        CHECK_INT(do_in(&container, act_is_socket, path), EINVAL);
        CHECK_INT(do_in(&container, act_unmount, path), 0);
        CHECK_INT(do_in(&container, act_is_socket, path), 0);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        CHECK_INT(do_in(&container, act_is_socket, path), 0);
        (void)give_node();
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0); /* over what is left */
        CHECK_INT(container_open(&container, path), 0);
        check_report_is(deliver(&container, "data"), DELIVERY_NO_FILE, -EEXIST);
        CHECK_INT(do_in(&container, act_unmount, path), 0);
        CHECK_INT(do_in(&container, act_let_others_write, path), 0); /* it is not as a delivery leaves it */
        check_report_is(deliver(&container, "data"), DELIVERY_NO_FILE, -EEXIST);
        container_end(&container);
}

static void test_a_covered_mount_stays(void)
{
        char path[128], directory[128];
        struct container container = container_with_node(path);

        path_there("", directory);
        CHECK_INT(do_in(&container, act_cover, directory), 0);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        CHECK_INT(do_in(&container, act_unmount, directory), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        recall_all();
        check_is_unmounted(&container, path);
        container_end(&container);
        (void)give_node();
}

/* It is locked there, and opens nothing. */
static void test_the_copy_of_a_container_in_the_container_stays(void)
{
        char path[128], name[64];
        struct container container = container_with_node(path);
        int ready[2], users, mounts;
        char byte;
        pid_t pid;

        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        snprintf(name, sizeof(name), "/proc/%d/ns/user", (int)container.pid);
        users = open(name, O_RDONLY | O_CLOEXEC);
        snprintf(name, sizeof(name), "/proc/%d/ns/mnt", (int)container.pid);
        mounts = open(name, O_RDONLY | O_CLOEXEC);
        pid = fork();
        if (pid == 0) {
                if (setresgid(TENANT, TENANT, TENANT) < 0 || setresuid(TENANT, TENANT, TENANT) < 0
                        || setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0
                        || unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write(ready[1], "x", 1) != 1)
                        _exit(1);
                (void)pause();
                _exit(0);
        }
        close(ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        check_is_unmounted(&container, path);
        CHECK_INT(do_in(&(const struct container){.pid = pid}, act_is_socket, path), EINVAL);
        (void)kill(pid, SIGKILL);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        close(users);
        close(mounts);
        close(ready[0]);
        container_end(&container);
        (void)give_node();
}

/* The look neither asks the file system, nor takes it for a failure: this one would never answer. The kernel lets nothing be mounted over
 * a node without a name, so it is over another file, which hides the node. */
static void test_a_file_system_that_never_answers_is_not_asked(void)
{
        char path[128], directory[128];
        struct container container = container_with_node(path);
        pid_t server;

        path_there("", directory);
        server = container_cover(&container, directory, path);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        CHECK_INT(count_left_over(), 0);
        (void)kill(server, SIGKILL);
        CHECK_INT(waitpid(server, NULL, 0), server);
        CHECK_INT(do_in(&container, act_unmount, directory), 0);
        recall_all();
        check_is_unmounted(&container, path);
        container_end(&container);
        (void)give_node();
}

static void test_a_child_that_is_stopped_is_killed(void)
{
        char path[128];
        struct container container = container_with_node(path);

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        CHECK_INT(setenv("TEST_STOP", "1", 1), 0);
        CHECK_INT(recall_times(1, 0), -ETIMEDOUT);
        CHECK_INT(count_left_over(), 0);
        CHECK_INT(unsetenv("TEST_STOP"), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        recall_all();
        check_is_unmounted(&container, path);
        container_end(&container);
        (void)give_node();
}

/* There CAP_SYS_ADMIN would be a right over the host. */
static void test_a_namespace_of_the_host_is_left_alone(void)
{
        struct container container = container_start(enter_mounts);
        char path[128], link[32];
        ssize_t length;

        path_there("data", path);
        snprintf(link, sizeof(link), "/proc/self/fd/%d", private_nodes_directory(nodes));
        length = readlink(link, node_path, sizeof(node_path) - 1);
        CHECK(length > 0);
        snprintf(node_path + length, sizeof(node_path) - (size_t)length, "/%s", node_uid);
        CHECK_INT(do_in(&container, act_bind_node, path), 0);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        CHECK_INT(container_open(&container, path), EACCES);
        container_end(&container);
        (void)give_node();
}

/* ---- while it is delivered ---- */

static void on_done(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

static void check_taken_back_on_its_way(int (*take)(struct private_nodes *nodes, const char *uid))
{
        struct container container = container_start(enter_rootless);
        struct node_deliveries *deliveries = deliveries_new();
        struct delivery_report report = {.outcome = _DELIVERY_OUTCOME_MAX};
        _cleanup_close_ int tree = private_node_clone(nodes, node_uid);
        struct node_delivery *delivery;
        char path[128];

        path_there("data", path);
        CHECK_INT(take(nodes, node_uid), 0);
        CHECK_INT(node_delivery_begin(deliveries,
                          &(const struct delivery_request){
                                  .pid = container.pid,
                                  .pidfd = container.pidfd,
                                  .uid = TENANT,
                                  .gid = TENANT,
                                  .path = path,
                                  .tree = tree,
                          },
                          on_done, &report, &delivery),
                0);
        (void)wait_for_report(&report);
        check_report_is(report, DELIVERY_TAKEN_BACK, 0);
        CHECK_INT(container_open(&container, path), ENOENT);
        node_deliveries_free(deliveries);
        container_end(&container);
        (void)give_node();
}

static void test_a_node_that_is_taken_back_on_its_way_is_not_left(void)
{
        check_taken_back_on_its_way(private_node_shut);
        check_taken_back_on_its_way(private_node_remove);
}

/* As a container does to the child, at the worst time. */
int __real_umount2(const char *target, int flags);
int __wrap_umount2(const char *target, int flags);

int __wrap_umount2(const char *target, int flags)
{
        if (getenv("TEST_STOP"))
                (void)raise(SIGSTOP);
        return __real_umount2(target, flags);
}

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        if (argc == 2 && strcmp(argv[1], NODE_RECALL_OPTION) == 0)
                return recall_process_main();
        CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        can = world_open();
        if (can) {
                test_a_node_that_was_taken_back_is_unmounted();
                test_all_containers_in_one_look();
                test_the_copy_of_a_container_in_the_container_stays();
                test_a_node_in_use_stays();
                test_a_socket_is_below_the_node();
                test_a_covered_mount_stays();
                test_a_file_system_that_never_answers_is_not_asked();
                test_a_child_that_is_stopped_is_killed();
                test_a_namespace_of_the_host_is_left_alone();
                test_a_node_that_is_taken_back_on_its_way_is_not_left();
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
