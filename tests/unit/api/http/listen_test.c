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

int main(void)
{
        char folder[] = "/tmp/listen_test.XXXXXX";

        umask(0077);
        if (CHECK(mkdtemp(folder))) {
                test_a_link_in_the_place_of_the_socket_changes_no_mode(folder);
                test_a_group_that_cannot_have_the_socket_is_named_as_the_cause(folder);
                CHECK_INT(rmdir(folder), 0);
        }
        return check_report();
}
