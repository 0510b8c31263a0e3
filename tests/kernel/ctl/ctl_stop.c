/* SPDX-License-Identifier: MIT */
/* ctl_test: when a disk in use is stopped, and when not. */
#include "ctl_call.h"
#include "ublkd/kernel/kernel_feature.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void check_not_stopped(struct test *test, int result)
{
        CHECK_INT(CALL(stop_unheld, NUMBER), result);
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_LIVE);
}

/* Wait until the driver has a read of the disk. Before, a reader that is killed leaves nothing behind. */
static void await_read(void)
{
        char path[64], text[64];
        bool found = false;

        snprintf(path, sizeof(path), "/sys/block/ublkb%d/inflight", NUMBER);
        for (uint64_t start = now_usec(); !found && now_usec() < start + PATIENCE_USEC;) {
                FILE *file = fopen(path, "re");
                size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

                text[n] = '\0';
                found = strtoull(text, NULL, 10) > 0;
                if (file)
                        fclose(file);
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        }
        CHECK(found);
}

/* Wait until a process stands still in a function of the kernel. */
static void await_stack(pid_t pid, const char *function)
{
        char path[64], text[1024];
        bool found = false;

        snprintf(path, sizeof(path), "/proc/%d/stack", (int)pid);
        for (uint64_t start = now_usec(); !found && now_usec() < start + PATIENCE_USEC;) {
                FILE *file = fopen(path, "re");
                size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

                text[n] = '\0';
                found = strstr(text, function);
                if (file)
                        fclose(file);
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        }
        CHECK(found);
}

/* A thread that runs goes on for a moment after the signal, and could serve a read in it. */
static void halt_worker(struct test *test)
{
        pid_t pid = worker_proc_pid(test->worker);

        CHECK_INT(kill(pid, SIGSTOP), 0);
        CHECK_INT(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WSTOPPED | WNOWAIT), 0);
}

/* The exit of the last process that has the disk open waits for what it has read, with the disk's open_mutex held
 * (bdev_release(), block/bdev.c), and here that lasts as long as the worker stands still. The process is returned.
 * udev looks into a new disk. While it does, its process would be the last one, and its read the one waited for. */
static pid_t hold_open_mutex(struct test *test, const char *path)
{
        char byte;
        pid_t pid;

        CHECK_INT(system("udevadm settle"), 0);
        halt_worker(test);
        pid = fork();
        if (pid == 0) {
                int fd = open(path, O_RDONLY | O_CLOEXEC);

                _exit(pread(fd, &byte, 1, 0) == 1);
        }
        await_read();
        CHECK_INT(kill(pid, SIGKILL), 0);
        await_stack(pid, "truncate_inode_pages_range");
        return pid;
}

/* The helper is not lost with an open that does not come back, and the disk can be stopped without that. */
static void check_open_that_hangs(struct test *test, const char *path)
{
        pid_t reader = hold_open_mutex(test, path);
        uint64_t start = now_usec();

        check_not_stopped(test, -ETIME);
        CHECK(now_usec() - start >= 1000 * 1000);
        start = now_usec();
        check_not_stopped(test, -ETIME); /* and not one thread more */
        CHECK(now_usec() - start < 1000 * 1000);
        CHECK_INT(kill(worker_proc_pid(test->worker), SIGCONT), 0);
        CHECK_INT(waitpid(reader, NULL, 0), reader);
}

/* Until the late open has come back, and was closed, the disk counts as held. */
static int stop_unheld_at_last(struct test *test)
{
        uint64_t start = now_usec();
        int r;

        while (((r = CALL(stop_unheld, NUMBER)) == -ETIME || r == -EBUSY)
                && now_usec() < start + PATIENCE_USEC)
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        return r;
}

/* What the kernel says of an exclusive open decides. */
void check_stop_unheld(struct test *test)
{
        static const char aside[] = "/dev/ctl_test-aside";
        char path[32];
        int fd;

        snprintf(path, sizeof(path), "/dev/ublkb%d", NUMBER);
        fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
        CHECK(fd >= 0);
        check_not_stopped(test, -EBUSY);
        close(fd);
        CHECK_INT(rename(path, aside), 0);
        check_not_stopped(test, -ETIME); /* without a node */
        CHECK_INT(symlink("/dev/zero", path), 0);
        check_not_stopped(test, -ETIME); /* it leads to something else */
        CHECK_INT(unlink(path), 0);
        CHECK_INT(rename(aside, path), 0);
        check_open_that_hangs(test, path);
}

/* udev may have it open for a moment. */
void check_stop(struct test *test)
{
        uint64_t start = now_usec();
        char path[32];
        int fd, r;

        if (!has(test, KERNEL_FEATURE_TRY_STOP)) {
                CHECK(CALL(try_stop, NUMBER) < 0);
                CHECK_INT(stop_unheld_at_last(test), 0);
                return;
        }
        snprintf(path, sizeof(path), "/dev/ublkb%d", NUMBER);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_INT(CALL(try_stop, NUMBER), -EBUSY);
        CHECK_INT(CALL(get_info, NUMBER), 0);
        check_device(test, KERNEL_STATE_LIVE);
        close(fd);
        while ((r = CALL(try_stop, NUMBER)) == -EBUSY && now_usec() < start + PATIENCE_USEC)
                nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
        CHECK_INT(r, 0);
}
