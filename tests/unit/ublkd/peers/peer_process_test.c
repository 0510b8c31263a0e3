/* SPDX-License-Identifier: MIT */
/* Which process connected to a socket: while it lives, when it has ended, and when another one has its number. */
#include "ublkd/peers/peer_process.h"

#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A process that has connected, and our end of the connection. */
struct client {
        int listener, socket;
        pid_t pid;
};

static void serve_as_client(int listener)
{
        struct sockaddr_un address;
        socklen_t size = sizeof(address);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (getsockname(listener, (struct sockaddr *)&address, &size) < 0
                || connect(fd, (struct sockaddr *)&address, size) < 0)
                _exit(91);
        for (;;)
                pause();
}

static bool connect_client(struct client *ret)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the kernel chooses an abstract name */

        ret->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!CHECK_INT(bind(ret->listener, (struct sockaddr *)&address, sizeof(address.sun_family)), 0)
                || !CHECK_INT(listen(ret->listener, 4), 0))
                return false;
        ret->pid = fork();
        if (ret->pid == 0)
                serve_as_client(ret->listener);
        ret->socket = accept4(ret->listener, NULL, NULL, SOCK_CLOEXEC);
        return CHECK(ret->socket >= 0);
}

static void end_client(const struct client *client)
{
        CHECK_INT(kill(client->pid, SIGKILL), 0);
        CHECK_INT(waitpid(client->pid, NULL, 0), client->pid);
}

static void close_client(struct client *client)
{
        client->listener = close_fd(client->listener);
        client->socket = close_fd(client->socket);
}

static void test_living(void)
{
        struct client client;
        struct peer_process peer;

        if (!connect_client(&client) || !CHECK_INT(peer_process_open(client.socket, &peer), 0))
                return;
        CHECK_INT(peer.pid, client.pid);
        CHECK_INT(peer.uid, geteuid());
        CHECK(peer_process_lives(&peer));
        end_client(&client);
        CHECK(!peer_process_lives(&peer));
        peer_process_close(&peer);
        close_client(&client);
}

/* Its parent has not waited for it: the number is not free yet. */
static void test_zombie(void)
{
        struct client client;
        struct peer_process peer;
        siginfo_t info;

        if (!connect_client(&client))
                return;
        CHECK_INT(kill(client.pid, SIGKILL), 0);
        CHECK_INT(waitid(P_PID, (id_t)client.pid, &info, WEXITED | WNOWAIT), 0);
        CHECK_INT(peer_process_open(client.socket, &peer), -ESRCH);
        CHECK_INT(waitpid(client.pid, NULL, 0), client.pid);
        close_client(&client);
}

/* Start a process with this pid; return -1 if that is not permitted. */
static pid_t start_as(pid_t pid)
{
        struct clone_args arguments = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};
        long r = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (r == 0)
                for (;;)
                        pause();
        return (pid_t)r;
}

/* The socket still says that this number connected. */
static void test_number_of_another(void)
{
        struct peer_process peer;
        struct ucred credentials;
        socklen_t size = sizeof(credentials);
        struct client client;
        pid_t other;

        if (!connect_client(&client))
                return;
        end_client(&client);
        CHECK_INT(peer_process_open(client.socket, &peer), -ESRCH);
        other = start_as(client.pid);
        if (other > 0) {
                CHECK_INT(getsockopt(client.socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size), 0);
                CHECK_INT(credentials.pid, other);
                CHECK_INT(kill(other, 0), 0);
                CHECK_INT(peer_process_open(client.socket, &peer), -ESRCH);
                CHECK_INT(kill(other, SIGKILL), 0);
                CHECK_INT(waitpid(other, NULL, 0), other);
        } else
                CHECK(geteuid() != 0 || errno == EPERM || errno == EEXIST);
        close_client(&client);
}

static void test_not_a_unix_socket(void)
{
        struct peer_process peer;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK(peer_process_open(fd, &peer) < 0);
        close_fd(fd);
}

/* Linux has it from 6.5 on. */
static bool has_pidfds_of_peers(void)
{
        int pair[2], pidfd = -1;
        socklen_t size = sizeof(pidfd);
        bool has;

        CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        has = getsockopt(pair[0], SOL_SOCKET, 77, &pidfd, &size) == 0; /* SO_PEERPIDFD */
        close_fd(pidfd);
        close_fd(pair[0]);
        close_fd(pair[1]);
        return has;
}

int main(void)
{
        if (!has_pidfds_of_peers())
                return CHECK_SKIP;
        test_living();
        test_zombie();
        test_number_of_another();
        test_not_a_unix_socket();
        return check_report();
}
