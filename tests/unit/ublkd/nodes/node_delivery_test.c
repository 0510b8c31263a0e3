/* SPDX-License-Identifier: MIT */
/* node_delivery: a node comes into real namespaces, by the real process. The node is that of a loop disk; only the tree
 * of /sys is made up. Needs root. */
#include "ublkd/nodes/node_delivery.h"
#include "ublkd/nodes/client_delivery.h"
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/private_node.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/no_watch.h"
#include "tests/unit/ublkd/nodes/container_world.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

/* ---- what is delivered ---- */

static void test_the_node_comes_into_a_container(void)
{
        struct container container = container_start(enter_rootless);
        char path[128];

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), 0);
        CHECK(access(path, F_OK) < 0); /* not here */
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        container_end(&container);
        (void)give_node();
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

/* As that for /dev in a container that is started with --read-only. */
static int enter_read_only(void)
{
        char path[128];

        path_there("", path);
        return enter_rootless() < 0 ? -1 : mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
}

static void test_a_read_only_file_system_is_refused(void)
{
        struct container container = container_start(enter_read_only);

        check_report_is(deliver(&container, "data"), DELIVERY_NO_FILE, -EROFS);
        container_end(&container);
}

/* The mount of the node is another one. */
static int enter_without_devices(void)
{
        char path[128];

        path_there("", path);
        return enter_rootless() < 0 ? -1 : mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_NODEV, NULL);
}

static void test_a_file_system_without_devices_does_not_hinder(void)
{
        struct container container = container_start(enter_without_devices);
        char path[128];

        path_there("data", path);
        check_report_is(deliver(&container, "data"), DELIVERY_DONE, 0);
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
        struct container container = container_start(enter_nothing);

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

        CHECK_INT(begin_delivery(deliveries, &container, TENANT, "data", &report, &delivery), -EINVAL);
        CHECK_INT(begin_delivery(deliveries, &container, TENANT, "/", &report, &delivery), -EINVAL);
        CHECK_INT(begin_delivery(deliveries, &container, TENANT, "/data/", &report, &delivery), -EINVAL);
        CHECK_INT(begin_delivery(deliveries, &container, TENANT, "", &report, &delivery), -EINVAL);
        node_deliveries_free(deliveries);
        container_end(&container);
}

enum { LATE_USEC = 3 * 1000 * 1000 }; /* the good one has to be done before */

/* The third of the same user waits for none of the first two. */
static void test_a_file_system_that_does_not_answer_holds_up_its_user_alone(void)
{
        struct container silent = container_start(enter_silent), other = container_start(enter_rootless);
        struct node_deliveries *deliveries = deliveries_new_with(LATE_USEC);
        struct delivery_report reports[3];
        struct node_delivery *delivery;
        char path[128], good[128];

        path_there("silent/below/data", path);
        path_there("data", good);
        for (int i = 0; i < 2; i++)
                CHECK_INT(begin_delivery(deliveries, &silent, TENANT, path, &reports[i], &delivery), 0);
        CHECK_INT(begin_delivery(deliveries, &silent, TENANT, path, &reports[2], &delivery), -EBUSY);
        CHECK_INT(begin_delivery(deliveries, &other, TENANT + 1, good, &reports[2], &delivery), 0);
        (void)wait_for_report(&reports[2]);
        CHECK_INT(reports[0].outcome, _DELIVERY_OUTCOME_MAX);
        for (int i = 0; i < 2; i++)
                if (wait_for_report(&reports[i]))
                        check_report_is(reports[i], DELIVERY_LATE, -ETIMEDOUT);
        container_end(&silent);
        container_end(&other);
        node_deliveries_free(deliveries);
}

static void note_report(void *userdata, const struct delivery_report *report)
{
        *(struct delivery_report *)userdata = *report;
}

static int begin_for_process(
        struct node_deliveries *deliveries, pid_t pid, const char *path, struct delivery_report *report)
{
        struct node_delivery *delivery;

        report->outcome = _DELIVERY_OUTCOME_MAX;
        return client_delivery_begin(deliveries, nodes, -1, &(const struct delivery_source){.uid = node_uid},
                &(const struct delivery_wish){.path = path, .pid = pid}, note_report, report, &delivery);
}

static uint32_t one_account(void *userdata _unused_, uid_t uid _unused_)
{
        return 1000;
}

/* A container could be thousands of users. */
static void test_users_of_one_account_count_together(void)
{
        const struct delivery_limits limits = {.patience_usec = 60 * 1000 * 1000, .account = one_account};
        struct container first = container_start(enter_rootless),
                         other = container_start(enter_rootless_of_another);
        struct node_deliveries *deliveries = NULL;
        struct delivery_report reports[3];
        char path[128], second[128];

        CHECK_INT(node_deliveries_new(event, &limits, &deliveries), 0);
        path_there("data", path);
        path_there("second", second);
        CHECK_INT(begin_for_process(deliveries, first.pid, path, &reports[0]), 0);
        CHECK_INT(begin_for_process(deliveries, first.pid, second, &reports[1]), 0);
        CHECK_INT(begin_for_process(deliveries, other.pid, path, &reports[2]), -EBUSY);
        for (int i = 0; i < 2; i++)
                if (wait_for_report(&reports[i]))
                        check_report_is(reports[i], DELIVERY_DONE, 0);
        node_deliveries_free(deliveries);
        container_end(&first);
        container_end(&other);
}

/* Whose process it is counts, and not that an administrator has named it. No delivery ends before the loop runs. */
static void test_a_process_that_is_named_counts_for_its_user(void)
{
        struct container first = container_start(enter_rootless),
                         other = container_start(enter_rootless_of_another);
        struct node_deliveries *deliveries = deliveries_new();
        struct delivery_report reports[4];
        char path[128], second[128];

        path_there("data", path);
        path_there("second", second);
        CHECK_INT(begin_for_process(deliveries, first.pid, path, &reports[0]), 0);
        CHECK_INT(begin_for_process(deliveries, first.pid, second, &reports[1]), 0);
        CHECK_INT(begin_for_process(deliveries, first.pid, path, &reports[2]), -EBUSY);
        CHECK_INT(begin_for_process(deliveries, other.pid, path, &reports[3]), 0);
        for (int i = 0; i < 4; i++)
                if (i != 2 && wait_for_report(&reports[i]))
                        check_report_is(reports[i], DELIVERY_DONE, 0);
        node_deliveries_free(deliveries);
        container_end(&first);
        container_end(&other);
}

static void test_no_tree_of_a_node_that_is_shut(void)
{
        CHECK_INT(private_node_shut(nodes, node_uid), 0);
        CHECK_INT(private_node_clone(nodes, node_uid), -ENOENT);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        CHECK_INT(private_node_clone(nodes, node_uid), -ENOENT);
        (void)give_node();
}

/* ---- on ENOMEM ---- */

/* The loop waits for its end: one that has asked a file system which does not answer could not be killed. */
static void test_a_process_that_nothing_watches_gets_no_order(void)
{
        struct container container = container_start(enter_rootless);
        struct node_deliveries *deliveries = deliveries_new();
        struct delivery_report report;
        struct node_delivery *delivery;
        char path[128];

        path_there("data", path);
        sent = 0;
        out_of_memory = true;
        CHECK_INT(begin_delivery(deliveries, &container, TENANT, path, &report, &delivery), -ENOMEM);
        CHECK_INT(sent, 0);
        out_of_memory = false;
        CHECK_INT(begin_delivery(deliveries, &container, TENANT, path, &report, &delivery), 0);
        CHECK_INT(sent, 1);
        if (wait_for_report(&report))
                check_report_is(report, DELIVERY_DONE, 0);
        node_deliveries_free(deliveries);
        container_end(&container);
}

/* ---- the whole ---- */

int main(int argc, char *argv[])
{
        bool can;

        if (argc == 2 && strcmp(argv[1], NODE_DELIVERY_OPTION) == 0)
                return delivery_process_main();
        can = world_open();
        if (can) {
                test_the_node_comes_into_a_container();
                test_what_is_mounted_on_the_node_stays_in_the_container();
                test_the_root_directory_is_that_of_the_process();
                test_no_file_is_covered_and_no_link_followed();
                test_a_read_only_file_system_is_refused();
                test_a_file_system_without_devices_does_not_hinder();
                test_the_file_is_created_with_the_rights_of_the_client();
                test_mounts_of_another_user_namespace_stay_as_they_are();
                test_a_shared_mount_is_refused();
                test_a_process_without_users_of_its_own_is_refused();
                test_a_process_that_has_ended_gets_nothing();
                test_paths_that_name_no_file();
                can = access("/dev/fuse", R_OK | W_OK) == 0; /* else this test has left one out */
                if (can)
                        test_a_file_system_that_does_not_answer_holds_up_its_user_alone();
                test_a_process_that_is_named_counts_for_its_user();
                test_users_of_one_account_count_together();
                test_no_tree_of_a_node_that_is_shut();
                test_a_process_that_nothing_watches_gets_no_order();
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
