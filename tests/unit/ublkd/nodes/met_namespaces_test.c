/* SPDX-License-Identifier: MIT */
/* met_namespaces: of each namespace a search asks once, however many processes are in it. Needs root. */
#include "ublkd/nodes/met_namespaces.h"
#include "ublkd/nodes/mount_users.h"
#include "ublkd/nodes/recall_process.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/nodes/container_world.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#ifndef NS_GET_ID
#define NS_GET_ID _IOR(NSIO, 13, uint64_t)
#endif

enum { REUSE_TRIES = 64 };

static char top[] = "/tmp/ublkd-test-met-XXXXXX";
static char base[64]; /* as of a mount */

/* What a search has asked of the namespaces of a container, in any of its processes. */
static struct questions {
        ino_t mounts, users;
        unsigned of_mounts, of_users;
} *questions;

/* As a kernel that gives user namespaces no number. */
static bool is_old;

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, void *argument);

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
        struct stat st;

        if (is_old && request == NS_GET_ID) {
                errno = ENOTTY;
                return -1;
        }
        if (questions && fstat(fd, &st) == 0) {
                questions->of_mounts += request == NS_GET_USERNS && st.st_ino == questions->mounts;
                questions->of_users += request == NS_GET_OWNER_UID && st.st_ino == questions->users;
        }
        return __real_ioctl(fd, request, argument);
}

static ino_t namespace_of(const struct container *container, const char *name)
{
        char path[64];
        struct stat st;

        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)container->pid, name);
        return CHECK(stat(path, &st) == 0) ? st.st_ino : 0;
}

/* Return whether the kernel gives user namespaces numbers of their own. */
static bool are_users_numbered(void)
{
        _cleanup_close_ int users = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
        uint64_t number;

        return ioctl(users, NS_GET_ID, &number) == 0;
}

/* Start one more process of the container. Return it when it is there. */
static pid_t start_inside(const struct container *container, int more_namespaces)
{
        int ready[2];
        char byte = 0;
        pid_t pid;

        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                if (setns(container->pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0 || unshare(more_namespaces) < 0
                        || write(ready[1], &byte, 1) != 1)
                        _exit(EXIT_FAILURE);
                (void)close(ready[1]);
                (void)pause();
                _exit(EXIT_SUCCESS);
        }
        close_fd(ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close_fd(ready[0]);
        return pid;
}

/* Else a user with very many processes has each search end too late. */
static void test_each_namespace_is_asked_once(void)
{
        struct container container = container_start(enter_rootless);
        pid_t more[] = {start_inside(&container, 0), start_inside(&container, CLONE_NEWNS)};
        bool numbered = are_users_numbered();

        questions = mmap(NULL, sizeof(*questions), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (!CHECK(questions != MAP_FAILED))
                abort();
        *questions = (struct questions){
                .mounts = namespace_of(&container, "mnt"), .users = namespace_of(&container, "user")};
        mount_users_begin(base);
        CHECK_INT(mount_users_add(base, ANOTHER), 0);
        CHECK_INT(recall_mounts(makedev(7, 0), base, RECALL_TRY_MOUNTS), 0);
        CHECK_INT(questions->of_mounts, 1);
        CHECK_INT(questions->of_users, numbered ? 1 : 2); /* or for each mount namespace */
        mount_users_end(base);
        CHECK_INT(munmap(questions, sizeof(*questions)), 0);
        questions = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
                CHECK_INT(kill(more[i], SIGKILL), 0);
                CHECK_INT(waitpid(more[i], NULL, 0), more[i]);
        }
        container_end(&container);
}

/* Its inode may be that of another one now, of another user, whose containers would not be looked at. */
static void test_a_user_namespace_without_a_number_is_asked_each_time(void)
{
        struct container container = container_start(enter_rootless);
        struct questions counted = {.users = namespace_of(&container, "user")};
        struct met_namespaces met = {};
        uid_t owner = 0;
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)container.pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        questions = &counted;
        for (unsigned old = 0; old <= 1; old++) {
                is_old = old;
                counted.of_users = 0;
                for (unsigned i = 0; i < 3; i++)
                        CHECK_INT(met_namespaces_find_owner(&met, fd, &owner), 1);
                CHECK_INT(counted.of_users, are_users_numbered() ? 1 : 3);
        }
        is_old = false;
        questions = NULL;
        close_fd(fd);
        met_namespaces_clear(&met);
        container_end(&container);
}

/* A descriptor of the mount namespace of a process that has ended, or of a new one. */
static int new_namespace(ino_t *ret)
{
        struct container container = container_start(enter_mounts);
        char path[64];
        struct stat st;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)container.pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && fstat(fd, &st) == 0);
        *ret = st.st_ino;
        container_end(&container);
        return fd;
}

/* Return whether the kernel gives mount namespaces numbers of their own. */
static bool has_numbers(void)
{
        struct utsname name;
        unsigned version, revision;

        return uname(&name) == 0 && sscanf(name.release, "%u.%u", &version, &revision) == 2
               && (version > 6 || (version == 6 && revision >= 11));
}

/* A user could have a copy where the search thinks that it was. */
static void test_a_new_namespace_with_the_inode_of_one_that_has_ended_is_new(void)
{
        struct met_namespaces met = {};
        ino_t first, inode;
        int fd = new_namespace(&first);

        CHECK_INT(met_namespaces_add(&met, fd), 1);
        CHECK_INT(met_namespaces_add(&met, fd), 0);
        for (unsigned i = 0; i < REUSE_TRIES; i++) {
                close_fd(fd);
                fd = new_namespace(&inode);
                if (inode == first)
                        break;
        }
        CHECK_INT(met_namespaces_add(&met, fd), has_numbers() || inode != first);
        close_fd(fd);
        met_namespaces_clear(&met);
}

int main(void)
{
        bool can = world_open();

        if (can && CHECK(mkdtemp(top))) {
                snprintf(base, sizeof(base), "%s/volume", top);
                test_each_namespace_is_asked_once();
                test_a_user_namespace_without_a_number_is_asked_each_time();
                test_a_new_namespace_with_the_inode_of_one_that_has_ended_is_new();
                CHECK_INT(rmdir(top), 0);
        }
        world_close();
        return can || check_failures > 0 ? check_report() : CHECK_SKIP;
}
