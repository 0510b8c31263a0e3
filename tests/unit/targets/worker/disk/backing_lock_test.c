/* SPDX-License-Identifier: MIT */
/* The lock on the bytes that a disk lies in, between processes and open files. */
#include "targets/worker/disk/backing_lock.h"
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { SIZE = 1 << 20, PATIENCE = 60000 /* milliseconds */ };

static struct scratch scratch;
static char path[512];

/* Locks what an open file of its own says, and closes nothing. */
static int lock(int fd, uint64_t start, uint64_t end, bool writes)
{
        return backing_lock(&(struct backing_range){.fd = fd, .start = start, .end = end, .writes = writes});
}

static int open_again(const char *name, int flags)
{
        int fd = open(name, flags | O_CLOEXEC);

        CHECK(fd >= 0);
        return fd;
}

static void writers_exclude_each_other_where_they_overlap(void)
{
        _cleanup_close_ int one = open_again(path, O_RDWR), other = open_again(path, O_RDWR);

        CHECK_INT(lock(one, 0, SIZE / 2, true), 0);
        CHECK_INT(lock(one, 0, SIZE / 2, true), 0); /* what it has it may take again */
        CHECK_INT(lock(other, 0, SIZE, true), -EAGAIN);
        CHECK_INT(lock(other, SIZE / 2 - 512, SIZE, true), -EAGAIN);
        CHECK_INT(lock(other, SIZE / 2, SIZE, true), 0);
        CHECK_INT(lock(one, SIZE / 2, SIZE / 2 + 512, true), -EAGAIN); /* it grows into the other */
        other = close_fd(other);
        CHECK_INT(lock(one, SIZE / 2, SIZE / 2 + 512, true), 0);
}

static void a_writer_beside_readers_keeps_other_writers_out(void)
{
        _cleanup_close_ int reader = open_again(path, O_RDONLY), ours = open_again(path, O_RDWR),
                            other = open_again(path, O_RDWR);
        const struct backing_range range = {.fd = ours, .start = 0, .end = SIZE, .writes = true};

        CHECK_INT(lock(reader, 0, SIZE, false), 0);
        CHECK_INT(backing_lock(&range), -EAGAIN);
        CHECK(backing_lock_beside_readers(&range));
        CHECK_INT(lock(other, 0, SIZE, true), -EAGAIN);
        reader = close_fd(reader);
        CHECK_INT(backing_lock(&range), 0); /* the whole of it, once the reader has gone */
        reader = open_again(path, O_RDONLY);
        CHECK_INT(lock(reader, 0, SIZE, false), -EAGAIN);
        ours = close_fd(ours);
        CHECK_INT(lock(other, 0, SIZE, true), 0);
        ours = open_again(path, O_RDWR);
        CHECK(!backing_lock_beside_readers(
                &(const struct backing_range){.fd = ours, .start = 0, .end = SIZE, .writes = true}));
}

static void readers_share_and_exclude_writers(void)
{
        _cleanup_close_ int one = open_again(path, O_RDONLY), other = open_again(path, O_RDONLY),
                            writer = open_again(path, O_RDWR);

        CHECK_INT(lock(one, 0, SIZE, false), 0);
        CHECK_INT(lock(other, 0, SIZE, false), 0);
        CHECK_INT(lock(writer, 0, SIZE, true), -EAGAIN);
        CHECK_INT(lock(writer, 0, 512, true), -EAGAIN); /* the smallest of disks */
        one = close_fd(one);
        other = close_fd(other);
        CHECK_INT(lock(writer, 0, 512, true), 0);
        one = open_again(path, O_RDONLY);
        CHECK_INT(lock(one, 0, 512, false), -EAGAIN);
}

static void another_name_is_the_same_file(void)
{
        _cleanup_close_ int one = open_again(path, O_RDWR), other = -1;
        char alias[600];

        snprintf(alias, sizeof(alias), "%s.alias", path);
        CHECK_INT(link(path, alias), 0);
        other = open_again(alias, O_RDWR);
        CHECK_INT(lock(one, 0, SIZE, true), 0);
        CHECK_INT(lock(other, 0, SIZE, true), -EAGAIN);
        CHECK_INT(unlink(alias), 0);
}

/* As block/file-posix.c does: RAW_LOCK_PERM_BASE 100, RAW_LOCK_SHARED_BASE 200. */
static void an_image_of_qemu_is_not_written(void)
{
        _cleanup_close_ int qemu = open_again(path, O_RDWR), ours = open_again(path, O_RDWR);

        for (int byte = 100; byte <= 200; byte += 100)
                CHECK_INT(fcntl(qemu, F_OFD_SETLK,
                                  &(struct flock){.l_type = F_RDLCK, .l_start = byte, .l_len = 2}),
                        0);
        CHECK_INT(lock(ours, 0, SIZE, true), -EAGAIN);
        CHECK_INT(lock(ours, 0, SIZE, false), 0);
}

static void a_file_system_without_locks_is_reported(void)
{
        _cleanup_close_ int fd = open_again(path, O_PATH);
        int r = lock(fd, 0, SIZE, true);

        CHECK(r < 0 && r != -EAGAIN);
}

/* The second fence: what a dead worker has under way is done by its ring. */
static void a_ring_keeps_the_lock_until_it_is_freed(void)
{
        _cleanup_close_ int other = open_again(path, O_RDWR);
        struct io_uring ring;
        int64_t waited = 0;
        int fd = open_again(path, O_RDWR), r;

        r = io_uring_queue_init(4, &ring, 0);
        if (r < 0) {
                fprintf(stderr, "no io_uring here: %s\n", strerror(-r));
                close(fd);
                return;
        }
        CHECK_INT(lock(fd, 0, SIZE, true), 0);
        CHECK_INT(io_uring_register_files(&ring, &fd, 1), 0);
        close(fd);
        CHECK_INT(lock(other, 0, SIZE, true), -EAGAIN);
        io_uring_queue_exit(&ring);
        while ((r = lock(other, 0, SIZE, true)) == -EAGAIN && waited++ < PATIENCE)
                (void)poll(NULL, 0, 1); /* the kernel frees it in the background */
        CHECK_INT(r, 0);
}

/* `named`: how the sentence names the holder. To end a process of ublkd would take a disk from its users: of such a
 * one the sentence shows how to take the store over. */
static void check_problem(const struct backing_range *range, pid_t holder, const char *named, bool of_ublkd)
{
        _cleanup_problems_ struct problem_list problems = {};
        const char *detail;
        pid_t found;

        CHECK_INT(backing_lock_explain(range, "/target", &problems, &found), 0);
        CHECK_INT(found, holder);
        if (!CHECK_INT(problems.count, 1))
                return;
        detail = problems.items[0].detail;
        CHECK_STR(problems.items[0].reason, "BackingInUse");
        CHECK_STR(problems.items[0].pointer, "/target");
        if (!CHECK(strstr(detail, path) && strstr(detail, named))
                || !CHECK_INT(strstr(detail, "'ublkctl host'") != NULL, of_ublkd))
                fprintf(stderr, "the detail: %s\n", detail);
}

/* In the child: holds a lock of the kind that `command` makes, until it is killed. */
static void hold(int ready, int command, const char *name)
{
        struct flock lock_of_all = {.l_type = F_WRLCK, .l_len = command == F_SETLK ? 0 : SIZE};
        int fd = open(path, O_RDWR);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)prctl(PR_SET_NAME, name);
        if (fcntl(fd, command, &lock_of_all) < 0 || write(ready, "x", 1) != 1)
                _exit(1);
        (void)pause();
        _exit(0);
}

/* `name`: of the process that has it. */
static void who_has_it_is_named(int command, const char *name, bool of_ublkd)
{
        _cleanup_close_ int ours = open_again(path, O_RDWR);
        struct backing_range range = {.fd = ours, .end = SIZE, .writes = true};
        char text[64], byte;
        int ready[2];
        pid_t pid;

        CHECK_INT(pipe(ready), 0);
        pid = fork();
        if (pid == 0)
                hold(ready[1], command, name);
        close(ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        CHECK_INT(backing_lock(&range), -EAGAIN);
        snprintf(text, sizeof(text), "process %d (%s", (int)pid, name);
        check_problem(&range, pid, text, of_ublkd);
        kill(pid, SIGKILL);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        CHECK_INT(backing_lock(&range), 0);
        ours = close_fd(ours);
}

static void a_hidden_lock_holder_is_reported_as_hidden(void)
{
        _cleanup_close_ int ours = open_again(path, O_RDWR);

        check_problem(&(struct backing_range){.fd = ours, .end = SIZE, .writes = true}, 0, "/proc", false);
}

int main(void)
{
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0)
                || !CHECK_INT(scratch_file(&scratch, "disk.img", SIZE, path, sizeof(path)), 0))
                return check_report();
        writers_exclude_each_other_where_they_overlap();
        a_writer_beside_readers_keeps_other_writers_out();
        readers_share_and_exclude_writers();
        another_name_is_the_same_file();
        an_image_of_qemu_is_not_written();
        a_file_system_without_locks_is_reported();
        a_ring_keeps_the_lock_until_it_is_freed();
        who_has_it_is_named(F_OFD_SETLK, "holder", false);
        who_has_it_is_named(F_SETLK, "holder", false);
        who_has_it_is_named(F_OFD_SETLK, "ublkd-worker", true);
        who_has_it_is_named(F_OFD_SETLK, "ublkd", true);
        a_hidden_lock_holder_is_reported_as_hidden();
        scratch_remove(&scratch);
        return check_report();
}
