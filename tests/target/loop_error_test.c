/* SPDX-License-Identifier: MIT */
/* What the backing store refuses reaches the client as what it is. */
#include "tests/target/scratch.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { SIZE = 1 << 20, BLOCK = 4096 };

static struct scratch scratch;

static bool open_file(struct target_host *host, const char *path, const char *direct)
{
        _cleanup_problems_ struct problem_list problems = {};
        char spec[1024];

        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\",\"directIo\":\"%s\"}}",
                path, direct);
        return CHECK_INT(target_host_open(host, spec, &problems), 0);
}

/* Another process truncated the file: its rest cannot be read, and must not read as any data. */
static void test_cut_short(const char *direct)
{
        struct target_host host;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "short", SIZE, path, sizeof(path)), 0);
        if (open_file(&host, path, direct)) {
                CHECK_INT(truncate(path, SIZE / 2 + 700), 0);
                CHECK_INT(target_host_one(&host, IO_READ, 0, 0, BLOCK), BLOCK);
                CHECK_INT(target_host_one(&host, IO_READ, 0, SIZE / 2, BLOCK), -EIO);
                CHECK_INT(target_host_one(&host, IO_READ, 0, SIZE / 2 - BLOCK, 2 * BLOCK), -EIO);
                CHECK_INT(target_host_one(&host, IO_READ, 0, SIZE - BLOCK, BLOCK), -EIO);
                CHECK_INT(target_host_one(&host, IO_FLUSH, 0, 0, 0), 0);
        }
        target_host_close(&host);
}

/* One limit for the process stands for all the ways in which a write may be refused half way. */
static void test_limit(const char *direct)
{
        struct rlimit before, limit;
        struct target_host host;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "limited", SIZE, path, sizeof(path)), 0);
        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        limit = before;
        limit.rlim_cur = SIZE / 2;
        (void)signal(SIGXFSZ, SIG_IGN);
        if (open_file(&host, path, direct)) {
                CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
                CHECK_INT(target_host_one(&host, IO_WRITE, 0, 0, BLOCK), BLOCK);
                CHECK_INT(target_host_one(&host, IO_WRITE, 0, SIZE / 2, BLOCK), -EFBIG);
                CHECK_INT(target_host_one(&host, IO_WRITE, IO_FUA, SIZE / 2 - BLOCK, 2 * BLOCK), -EFBIG);
                CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
                CHECK_INT(target_host_one(&host, IO_WRITE, 0, SIZE / 2, BLOCK), BLOCK);
        }
        target_host_close(&host);
}

static bool write_text(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Root in a namespace of our own, which some machines do not allow; root has no need of it. */
static bool become_root(void)
{
        char user[64], group[64];

        snprintf(user, sizeof(user), "0 %u 1", geteuid());
        snprintf(group, sizeof(group), "0 %u 1", getegid());
        if (geteuid() == 0)
                return true;
        return unshare(CLONE_NEWUSER) == 0 && write_text("/proc/self/uid_map", user)
               && write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", group);
}

/* Needs a file system of its own. */
static void test_full_in_child(void)
{
        struct target_host host;
        char path[512];
        int result = 0;

        if (!become_root() || unshare(CLONE_NEWNS) < 0
                || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                || mount("none", scratch.path, "tmpfs", 0, "size=256k") < 0)
                _exit(CHECK_SKIP);
        snprintf(path, sizeof(path), "%s/sparse", scratch.path);
        CHECK_INT(scratch_file(&scratch, "sparse", 0, path, sizeof(path)), 0);
        CHECK_INT(truncate(path, SIZE), 0);
        if (open_file(&host, path, "auto")) {
                for (uint64_t offset = 0; result >= 0 && offset < SIZE; offset += BLOCK)
                        result = target_host_one(&host, IO_WRITE, 0, offset, BLOCK);
                CHECK_INT(result, -ENOSPC);
                /* Room again: nothing is remembered. */
                CHECK_INT(target_host_one(&host, IO_DISCARD, 0, 0, SIZE / 2), 0);
                CHECK_INT(target_host_one(&host, IO_WRITE, 0, SIZE / 2, BLOCK), BLOCK);
        }
        target_host_close(&host);
        _exit(check_report());
}

static void test_full(void)
{
        int status = 0;
        pid_t child = fork();

        if (child == 0)
                test_full_in_child();
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHECK_SKIP)
                printf("no file system of our own here: ENOSPC was not tried\n");
        else
                CHECK_INT(status, 0);
}

int main(void)
{
        if (!io_uring_is_there())
                return CHECK_SKIP;
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0))
                return check_report();
        test_cut_short("auto");
        test_cut_short("off");
        test_limit("auto");
        test_limit("off");
        test_full();
        scratch_remove(&scratch);
        return check_report();
}
