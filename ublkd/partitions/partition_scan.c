/* SPDX-License-Identifier: MIT */
/* Makes the kernel show the partitions that the table of a disk has, in processes of their own. */
#include "ublkd/partitions/partition_scan.h"
#include "ublkd/partitions/disk_partitions.h"
#include "ublkd/partitions/disk_writes.h"
#include "ublkd/partitions/partition_check.h"
#include "ublkd/partitions/partition_table.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/offload/apart.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/queue.h>

enum {
        /* One that is slow sleeps, for 30 seconds at most, so many of them cost little; and only as many as this keep
         * other disks waiting. */
        RUNNING_MAX = 256,
        PRIORITY_LATE = 10, /* whatever else there is to do comes first, as recoveries */
        /* Longer than a search for openers: the exit of a reader that was killed waits for what it has asked the disk
         * for, and with the disk's open_mutex held, if no other process has the disk open (bdev_release()). Then the
         * exclusive open of a search waits as well. */
        PATIENCE_USEC = 30 * 1000 * 1000,
};

enum scan_stage {
        SCAN_IDLE,
        SCAN_BEGINS, /* from the loop, in a moment: it waits for its turn */
        SCAN_READS,  /* a process reads the table */
        SCAN_CHANGES /* a process changes what is shown */
};

TAILQ_HEAD(scans, partition_scan);

struct partition_scanner {
        struct partition_scanner_options options;
        sd_event *event;
        struct scans waiting;       /* in SCAN_BEGINS */
        unsigned running;           /* in SCAN_READS or SCAN_CHANGES */
        struct disk_writes *writes; /* NULL: there are no watches */
        bool unwatched;             /* that was reported */
        sd_event_source *begin;     /* enabled while some wait and may begin */
};

struct partition_scan {
        struct partition_scanner *scanner;
        struct partition_scan_events events;
        struct apart *apart;
        enum scan_stage stage;
        int number;
        bool shown;
        struct partition_header header;   /* of the disk that was read */
        struct partition_verdict verdict; /* what is to be shown */
        TAILQ_ENTRY(partition_scan) entry;
};

DEFINE_CLEANUP(struct partition_scanner, partition_scanner_free);
DEFINE_CLEANUP(struct partition_scan, partition_scan_free);

/* ---- in the processes ---- */

/* A table can make the reader need memory: where none is left, it ends and not a worker. The supervisor's own value is
 * inherited. */
static void offer_to_oom_killer(void)
{
        _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        (void)!write(fd, "1000", strlen("1000")); /* on failure RLIMIT_AS bounds it, as always */
}

/* The reader replaces this process, which has a copy of all memory of the supervisor. */
static void execute_reader(const char *program, int answer, int disk)
{
        static char *const arguments[] = {(char *)"ublkd", (char *)PARTITION_READER_OPTION, NULL};
        static char *const environment[] = {NULL};
        int safe = fcntl(disk, F_DUPFD, PARTITION_DISK_FD + 1); /* it may be the one that is overwritten */

        if (safe < 0 || answer != PARTITION_ANSWER_FD || fcntl(answer, F_SETFD, 0) < 0
                || dup2(safe, PARTITION_DISK_FD) < 0)
                return;
        (void)fcntl(safe, F_SETFD, FD_CLOEXEC);
        (void)execve(program ? program : "/proc/self/exe", arguments, environment);
}

static int64_t count_shown(const struct partition_scan *scan)
{
        static struct partition_list shown;
        int r = disk_partitions_read(&scan->scanner->options.roots, scan->number, &shown);

        return r < 0 ? r : (int64_t)shown.count;
}

static void read_table(const struct partition_scan *scan, FILE *answer)
{
        struct partition_header header = {};
        _cleanup_close_ int disk = disk_partitions_open(&scan->scanner->options.roots, scan->number, &header);

        if (disk < 0)
                header.error = disk;
        header.shown = count_shown(scan);
        if (fwrite(&header, sizeof(header), 1, answer) != 1 || fflush(answer) != 0 || disk < 0)
                return;
        offer_to_oom_killer();
        execute_reader(scan->scanner->options.program, fileno(answer), disk);
}

static void change_partitions(const struct partition_scan *scan, FILE *answer)
{
        struct partition_change change;

        disk_partitions_change(&scan->scanner->options.roots, scan->number,
                scan->shown ? &scan->header : NULL, &scan->verdict.good, scan->verdict.leave, &change);
        (void)fwrite(&change, sizeof(change), 1, answer);
}

static void look(void *userdata, FILE *answer)
{
        const struct partition_scan *scan = userdata;

        if (scan->stage == SCAN_READS)
                read_table(scan, answer);
        else
                change_partitions(scan, answer);
}

/* ---- in the loop ---- */

static void let_next_begin(struct partition_scanner *scanner)
{
        if (!TAILQ_EMPTY(&scanner->waiting) && scanner->running < scanner->options.running_max)
                (void)sd_event_source_set_enabled(scanner->begin, SD_EVENT_ONESHOT);
}

static void enter(struct partition_scan *scan, enum scan_stage stage)
{
        struct partition_scanner *scanner = scan->scanner;
        bool ran = scan->stage == SCAN_READS || scan->stage == SCAN_CHANGES;
        bool runs = stage == SCAN_READS || stage == SCAN_CHANGES;

        if (scan->stage == SCAN_BEGINS)
                TAILQ_REMOVE(&scanner->waiting, scan, entry);
        if (stage == SCAN_BEGINS)
                TAILQ_INSERT_TAIL(&scanner->waiting, scan, entry);
        scanner->running = scanner->running + runs - ran;
        scan->stage = stage;
        let_next_begin(scanner);
}

static void finish(struct partition_scan *scan, const struct partition_outcome *outcome)
{
        enter(scan, SCAN_IDLE);
        scan->events.done(scan->events.userdata, outcome);
}

static void fail(struct partition_scan *scan, int error)
{
        finish(scan, &(const struct partition_outcome){.error = error});
}

static void run(struct partition_scan *scan, enum scan_stage stage)
{
        int r;

        enter(scan, stage);
        r = apart_begin(scan->apart);
        if (r < 0)
                fail(scan, r);
}

/* The header is ours. Of the rest only its size and its result are taken, and those must agree. Return 0 or
 * -errno. */
static int take_table(struct partition_scan *scan, const char *answer, size_t size)
{
        static struct partition entries[PARTITION_ENTRIES_MAX];
        struct partition_end end;
        size_t count;

        if (size < sizeof(scan->header))
                return -EPIPE;
        memcpy(&scan->header, answer, sizeof(scan->header));
        if (scan->header.error < 0)
                return scan->header.error;
        answer += sizeof(scan->header);
        size -= sizeof(scan->header);
        if (size < sizeof(end) || scan->header.block_sectors == 0)
                return -EPIPE; /* the reader was ended, or is another program */
        size -= sizeof(end);
        memcpy(&end, answer + size, sizeof(end));
        if (end.magic != PARTITION_END_MAGIC)
                return -EBADMSG;
        if (end.result < 0)
                return end.result < -4095 ? -EBADMSG : end.result;
        count = (size_t)end.result;
        if (count > PARTITION_ENTRIES_MAX || size != count * sizeof(entries[0]))
                return -EBADMSG;
        memcpy(entries, answer, size);
        partition_check(entries, count,
                &(const struct partition_disk){
                        .sectors = scan->header.sectors, .block_sectors = scan->header.block_sectors},
                &scan->verdict);
        return 0;
}

/* whole: the process has answered. */
static void report_change(struct partition_scan *scan, const struct partition_change *change, bool whole)
{
        finish(scan, &(const struct partition_outcome){
                             .error = change->error,
                             .cut_off = !whole,
                             .fault = scan->verdict.fault,
                             .faulty = scan->verdict.number,
                             .changed = change->changed,
                             .refused = change->refused,
                             .refused_number = change->number,
                             .refusal = change->refusal,
                     });
}

/* Most disks have no partitions: spare them the second process. */
static void on_table(struct partition_scan *scan, int error, const void *answer, size_t size)
{
        int r = error < 0 ? error : take_table(scan, answer, size);

        if (r < 0)
                fail(scan, r);
        else if (scan->verdict.good.count == 0 && scan->header.shown == 0)
                report_change(scan, &(const struct partition_change){}, true);
        else
                run(scan, SCAN_CHANGES);
}

static void on_changed(struct partition_scan *scan, int error, const void *answer, size_t size)
{
        struct partition_change change = {.error = error < 0 ? error : -EPIPE};
        bool whole = error >= 0 && size == sizeof(change);

        if (whole)
                memcpy(&change, answer, sizeof(change));
        report_change(scan, &change, whole);
}

static void on_done(void *userdata, int error, const void *answer, size_t size)
{
        struct partition_scan *scan = userdata;

        if (scan->stage == SCAN_READS)
                on_table(scan, error, answer, size);
        else
                on_changed(scan, error, answer, size);
}

static void on_gone(void *userdata)
{
        const struct partition_scan *scan = userdata;

        if (scan->stage == SCAN_IDLE)
                scan->events.gone(scan->events.userdata);
}

static void on_written(void *owner)
{
        const struct partition_scan *scan = owner;

        scan->events.written(scan->events.userdata);
}

/* Without a watch partitions are shown all the same, until a program changes them. */
static void take_watch_result(struct partition_scanner *scanner, int result)
{
        if (result >= 0 || result == -ENOENT || scanner->unwatched) /* ENOENT: the disk is gone */
                return;
        scanner->unwatched = true;
        if (scanner->options.unwatched)
                scanner->options.unwatched(scanner->options.userdata, result);
}

/* Before the table is read, so that none is missed that is written later. */
static void watch_writes(struct partition_scan *scan)
{
        const struct disk_partitions_roots *roots = &scan->scanner->options.roots;
        char path[PATH_MAX];

        if (!scan->scanner->writes)
                return;
        snprintf(path, sizeof(path), "%s/ublkb%d", roots->dev ? roots->dev : "/dev", scan->number);
        take_watch_result(scan->scanner, disk_writes_watch(scan->scanner->writes, path, scan));
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        struct partition_scanner *scanner = userdata;
        struct partition_scan *scan = TAILQ_FIRST(&scanner->waiting);

        if (!scan || scanner->running >= scanner->options.running_max)
                return 0;
        memset(&scan->verdict, 0, sizeof(scan->verdict)); /* none is shown, unless a table says so */
        watch_writes(scan);
        run(scan, scan->shown ? SCAN_READS : SCAN_CHANGES);
        return 0;
}

void partition_scan_begin(struct partition_scan *scan, int number, bool shown)
{
        scan->number = number;
        scan->shown = shown;
        enter(scan, SCAN_BEGINS);
}

bool partition_scan_is_under_way(const struct partition_scan *scan)
{
        return scan->stage != SCAN_IDLE;
}

void partition_scan_cancel(struct partition_scan *scan)
{
        apart_cancel(scan->apart);
        enter(scan, SCAN_IDLE);
}

bool partition_scan_has_process(const struct partition_scan *scan)
{
        return apart_has_process(scan->apart);
}

/* ---- the whole ---- */

int partition_scan_new(struct partition_scanner *scanner, const struct partition_scan_events *events,
        struct partition_scan **ret)
{
        _cleanup_(partition_scan_free_pointer) struct partition_scan *scan = calloc(1, sizeof(*scan));
        uint64_t patience = scanner->options.patience_usec;
        int r;

        if (!scan)
                return -ENOMEM;
        scan->scanner = scanner;
        scan->events = *events;
        r = apart_new(scanner->event,
                &(struct apart_options){
                        .process = "ublkd-partition",
                        .patience_usec = patience ? patience : PATIENCE_USEC,
                        .look = look,
                        .done = on_done,
                        .gone = on_gone,
                        .stuck_max = 1,
                        .userdata = scan,
                },
                &scan->apart);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(scan);
        return 0;
}

struct partition_scan *partition_scan_free(struct partition_scan *scan)
{
        if (!scan)
                return NULL;
        apart_free(scan->apart);
        disk_writes_leave(scan->scanner->writes, scan);
        enter(scan, SCAN_IDLE);
        free(scan);
        return NULL;
}

int partition_scanner_new(
        sd_event *event, const struct partition_scanner_options *options, struct partition_scanner **ret)
{
        _cleanup_(partition_scanner_free_pointer) struct partition_scanner *scanner =
                calloc(1, sizeof(*scanner));
        int r;

        if (!scanner)
                return -ENOMEM;
        if (options)
                scanner->options = *options;
        if (scanner->options.running_max == 0)
                scanner->options.running_max = RUNNING_MAX;
        scanner->event = sd_event_ref(event);
        TAILQ_INIT(&scanner->waiting);
        r = sd_event_add_defer(event, &scanner->begin, on_begin, scanner);
        if (r >= 0)
                r = sd_event_source_set_enabled(scanner->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(scanner->begin, PRIORITY_LATE);
        if (r < 0)
                return r;
        take_watch_result(scanner, disk_writes_new(event, on_written, &scanner->writes));
        *ret = TAKE_PTR(scanner);
        return 0;
}

struct partition_scanner *partition_scanner_free(struct partition_scanner *scanner)
{
        if (!scanner)
                return NULL;
        disk_writes_free(scanner->writes);
        sd_event_source_disable_unref(scanner->begin);
        sd_event_unref(scanner->event);
        free(scanner);
        return NULL;
}
