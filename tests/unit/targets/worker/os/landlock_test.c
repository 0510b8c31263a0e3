/* SPDX-License-Identifier: MIT */
/* landlock: nothing is opened, connected or signalled any more, and what is open stays open. */
#include "targets/worker/os/landlock.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/kernel/kernel_walls.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static const char name[] = "\0ublkd-landlock-test";

static socklen_t set_address(struct sockaddr_un *address)
{
        *address = (struct sockaddr_un){.sun_family = AF_UNIX};
        memcpy(address->sun_path, name, sizeof(name));
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name));
}

static int listen_abstract(void)
{
        struct sockaddr_un address;
        socklen_t size = set_address(&address);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK_INT(bind(fd, (struct sockaddr *)&address, size), 0);
        CHECK_INT(listen(fd, 8), 0);
        return fd;
}

static int listen_tcp(struct sockaddr_in *address)
{
        socklen_t size = sizeof(*address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        CHECK_INT(bind(fd, (struct sockaddr *)address, size), 0);
        CHECK_INT(listen(fd, 8), 0);
        CHECK_INT(getsockname(fd, (struct sockaddr *)address, &size), 0);
        return fd;
}

static int connect_abstract(void)
{
        struct sockaddr_un address;
        socklen_t size = set_address(&address);
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return connect(fd, (struct sockaddr *)&address, size) < 0 ? -errno : 0;
}

static int connect_tcp(const struct sockaddr_in *address)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
}

static int bind_tcp(void)
{
        const struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_port = 0, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int send_udp(const struct sockaddr_in *address)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return sendto(fd, "x", 1, MSG_NOSIGNAL, (const struct sockaddr *)address, sizeof(*address)) < 0
                       ? -errno
                       : 0;
}

static int bind_udp(const struct sockaddr_in *address)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        return bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
}

static int confined(int version, bool connects, const struct sockaddr_in *service)
{
        _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        pid_t parent = getppid();

        CHECK_INT(connect_abstract(), 0); /* of the parent, whose signals may be sent to */
        CHECK_INT(kill(parent, 0), 0);
        CHECK_INT(send_udp(service), 0);
        CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_INT(landlock_close(connects), 0);
        CHECK(open("/", O_RDONLY | O_CLOEXEC) < 0);
        CHECK_INT(errno, EACCES);
        CHECK(open("/dev/null", O_WRONLY | O_CLOEXEC) < 0);
        CHECK_INT(errno, EACCES);
        CHECK_INT(write(null, "x", 1), 1);
        if (version >= 4)
                CHECK_INT(connect_tcp(service), connects ? 0 : -EACCES);
        if (version >= 4)
                CHECK_INT(bind_tcp(), -EACCES);
        if (version >= 10)
                CHECK_INT(send_udp(service), -EACCES);
        if (version >= 10)
                CHECK_INT(bind_udp(service), -EACCES);
        if (version >= 6) {
                CHECK_INT(connect_abstract(), -EPERM);
                CHECK(kill(parent, 0) < 0);
                CHECK_INT(errno, EPERM);
                CHECK_INT(kill(getpid(), 0), 0);
        }
        return check_report();
}

int main(void)
{
        int version = kernel_landlock(), status = 0;
        struct sockaddr_in address;
        _cleanup_close_ _unused_ int listener = listen_abstract(), service = listen_tcp(&address);
        pid_t child;

        if (version == 0) {
                CHECK_INT(landlock_close(false), 0); /* the kernel does not have it: no failure */
                return check_report() ? 1 : CHECK_SKIP;
        }
        for (int connects = 0; connects < 2; connects++) {
                child = fork();
                if (child == 0)
                        _exit(confined(version, connects, &address));
                CHECK_INT(waitpid(child, &status, 0), child);
                CHECK_INT(status, 0);
        }
        return check_report();
}
