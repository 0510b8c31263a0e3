/* SPDX-License-Identifier: MIT */
/* node_recall: a node that was taken back is unmounted in real containers, by the real process. */
#include "ublkd/nodes/node_recall.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/container_world.h"
#include "tests/unit/ublkd/nodes/recall_looks.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PAUSE_USEC = 300 * 1000 };

static int act_let_others_write(const char *path)
{
        return chmod(path, 0666);
}

static char node_path[256];

static int act_bind_node(const char *path)
{
        return mknod(path, S_IFREG | 0600, 0) < 0 ? -1 : mount(node_path, path, NULL, MS_BIND, NULL);
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

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        if (argc == 2 && strcmp(argv[1], NODE_RECALL_OPTION) == 0)
                return recall_process_main();
        can = world_open();
        if (can) {
                test_a_node_that_was_taken_back_is_unmounted();
                test_all_containers_in_one_look();
                test_the_copy_of_a_container_in_the_container_stays();
                test_a_node_in_use_stays();
                test_a_socket_is_below_the_node();
                test_a_covered_mount_stays();
                test_a_namespace_of_the_host_is_left_alone();
                test_a_node_that_is_taken_back_on_its_way_is_not_left();
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
