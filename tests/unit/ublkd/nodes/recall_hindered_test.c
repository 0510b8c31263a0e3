/* SPDX-License-Identifier: MIT */
/* node_recall: what a container may do to the process that unmounts its nodes, and what that does to others. */
#include "ublkd/nodes/delivery_process.h"
#include "ublkd/nodes/process_rights.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/file_io.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/recall_looks.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
        OVERFLOW_ID = 65534,
        DEADLINE_USEC = 20 * 1000 * 1000,
        CHILD_USEC = 2 * 1000 * 1000, /* what all containers of a user have */
};

/* ---- processes of looks ---- */

/* Read the state and the parent of a process of a look. Return whether it is one. */
static bool read_process(const char *pid, char *ret_state, int *ret_parent)
{
        static const char name[] = "(ublkd-recall) ";
        char path[300], text[128] = "";
        const char *rest;

        snprintf(path, sizeof(path), "/proc/%s/stat", pid);
        (void)read_line_at(AT_FDCWD, path, text, sizeof(text));
        rest = strstr(text, name);
        return rest && sscanf(rest + strlen(name), "%c %d", ret_state, ret_parent) == 2;
}

/* Return how many processes of our looks are left: they are our children, as main() asks for. A zombie is none. */
static int count_left_over(void)
{
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        int count = 0;

        while (CHECK(proc) && (entry = readdir(proc))) {
                char state;
                int parent;

                if (read_process(entry->d_name, &state, &parent) && state != 'Z' && parent == getpid())
                        count++;
        }
        closedir(proc);
        return count;
}

/* Return whether a child of a look of ours is stopped. */
static bool is_a_child_stopped(void)
{
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        bool found = false;

        while (CHECK(proc) && !found && (entry = readdir(proc))) {
                char state, pid[16];
                int parent;

                if (!read_process(entry->d_name, &state, &parent) || state != 'T')
                        continue;
                snprintf(pid, sizeof(pid), "%d", parent);
                found = read_process(pid, &state, &parent) && parent == getpid();
        }
        closedir(proc);
        return found;
}

/* Return whether this process is in the user namespace of that user's container. */
static bool is_in_container_of(const char *user)
{
        char map[64] = "";
        unsigned long inside, outside = 0;

        (void)read_line_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map));
        return sscanf(map, "%lu %lu", &inside, &outside) == 2 && outside == strtoul(user, NULL, 10);
}

/* As a container does to the child, at the worst time. */
int __real_umount2(const char *target, int flags);
int __wrap_umount2(const char *target, int flags);

int __wrap_umount2(const char *target, int flags)
{
        const char *user = getenv("TEST_STOP");

        if (user && is_in_container_of(user))
                (void)raise(SIGSTOP);
        return __real_umount2(target, flags);
}

/* ---- tests ---- */

/* It has the mount, and may not open the node of the tenant. */
static struct container container_of_another_with_node(char path[static 128])
{
        struct container container = container_start(enter_rootless_of_another);

        path_there("data", path);
        check_report_is(deliver_as(&container, ANOTHER, path), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), EACCES);
        return container;
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

/* Each child stops itself in the containers of the user, when it has found a node. */
static void stop_children_of(uid_t user)
{
        char text[16];

        snprintf(text, sizeof(text), "%u", user);
        CHECK_INT(setenv("TEST_STOP", text, 1), 0);
}

static void stop_no_children(void)
{
        CHECK_INT(unsetenv("TEST_STOP"), 0);
}

static void test_a_look_that_a_container_hinders_is_tried_again(void)
{
        char path[128];
        struct container container = container_with_node(path);
        struct looks looks = {};
        struct node_recall *recall = recall_new(&looks, 0);

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        stop_children_of(TENANT);
        node_recall_ask(recall);
        wait_for_looks(&looks, 2);  /* the second without a call */
        CHECK_INT(looks.failed, 1); /* one line in the log */
        CHECK_INT(looks.error, -ETIMEDOUT);
        CHECK_INT(count_left_over(), 0);
        CHECK_INT(container_open(&container, path), EACCES);
        stop_no_children();
        for (int i = 3; i < LOOKS_MAX && do_in(&container, act_is_socket, path) != 0; i++)
                wait_for_looks(&looks, i);
        check_is_unmounted(&container, path);
        node_recall_free(recall);
        container_end(&container);
        (void)give_node();
}

static void test_a_user_who_stops_children_takes_no_time_of_others(void)
{
        struct container stopping[3], other;
        char path[128];
        uint64_t begin;

        for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
                stopping[i] = container_with_node(path);
        other = container_of_another_with_node(path);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        stop_children_of(TENANT);
        begin = monotonic_now();
        CHECK_INT(recall_times(1, 0), -ETIMEDOUT);
        CHECK(monotonic_now() - begin < ARRAY_SIZE(stopping) * CHILD_USEC);
        for (int i = 1; i < LOOKS_MAX && do_in(&other, act_is_socket, path) != 0; i++) /* a busy machine */
                CHECK_INT(recall_times(1, 0), -ETIMEDOUT);
        check_is_unmounted(&other, path);
        stop_no_children();
        for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
                container_end(&stopping[i]);
        container_end(&other);
        (void)give_node();
}

/* As at its deadline, or when ublkd ends. */
static void test_a_look_that_is_killed_leaves_no_child(void)
{
        char path[128];
        struct container container = container_with_node(path);
        struct looks looks = {};
        struct node_recall *recall = recall_new(&looks, 0);
        uint64_t deadline = monotonic_now() + DEADLINE_USEC;

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        stop_children_of(TENANT);
        node_recall_ask(recall);
        while (!is_a_child_stopped() && CHECK(monotonic_now() < deadline))
                sched_yield();
        node_recall_free(recall);
        while (count_left_over() > 0 && CHECK(monotonic_now() < deadline))
                sched_yield();
        stop_no_children();
        container_end(&container);
        (void)give_node();
}

/* As a look left it whose container had stopped it at the worst moment, or one that looks like it. */
static pid_t start_in(const struct container *container, uid_t user)
{
        char path[64];
        int status = -1, users;
        pid_t pid;

        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)container->pid);
        users = open(path, O_RDONLY | O_CLOEXEC);
        pid = fork();
        if (pid == 0) {
                const uint64_t right = RIGHT(CAP_SYS_ADMIN);

                if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0
                        || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0
                        || rights_set(right, right) < 0 || setns(users, CLONE_NEWUSER) < 0
                        || prctl(PR_SET_NAME, "ublkd-recall") < 0)
                        _exit(1);
                (void)raise(SIGSTOP);
                _exit(0);
        }
        close_fd(users);
        CHECK_INT(waitpid(pid, &status, WUNTRACED), pid);
        CHECK(WIFSTOPPED(status));
        return pid;
}

static void test_a_child_that_an_earlier_look_has_left_is_killed(void)
{
        char path[128];
        struct container container = container_with_node(path);
        pid_t left = start_in(&container, OVERFLOW_ID);
        int status = -1;

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        check_is_unmounted(&container, path);
        if (!CHECK_INT(waitpid(left, &status, WNOHANG), left)) {
                (void)kill(left, SIGKILL);
                CHECK_INT(waitpid(left, &status, 0), left);
        }
        CHECK(WIFSIGNALED(status));
        container_end(&container);
        (void)give_node();
}

static void test_a_process_of_the_container_with_its_name_is_left_alone(void)
{
        char path[128];
        struct container container = container_with_node(path);
        pid_t theirs = start_in(&container, TENANT);

        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        recall_all();
        check_is_unmounted(&container, path);
        CHECK_INT(waitpid(theirs, NULL, WNOHANG), 0);
        (void)kill(theirs, SIGKILL);
        CHECK_INT(waitpid(theirs, NULL, 0), theirs);
        container_end(&container);
        (void)give_node();
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
                test_a_file_system_that_never_answers_is_not_asked();
                test_a_look_that_a_container_hinders_is_tried_again();
                test_a_user_who_stops_children_takes_no_time_of_others();
                test_a_look_that_is_killed_leaves_no_child();
                test_a_child_that_an_earlier_look_has_left_is_killed();
                test_a_process_of_the_container_with_its_name_is_left_alone();
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
