/* SPDX-License-Identifier: MIT */
/* disk_timeout: a disk whose timeout cannot be set for now holds up neither the loop nor other disks. In the
 * place of an attribute that hangs in the kernel is a pipe without a reader. */
#include "ublkd/disks/disk_timeout.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A busy machine may let a process wait for its turn: the patience is long enough for that. */
enum { PATIENCE_USEC = 2 * 1000 * 1000, DEADLINE_USEC = 60 * 1000 * 1000 };

static sd_event *event;
static char sys[] = "/tmp/disk-timeout-XXXXXX";
static int failed_number = -1, failed_error, late_number;
static unsigned turns, answers[10]; /* by number */

static void path_of(int number, const char *rest, char path[static 96])
{
        snprintf(path, 96, "%s/block/ublkb%d%s", sys, number, rest);
}

/* `text`: NULL: an attribute that hangs. */
static void put_disk(int number, const char *text)
{
        char path[96];
        _cleanup_close_ int fd = -1;

        path_of(number, "", path);
        (void)mkdir(path, 0700);
        path_of(number, "/queue", path);
        (void)mkdir(path, 0700);
        path_of(number, "/queue/io_timeout", path);
        (void)unlink(path);
        if (!text) {
                CHECK_INT(mkfifo(path, 0600), 0);
                return;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static bool has(int number, const char *wanted)
{
        char path[96], text[32] = "";
        _cleanup_close_ int fd = -1;

        path_of(number, "/queue/io_timeout", path);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        return read(fd, text, sizeof(text) - 1) >= 0 && strncmp(text, wanted, strlen(wanted)) == 0;
}

static void on_done(void *userdata _unused_, int number, int error)
{
        answers[number]++;
        if (error == -ETIMEDOUT)
                late_number = number;
        if (error == 0 || error == -ETIMEDOUT)
                return;
        failed_number = number;
        failed_error = error;
}

static int on_turn(sd_event_source *source, uint64_t usec _unused_, void *userdata _unused_)
{
        turns++;
        CHECK(sd_event_source_set_time_relative(source, 10 * 1000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static uint64_t now(void)
{
        uint64_t usec = 0;

        CHECK(sd_event_now(event, CLOCK_MONOTONIC, &usec) >= 0);
        return usec;
}

static bool run_until(bool (*done)(void))
{
        uint64_t end = now() + DEADLINE_USEC;

        while (!done() && now() < end)
                CHECK(sd_event_run(event, 100 * 1000) >= 0);
        return done();
}

static bool all_are_done(void)
{
        return answers[1] && answers[5] && answers[9];
}

static bool five_is_done(void)
{
        return answers[5];
}

static bool nine_is_done(void)
{
        return answers[9];
}

static bool some_turns_are_over(void)
{
        return turns > 3;
}

static bool has_failed(void)
{
        return failed_number >= 0;
}

static struct disk_timeout *timeout_new(void)
{
        struct disk_timeout *timeout = NULL;

        CHECK_INT(disk_timeout_new(event,
                          &(struct disk_timeout_options){
                                  .sys = sys, .patience_usec = PATIENCE_USEC, .done = on_done},
                          &timeout),
                0);
        return timeout;
}

static void test_one_that_hangs_delays_no_other(void)
{
        struct disk_timeout *timeout = timeout_new();
        unsigned before = turns;

        put_disk(1, "30000\n");
        put_disk(5, NULL);
        put_disk(9, "30000\n");
        alarm(60);
        CHECK_INT(disk_timeout_shorten(timeout, 1, 0), 0);
        CHECK_INT(disk_timeout_shorten(timeout, 5, 0), 0);
        CHECK_INT(disk_timeout_shorten(timeout, 9, 0), 0);
        CHECK(run_until(all_are_done));
        CHECK(has(1, "500") && has(9, "500"));
        CHECK_INT(answers[5], 1);
        CHECK_INT(late_number, 5);
        CHECK(turns > before + 3);
        CHECK_INT(failed_number, -1); /* it is set when the kernel comes to it */
        alarm(0);
        disk_timeout_free(timeout);
}

/* Neither is a disk reported that went away meanwhile. */
static void test_only_a_failure_is_reported(void)
{
        struct disk_timeout *timeout = timeout_new();
        char path[96];

        put_disk(1, "500\n");
        put_disk(8, "30000\n");
        path_of(8, "/queue/io_timeout", path);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(mkdir(path, 0700), 0); /* it cannot be written */
        CHECK_INT(disk_timeout_shorten(timeout, 8, 1000), 0);
        CHECK_INT(disk_timeout_shorten(timeout, 1, 1000), 0);
        CHECK_INT(disk_timeout_shorten(timeout, 7, 1000), 0);
        CHECK(run_until(has_failed));
        CHECK_INT(failed_number, 8); /* the last that was reported */
        CHECK_INT(failed_error, -EISDIR);
        CHECK(has(1, "500\n")); /* untouched */
        disk_timeout_free(timeout);
}

/* Another disk has the number since: the answer for the earlier one is not for it. */
static void test_who_asks_twice_gets_one_answer(void)
{
        struct disk_timeout *timeout = timeout_new();

        memset(answers, 0, sizeof(answers));
        put_disk(9, "30000\n");
        CHECK_INT(disk_timeout_shorten(timeout, 5, 0), 0); /* which hangs, since the first test */
        turns = 0;
        CHECK(run_until(some_turns_are_over)); /* the process has begun */
        CHECK_INT(disk_timeout_shorten(timeout, 5, 0), 0);
        CHECK(run_until(five_is_done));
        CHECK_INT(disk_timeout_shorten(timeout, 9, 0), 0);
        CHECK(run_until(nine_is_done));
        CHECK_INT(answers[5], 1);
        disk_timeout_free(timeout);
}

int main(void)
{
        sd_event_source *source = NULL;
        char block[64], command[64];

        signal(SIGPIPE, SIG_IGN);
        if (!CHECK(mkdtemp(sys)) || !CHECK_INT(sd_event_new(&event), 0))
                return check_report();
        snprintf(block, sizeof(block), "%s/block", sys);
        CHECK_INT(mkdir(block, 0700), 0);
        CHECK_INT(sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, 0, 1000, on_turn, NULL), 0);
        test_one_that_hangs_delays_no_other();
        test_only_a_failure_is_reported();
        test_who_asks_twice_gets_one_answer();
        sd_event_source_disable_unref(source);
        sd_event_unref(event);
        snprintf(command, sizeof(command), "rm -r %s", sys);
        CHECK_INT(system(command), 0);
        return check_report();
}
