/* SPDX-License-Identifier: MIT */
/* The path of a user's file: no link, no FUSE, no other user's file. Needs root, to be another user. */
#include "targets/loop/user_path.h"
#include "targets/loop/user_rights.h"
#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { ALICE = 4001, BOB = 4002, TEAM = 4100, PATH_SIZE = 512 };

/* A directory of alice's, and what a test opens in it. */
struct place {
        char root[64], home[128], passwd[128], group[128];
        struct user_accounts accounts;
};

struct attempt {
        const char *path;
        uid_t user;
        int flags; /* of the descriptor that is used */
        struct problem_list problems;
        struct stat stat;
};

static void path_of(const struct place *place, const char *name, char ret[static PATH_SIZE])
{
        snprintf(ret, PATH_SIZE, "%s/%s", place->home, name);
}

static void make_file(const char *path, uid_t owner, mode_t mode)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        CHECK(fd >= 0);
        CHECK_INT(fchown(fd, owner, owner), 0);
        CHECK_INT(fchmod(fd, mode), 0);
}

static void write_text(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        if (!CHECK(file))
                return;
        CHECK(fputs(text, file) >= 0);
        CHECK_INT(fclose(file), 0);
}

static void place_open(struct place *place)
{
        *place = (struct place){.root = "/tmp/user-path-XXXXXX"};
        CHECK(mkdtemp(place->root));
        CHECK_INT(chmod(place->root, 0755), 0);
        snprintf(place->home, sizeof(place->home), "%s/home", place->root);
        snprintf(place->passwd, sizeof(place->passwd), "%s/passwd", place->root);
        snprintf(place->group, sizeof(place->group), "%s/group", place->root);
        CHECK_INT(mkdir(place->home, 0755), 0);
        CHECK_INT(chown(place->home, ALICE, ALICE), 0);
        write_text(place->passwd, "alice:x:4001:4001::/:/bin/sh\n");
        write_text(place->group, "others:x:4099:bob\nteam:x:4100:bob,alice\n");
        place->accounts = (struct user_accounts){.passwd = place->passwd, .group = place->group};
}

/* As a worker does: the path, the file, then a descriptor that is used. */
static int open_file(void *userdata)
{
        struct attempt *attempt = userdata;
        _cleanup_close_ int path = user_path_open(attempt->path, &attempt->problems), fd = -1;
        char link[48];
        int r;

        if (path < 0)
                return path;
        if (fstat(path, &attempt->stat) < 0)
                return -errno;
        r = user_path_check_file(&attempt->stat, attempt->user, attempt->path, &attempt->problems);
        if (r < 0)
                return r;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
        fd = open(link, attempt->flags | O_CLOEXEC);
        return fd < 0 ? -errno : 0;
}

static int open_as(
        const struct place *place, struct attempt *attempt, const char *path, uid_t user, int flags)
{
        *attempt = (struct attempt){.path = path, .user = user, .flags = flags};
        return user_rights_run(user, &place->accounts, open_file, attempt);
}

static void is_opened(const struct place *place, const char *path, int flags)
{
        struct attempt attempt;

        CHECK_INT(open_as(place, &attempt, path, ALICE, flags), 0);
        problem_list_clear(&attempt.problems);
}

/* reason: NULL: the error has no sentence of its own. */
static void is_refused(const struct place *place, const char *path, int flags, int error, const char *reason)
{
        struct attempt attempt;

        if (!CHECK_INT(open_as(place, &attempt, path, ALICE, flags), error))
                fprintf(stderr, "    %s\n", path);
        CHECK_INT(attempt.problems.count, reason ? 1 : 0);
        if (attempt.problems.count > 0) {
                CHECK_STR(attempt.problems.items[0].reason, reason);
                CHECK_STR(attempt.problems.items[0].pointer, "/target/path");
        }
        problem_list_clear(&attempt.problems);
}

static void a_file_of_the_user_is_opened(const struct place *place)
{
        char path[PATH_SIZE];

        path_of(place, "mine", path);
        make_file(path, ALICE, 0600);
        is_opened(place, path, O_RDWR);
        CHECK_INT(chmod(path, 0400), 0);
        is_opened(place, path, O_RDONLY);
        is_refused(place, path, O_RDWR, -EACCES, NULL);
        CHECK_INT(chmod(path, 0), 0);
        is_refused(place, path, O_RDONLY, -EACCES, NULL);
}

/* Also one that the user may write: it takes the disk space, and the data, of its owner. */
static void a_file_of_another_user_is_refused(const struct place *place)
{
        char path[PATH_SIZE];

        path_of(place, "roots", path);
        make_file(path, 0, 0666);
        is_refused(place, path, O_RDWR, -EACCES, "BackingFileNotPermitted");
}

/* fs.protected_hardlinks keeps alice from making this one. */
static void a_hard_link_to_a_file_of_root_is_refused(const struct place *place)
{
        char secret[PATH_SIZE], path[PATH_SIZE];

        snprintf(secret, sizeof(secret), "%s/secret", place->root);
        make_file(secret, 0, 0600);
        path_of(place, "hard", path);
        CHECK_INT(link(secret, path), 0);
        is_refused(place, path, O_RDWR, -EACCES, "BackingFileNotPermitted");
}

static void no_link_is_followed_in_any_component(const struct place *place)
{
        static const char *const names[] = {"one/two/three", "one/two", "one"};
        char path[PATH_SIZE], moved[PATH_SIZE], file[PATH_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                path_of(place, "one", path);
                CHECK_INT(mkdir(path, 0755), 0);
                path_of(place, "one/two", path);
                CHECK_INT(mkdir(path, 0755), 0);
                path_of(place, "one/two/three", file);
                make_file(file, ALICE, 0600);
                is_opened(place, file, O_RDWR);
                path_of(place, names[i], path);
                path_of(place, "moved", moved);
                CHECK_INT(rename(path, moved), 0);
                CHECK_INT(symlink(moved, path), 0);
                is_refused(place, file, O_RDWR, -ELOOP, "BackingFileUnsuitable");
                CHECK_INT(unlink(path), 0);
                CHECK_INT(rename(moved, path), 0);
                path_of(place, "one", path);
                CHECK_INT(remove_tree(path), 0);
        }
}

static void magic_links_of_proc_are_refused(const struct place *place)
{
        char path[PATH_SIZE], link[2 * PATH_SIZE];
        _cleanup_close_ int fd = -1;

        path_of(place, "held", path);
        make_file(path, ALICE, 0600);
        fd = open(path, O_RDWR | O_CLOEXEC);
        snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)getpid(), fd);
        is_refused(place, link, O_RDWR, -ELOOP, "BackingFileUnsuitable");
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        is_refused(place, link, O_RDWR, -ELOOP, "BackingFileUnsuitable");
        snprintf(link, sizeof(link), "/proc/%d/root%s", (int)getpid(), path);
        is_refused(place, link, O_RDWR, -ELOOP, "BackingFileUnsuitable");
}

static void a_path_has_no_steps_back(const struct place *place)
{
        char path[PATH_SIZE];

        path_of(place, "../home/mine", path);
        is_refused(place, path, O_RDONLY, -EINVAL, "BackingFileUnsuitable");
        path_of(place, "./mine", path);
        is_refused(place, path, O_RDONLY, -EINVAL, "BackingFileUnsuitable");
        path_of(place, "absent", path);
        is_refused(place, path, O_RDONLY, -ENOENT, NULL);
}

/* A device node and a FIFO are not even opened: that could do something, or wait. */
static void only_regular_files_are_taken(const struct place *place)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char path[PATH_SIZE];

        path_of(place, "disk", path);
        if (mknod(path, S_IFBLK | 0666, makedev(7, 0)) == 0) /* a container may not */
                is_refused(place, path, O_RDWR, -EINVAL, "BackingFileUnsuitable");
        path_of(place, "null", path);
        if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) == 0)
                is_refused(place, path, O_RDWR, -EINVAL, "BackingFileUnsuitable");
        path_of(place, "fifo", path);
        CHECK_INT(mkfifo(path, 0666), 0);
        CHECK_INT(chown(path, ALICE, ALICE), 0);
        is_refused(place, path, O_RDWR, -EINVAL, "BackingFileUnsuitable");
        path_of(place, "socket", path);
        CHECK(strlen(path) < sizeof(address.sun_path));
        memcpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        CHECK_INT(bind(socket_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
        CHECK_INT(chown(path, ALICE, ALICE), 0);
        is_refused(place, path, O_RDWR, -EINVAL, "BackingFileUnsuitable");
        is_refused(place, place->home, O_RDONLY, -EINVAL, "BackingFileUnsuitable");
}

/* Those of now: the file of groups is read each time. */
static void the_groups_of_the_user_open_directories(const struct place *place)
{
        char directory[PATH_SIZE], path[PATH_SIZE];

        path_of(place, "team", directory);
        CHECK_INT(mkdir(directory, 0750), 0);
        CHECK_INT(chown(directory, BOB, TEAM), 0);
        path_of(place, "team/mine", path);
        make_file(path, ALICE, 0600);
        is_opened(place, path, O_RDWR);
        write_text(place->group, "team:x:4100:bob\n");
        is_refused(place, path, O_RDWR, -EACCES, NULL);
        CHECK_INT(chown(directory, 0, 0), 0);
        CHECK_INT(chmod(directory, 0700), 0);
        is_refused(place, path, O_RDWR, -EACCES, NULL);
}

/* ---- a swap ---- */

struct swapper {
        const char *one, *other;
        atomic_bool end;
};

static void *swap(void *userdata)
{
        struct swapper *swapper = userdata;

        while (!atomic_load(&swapper->end))
                (void)renameat2(AT_FDCWD, swapper->one, AT_FDCWD, swapper->other, RENAME_EXCHANGE);
        return NULL;
}

/* Beside a swap of file and link, and of directory and link: what is opened is alice's file, or nothing. */
static void a_swap_gets_nothing(
        const struct place *place, const char *one, const char *other, const char *file)
{
        struct swapper swapper = {.one = one, .other = other};
        struct attempt attempt;
        unsigned opened = 0, refused = 0;
        pthread_t thread;

        CHECK_INT(pthread_create(&thread, NULL, swap, &swapper), 0);
        for (unsigned i = 0; i < 200000 && (i < 2000 || opened == 0 || refused == 0); i++) {
                int r = open_as(place, &attempt, file, ALICE, O_RDWR);

                CHECK(r == 0 || r == -ELOOP);
                CHECK(r < 0 || attempt.stat.st_uid == ALICE);
                opened += r == 0;
                refused += r < 0;
                problem_list_clear(&attempt.problems);
        }
        atomic_store(&swapper.end, true);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK(opened > 0 && refused > 0);
}

static void a_path_that_is_swapped_all_the_time(const struct place *place)
{
        char one[PATH_SIZE], other[PATH_SIZE], secret[PATH_SIZE], file[PATH_SIZE];

        snprintf(secret, sizeof(secret), "%s/secret", place->root);
        path_of(place, "swapped", one);
        path_of(place, "swapping", other);
        make_file(one, ALICE, 0600);
        CHECK_INT(symlink(secret, other), 0);
        a_swap_gets_nothing(place, one, other, one);
        path_of(place, "directory", one);
        path_of(place, "link", other);
        CHECK_INT(mkdir(one, 0755), 0);
        CHECK_INT(symlink(place->root, other), 0);
        path_of(place, "directory/secret", file);
        make_file(file, ALICE, 0600);
        a_swap_gets_nothing(place, one, other, file);
}

/* ---- FUSE ---- */

/* A server that never answers: a stat() of its root directory would wait until this process is dead. */
static int walk_into_fuse(const struct place *place)
{
        char options[128], directory[PATH_SIZE], path[PATH_SIZE];
        int server = open("/dev/fuse", O_RDWR | O_CLOEXEC), r = CHECK_SKIP;

        path_of(place, "served", directory);
        path_of(place, "served/file", path);
        snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", server,
                ALICE, ALICE);
        if (server < 0 || mount("hang", directory, "fuse", MS_NODEV | MS_NOSUID, options) < 0)
                return r;
        (void)alarm(60); /* else the test would wait for ever */
        is_refused(place, path, O_RDWR, -EINVAL, "BackingFileUnsuitable");
        is_refused(place, directory, O_RDONLY, -EINVAL, "BackingFileUnsuitable");
        (void)umount2(directory, MNT_DETACH);
        close_fd(server);
        return check_report();
}

/* Return false if there is no FUSE here. */
static bool a_file_system_of_the_user_is_not_asked(const struct place *place)
{
        char directory[PATH_SIZE];
        pid_t child;
        int status = 0;

        path_of(place, "served", directory);
        CHECK_INT(mkdir(directory, 0755), 0);
        child = fork();
        if (child == 0)
                _exit(unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                                ? CHECK_SKIP
                                : walk_into_fuse(place));
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == CHECK_SKIP));
        return !WIFEXITED(status) || WEXITSTATUS(status) != CHECK_SKIP;
}

/* ---- the process ---- */

static int do_nothing(void *userdata _unused_)
{
        return 7;
}

static void the_process_keeps_its_rights(const struct place *place)
{
        CHECK_INT(user_rights_run(ALICE, &place->accounts, do_nothing, NULL), 7);
        CHECK_INT(geteuid(), 0);
        CHECK_INT(access(place->passwd, W_OK), 0);
        CHECK_INT(chown(place->passwd, 0, 0), 0); /* takes a capability */
}

/* A worker enters another mount namespace after it has opened its store, which the kernel refuses to a process whose
 * threads share a root directory: also one that has been joined, and is still on its way out. Return false if there are
 * no mount namespaces here. */
static bool the_process_may_leave_its_files(const struct place *place)
{
        _cleanup_close_ int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        unsigned refused = 0;

        if (setns(mounts, CLONE_NEWNS) < 0)
                return false;
        for (unsigned i = 0; i < 3000; i++) {
                CHECK_INT(user_rights_run(ALICE, &place->accounts, do_nothing, NULL), 7);
                refused += setns(mounts, CLONE_NEWNS) < 0;
        }
        CHECK_INT(refused, 0);
        return true;
}

int main(void)
{
        struct place place;
        bool whole;

        if (geteuid() != 0)
                return CHECK_SKIP;
        place_open(&place);
        a_file_of_the_user_is_opened(&place);
        a_file_of_another_user_is_refused(&place);
        a_hard_link_to_a_file_of_root_is_refused(&place);
        no_link_is_followed_in_any_component(&place);
        magic_links_of_proc_are_refused(&place);
        a_path_has_no_steps_back(&place);
        only_regular_files_are_taken(&place);
        the_groups_of_the_user_open_directories(&place);
        a_path_that_is_swapped_all_the_time(&place);
        whole = a_file_system_of_the_user_is_not_asked(&place);
        the_process_keeps_its_rights(&place);
        whole &= the_process_may_leave_its_files(&place);
        CHECK_INT(remove_tree(place.root), 0);
        return whole || check_failures > 0 ? check_report() : CHECK_SKIP;
}
