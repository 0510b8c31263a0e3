/* SPDX-License-Identifier: MIT */
/* partition_scan: the real processes, on images. This program is also the reader that they execute. */
#include "ublkd/partitions/partition_reader.h"
#include "ublkd/partitions/partition_scan.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/partitions/fake_disk.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <signal.h>

enum {
        PATIENCE_USEC = 2 * 1000 * 1000,
        DEADLINE_USEC = 60 * 1000 * 1000,
        RUNNING_MAX = 16,
        DISKS = RUNNING_MAX + 8
};

static const char two[] = "label: gpt\\nstart=2048,size=4096\\nstart=8192,size=1024\\n";

static struct one {
        struct partition_scan *scan;
        struct partition_outcome outcome;
        unsigned done, gone, written;
} disks[DISKS];

static sd_event *event;
static struct partition_scanner *scanner;

/* A process that hangs in the kernel does not die of SIGKILL. */
static bool unkillable;
static int stuck = -1;
int __real_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags);

int __wrap_pidfd_send_signal(int pidfd, int signal, siginfo_t *info, unsigned flags)
{
        if (!unkillable)
                return __real_pidfd_send_signal(pidfd, signal, info, flags);
        if (stuck < 0)
                stuck = dup(pidfd);
        return 0;
}

static unsigned processes;
pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
        processes++;
        return __real_fork();
}

/* Errors of the kernel. */
static int init_error, watch_error;
int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);

int __wrap_inotify_init1(int flags)
{
        errno = init_error;
        return init_error ? -1 : __real_inotify_init1(flags);
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
        errno = watch_error;
        return watch_error ? -1 : __real_inotify_add_watch(fd, path, mask);
}

static int unwatched, unwatched_error;

static void on_unwatched(void *userdata, int error)
{
        CHECK(userdata == &unwatched);
        unwatched++;
        unwatched_error = error;
}

static void on_done(void *userdata, const struct partition_outcome *outcome)
{
        struct one *one = userdata;

        one->outcome = *outcome;
        one->done++;
}

static void on_gone(void *userdata)
{
        ((struct one *)userdata)->gone++;
}

static void on_written(void *userdata)
{
        ((struct one *)userdata)->written++;
}

static int on_timeout(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        *(bool *)userdata = true;
        return 0;
}

static bool run_until(const unsigned *counter, unsigned wanted)
{
        bool late = false;
        sd_event_source *timer = NULL;

        CHECK(sd_event_add_time_relative(event, &timer, CLOCK_MONOTONIC, DEADLINE_USEC, 0, on_timeout, &late)
                >= 0);
        while (*counter < wanted && !late)
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        sd_event_source_disable_unref(timer);
        return CHECK(!late);
}

static void begin(int number, bool shown)
{
        struct one *one = &disks[number];

        if (!one->scan)
                CHECK_INT(partition_scan_new(scanner,
                                  &(const struct partition_scan_events){on_done, on_gone, on_written, one},
                                  &one->scan),
                        0);
        one->done = one->gone = 0;
        partition_scan_begin(one->scan, number, shown);
        CHECK(partition_scan_is_under_way(one->scan));
}

static const struct partition_outcome *scan(int number, bool shown)
{
        begin(number, shown);
        run_until(&disks[number].done, 1);
        CHECK(!partition_scan_is_under_way(disks[number].scan));
        return &disks[number].outcome;
}

static void test_partitions_are_shown_and_removed(void)
{
        const struct partition_outcome *outcome;

        fake_disk_add(0, two);
        outcome = scan(0, true);
        CHECK_INT(outcome->error, 0);
        CHECK_INT(outcome->changed, 2);
        CHECK_STR(fake_disk_shown(0), "1@2048+4096 2@8192+1024");
        CHECK_INT(scan(0, true)->changed, 0);
        while (partition_scan_has_process(disks[0].scan)) /* it may have exited before its answer was read */
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        fake_disk_use(2);
        outcome = scan(0, false);
        CHECK_INT(outcome->refused, 1);
        CHECK_INT(outcome->refused_number, 2);
        CHECK_INT(outcome->refusal, -EBUSY);
        CHECK_STR(fake_disk_shown(0), "2@8192+1024");
        fake_disk_use(0);
        CHECK_INT(scan(0, false)->changed, 1);
        CHECK_STR(fake_disk_shown(0), "");
}

/* One reads the table; another one only changes what is shown. */
static void test_a_disk_without_partitions_takes_one_process(void)
{
        const struct partition_outcome *outcome;

        fake_disk_add(1, NULL);
        processes = 0;
        outcome = scan(1, true);
        CHECK_INT(outcome->error, 0);
        CHECK(!outcome->cut_off);
        CHECK_INT(outcome->changed, 0);
        CHECK_INT(processes, 1);
        fake_disk_show(1, &(const struct partition){.number = 3, .start = 8, .size = 8});
        CHECK_INT(scan(1, true)->changed, 1);
        CHECK_STR(fake_disk_shown(1), "");
        CHECK_INT(processes, 3);
}

static void write_node(int number, int flags)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/ublkb%d", fake_disk_roots.dev, number);
        close_fd(open(path, flags | O_CREAT | O_CLOEXEC, 0600));
}

/* One that is open for writing is closed, also while a scan is under way; readers do not count. */
static void test_writes_are_reported(void)
{
        write_node(0, O_WRONLY);
        write_node(1, O_WRONLY);
        disks[0].written = 0;
        scan(0, true);
        write_node(0, O_RDONLY);
        write_node(1, O_WRONLY);
        scan(0, true);
        CHECK_INT(disks[0].written, 0);
        write_node(0, O_WRONLY);
        run_until(&disks[0].written, 1);
        scan(0, true); /* it stays the only watch */
        write_node(0, O_RDWR);
        run_until(&disks[0].written, 2);
        scan(0, false);
        CHECK_INT(disks[0].written, 2);
        CHECK_INT(unwatched, 0);
}

/* Repeated events before the next scan count as one. */
static void test_many_writes_are_reported_once(void)
{
        disks[0].written = disks[1].written = 0;
        scan(0, false);
        scan(1, false);
        for (int i = 0; i < 100; i++) { /* the kernel joins equal events in a row; so of two disks */
                write_node(0, O_WRONLY);
                write_node(1, O_WRONLY);
                CHECK(sd_event_run(event, 0) >= 0);
        }
        run_until(&disks[1].written, 1);
        CHECK_INT(disks[0].written, 1);
        CHECK_INT(disks[1].written, 1);
        scan(0, false);
        write_node(0, O_WRONLY);
        run_until(&disks[0].written, 2);
}

static void renew_scanner(void)
{
        for (int i = 0; i < DISKS; i++)
                disks[i].scan = partition_scan_free(disks[i].scan);
        partition_scanner_free(scanner);
        CHECK_INT(partition_scanner_new(event,
                          &(const struct partition_scanner_options){.roots = fake_disk_roots,
                                  .patience_usec = PATIENCE_USEC,
                                  .running_max = RUNNING_MAX,
                                  .unwatched = on_unwatched,
                                  .userdata = &unwatched},
                          &scanner),
                0);
}

/* Partitions are shown all the same, and it is reported once. */
static void test_there_are_no_watches(void)
{
        unwatched = 0;
        init_error = EMFILE;
        renew_scanner();
        CHECK_INT(unwatched, 1);
        CHECK_INT(unwatched_error, -EMFILE);
        CHECK_INT(scan(0, true)->changed, 2);
        CHECK_INT(scan(0, false)->changed, 2);
        CHECK_INT(unwatched, 1);
        init_error = 0;
        watch_error = ENOSPC;
        renew_scanner();
        CHECK_INT(unwatched, 1);
        CHECK_INT(scan(0, true)->changed, 2);
        CHECK_INT(unwatched, 2);
        CHECK_INT(unwatched_error, -ENOSPC);
        CHECK_INT(scan(0, false)->changed, 2);
        CHECK_INT(unwatched, 2);
        watch_error = 0;
        renew_scanner();
}

/* The last partition lies beyond the end of a disk that is now too small: it is named, and not shown. */
static void test_an_entry_that_is_not_valid(void)
{
        const struct partition_outcome *outcome;

        fake_disk_add(1, "label: dos\\nstart=2048,size=4096\\nstart=8192,size=1024\\n");
        fake_disk_show(1, &(const struct partition){2, 8192, 512});
        fake_disk_show(1, &(const struct partition){3, 16384, 512});
        fake_disk_resize(1, 9000);
        outcome = scan(1, true);
        CHECK_INT(outcome->error, 0);
        CHECK_INT(outcome->fault, PARTITION_BEYOND_END);
        CHECK_INT(outcome->faulty, 2);
        /* The second partition stays: it has an entry, which is wrong. The third has no entry. */
        CHECK_STR(fake_disk_shown(1), "1@2048+4096 2@8192+512");
}

/* Nothing that is shown goes because the table could not be read. */
static void test_a_disk_that_cannot_be_read(void)
{
        fake_disk_add(2, NULL);
        fake_disk_show(2, &(const struct partition){1, 8, 8});
        fake_disk_hang(2);
        CHECK_INT(scan(2, true)->error, -ETIMEDOUT);
        CHECK_STR(fake_disk_shown(2), "1@8+8");
        run_until(&disks[2].gone, 1);
        CHECK_INT(scan(3, true)->error, -ENOENT);
}

/* More of them than processes at once do not keep others waiting for longer than a process may take. */
static void test_disks_that_hang_hold_up_no_other_one(void)
{
        fake_disk_add(DISKS - 1, two);
        for (int i = 4; i < DISKS - 1; i++) {
                fake_disk_add(i, NULL);
                fake_disk_hang(i);
                begin(i, true);
        }
        CHECK_INT(scan(DISKS - 1, true)->changed, 2);
        for (int i = 4; i < DISKS - 1; i++) {
                run_until(&disks[i].done, 1);
                CHECK_INT(disks[i].outcome.error, -ETIMEDOUT);
                run_until(&disks[i].gone, 1);
        }
}

/* A process that hangs in the kernel keeps its disk from a second process, and no other disk. */
static void test_a_process_that_cannot_be_killed(void)
{
        begin(7, true);
        while (!partition_scan_has_process(disks[7].scan))
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        unkillable = true;
        run_until(&disks[7].done, 1);
        CHECK_INT(disks[7].outcome.error, -ETIMEDOUT);
        CHECK_INT(scan(7, true)->error, -EDEADLK);
        CHECK_INT(scan(DISKS - 1, true)->error, 0);
        CHECK(partition_scan_has_process(disks[7].scan));
        unkillable = false;
        CHECK_INT(__real_pidfd_send_signal(stuck, SIGKILL, NULL, 0), 0);
        run_until(&disks[7].gone, 1);
        fake_disk_add(7, two);
        CHECK_INT(scan(7, true)->changed, 2);
        close_fd(stuck);
}

static void test_a_scan_is_cancelled(void)
{
        begin(4, true);
        partition_scan_cancel(disks[4].scan); /* before it has begun */
        CHECK(!partition_scan_is_under_way(disks[4].scan));
        run_until(&disks[4].gone, 0);
        begin(5, true);
        while (!partition_scan_has_process(disks[5].scan))
                CHECK(sd_event_run(event, UINT64_MAX) >= 0);
        partition_scan_cancel(disks[5].scan);
        CHECK(!partition_scan_is_under_way(disks[5].scan));
        run_until(&disks[5].gone, 1);
        CHECK(!partition_scan_has_process(disks[5].scan));
        CHECK_INT(disks[4].done + disks[5].done, 0);
        fake_disk_add(6, two);
        CHECK_INT(scan(6, true)->changed, 2);
}

int main(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], PARTITION_READER_OPTION) == 0)
                return partition_reader_main(PARTITION_ANSWER_FD, PARTITION_DISK_FD);
        if (geteuid() != 0 || system("PATH=$PATH:/sbin:/usr/sbin; command -v sfdisk >/dev/null") != 0) {
                fputs("needs root and sfdisk\n", stderr);
                return CHECK_SKIP;
        }
        fake_disk_begin();
        CHECK(sd_event_new(&event) >= 0);
        renew_scanner();
        test_partitions_are_shown_and_removed();
        test_a_disk_without_partitions_takes_one_process();
        test_writes_are_reported();
        test_many_writes_are_reported_once();
        test_there_are_no_watches();
        test_an_entry_that_is_not_valid();
        test_a_disk_that_cannot_be_read();
        test_disks_that_hang_hold_up_no_other_one();
        test_a_process_that_cannot_be_killed();
        test_a_scan_is_cancelled();
        for (int i = 0; i < DISKS; i++)
                partition_scan_free(disks[i].scan);
        partition_scanner_free(scanner);
        sd_event_unref(event);
        fake_disk_end();
        return check_report();
}
