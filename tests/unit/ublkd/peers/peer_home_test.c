/* SPDX-License-Identifier: MIT */
/* Where the process at the other end of a socket runs: on this host, in each kind of container, or unknown. */
#include "ublkd/peers/peer_home.h"

#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

static char root[] = "/tmp/ublkd-peer-home-XXXXXX"; /* another root directory */
static char below[sizeof(root) + sizeof("/host")];

/* What a process does before it connects. Return 0 or -1. */
static int stay(void)
{
        return 0;
}

static int enter_users(void)
{
        return unshare(CLONE_NEWUSER);
}

static int enter_pids(void) /* its children are in there */
{
        return unshare(CLONE_NEWPID);
}

/* As a service with PrivateTmp=: the file systems are those of the host, mounted again. */
static int enter_mounts(void)
{
        return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                               || mount("tmpfs", root, "tmpfs", 0, NULL) < 0
                       ? -1
                       : 0;
}

static int change_root(void)
{
        return chroot(root);
}

/* As a container that shares users and PIDs with the host. */
static int enter_image(void)
{
        return enter_mounts() < 0 || chroot(root) < 0 ? -1 : 0;
}

/* As a container with the host's root directory below it, and CAP_SYS_CHROOT: it can see every path of the host, and is in
 * its image nevertheless. */
static int enter_image_and_leave(void)
{
        return enter_mounts() < 0 || mkdir(below, 0755) < 0 || mount("/", below, NULL, MS_BIND, NULL) < 0
                               || chroot(root) < 0 || chroot("/host") < 0
                       ? -1
                       : 0;
}

/* As a rootless container: PIDs and file systems are those of its user namespace. */
static int enter_rootless(void)
{
        return unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS);
}

static int write_to(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* As a sandbox in a rootless container. */
static int enter_rootless_twice(void)
{
        return setresuid(4242, 4242, 4242) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 || enter_rootless() < 0
                               || write_to("/proc/self/setgroups", "deny") < 0
                               || write_to("/proc/self/uid_map", "0 4242 1") < 0
                               || write_to("/proc/self/gid_map", "0 0 1") < 0
                       ? -1
                       : unshare(CLONE_NEWUSER);
}

/* As a container with a user namespace that translates nothing: its root is root of the host, and takes any number. */
static int enter_identity(void)
{
        return enter_rootless() < 0 ? -1 : write_to("/proc/self/uid_map", "0 0 1");
}

/* Map all users to themselves, from outside, when a byte comes. */
static void map_identity(int link)
{
        char users[64], groups[64], byte;

        snprintf(users, sizeof(users), "/proc/%d/uid_map", (int)getppid());
        snprintf(groups, sizeof(groups), "/proc/%d/gid_map", (int)getppid());
        if (read(link, &byte, 1) != 1 || write_to(users, "0 0 65536") < 0 || write_to(groups, "0 0 65536") < 0
                || write(link, &byte, 1) != 1)
                _exit(95);
        _exit(0);
}

/* As root of a container whose user namespace translates nothing, which has taken the number of another user and made a user
 * namespace for it. */
static int pretend_in_identity(void)
{
        int link[2];
        char byte = 0;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
                return -1;
        if (fork() == 0)
                map_identity(link[1]);
        return enter_rootless() < 0 || write(link[0], &byte, 1) != 1 || read(link[0], &byte, 1) != 1
                               || setresuid(4242, 4242, 4242) < 0
                       ? -1
                       : unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

/* As root of a container without a user namespace and with the PIDs of the host. */
static int pretend_with_pids(void)
{
        return enter_mounts() < 0 || chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0
                               || umount2(".", MNT_DETACH) < 0 || setresuid(4242, 4242, 4242) < 0
                       ? -1
                       : unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

/* As root of a container without a user namespace, which has taken the number of another user. */
static int pretend_after_pids(void)
{
        pid_t child;

        if (enter_pids() < 0)
                return -1;
        child = fork();
        if (child > 0) {
                (void)waitpid(child, NULL, 0);
                _exit(94);
        }
        return setresuid(4242, 4242, 4242) < 0 ? -1 : enter_rootless();
}

static int pretend_after_image(void)
{
        return enter_mounts() < 0 || chdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0
                               || umount2(".", MNT_DETACH) < 0 || setresuid(4242, 4242, 4242) < 0
                       ? -1
                       : enter_users();
}

static const struct {
        int (*prepare)(void);
        enum peer_home home;
} cases[] = {
        {stay,                  PEER_AT_HOME          },
        {enter_mounts,          PEER_AT_HOME          },
        {change_root,           PEER_AT_HOME          },
        {enter_users,           PEER_IN_USER_NAMESPACE},
        {enter_rootless,        PEER_IN_USER_NAMESPACE},
        {enter_rootless_twice,  PEER_IN_CONTAINER     },
        {pretend_in_identity,   PEER_IN_CONTAINER     },
        {pretend_with_pids,     PEER_IN_CONTAINER     },
        {enter_identity,        PEER_IN_CONTAINER     },
        {pretend_after_pids,    PEER_IN_CONTAINER     },
        {pretend_after_image,   PEER_IN_CONTAINER     },
        {enter_pids,            PEER_IN_CONTAINER     },
        {enter_image,           PEER_IN_CONTAINER     },
        {enter_image_and_leave, PEER_IN_CONTAINER     },
};

static void connect_and_stay(const struct sockaddr_un *address, socklen_t size, int (*prepare)(void))
{
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        pid_t child;

        if (prepare() < 0)
                _exit(91);
        child = fork(); /* a PID namespace has children of it only */
        if (child == 0) {
                if (connect(fd, (const struct sockaddr *)address, size) < 0)
                        _exit(92);
                for (;;)
                        pause();
        }
        (void)waitpid(child, NULL, 0);
        _exit(93);
}

/* Listen at an abstract name, which each mount namespace sees. */
static int listen_somewhere(struct sockaddr_un *ret, socklen_t *ret_size)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const struct timeval patience = {.tv_sec = 60};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
        CHECK_INT(listen(fd, 4), 0);
        CHECK_INT(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0); /* for accept() */
        *ret_size = sizeof(*ret);
        CHECK_INT(getsockname(fd, (struct sockaddr *)ret, ret_size), 0);
        return fd;
}

static pid_t peer_of(int socket)
{
        struct ucred credentials;
        socklen_t size = sizeof(credentials);

        CHECK_INT(getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size), 0);
        return credentials.pid;
}

static enum peer_home home_of(int socket)
{
        enum peer_home home = PEER_HOME_UNASKED;

        CHECK_INT(peer_home_of(socket, &home), 0);
        return home;
}

static void test_case(size_t i)
{
        struct sockaddr_un address;
        socklen_t size;
        int listener = listen_somewhere(&address, &size), socket;
        pid_t pid = fork();

        if (pid == 0)
                connect_and_stay(&address, size, cases[i].prepare);
        socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (CHECK(socket >= 0)) {
                if (!CHECK_INT(home_of(socket), cases[i].home))
                        fprintf(stderr, "case %zu\n", i);
                CHECK_INT(kill(peer_of(socket), SIGKILL), 0);
                CHECK_INT(waitpid(pid, NULL, 0), pid);
                CHECK_INT(home_of(socket), PEER_HOME_UNKNOWN);
        }
        close_fd(socket);
        close_fd(listener);
}

static void test_not_a_unix_socket(void)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK_INT(home_of(fd), PEER_HOME_UNKNOWN);
        close_fd(fd);
}

int main(void)
{
        if (geteuid() != 0)
                return CHECK_SKIP;
        CHECK(mkdtemp(root) != NULL);
        snprintf(below, sizeof(below), "%s/host", root);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                test_case(i);
        test_not_a_unix_socket();
        CHECK_INT(rmdir(root), 0);
        return check_report();
}
