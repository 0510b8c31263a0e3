/* SPDX-License-Identifier: MIT */
/* The note of a worker's process: found as long as that very process lives, and never another one of its pid. */
#include "ublkd/workers/worker_mark.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <systemd/sd-id128.h>

/* Before Linux 6.9 the file system of pidfds has another number. */
#define OLD_PIDFDS 0x09041934

static int nothing; /* its address is the groups of workers */
static const struct worker_groups *groups;
static bool is_old; /* the kernel */
static pid_t in_group;

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

int __real_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret)
{
        int r = __real_fstatfs(fd, ret);

        if (is_old)
                ret->f_type = OLD_PIDFDS;
        return r;
}

bool __wrap_worker_groups_has(const struct worker_groups *all, pid_t pid);
bool __wrap_worker_groups_has(const struct worker_groups *all, pid_t pid)
{
        CHECK((const void *)all == &nothing);
        return pid == in_group;
}

static bool is_next_boot;

int __real_sd_id128_get_boot(sd_id128_t *ret);
int __wrap_sd_id128_get_boot(sd_id128_t *ret);
int __wrap_sd_id128_get_boot(sd_id128_t *ret)
{
        int r = __real_sd_id128_get_boot(ret);

        if (r >= 0 && is_next_boot)
                ret->bytes[15] ^= 1;
        return r;
}

/* Start a process with this pid, or any (0); return -1 if that is not permitted. */
static pid_t start(pid_t pid)
{
        struct clone_args arguments = {
                .exit_signal = SIGCHLD, .set_tid = pid ? (uintptr_t)&pid : 0, .set_tid_size = pid ? 1 : 0};
        long r = syscall(SYS_clone3, &arguments, sizeof(arguments));

        if (r == 0) {
                pause();
                _exit(0);
        }
        return (pid_t)r;
}

static bool has_one_inode(void)
{
        _cleanup_close_ int pidfd = pidfd_open(getpid(), 0);
        struct statfs fs;

        CHECK_INT(fstatfs(pidfd, &fs), 0);
        return fs.f_type == OLD_PIDFDS;
}

static void end(pid_t pid)
{
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
}

static int note(struct runtime_dir *dir, pid_t pid)
{
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);

        CHECK(pidfd >= 0);
        return worker_mark_write(dir, uid, pid, pidfd);
}

static void test_the_process_is_found_while_it_lives(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;
        int pidfd;

        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        CHECK_INT(note(dir, pid), 0);
        pidfd = worker_mark_find(dir, groups, uid, &found);
        if (CHECK(pidfd >= 0)) {
                CHECK_INT(found, pid);
                CHECK_INT(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
                CHECK_INT(pidfd_send_signal(pidfd, SIGKILL, NULL, 0), 0);
                close(pidfd);
        }
        CHECK_INT(waitid(P_PID, (id_t)pid, &(siginfo_t){}, WEXITED | WNOWAIT), 0);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT); /* dead, and not reaped */
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
}

static void test_another_process_with_the_pid_is_not_found(struct runtime_dir *dir)
{
        pid_t pid = start(0), stranger, found = 0;

        CHECK_INT(note(dir, pid), 0);
        end(pid);
        stranger = start(pid);
        if (stranger < 0) {
                printf("no process can be given a pid here: %s\n", strerror(errno));
                return;
        }
        CHECK_INT(stranger, pid);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        end(stranger);
}

/* There, another process may have the pid, and a pidfd with that number. */
static void test_a_note_of_another_boot_names_no_process(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;
        int pidfd;

        CHECK_INT(note(dir, pid), 0);
        is_next_boot = true;
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        is_next_boot = false;
        pidfd = worker_mark_find(dir, groups, uid, &found);
        if (CHECK(pidfd >= 0))
                close(pidfd);
        end(pid);
}

/* That ublkd could not know the boot. */
static void test_a_note_of_an_older_ublkd_names_no_process(struct runtime_dir *dir)
{
        _cleanup_free_ char *text = NULL;
        pid_t pid = start(0), found = 0;

        CHECK_INT(note(dir, pid), 0);
        if (CHECK_INT(runtime_dir_read(dir, uid, RUNTIME_WORKER, &text), 0)) {
                strcpy(strrchr(text, ' '), "\n");
                CHECK_INT(runtime_dir_write(dir, uid, RUNTIME_WORKER, text), 0);
        }
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        end(pid);
}

static void test_the_note_goes_with_the_worker(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;

        CHECK_INT(note(dir, pid), 0);
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        end(pid);
}

static int compare(struct runtime_dir *dir, pid_t pid)
{
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);

        return worker_mark_compare(dir, uid, pid, pidfd);
}

static void test_a_process_is_compared_with_the_note(struct runtime_dir *dir)
{
        pid_t pid = start(0), other = start(0), found;

        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        CHECK_INT(compare(dir, pid), -ENOENT);
        CHECK_INT(note(dir, pid), 0);
        CHECK_INT(compare(dir, pid), 1);
        CHECK_INT(compare(dir, other), 0);
        end(pid);
        found = start(pid);
        if (found == pid)
                CHECK_INT(compare(dir, found), 0);
        if (found > 0)
                end(found);
        end(other);
}

/* Else the next ublkd would take the process of the old note for the worker. */
static void test_a_note_that_cannot_be_written_leaves_none(struct runtime_dir *dir)
{
        pid_t pid = start(0), other = start(0);
        struct rlimit before;

        CHECK_INT(note(dir, pid), 0);
        CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        CHECK_INT(getrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max}), 0);
        CHECK_INT(note(dir, other), -EFBIG);
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &before), 0);
        CHECK_INT(compare(dir, pid), -ENOENT);
        end(pid);
        end(other);
}

static void test_other_texts_name_no_process(struct runtime_dir *dir)
{
        static const char *const texts[] = {"", "\n", "1\n", "x 1\n", "-1 5\n", "0 5\n", "1 5", "1 5 7\n"};
        pid_t found = 0;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                CHECK_INT(runtime_dir_write(dir, uid, RUNTIME_WORKER, texts[i]), 0);
                CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        }
        CHECK_INT(found, 0);
}

/* An older kernel cannot distinguish it from another process that has its pid by now; its control group does. */
static void test_an_older_kernel_needs_the_group(struct runtime_dir *dir)
{
        pid_t pid = start(0), found = 0;
        int pidfd;

        is_old = true;
        CHECK_INT(note(dir, pid), 0);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        groups = (const struct worker_groups *)&nothing;
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        in_group = pid;
        pidfd = worker_mark_find(dir, groups, uid, &found);
        if (CHECK(pidfd >= 0)) {
                CHECK_INT(found, pid);
                close(pidfd);
        }
        is_old = false; /* a note of the older kernel: no boot leaves one */
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        is_old = true;
        end(pid);
        CHECK_INT(worker_mark_find(dir, groups, uid, &found), -ENOENT);
        is_old = false;
        groups = NULL;
}

int main(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/worker_mark_test.XXXXXX", command[64];
        struct runtime_dir *dir;

        if (!CHECK(mkdtemp(base)) || !CHECK_INT(runtime_dir_open(base, &dir, &problems), 0))
                return check_report();
        test_an_older_kernel_needs_the_group(dir);
        CHECK_INT(runtime_dir_remove_worker(dir, uid), 0);
        if (has_one_inode()) {
                printf("this kernel has one inode for all pidfds\n");
                return check_failures > 0 ? check_report() : CHECK_SKIP;
        }
        test_the_process_is_found_while_it_lives(dir);
        test_another_process_with_the_pid_is_not_found(dir);
        test_a_note_of_another_boot_names_no_process(dir);
        test_a_note_of_an_older_ublkd_names_no_process(dir);
        test_the_note_goes_with_the_worker(dir);
        test_a_process_is_compared_with_the_note(dir);
        test_a_note_that_cannot_be_written_leaves_none(dir);
        test_other_texts_name_no_process(dir);
        runtime_dir_free(dir);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
