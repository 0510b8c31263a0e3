/* SPDX-License-Identifier: MIT */
/* char_device_watch(), in a /dev of its own. Needs root. */
#include "ublkd/driver/char_device.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

enum {
        NUMBER = 7,
        LIMIT = 60, /* seconds: SIGALRM ends a loop that does not come back */
};

struct closed {
        sd_event_source *watch;
        unsigned times;
};

static int on_closed(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
        struct closed *closed = userdata;

        (void)source;
        (void)event;
        closed->times++;
        closed->watch = sd_event_source_disable_unref(closed->watch);
        return 0;
}

static void close_it(void)
{
        int fd = open("/dev/ublkc7", O_RDWR | O_CLOEXEC);

        CHECK(fd >= 0);
        close(fd);
}

static void turn(sd_event *event)
{
        while (sd_event_run(event, 0) > 0)
                continue;
}

static void test_is_called_once(sd_event *event)
{
        struct closed closed = {0};

        CHECK_INT(char_device_watch(event, NUMBER, on_closed, &closed, &closed.watch), 0);
        turn(event);
        CHECK_INT(closed.times, 0);
        close_it();
        turn(event);
        CHECK_INT(closed.times, 1);
        close_it();
        turn(event);
        CHECK_INT(closed.times, 1);
}

/* sd_event_run() must come back from those that no source waits for. */
static void test_closes_that_come_together(sd_event *event)
{
        struct closed closed = {0};

        CHECK_INT(char_device_watch(event, NUMBER, on_closed, &closed, &closed.watch), 0);
        for (int i = 0; i < 3; i++) {
                int read_only = open("/dev/ublkc7", O_RDONLY | O_CLOEXEC);

                close_it();
                close(read_only);
        }
        turn(event);
        CHECK_INT(closed.times, 1);
}

static void test_a_disk_without_a_node(sd_event *event)
{
        sd_event_source *watch = NULL;

        CHECK_INT(char_device_watch(event, NUMBER + 1, on_closed, NULL, &watch), -ENOENT);
        CHECK(!watch);
}

int main(void)
{
        sd_event *event = NULL;

        if (geteuid() != 0)
                return 77;
        CHECK_INT(unshare(CLONE_NEWNS), 0);
        CHECK_INT(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        CHECK_INT(mount("dev", "/dev", "tmpfs", 0, NULL), 0);
        close(open("/dev/ublkc7", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        CHECK(sd_event_new(&event) >= 0);
        alarm(LIMIT);
        test_is_called_once(event);
        test_closes_that_come_together(event);
        test_a_disk_without_a_node(event);
        sd_event_unref(event);
        return 0;
}
