/* SPDX-License-Identifier: MIT */
/* Images: made whole or not at all, taken only if they are what ublkd has made, never made smaller. */
#include "ublkd/pools/pool_image.h"

#include "tests/unit/check.h"
#include "tests/unit/remove_tree.h"
#include "ublkd/backing/file_identity.h"
#include "ublkd/base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

enum { SIZE = 1 << 20, STEPS_MAX = 1000 };

static char pool[32], path[96];
static char sentence[POOL_SENTENCE_MAX];
static const struct backing_identity unknown;

static void begin(void)
{
        strcpy(pool, "/tmp/ublkd-pool-XXXXXX");
        CHECK(mkdtemp(pool));
        snprintf(path, sizeof(path), "%s/data-0123456789abcdef.img", pool);
}

static void end(void)
{
        remove_tree(pool);
}

static struct pool_image image_of(const struct backing_identity *is)
{
        return (struct pool_image){.path = path, .is = is, .same_boot = true};
}

static int make(uint64_t size)
{
        const struct pool_image image = image_of(&unknown);

        return pool_image_make(&image, size, sentence);
}

static struct backing_identity identity(void)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct backing_identity is = {};
        struct stat info;

        if (CHECK(fd >= 0) && CHECK_INT(fstat(fd, &info), 0))
                file_identify(fd, &info, &is);
        return is;
}

static int64_t size_of(const char *name)
{
        struct stat info;

        return lstat(name, &info) < 0 ? -1 : info.st_size;
}

/* Files in the pool. */
static int count(void)
{
        DIR *directory = opendir(pool);
        struct dirent *entry;
        int n = 0;

        while (directory && (entry = readdir(directory)))
                n += entry->d_name[0] != '.';
        closedir(directory);
        return n;
}

static void an_image_is_sparse_and_private(void)
{
        struct stat info;

        begin();
        CHECK_INT(make(SIZE), 1);
        CHECK_INT(lstat(path, &info), 0);
        CHECK_INT(info.st_size, SIZE);
        CHECK_INT(info.st_mode & 07777, 0600);
        CHECK(info.st_blocks * 512 < SIZE);
        CHECK_INT(make(SIZE), 0); /* again */
        CHECK_INT(make(2 * SIZE), 0);
        CHECK_INT(size_of(path), 2 * SIZE);
        CHECK_INT(make(SIZE), 0);
        CHECK_INT(size_of(path), 2 * SIZE); /* never smaller */
        CHECK_INT(count(), 1);
        end();
}

/* In the child: wait for the parent, and do the work. */
static void work_traced(int (*work)(void))
{
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        _exit(work() < 0 ? 1 : 0);
}

/* Do the work in a process that is killed at its n-th system call, before and after which it stops. Return false if it
 * has ended by itself. */
static bool kill_at(int n, int (*work)(void))
{
        pid_t pid = fork();
        int status = 0;

        if (pid == 0)
                work_traced(work);
        if (!CHECK_INT(waitpid(pid, &status, 0), pid) || !CHECK(WIFSTOPPED(status)))
                return false;
        for (int i = 0; i < n; i++) {
                (void)ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
                if (waitpid(pid, &status, 0) != pid || WIFEXITED(status)) {
                        CHECK_INT(WEXITSTATUS(status), 0);
                        return false;
                }
        }
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
        return true;
}

static int make_one(void)
{
        return make(SIZE);
}

static void a_death_leaves_no_image_or_a_whole_one(void)
{
        bool killed = true, seen_none = false, seen_whole = false;

        for (int n = 1; killed && n < STEPS_MAX; n++) {
                begin();
                killed = kill_at(n, make_one);
                CHECK(size_of(path) == -1 || size_of(path) == SIZE);
                seen_none = seen_none || size_of(path) == -1;
                seen_whole = seen_whole || (killed && size_of(path) == SIZE);
                CHECK(make(SIZE) >= 0);
                CHECK_INT(size_of(path), SIZE);
                CHECK_INT(count(), 1);
                end();
        }
        CHECK(!killed);
        CHECK(seen_none);
        CHECK(seen_whole);
}

static int grow_one(void)
{
        const struct pool_image image = image_of(&unknown);

        return pool_image_grow(&image, SIZE, 3 * SIZE, sentence);
}

static void a_death_leaves_an_image_that_can_grow(void)
{
        bool killed = true;

        for (int n = 1; killed && n < STEPS_MAX; n++) {
                begin();
                CHECK_INT(make(SIZE), 1);
                killed = kill_at(n, grow_one);
                CHECK(size_of(path) == SIZE || size_of(path) == 3 * SIZE);
                CHECK_INT(grow_one(), 0);
                CHECK_INT(size_of(path), 3 * SIZE);
                end();
        }
        CHECK(!killed);
}

static int remove_one(void)
{
        const struct pool_image image = image_of(&unknown);

        return pool_image_remove(&image, sentence);
}

static void a_removal_can_be_repeated(void)
{
        bool killed = true;

        for (int n = 1; killed && n < STEPS_MAX; n++) {
                begin();
                CHECK_INT(make(SIZE), 1);
                killed = kill_at(n, remove_one);
                CHECK(remove_one() >= 0);
                CHECK_INT(remove_one(), 0);
                CHECK_INT(count(), 0);
                end();
        }
        CHECK(!killed);
}

/* What another process of root has put at the name is not taken, followed, or deleted. */
static void check_planted(int64_t size)
{
        CHECK_INT(make(SIZE), -ESTALE);
        CHECK(sentence[0]);
        CHECK_INT(grow_one(), -ESTALE);
        CHECK_INT(remove_one(), -ESTALE);
        CHECK_INT(size_of(path), size);
}

static void what_is_planted_stays(void)
{
        char other[96];

        begin();
        snprintf(other, sizeof(other), "%s/other", pool);
        CHECK_INT(symlink(other, path), 0);
        check_planted(size_of(path));
        CHECK_INT(size_of(other), -1);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(mkdir(path, 0700), 0);
        check_planted(size_of(path));
        CHECK_INT(rmdir(path), 0);
        CHECK_INT(mkfifo(path, 0600), 0);
        check_planted(0);
        CHECK_INT(unlink(path), 0);
        close_fd(open(other, O_CREAT | O_CLOEXEC | O_WRONLY, 0600));
        CHECK_INT(link(other, path), 0);
        CHECK_INT(make(SIZE), -ESTALE);
        CHECK_INT(size_of(other), 0);
        end();
}

static void another_file_is_not_the_image(void)
{
        struct backing_identity is;
        struct pool_image image;
        char other[128];

        begin();
        CHECK_INT(make(SIZE), 1);
        is = identity();
        image = image_of(&is);
        CHECK_INT(pool_image_grow(&image, SIZE, 2 * SIZE, sentence), 0);
        snprintf(other, sizeof(other), "%s.kept", path); /* else the next file may get its inode */
        CHECK_INT(rename(path, other), 0);
        CHECK_INT(pool_image_grow(&image, SIZE, 4 * SIZE, sentence), -ENOENT);
        CHECK_INT(make(SIZE), 1);
        CHECK_INT(pool_image_grow(&image, SIZE, 4 * SIZE, sentence), -ESTALE);
        CHECK_INT(pool_image_remove(&image, sentence), -ESTALE);
        CHECK_INT(size_of(path), SIZE);
        CHECK_INT(rename(other, path), 0);
        CHECK_INT(pool_image_remove(&image, sentence), 1);
        CHECK_INT(count(), 0);
        end();
}

/* The zeroes would be read as data. */
static void an_image_that_was_cut_off_does_not_grow(void)
{
        const struct pool_image image = image_of(&unknown);
        bool noted;

        begin();
        CHECK_INT(make(SIZE), 1);
        noted = getxattr(path, "trusted.ublkd.size", NULL, 0) > 0;
        CHECK_INT(pool_image_grow(&image, 0, 2 * SIZE, sentence), noted ? 0 : -ENODATA);
        CHECK_INT(pool_image_grow(&image, SIZE, 2 * SIZE, sentence), 0);
        CHECK_INT(truncate(path, SIZE), 0);
        CHECK_INT(pool_image_grow(&image, 0, 2 * SIZE, sentence), -ENODATA);
        CHECK_INT(pool_image_grow(&image, 2 * SIZE, 3 * SIZE, sentence), -ENODATA);
        CHECK_INT(size_of(path), SIZE);
        end();
}

static void a_directory_of_others_is_refused(void)
{
        char link[64];

        begin();
        CHECK_INT(chmod(pool, 0770), 0);
        CHECK_INT(make(SIZE), -EACCES);
        CHECK_INT(chmod(pool, 0702), 0);
        CHECK_INT(make(SIZE), -EACCES);
        CHECK_INT(chmod(pool, 0755), 0);
        CHECK_INT(count(), 0);
        snprintf(link, sizeof(link), "%s.link", pool);
        CHECK_INT(symlink(pool, link), 0);
        snprintf(path, sizeof(path), "%s/data.img", link);
        CHECK_INT(make(SIZE), -ENOTDIR);
        CHECK_INT(unlink(link), 0);
        CHECK_INT(make(SIZE), -ENOENT);
        CHECK_INT(remove_one(), -ENOENT); /* its file system may not be mounted */
        if (geteuid() == 0) {
                snprintf(path, sizeof(path), "%s/data.img", pool);
                CHECK_INT(chown(pool, 65534, 65534), 0);
                CHECK_INT(make(SIZE), -EACCES);
        }
        end();
}

static void an_image_that_is_too_large_is_not_made(void)
{
        const struct rlimit limit = {.rlim_cur = SIZE, .rlim_max = RLIM_INFINITY};
        struct rlimit before;

        begin();
        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        (void)signal(SIGXFSZ, SIG_IGN);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
        CHECK_INT(make(2 * SIZE), -EFBIG);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK_INT(count(), 0);
        end();
}

/* In a namespace of its own, which needs root. */
static void a_full_file_system_is_reported(void)
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                begin();
                if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                        || mount("none", pool, "tmpfs", 0, "nr_inodes=1,mode=700") < 0)
                        _exit(rmdir(pool)); /* not permitted here */
                CHECK_INT(make(SIZE), -ENOSPC);
                CHECK(sentence[0]);
                CHECK_INT(umount(pool), 0);
                CHECK_INT(rmdir(pool), 0);
                _exit(check_report());
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
        an_image_is_sparse_and_private();
        a_death_leaves_no_image_or_a_whole_one();
        a_death_leaves_an_image_that_can_grow();
        a_removal_can_be_repeated();
        what_is_planted_stays();
        another_file_is_not_the_image();
        an_image_that_was_cut_off_does_not_grow();
        a_directory_of_others_is_refused();
        an_image_that_is_too_large_is_not_made();
        a_full_file_system_is_reported();
        return check_report();
}
