/* SPDX-License-Identifier: MIT */
/* The control group of the process at the other end of a socket, in real groups. */
#include "ublkd/peers/peer_cgroup.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <mntent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char mount_point[256];
static char own[PEER_CGROUP_SIZE]; /* of this process */

static bool find_mount(void)
{
        FILE *mounts = setmntent("/proc/self/mounts", "re");
        const struct mntent *entry;

        while (mounts && (entry = getmntent(mounts)))
                if (strcmp(entry->mnt_type, "cgroup2") == 0)
                        snprintf(mount_point, sizeof(mount_point), "%s", entry->mnt_dir);
        if (mounts)
                (void)endmntent(mounts);
        return *mount_point;
}

static bool join(const char *group, pid_t pid)
{
        char path[1024];
        FILE *file;

        snprintf(path, sizeof(path), "%s%s/cgroup.procs", mount_point, group);
        file = fopen(path, "we");
        return file && fprintf(file, "%d", (int)pid) > 0 && fclose(file) == 0;
}

/* A child that is connected to the returned socket, and waits for its end. */
static int connect_child(pid_t *ret)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        socklen_t size = sizeof(sa_family_t);
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connected;

        CHECK_INT(bind(listener, (struct sockaddr *)&address, size), 0); /* the kernel chooses a name */
        size = sizeof(address);
        CHECK_INT(getsockname(listener, (struct sockaddr *)&address, &size), 0);
        CHECK_INT(listen(listener, 1), 0);
        *ret = fork();
        if (*ret == 0) {
                int fd = socket(AF_UNIX, SOCK_STREAM, 0);

                if (connect(fd, (struct sockaddr *)&address, size) < 0)
                        _exit(EXIT_FAILURE);
                for (;;)
                        pause();
        }
        connected = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        close_fd(listener);
        CHECK(connected >= 0);
        return connected;
}

static void test_groups(void)
{
        static const char *const names[] = {"/ublkd-test.slice", "/ublkd-test.slice/a b.service"};
        char path[1024], group[PEER_CGROUP_SIZE], wanted[PEER_CGROUP_SIZE];
        pid_t child;
        int fd;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                snprintf(path, sizeof(path), "%s%s", mount_point, names[i]);
                CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
        }
        fd = connect_child(&child);
        CHECK_INT(peer_cgroup_of(fd, group), 0);
        CHECK_STR(group, own);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) { /* as it is now, not as it was when it connected */
                CHECK(join(names[i], child));
                CHECK_INT(peer_cgroup_of(fd, group), 0);
                snprintf(wanted, sizeof(wanted), "%s", names[i]);
                CHECK_STR(group, wanted);
        }
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        CHECK_INT(peer_cgroup_of(fd, group), -ESRCH);
        close_fd(fd);
        for (size_t i = ARRAY_SIZE(names); i-- > 0;) {
                snprintf(path, sizeof(path), "%s%s", mount_point, names[i]);
                CHECK_INT(rmdir(path), 0);
        }
}

static void test_no_unix_socket(void)
{
        char group[PEER_CGROUP_SIZE];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK(peer_cgroup_of(fd, group) < 0);
        close_fd(fd);
}

int main(void)
{
        pid_t child;
        int fd;

        if (geteuid() != 0 || !find_mount() || access(mount_point, W_OK) < 0)
                return CHECK_SKIP;
        fd = connect_child(&child);
        CHECK_INT(peer_cgroup_of(fd, own), 0);
        CHECK(*own == '/');
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        close_fd(fd);
        test_groups();
        test_no_unix_socket();
        return check_report();
}
