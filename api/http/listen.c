/* SPDX-License-Identifier: MIT */
/* Listening sockets: bound to addresses, or passed by systemd. */
#include "api/http/listen.h"

#include "ublkd/host/host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

static const char tcp_prefix[] = "tcp://";

enum { BACKLOG = 1024 };

/* A socket address has room for 108 bytes, and a path may be longer: name its directory by a descriptor then.
 * The caller keeps *ret_directory open as long as it uses the address, and closes it. */
static int unix_address(const char *path, struct sockaddr_un *ret, int *ret_directory)
{
        const char *slash = strrchr(path, '/');
        char directory[PATH_MAX];
        int fd, n;

        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        if (strlen(path) < sizeof(ret->sun_path)) {
                strcpy(ret->sun_path, path);
                *ret_directory = -1;
                return 0;
        }
        n = snprintf(
                directory, sizeof(directory), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
        if (n < 0 || (size_t)n >= sizeof(directory))
                return -ENAMETOOLONG;
        fd = open(n > 0 ? directory : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = snprintf(
                ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", fd, slash ? slash + 1 : path);
        if (n < 0 || (size_t)n >= sizeof(ret->sun_path)) {
                close_fd(fd);
                return -ENAMETOOLONG;
        }
        *ret_directory = fd;
        return 0;
}

/* Remove a socket file that a crash left behind, on which no process listens. 0: the path is free;
 * -EADDRINUSE, -EEXIST, other -errno. */
static int remove_stale(const struct sockaddr_un *address)
{
        _cleanup_close_ int fd = -1;
        struct stat info;

        if (lstat(address->sun_path, &info) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(info.st_mode))
                return -EEXIST;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) >= 0 || errno != ECONNREFUSED)
                return -EADDRINUSE; /* also EAGAIN: the listener is busy */
        return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The file has its mode from the start: a later chmod() of its path would follow a link that the owner of the
 * directory puts there. */
static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode)
{
        mode_t before = umask(0);
        int r = fchmod(fd, mode);

        if (r >= 0)
                r = bind(fd, (const struct sockaddr *)address, sizeof(*address));
        if (r < 0)
                r = -errno;
        (void)umask(before);
        return r;
}

/* <linux/un.h> has it, and cannot be included beside <sys/un.h>. */
#define SIOCUNIXFILE (SIOCPROTOPRIVATE + 0)

/* Open the file that the socket is bound to, with O_PATH. Only the kernel knows it for sure: the owner of the directory
 * can put another file at the path. Without CAP_NET_ADMIN the path must do, as long as a socket of this user is there.
 * Return a descriptor or -errno. */
static int open_bound(int fd, const char *path)
{
        _cleanup_close_ int file = ioctl(fd, SIOCUNIXFILE);
        struct stat info;

        if (file >= 0)
                return TAKE_FD(file);
        if (errno != EPERM)
                return -errno;
        file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (file < 0 || fstat(file, &info) < 0)
                return -errno;
        return S_ISSOCK(info.st_mode) && info.st_uid == geteuid() && info.st_nlink == 1 ? TAKE_FD(file)
                                                                                        : -ESTALE;
}

/* Give the file of the socket to the group. Return 0; -ESTALE: another file is at the path, and was not touched; other
 * -errno. */
static int give_to_group(int fd, const char *path, gid_t group)
{
        _cleanup_close_ int file = open_bound(fd, path);
        struct stat bound, found;

        if (file < 0)
                return file;
        if (fchownat(file, "", (uid_t)-1, group, AT_EMPTY_PATH) < 0 || fstat(file, &bound) < 0)
                return -errno;
        if (lstat(path, &found) < 0)
                return errno == ENOENT ? -ESTALE : -errno;
        return bound.st_dev == found.st_dev && bound.st_ino == found.st_ino ? 0 : -ESTALE;
}

/* ublkd checks each client itself, so every user may connect where there is no group. No client connects before
 * listen(). */
static int bind_unix(
        int fd, const struct sockaddr_un *address, const struct api_group *group, struct listener *ret)
{
        struct stat info;
        int r = remove_stale(address);

        if (r >= 0)
                r = bind_with_mode(fd, address, group->exists ? 0660 : 0666);
        if (r < 0)
                return r;
        if (group->exists)
                r = give_to_group(fd, address->sun_path, group->gid);
        if (r >= 0 && (lstat(address->sun_path, &info) < 0 || listen(fd, BACKLOG) < 0))
                r = -errno;
        if (r < 0) {
                if (r != -ESTALE) /* what is there is not ours */
                        (void)unlink(address->sun_path);
                return r;
        }
        ret->device = info.st_dev;
        ret->inode = info.st_ino;
        return 0;
}

static int open_unix(const char *path, const struct api_group *group, struct listener *ret)
{
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                            directory = -1;
        _cleanup_free_ char *copy = strdup(path);
        struct sockaddr_un address;
        int r;

        if (fd < 0)
                return -errno;
        if (!copy)
                return -ENOMEM;
        r = unix_address(path, &address, &directory);
        if (r >= 0)
                r = bind_unix(fd, &address, group, ret);
        if (r < 0)
                return r;
        ret->fd = TAKE_FD(fd);
        ret->path = TAKE_PTR(copy);
        return 0;
}

union address {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_storage storage;
};

static bool is_loopback(const union address *address)
{
        if (address->any.sa_family == AF_INET)
                return (ntohl(address->four.sin_addr.s_addr) >> 24) == 127;
        return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
}

/* Parse HOST:PORT with a numeric host, because a name could change its meaning. 0; -EINVAL; -EDOM: beyond
 * loopback. */
static int parse_tcp(const char *text, union address *ret, socklen_t *ret_size)
{
        const char *colon = strrchr(text, ':');
        union address address = {};
        char host[64];
        char *end;
        unsigned long port;
        size_t length;

        if (!colon || colon == text || (size_t)(colon - text) >= sizeof(host) || colon[1] < '0'
                || colon[1] > '9')
                return -EINVAL;
        port = strtoul(colon + 1, &end, 10);
        if (*end || port > 65535)
                return -EINVAL;
        length = (size_t)(colon - text);
        snprintf(host, sizeof(host), "%.*s", (int)length, text);
        if (host[0] == '[' && host[length - 1] == ']') {
                host[length - 1] = '\0';
                address.six.sin6_family = AF_INET6;
                address.six.sin6_port = htons((uint16_t)port);
                if (inet_pton(AF_INET6, host + 1, &address.six.sin6_addr) != 1)
                        return -EINVAL;
                *ret_size = sizeof(address.six);
        } else {
                address.four.sin_family = AF_INET;
                address.four.sin_port = htons((uint16_t)port);
                if (inet_pton(AF_INET, host, &address.four.sin_addr) != 1)
                        return -EINVAL;
                *ret_size = sizeof(address.four);
        }
        *ret = address;
        return is_loopback(&address) ? 0 : -EDOM;
}

static int open_tcp(const char *text, struct listener *ret)
{
        _cleanup_close_ int fd = -1;
        union address address;
        socklen_t size;
        int yes = 1, r = parse_tcp(text, &address, &size);

        if (r < 0)
                return r;
        fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0
                || bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        ret->fd = TAKE_FD(fd);
        ret->tcp = true;
        return 0;
}

static int explain(const char *address, int error, struct problem_list *problems)
{
        static const struct {
                int error;
                const char *sentence;
        } table[] = {
                {EADDRINUSE,   "another process listens there; stop it or choose another address"             },
                {EEXIST,       "the file there is not a socket; choose another path, or move the file away"   },
                {EDOM,         "beyond loopback the API needs TLS, which this version does not have; use "
                       "127.0.0.1 or [::1]"                                             },
                {EINVAL,       "the address is invalid; give a path, tcp://127.0.0.1:PORT or "
                         "tcp://[::1]:PORT"                                           },
                {ENOENT,       "the directory does not exist; create it first"                                },
                {EACCES,       "not permitted; start ublkd as root or choose another address"                 },
                {EPERM,        "not permitted; start ublkd as root, or choose another address or SocketGroup="},
                {ESTALE,       "another process has put another file there meanwhile; choose a path in a directory "
                         "that only root can write"                                   },
                {ENAMETOOLONG, "the name is too long; choose a shorter one"                                   },
        };
        const char *sentence = strerror(-error);

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].error == -error)
                        sentence = table[i].sentence;
        (void)problem_add(
                problems, -error, "", "CannotListen", "Cannot listen on %s: %s.", address, sentence);
        return error == -EDOM ? -EINVAL : error;
}

int listener_open(const char *address, const struct api_group *group, struct listener *ret,
        struct problem_list *problems)
{
        struct listener listener = {.fd = -1};
        int r = -EINVAL;

        if (strncmp(address, tcp_prefix, sizeof(tcp_prefix) - 1) == 0)
                r = open_tcp(address + sizeof(tcp_prefix) - 1, &listener);
        else if (*address && !strstr(address, "://"))
                r = open_unix(address, group, &listener);
        if (r < 0)
                return explain(address, r, problems);
        *ret = listener;
        return 0;
}

/* Print the path of the socket into `ret`. Return false if it has none. */
static bool socket_path(const struct listener *listener, char *ret, size_t size)
{
        struct sockaddr_un address = {};
        socklen_t length = sizeof(address) - 1; /* a path may lack its NUL */
        int n;

        if (!listener->path
                && (getsockname(listener->fd, (struct sockaddr *)&address, &length) < 0
                        || address.sun_family != AF_UNIX || address.sun_path[0] != '/'))
                return false;
        n = snprintf(ret, size, "%s", listener->path ? listener->path : address.sun_path);
        return n > 0 && (size_t)n < size;
}

static void name_group(struct listener *listener)
{
        char path[PATH_MAX];
        struct stat info;

        if (!socket_path(listener, path, sizeof(path)) || lstat(path, &info) < 0)
                return;
        listener->passed_group = info.st_gid;
        listener->passed_name = host_group_name(info.st_gid);
}

int listener_adopt(int fd, struct listener *ret, struct problem_list *problems)
{
        _cleanup_close_ int owned = fd;
        union address address = {};
        socklen_t size = sizeof(address);
        int flags, r;

        r = sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1);
        if (r == 0)
                r = -EINVAL;
        if (r >= 0 && getsockname(fd, &address.any, &size) < 0)
                r = -errno;
        if (r >= 0 && address.any.sa_family != AF_UNIX && !is_loopback(&address))
                r = -EDOM;
        if (r < 0)
                return explain("a socket that systemd passed", r, problems);
        flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
                return -errno;
        *ret = (struct listener){
                .fd = TAKE_FD(owned), .tcp = address.any.sa_family != AF_UNIX, .passed = true};
        name_group(ret);
        return 0;
}

bool listener_is_lost(const struct listener *listener, char *path, size_t size)
{
        struct stat info;

        return socket_path(listener, path, size) && lstat(path, &info) < 0
               && (errno == ENOENT || errno == ENOTDIR);
}

bool listener_look(const struct listener *listener, const struct api_group *group, struct socket_file *ret)
{
        struct stat info;

        if (!socket_path(listener, ret->path, sizeof(ret->path)))
                return false;
        ret->exists = lstat(ret->path, &info) >= 0;
        if (!ret->exists)
                return true;
        ret->gid = info.st_gid;
        ret->mode = info.st_mode & ALLPERMS;
        ret->group = ret->gid == 0                                                 ? "root"
                     : group->exists && group->gid == ret->gid                     ? group->name
                     : listener->passed_name && listener->passed_group == ret->gid ? listener->passed_name
                                                                                   : NULL;
        return true;
}

bool socket_file_is_of(const struct socket_file *file, const struct api_group *group)
{
        return file->exists && group->exists && file->gid == group->gid
               && (file->mode & (S_IWGRP | S_IWOTH)) == S_IWGRP;
}

/* Another ublkd may have replaced the file; leave that one alone. */
static void remove_socket_file(const struct listener *listener)
{
        struct stat info;

        if (lstat(listener->path, &info) >= 0 && info.st_dev == listener->device
                && info.st_ino == listener->inode)
                (void)unlink(listener->path);
}

void listener_close(struct listener *listener)
{
        listener->source = sd_event_source_disable_unref(listener->source);
        if (listener->path)
                remove_socket_file(listener);
        close_fd(listener->fd);
        free(listener->path);
        free(listener->passed_name);
        *listener = (struct listener){.fd = -1};
}
