/* SPDX-License-Identifier: MIT */
/* Opening the very store that a disk was made on, or nothing. */
#include "targets/loop/loop_store.h"
#include "targets/loop/store_identity.h"
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>

enum { SIZE = 1 << 20 };

static struct scratch scratch;

/* What a file system that was shut down, or an NFS server that lost the file, answers to a descriptor. */
static int given_error;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
        static const char given[] = "/proc/self/fd/";
        mode_t mode = 0;
        va_list more;

        if (given_error != 0 && strncmp(path, given, strlen(given)) == 0) {
                errno = given_error;
                given_error = 0; /* the next mount answers */
                return -1;
        }
        va_start(more, flags);
        if (flags & O_CREAT)
                mode = va_arg(more, mode_t);
        va_end(more);
        return __real_open(path, flags, mode);
}

/* What one worker opens. */
struct attempt {
        struct target_device device;
        struct loop_options options;
        struct problem_list problems;
        struct stat stat;
        int fd, result;
};

static void try_open_where(
        struct attempt *attempt, char *path, const struct backing_identity *expected, int given, bool served)
{
        *attempt = (struct attempt){.options = {.path = path}, .fd = -1};
        attempt->device.name = "data";
        attempt->device.store.given = given;
        attempt->device.store.served = served;
        attempt->device.store.kept = -1;
        if (expected)
                attempt->device.store.expected = *expected;
        attempt->device.store.expected_in_this_boot = true;
        attempt->result = loop_store_open(
                &attempt->device, &attempt->options, &attempt->fd, &attempt->stat, &attempt->problems);
}

static void try_open(struct attempt *attempt, char *path, const struct backing_identity *expected, int given)
{
        try_open_where(attempt, path, expected, given, false);
}

/* As the worker after `first` does, which gets its descriptor. */
static void try_open_again(struct attempt *attempt, char *path, const struct attempt *first, bool served)
{
        try_open_where(attempt, path, &first->device.store.found,
                fcntl(first->device.store.kept, F_DUPFD_CLOEXEC, 0), served);
}

static void close_attempt(struct attempt *attempt)
{
        close_fd(attempt->fd);
        close_fd(attempt->device.store.kept);
        problem_list_clear(&attempt->problems);
}

static const char *reason_of(const struct attempt *attempt)
{
        return attempt->problems.count > 0 ? attempt->problems.items[0].reason : "";
}

static void first_byte_is(int fd, unsigned char byte)
{
        unsigned char got = 0;

        CHECK_INT(pread(fd, &got, 1, 0), 1);
        CHECK_INT(got, byte);
}

/* Another file of the same size at the path. */
static void replace(const char *path)
{
        char fresh[512];

        CHECK_INT(scratch_file(&scratch, "fresh", SIZE, fresh, sizeof(fresh)), 0);
        _cleanup_close_ int fd = open(fresh, O_RDWR | O_CLOEXEC);
        CHECK_INT(pwrite(fd, "Z", 1, 0), 1);
        CHECK_INT(rename(fresh, path), 0);
}

static void a_file_differs_from_another_with_its_name(void)
{
        struct attempt first, second;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "replaced", SIZE, path, sizeof(path)), 0);
        try_open(&first, path, NULL, -1);
        CHECK_INT(first.result, 0);
        CHECK(first.device.store.kept >= 0 && !first.device.store.as_given);
        CHECK(first.device.store.found.basis == BACKING_FILE_HANDLE
                || first.device.store.found.basis == BACKING_FILE_INODE);
        CHECK(first.device.store.inode == first.stat.st_ino);
        try_open(&second, path, &first.device.store.found, -1);
        CHECK_INT(second.result, 0);
        close_attempt(&second);
        replace(path);
        try_open(&second, path, &first.device.store.found, -1);
        CHECK_INT(second.result, -ESTALE);
        CHECK_STR(reason_of(&second), "BackingChanged");
        CHECK(strstr(second.problems.items[0].detail, "ublkctl recover data --accept-backing '"));
        CHECK(!backing_identity_equal(&second.device.store.found, &first.device.store.found));
        CHECK_INT(second.device.store.kept, -1);
        close_attempt(&second);
        close_attempt(&first);
}

static void what_is_given_needs_no_path(void)
{
        struct attempt first, second;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "deleted", SIZE, path, sizeof(path)), 0);
        try_open(&first, path, NULL, -1);
        CHECK_INT(unlink(path), 0);
        replace(path);
        try_open(
                &second, path, &first.device.store.found, fcntl(first.device.store.kept, F_DUPFD_CLOEXEC, 0));
        CHECK_INT(second.result, 0);
        CHECK(second.device.store.as_given);
        CHECK(second.stat.st_ino == first.stat.st_ino);
        first_byte_is(second.fd, scratch_pattern(0));
        CHECK_INT(pwrite(second.fd, "x", 1, 0), 1);
        first_byte_is(first.fd, 'x');
        close_attempt(&second);
        close_attempt(&first);
}

/* What cannot be read of it for a moment, and what changed of its identity, makes no other store of it. */
static void what_is_given_is_compared_with_nothing(void)
{
        struct backing_identity expected[4];
        struct attempt first, second;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "compared", SIZE, path, sizeof(path)), 0);
        try_open(&first, path, NULL, -1);
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                expected[i] = first.device.store.found;
                strcpy(expected[i].boot, "file:before");
                strcpy(expected[i].lasting, "file:before");
        }
        *expected[0].lasting = '\0';
        expected[1].basis =
                expected[1].basis == BACKING_FILE_INODE ? BACKING_FILE_HANDLE : BACKING_FILE_INODE;
        expected[2].basis = BACKING_FILE_INODE; /* a file of an overlay that was copied up */
        *expected[2].lasting = '\0';
        for (size_t i = 0; i < 2 * ARRAY_SIZE(expected); i++) {
                struct backing_identity *now = &expected[i / 2];

                try_open_where(&second, path, now, fcntl(first.device.store.kept, F_DUPFD_CLOEXEC, 0), i % 2);
                CHECK_INT(second.result, 0);
                CHECK(second.device.store.as_given);
                CHECK(backing_identity_equal(&second.device.store.found, now));
                close_attempt(&second);
        }
        close_attempt(&first);
}

/* It is mounted again at the path, and no disk is there that has I/O under way on the mount before. */
static void a_dead_file_system_gives_way_to_the_next_mount(void)
{
        static const int errors[] = {EIO, ESTALE};
        struct attempt first, second;
        char path[512];

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                CHECK_INT(scratch_file(&scratch, "shut", SIZE, path, sizeof(path)), 0);
                try_open(&first, path, NULL, -1);
                given_error = errors[i];
                try_open_again(&second, path, &first, false);
                CHECK_INT(second.result, 0);
                CHECK(!second.device.store.as_given);
                CHECK(second.stat.st_ino == first.stat.st_ino);
                close_attempt(&second);
                given_error = errors[i];
                try_open_again(&second, path, &first, true);
                CHECK_INT(second.result, -errors[i]);
                close_attempt(&second);
                replace(path);
                given_error = errors[i];
                try_open_again(&second, path, &first, false);
                CHECK_INT(second.result, -ESTALE);
                CHECK_STR(reason_of(&second), "BackingChanged");
                close_attempt(&second);
                close_attempt(&first);
        }
}

/* Flags of one are not the other's: direct I/O is the business of the worker that does it. */
static void what_is_kept_is_an_open_file_of_its_own(void)
{
        struct attempt attempt;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "two", SIZE, path, sizeof(path)), 0);
        try_open(&attempt, path, NULL, -1);
        CHECK_INT(fcntl(attempt.fd, F_SETFL, O_NONBLOCK), 0);
        CHECK(!(fcntl(attempt.device.store.kept, F_GETFL) & O_NONBLOCK));
        CHECK_INT(fcntl(attempt.fd, F_GETFL) & O_ACCMODE, O_RDWR);
        CHECK_INT(fcntl(attempt.device.store.kept, F_GETFL) & O_ACCMODE, O_RDWR);
        close_attempt(&attempt);
}

/* The advice is not to create a file that would hide the loss of the data. */
static void a_missing_file_of_a_disk_is_not_to_be_created(void)
{
        struct attempt first, second;
        char path[512];

        CHECK_INT(scratch_file(&scratch, "missing", SIZE, path, sizeof(path)), 0);
        try_open(&first, path, NULL, -1);
        CHECK_INT(unlink(path), 0);
        try_open(&second, path, &first.device.store.found, -1);
        CHECK_INT(second.result, -ENOENT);
        CHECK_STR(reason_of(&second), "BackingFileMissing");
        CHECK(second.problems.count == 1 && !strstr(second.problems.items[0].detail, "create"));
        close_attempt(&second);
        try_open(&second, path, NULL, -1);
        CHECK(second.problems.count == 1 && strstr(second.problems.items[0].detail, "create"));
        close_attempt(&second);
        close_attempt(&first);
}

static void other_file_types_are_not_opened(void)
{
        static char null[] = "/dev/null";
        char fifo[600];
        struct attempt attempt;

        try_open(&attempt, scratch.path, NULL, -1);
        CHECK_INT(attempt.result, -EINVAL);
        CHECK_STR(reason_of(&attempt), "BackingFileUnsuitable");
        close_attempt(&attempt);
        try_open(&attempt, null, NULL, -1);
        CHECK_STR(reason_of(&attempt), "BackingFileUnsuitable");
        close_attempt(&attempt);
        snprintf(fifo, sizeof(fifo), "%s/fifo", scratch.path);
        CHECK_INT(mkfifo(fifo, 0600), 0);
        try_open(&attempt, fifo, NULL, -1); /* and it does not wait for a writer */
        CHECK_STR(reason_of(&attempt), "BackingFileUnsuitable");
        close_attempt(&attempt);
}

/* What the path leads to changes all the time. */
struct swapper {
        const char *one, *other;
        atomic_bool ended;
        unsigned swaps;
};

static void *swap_on(void *argument)
{
        struct swapper *swapper = argument;

        while (!atomic_load(&swapper->ended))
                swapper->swaps +=
                        renameat2(AT_FDCWD, swapper->one, AT_FDCWD, swapper->other, RENAME_EXCHANGE) == 0;
        return NULL;
}

static bool is_inode(int fd, ino_t inode)
{
        struct stat stat;

        return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_ino == inode;
}

/* Opens `path` until `enough` tries each way. Those that succeed have both descriptors of `right`; others end
 * with `error`. */
static void open_while_it_changes(
        char *path, const char *other, const struct backing_identity *expected, ino_t right, int error)
{
        enum { ENOUGH = 200, TRIES_MAX = 200000 };
        struct swapper swapper = {.one = path, .other = other};
        unsigned opened = 0, refused = 0;
        pthread_t thread;

        CHECK_INT(pthread_create(&thread, NULL, swap_on, &swapper), 0);
        for (unsigned i = 0; i < TRIES_MAX && (opened < ENOUGH || refused < ENOUGH); i++) {
                struct attempt attempt;

                try_open(&attempt, path, expected, -1);
                if (attempt.result == 0) {
                        opened++;
                        CHECK(is_inode(attempt.fd, right) && is_inode(attempt.device.store.kept, right));
                        CHECK(attempt.stat.st_ino == right && attempt.device.store.inode == right);
                } else {
                        refused++;
                        CHECK_INT(attempt.result, error);
                        CHECK(attempt.fd < 0 && attempt.device.store.kept < 0);
                }
                close_attempt(&attempt);
        }
        atomic_store(&swapper.ended, true);
        pthread_join(thread, NULL);
        CHECK(opened >= ENOUGH && refused >= ENOUGH && swapper.swaps > 0);
}

/* What was looked at is what is opened, whatever comes to the path in between. */
static void a_path_that_changes_while_it_is_opened(void)
{
        char path[512], other[512], fifo[600];
        struct attempt right;
        ino_t inode;

        CHECK_INT(scratch_file(&scratch, "swapped", SIZE, path, sizeof(path)), 0);
        CHECK_INT(scratch_file(&scratch, "another", SIZE, other, sizeof(other)), 0);
        snprintf(fifo, sizeof(fifo), "%s/swapped-fifo", scratch.path);
        CHECK_INT(mkfifo(fifo, 0600), 0);
        try_open(&right, path, NULL, -1);
        inode = right.stat.st_ino;
        open_while_it_changes(path, other, &right.device.store.found, inode, -ESTALE);
        close_attempt(&right);
        if (stat(path, &right.stat) == 0 && right.stat.st_ino != inode)
                CHECK_INT(rename(other, path), 0);
        open_while_it_changes(path, fifo, NULL, inode, -EINVAL);
}

/* An inode number that is given out again is another file. */
static void an_inode_number_identifies_nothing(void)
{
        struct backing_identity first, second;
        struct stat stat = {}, again = {};
        char path[512];

        for (unsigned i = 0; i < 64 && (i == 0 || stat.st_ino != again.st_ino); i++) {
                CHECK_INT(scratch_file(&scratch, "number", SIZE, path, sizeof(path)), 0);
                _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
                CHECK_INT(fstat(fd, i == 0 ? &stat : &again), 0);
                store_identify(fd, i == 0 ? &stat : &again, i == 0 ? &first : &second);
                CHECK_INT(unlink(path), 0);
        }
        CHECK_INT(backing_compare(&first, &second, true), BACKING_OTHER);
}

/* ---- the file of a user ---- */

enum { USER = 4001 };

static void try_open_as(struct attempt *attempt, char *path, bool read_only, const struct attempt *first)
{
        *attempt = (struct attempt){.options = {.path = path}, .fd = -1};
        attempt->device.name = "data";
        attempt->device.read_only = read_only;
        attempt->device.store.user = USER;
        attempt->device.store.kept = attempt->device.store.given = -1;
        if (first) {
                attempt->device.store.expected = first->device.store.found;
                attempt->device.store.expected_in_this_boot = true;
                attempt->device.store.served = true;
                attempt->device.store.given = fcntl(first->device.store.kept, F_DUPFD_CLOEXEC, 0);
        }
        attempt->result = loop_store_open(
                &attempt->device, &attempt->options, &attempt->fd, &attempt->stat, &attempt->problems);
}

static void is_refused_as(
        char *path, bool read_only, const struct attempt *first, int error, const char *reason)
{
        struct attempt attempt;

        try_open_as(&attempt, path, read_only, first);
        CHECK_INT(attempt.result, error);
        CHECK_INT(attempt.problems.count, 1);
        CHECK_STR(reason_of(&attempt), reason);
        CHECK_INT(attempt.device.store.kept, -1);
        CHECK_INT(attempt.device.store.given, -1);
        close_attempt(&attempt);
}

/* Before it is compared with the store of the disk: what may not be read looks like another file. */
static void the_rights_of_a_user_count_each_time(void)
{
        struct attempt first, next;
        char path[512], moved[512];

        CHECK_INT(chmod(scratch.path, 0755), 0);
        CHECK_INT(scratch_file(&scratch, "users", SIZE, path, sizeof(path)), 0);
        is_refused_as(path, false, NULL, -EACCES, "BackingFileNotPermitted"); /* root's */
        CHECK_INT(chown(path, USER, USER), 0);
        CHECK_INT(chmod(path, 0400), 0);
        is_refused_as(path, false, NULL, -EACCES, "BackingFileNotPermitted");
        try_open_as(&first, path, true, NULL);
        CHECK_INT(first.result, 0);
        close_attempt(&first);
        CHECK_INT(chmod(path, 0600), 0);
        try_open_as(&first, path, false, NULL);
        CHECK_INT(first.result, 0);
        CHECK(!backing_identity_is_empty(&first.device.store.found));
        try_open_as(&next, path, false, &first);
        CHECK(next.result == 0 && next.device.store.as_given);
        close_attempt(&next);
        snprintf(moved, sizeof(moved), "%s/moved", scratch.path);
        CHECK_INT(rename(path, moved), 0);
        CHECK_INT(symlink(moved, path), 0);
        is_refused_as(path, false, NULL, -ELOOP, "BackingFileUnsuitable");
        try_open_as(&next, path, false, &first); /* which follows no path */
        CHECK(next.result == 0 && next.device.store.as_given);
        close_attempt(&next);
        CHECK_INT(chmod(moved, 0), 0);
        is_refused_as(moved, false, &first, -EACCES, "BackingFileNotPermitted");
        CHECK_INT(chmod(moved, 0600), 0);
        CHECK_INT(chown(moved, 0, 0), 0);
        is_refused_as(moved, false, &first, -EACCES, "BackingFileNotPermitted");
        close_attempt(&first);
}

/* A process that has a lease on the file, and does not give it back when it is asked. */
static pid_t take_lease(const char *path)
{
        int ready[2];
        char byte;
        pid_t child;

        CHECK_INT(pipe2(ready, O_CLOEXEC), 0);
        child = fork();
        if (child == 0) {
                int fd = open(path, O_RDWR | O_CLOEXEC);

                (void)signal(SIGIO, SIG_IGN);
                if (fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) < 0 || write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        (void)pause();
        }
        close_fd(ready[1]);
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close_fd(ready[0]);
        return child;
}

/* The kernel would have an open wait for 45 seconds, by /proc/sys/fs/lease-break-time. */
static void an_open_waits_for_no_lease(void)
{
        struct attempt first;
        char path[512];
        pid_t child;

        CHECK_INT(scratch_file(&scratch, "leased", SIZE, path, sizeof(path)), 0);
        CHECK_INT(chown(path, USER, USER), 0);
        child = take_lease(path);
        is_refused_as(path, false, NULL, -EWOULDBLOCK, "BackingFileUnusable");
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        try_open_as(&first, path, false, NULL);
        CHECK_INT(first.result, 0);
        CHECK_INT(fcntl(first.fd, F_GETFL) & O_NONBLOCK, 0);
        CHECK_INT(fcntl(first.device.store.kept, F_GETFL) & O_NONBLOCK, 0);
        close_attempt(&first);
}

int main(void)
{
        CHECK_INT(scratch_make(&scratch, "/tmp"), 0);
        a_file_differs_from_another_with_its_name();
        what_is_given_needs_no_path();
        what_is_given_is_compared_with_nothing();
        a_dead_file_system_gives_way_to_the_next_mount();
        what_is_kept_is_an_open_file_of_its_own();
        a_missing_file_of_a_disk_is_not_to_be_created();
        other_file_types_are_not_opened();
        a_path_that_changes_while_it_is_opened();
        an_inode_number_identifies_nothing();
        if (geteuid() == 0) {
                the_rights_of_a_user_count_each_time();
                an_open_waits_for_no_lease();
        }
        scratch_remove(&scratch);
        return check_report();
}
