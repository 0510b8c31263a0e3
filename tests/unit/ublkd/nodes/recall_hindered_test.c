/* SPDX-License-Identifier: MIT */
/* node_recall: how a container may hinder the process that unmounts its nodes, and how that affects other containers. */
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
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>

#define ANOTHER_TEXT "1001-1001"

enum {
        OVERFLOW_ID = 65534,
        DEADLINE_USEC = 60 * 1000 * 1000,
        FIRST_OF_MANY = 2001,
        SLOW_MSEC = 300,              /* more than a user has in the first round */
        NAMESPACES = 300,             /* of one user, to keep others from the later rounds */
        CHILD_USEC = 2 * 1000 * 1000, /* time for all containers of a user */
};

/* ---- processes of looks ---- */

/* Read the state and the parent of a process. Return whether it is a process of a look. */
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

/* Return how many processes of our looks are left. They are our children, because main() is a subreaper. A zombie does
 * not count. */
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

/* Return whether this process is in the user namespace of a container of one of these users, "FIRST-LAST". */
static bool is_in_container_of(const char *users)
{
        char map[64] = "";
        unsigned long inside, outside = 0, first, last;

        (void)read_line_at(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map));
        return sscanf(map, "%lu %lu", &inside, &outside) == 2 && sscanf(users, "%lu-%lu", &first, &last) == 2
               && outside >= first && outside <= last;
}

/* Return how many namespaces are among the descriptors of a child of a look: the container that the child is in can
 * see them. */
static int count_namespaces(void)
{
        DIR *list = opendir("/proc/self/fd");
        const struct dirent *entry;
        int count = 0;

        while (list && (entry = readdir(list))) {
                char path[300], link[64] = "";

                snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
                if (readlink(path, link, sizeof(link) - 1) > 0
                        && (strncmp(link, "mnt:", 4) == 0 || strncmp(link, "user:", 5) == 0))
                        count++;
        }
        closedir(list);
        return count;
}

/* As a container does to the child, at the worst time. */
int __real_umount2(const char *target, int flags);
int __wrap_umount2(const char *target, int flags);

int __wrap_umount2(const char *target, int flags)
{
        const char *user = getenv("TEST_STOP"), *slow = getenv("TEST_SLOW");

        if (user && is_in_container_of(user))
                (void)raise(SIGSTOP);
        if (slow && is_in_container_of(slow)) {
                (void)poll(NULL, 0, SLOW_MSEC);
                if (count_namespaces() > 2) /* of the container itself */
                        return -1;
        }
        return __real_umount2(target, flags);
}

/* The look begins with the oldest process. */
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags _unused_)
{
        memset(bytes, 0, size);
        return (ssize_t)size;
}

/* ---- tests ---- */

static struct container container_of_any_with_node(uid_t user, char path[static 128])
{
        struct container container;

        rootless_user = user;
        container = container_start(enter_rootless_of_any);
        path_there("data", path);
        check_report_is(deliver_as(&container, user, path), DELIVERY_DONE, 0);
        return container;
}

/* It has the mount, and may not open the node of the tenant. */
static struct container container_of_another_with_node(char path[static 128])
{
        struct container container = container_start(enter_rootless_of_another);

        path_there("data", path);
        check_report_is(deliver_as(&container, ANOTHER, path), DELIVERY_DONE, 0);
        CHECK_INT(container_open(&container, path), EACCES);
        return container;
}

/* The scan must not call this file system, which never answers, and must not fail because of it. The kernel mounts
 * nothing over a node without a name: a cover of the directory hides the node, and has the file system over a file. */
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

/* Each child stops itself in the containers of these users, when it has found a node. */
static void stop_children_of_all(uid_t first, uid_t last)
{
        char text[32];

        snprintf(text, sizeof(text), "%u-%u", first, last);
        CHECK_INT(setenv("TEST_STOP", text, 1), 0);
}

static void stop_children_of(uid_t user)
{
        stop_children_of_all(user, user);
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
        CHECK_INT(looks.failed, 1); /* a single line in the log */
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
        struct container stopping[6], other;
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

static void note_end(void *userdata)
{
        (*(int *)userdata)++;
}

/* More containers than a look has time for, if it waited for each as long as for a single one. The look starts with
 * them. */
static void test_many_users_who_stop_children_take_no_time_of_others(void)
{
        struct container stopping[16], other;
        struct node_recall *recall = NULL;
        char path[128];
        int ended = 0;
        const struct node_recall_options options = {.patience_usec = ARRAY_SIZE(stopping) * CHILD_USEC / 4,
                .ended = note_end,
                .userdata = &ended};

        for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
                stopping[i] = container_of_any_with_node(FIRST_OF_MANY + (uid_t)i, path);
        other = container_of_another_with_node(path);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        stop_children_of_all(FIRST_OF_MANY, FIRST_OF_MANY + ARRAY_SIZE(stopping) - 1);
        CHECK_INT(node_recall_new(event, nodes, &options, &recall), 0);
        node_recall_ask(recall);
        while (ended == 0 && CHECK(sd_event_run(event, UINT64_MAX) >= 0))
                ;
        check_is_unmounted(&other, path);
        node_recall_free(recall);
        stop_no_children();
        for (size_t i = 0; i < ARRAY_SIZE(stopping); i++)
                container_end(&stopping[i]);
        container_end(&other);
        (void)give_node();
}

/* Make many mount namespaces, each with a process. Return -1, or do not return in the processes. */
static int enter_many(void)
{
        char byte = 0;
        int made[2];

        if (enter_rootless() < 0 || pipe2(made, O_CLOEXEC) < 0)
                return -1;
        for (int i = 0; i < NAMESPACES; i++) {
                pid_t pid = fork();

                if (pid == 0) {
                        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                        if (unshare(CLONE_NEWNS) == 0 && write(made[1], &byte, 1) == 1)
                                (void)pause();
                        _exit(1);
                }
                if (pid < 0 || read(made[0], &byte, 1) != 1)
                        return -1;
        }
        return 0;
}

static void test_a_user_with_many_namespaces_takes_no_round_of_others(void)
{
        struct container stopping, many, other;
        char path[128];

        stopping = container_with_node(path);
        many = container_start(enter_many);
        other = container_of_another_with_node(path);
        CHECK_INT(private_node_remove(nodes, node_uid), 0);
        stop_children_of(TENANT);
        CHECK_INT(setenv("TEST_SLOW", ANOTHER_TEXT, 1), 0);
        CHECK_INT(recall_times(1, 0), -ETIMEDOUT);
        check_is_unmounted(&other, path);
        CHECK_INT(unsetenv("TEST_SLOW"), 0);
        stop_no_children();
        container_end(&stopping);
        container_end(&many);
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

/* A process that a look has left behind because its container stopped it at the worst moment, or a process that looks
 * like it. */
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
                test_many_users_who_stop_children_take_no_time_of_others();
                test_a_user_with_many_namespaces_takes_no_round_of_others();
                test_a_look_that_is_killed_leaves_no_child();
                test_a_child_that_an_earlier_look_has_left_is_killed();
                test_a_process_of_the_container_with_its_name_is_left_alone();
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
