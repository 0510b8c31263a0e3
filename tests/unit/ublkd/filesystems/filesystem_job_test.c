/* SPDX-License-Identifier: MIT */
/* filesystem_job: what a process that was killed, and is not dead yet, keeps others from. */
#include "ublkd/filesystems/filesystem_job.h"
#include "ublkd/filesystems/filesystem_process.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/no_watch.h"

#include <errno.h>

enum { DEADLINE_USEC = 60 * 1000 * 1000 };

static struct filesystem_jobs *jobs;

static void on_look(void *userdata _unused_, const struct filesystem_look *look _unused_,
        struct filesystem_go *ret _unused_)
{
}

static int begin(const char *device, const char *path, void (*done)(void *, const struct filesystem_report *),
        bool *is_done)
{
        struct filesystem_order order = {};

        snprintf(order.device, sizeof(order.device), "%s", device);
        snprintf(order.path, sizeof(order.path), "%s", path);
        return filesystem_job_begin(jobs, &order,
                &(const struct filesystem_job_events){.looked = on_look, .done = done, .userdata = is_done});
}

static void note_end(void *userdata, const struct filesystem_report *report _unused_)
{
        *(bool *)userdata = true;
}

static bool other_ended, unmount_ended;

/* Its process may be dead or not: the loop has not reaped it. */
static void on_first_end(void *userdata, const struct filesystem_report *report)
{
        note_end(userdata, report);
        CHECK_INT(begin("one", "/disks/one", note_end, &other_ended), -EBUSY);
        CHECK_INT(begin("two", "/disks/two", note_end, &other_ended), 0);
        CHECK_INT(begin("one", "", note_end, &unmount_ended), -EAGAIN); /* the second one is under way */
}

static void wait_for(sd_event *event, const bool *is_done)
{
        while (!*is_done)
                if (!CHECK(sd_event_run(event, DEADLINE_USEC) > 0))
                        break;
}

/* A process in a kernel that does not answer cannot be killed: it keeps its disk, and nothing else. */
static void test_a_process_that_is_not_dead_keeps_its_disk_alone(sd_event *event)
{
        static const struct filesystem_limits one_at_a_time = {.running_max = 1};
        bool first_ended = false;

        CHECK_INT(filesystem_jobs_new(event, &one_at_a_time, &jobs), 0);
        CHECK_INT(begin("one", "/disks/one", on_first_end, &first_ended), 0);
        CHECK_INT(begin("two", "/disks/two", note_end, &other_ended), -EAGAIN);
        CHECK_INT(begin("one", "", note_end, &unmount_ended), -EBUSY);
        wait_for(event, &first_ended);
        wait_for(event, &other_ended);
        CHECK_INT(begin("one", "", note_end, &unmount_ended), 0);
        wait_for(event, &unmount_ended);
        jobs = filesystem_jobs_free(jobs);
}

/* The loop waits for its end: one that has asked a disk which does not answer could not be killed. */
static void test_a_process_that_nothing_watches_gets_no_order(sd_event *event)
{
        bool ended = false;

        CHECK_INT(filesystem_jobs_new(event, NULL, &jobs), 0);
        sent = 0;
        out_of_memory = true;
        CHECK_INT(begin("one", "/disks/one", note_end, &ended), -ENOMEM);
        CHECK_INT(sent, 0);
        out_of_memory = false;
        CHECK_INT(begin("one", "/disks/one", note_end, &ended), 0);
        CHECK_INT(sent, 1);
        wait_for(event, &ended);
        jobs = filesystem_jobs_free(jobs);
}

int main(int argc, char *argv[])
{
        sd_event *event;

        if (argc == 2 && strcmp(argv[1], FILESYSTEM_PROCESS_OPTION) == 0)
                return filesystem_process_main();
        CHECK(sd_event_new(&event) >= 0);
        test_a_process_that_is_not_dead_keeps_its_disk_alone(event);
        test_a_process_that_nothing_watches_gets_no_order(event);
        sd_event_unref(event);
        return check_report();
}
