/* SPDX-License-Identifier: MIT */
/* How the control plane is opened, against helpers that are made for it: this program is the helper, too, and
 * plays what CTL_TEST_HELPER names. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/driver/control_helper_fake.h"
#include "tests/unit/ublkd/driver/control_open.h"

#include "ublkd/kernel/ublk_uapi.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

enum { SHORT_USEC = 200 * 1000, PATIENCE_USEC = 60 * 1000 * 1000 };

static void check_start(sd_event *event, const char *part, uint64_t start_usec, int error, const char *reason)
{
        struct control_verdict verdict = {};
        struct ublk_ctl *ctl;

        setenv("CTL_TEST_HELPER", part, 1);
        ctl = control_open(event, (struct ublk_ctl_options){.start_usec = start_usec}, &verdict);
        CHECK_INT(verdict.result, -error);
        CHECK_INT(verdict.features, 0);
        if (CHECK_INT(verdict.problems.count, 1))
                CHECK_STR(verdict.problems.items[0].reason, reason);
        problem_list_clear(&verdict.problems);
        while (!ublk_ctl_is_idle(ctl) && CHECK(sd_event_run(event, PATIENCE_USEC) > 0))
                continue; /* until the helper is reaped; no caller waits for it */
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1);
        ublk_ctl_free(ctl);
        CHECK_INT(verdict.count, 1);
}

static void test_start(sd_event *event)
{
        check_start(event, "mute", SHORT_USEC, ETIMEDOUT, "ControlHangs");
        check_start(event, "silent-exit", 0, ECONNRESET, "HelperFailed");
        check_start(event, "refused", 0, EACCES, "NotPermitted");
        check_start(event, "old", 0, EOPNOTSUPP, "KernelTooOld");
        check_start(event, "no-ring", 0, ENOSYS, "IoUringMissing");
}

static int on_tick(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        ++*(unsigned *)userdata;
        CHECK(sd_event_source_set_time_relative(source, SHORT_USEC / 20) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Everything can be freed at any time. */
static void test_a_silent_helper_does_not_stop_the_loop(sd_event *event)
{
        struct control_verdict verdict = {};
        struct ublk_ctl_options options = {.opened = control_on_opened, .userdata = &verdict};
        sd_event_source *timer = NULL;
        unsigned ticks = 0;
        struct ublk_ctl *ctl = NULL;

        setenv("CTL_TEST_HELPER", "mute", 1);
        CHECK_INT(sd_event_add_time_relative(event, &timer, CLOCK_MONOTONIC, 0, 1, on_tick, &ticks), 0);
        CHECK_INT(ublk_ctl_open(event, &options, &ctl), 0);
        while (ticks <= 3)
                CHECK(sd_event_run(event, PATIENCE_USEC) > 0);
        ublk_ctl_free(ctl);
        options.start_usec = SHORT_USEC;
        CHECK_INT(ublk_ctl_open(event, &options, &ctl), 0);
        CHECK_INT(verdict.count, 0);
        while (verdict.count == 0 && sd_event_run(event, UINT64_MAX) >= 0)
                continue;
        CHECK_INT(verdict.result, -ETIMEDOUT);
        ublk_ctl_free(ctl);
        problem_list_clear(&verdict.problems);
        CHECK_INT(ublk_ctl_open(event, &options, &ctl), 0);
        ublk_ctl_free(ctl); /* before its verdict, which does not come any more */
        sd_event_source_disable_unref(timer);
        while (sd_event_run(event, 2 * SHORT_USEC) > 0) /* a helper may take its time to die */
                continue;
        CHECK_INT(verdict.count, 1);
}

/* On a machine without the driver the real helper says so; with it, it works. */
static void test_real_helper(sd_event *event)
{
        struct control_verdict verdict = {};
        struct ublk_ctl *ctl;

        unsetenv("CTL_TEST_HELPER");
        ctl = control_open(event, (struct ublk_ctl_options){}, &verdict);
        if (access("/dev/ublk-control", F_OK) < 0) {
                CHECK_INT(verdict.result, -ENOENT);
                if (CHECK_INT(verdict.problems.count, 1))
                        CHECK(strncmp(verdict.problems.items[0].reason, "Driver", strlen("Driver")) == 0);
        } else if (geteuid() == 0) {
                CHECK_INT(verdict.result, 0);
                CHECK(verdict.features & UBLK_F_USER_RECOVERY);
        }
        problem_list_clear(&verdict.problems);
        ublk_ctl_free(ctl);
}

int main(int argc, char *argv[])
{
        sd_event *event = NULL;

        if (argc == 2 && strcmp(argv[1], "--control-helper") == 0)
                _exit(control_helper_fake()); /* a leak check would hold on to the process that is waited for
                                               */
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK_INT(sd_event_new(&event), 0))
                return check_report();
        test_start(event);
        test_a_silent_helper_does_not_stop_the_loop(event);
        test_real_helper(event);
        sd_event_unref(event);
        return check_report();
}
