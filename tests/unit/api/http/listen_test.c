/* SPDX-License-Identifier: MIT */
/* Listening sockets in a directory of another user, who acts between two calls of ublkd. */
#include "api/http/listen.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *link_target; /* what the path becomes a link to, right after bind(); NULL: it stays */
static const char *successor;   /* the file that takes the place of the path then; NULL: none */

int __real_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size)
{
        const char *path = ((const struct sockaddr_un *)address)->sun_path;
        int r = __real_bind(fd, address, size);

        if (r >= 0 && link_target) {
                CHECK_INT(unlink(path), 0);
                CHECK_INT(symlink(link_target, path), 0);
        }
        if (r >= 0 && successor)
                CHECK_INT(rename(successor, path), 0);
        return r;
}

static mode_t mode_of(const char *path)
{
        struct stat info = {};

        CHECK_INT(lstat(path, &info), 0);
        return info.st_mode;
}

static void open_and_close(const char *path, mode_t wanted)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct listener listener = {.fd = -1};

        CHECK_INT(listener_open(path, &(const struct api_group){}, &listener, &problems), 0);
        CHECK_INT(mode_of(path), wanted);
        CHECK_INT(umask(0077), 0077); /* as it was */
        listener_close(&listener);
}

static void test_a_link_in_the_place_of_the_socket_changes_no_mode(const char *folder)
{
        char victim[64], path[64];
        FILE *file;

        snprintf(victim, sizeof(victim), "%s/victim", folder);
        snprintf(path, sizeof(path), "%s/api.sock", folder);
        file = fopen(victim, "we");
        if (!CHECK(file))
                return;
        fclose(file);
        CHECK_INT(mode_of(victim), S_IFREG | 0600);
        link_target = victim;
        open_and_close(path, S_IFLNK | 0777);
        link_target = NULL;
        CHECK_INT(mode_of(victim), S_IFREG | 0600);
        (void)unlink(path);
        open_and_close(path, S_IFSOCK | 0666);
        unlink(victim);
}

/* A user that is not in the group cannot give it the socket. */
static void test_a_group_that_cannot_have_the_socket_is_named_as_the_cause(const char *folder)
{
        const struct api_group group = {.exists = true, .gid = 4242, .name = "storage"};
        _cleanup_problems_ struct problem_list problems = {};
        struct listener listener = {.fd = -1};
        uid_t before = geteuid();
        char path[64];

        snprintf(path, sizeof(path), "%s/api.sock", folder);
        CHECK_INT(chmod(folder, 0777), 0);
        CHECK_INT(seteuid(before ? before : 65534), 0);
        CHECK_INT(listener_open(path, &group, &listener, &problems), -EPERM);
        CHECK_INT(seteuid(before), 0);
        CHECK(problems.count == 1 && strstr(problems.items[0].detail, "SocketGroup="));
        CHECK(access(path, F_OK) < 0);
}

static gid_t group_of(const char *path)
{
        struct stat info = {};

        CHECK_INT(stat(path, &info), 0);
        return info.st_gid;
}

/* Return its descriptor. */
static int make_socket(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        CHECK_INT(__real_bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        return fd;
}

/* Only root can give a file to any group. */
static void test_nothing_else_is_given_to_the_group(const char *folder)
{
        const struct api_group group = {.exists = true, .gid = 4242, .name = "storage"};
        _cleanup_problems_ struct problem_list problems = {};
        struct listener listener = {.fd = -1};
        char victim[64], path[64];

        if (geteuid() != 0)
                return;
        snprintf(victim, sizeof(victim), "%s/victim", folder);
        snprintf(path, sizeof(path), "%s/api.sock", folder);
        close_fd(make_socket(victim)); /* its file stays */
        link_target = victim;
        CHECK_INT(listener_open(path, &group, &listener, &problems), -ESTALE);
        link_target = NULL;
        CHECK_INT(group_of(victim), getegid());
        CHECK_INT(mode_of(path), S_IFLNK | 0777);
        CHECK_INT(unlink(path), 0);
        successor = victim; /* a socket of root, which is not the one that was bound */
        CHECK_INT(listener_open(path, &group, &listener, &problems), -ESTALE);
        successor = NULL;
        CHECK_INT(group_of(path), getegid());
        CHECK_INT(unlink(path), 0);
        CHECK_INT(listener_open(path, &group, &listener, &problems), 0);
        CHECK_INT(group_of(path), group.gid);
        CHECK_INT(mode_of(path), S_IFSOCK | 0660);
        listener_close(&listener);
}

int main(void)
{
        char folder[] = "/tmp/listen_test.XXXXXX";

        umask(0077);
        if (CHECK(mkdtemp(folder))) {
                test_a_link_in_the_place_of_the_socket_changes_no_mode(folder);
                test_a_group_that_cannot_have_the_socket_is_named_as_the_cause(folder);
                test_nothing_else_is_given_to_the_group(folder);
                CHECK_INT(rmdir(folder), 0);
        }
        return check_report();
}
