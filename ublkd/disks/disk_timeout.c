/* SPDX-License-Identifier: MIT */
/* How fast the kernel notices the death of a worker. */
#include "ublkd/disks/disk_timeout.h"

#include "ublkd/offload/apart.h"
#include "ublkd/base/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_USEC = 10 * 1000 * 1000 };

static const char milliseconds[] = "500";

struct numbers {
        int *items;
        size_t count;
};

struct disk_timeout {
        struct disk_timeout_options options;
        struct apart *apart;
        struct numbers waiting, under_way; /* under_way: of the process that runs */
        sd_event_source *begin;            /* enabled while some wait and no process runs */
};

DEFINE_CLEANUP(struct disk_timeout, disk_timeout_free);

/* What the process writes for each disk, in their order. */
struct record {
        int error; /* 0 or -errno */
};

static bool numbers_have(const struct numbers *numbers, int number)
{
        for (size_t i = 0; i < numbers->count; i++)
                if (numbers->items[i] == number)
                        return true;
        return false;
}

static int numbers_add(struct numbers *numbers, int number)
{
        int *items;

        if (numbers_have(numbers, number))
                return 0;
        items = reallocarray(numbers->items, numbers->count + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        items[numbers->count++] = number;
        numbers->items = items;
        return 0;
}

static void numbers_clear(struct numbers *numbers)
{
        free(numbers->items);
        *numbers = (struct numbers){};
}

/* ---- in the process ---- */

static bool is_short(const char *path)
{
        char text[32];

        return read_text_at(AT_FDCWD, path, text, sizeof(text)) > 0
               && strspn(text, "0123456789") == strlen(milliseconds)
               && strncmp(text, milliseconds, strlen(milliseconds)) == 0;
}

/* Return true if an error means that the disk is gone, and not that there is no sysfs. The next disk with its number is
 * asked for by itself. */
static bool disk_is_gone(const char *sys, int error)
{
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s/block", sys);
        return (error == ENOENT || error == ENODEV) && access(path, F_OK) == 0;
}

/* Where it is so already nothing is written, and so the queue not frozen. */
static int shorten(const char *sys, int number)
{
        _cleanup_close_ int fd = -1;
        char path[PATH_MAX];
        int error;

        snprintf(path, sizeof(path), "%s/block/ublkb%d/queue/io_timeout", sys, number);
        if (is_short(path))
                return 0;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0 && write(fd, milliseconds, strlen(milliseconds)) >= 0)
                return 0;
        error = errno;
        return disk_is_gone(sys, error) ? 0 : -error;
}

static void shorten_all(void *userdata, FILE *answer)
{
        const struct disk_timeout *timeout = userdata;
        const char *sys = timeout->options.sys ? timeout->options.sys : "/sys";

        for (size_t i = 0; i < timeout->under_way.count; i++) {
                struct record record = {.error = shorten(sys, timeout->under_way.items[i])};

                (void)fwrite(&record, sizeof(record), 1, answer);
                (void)fflush(answer); /* the next may hang */
        }
}

/* ---- in the loop ---- */

static void plan_begin(struct disk_timeout *timeout, uint64_t delay)
{
        uint64_t now, due = UINT64_MAX;
        int enabled = SD_EVENT_OFF;

        if (sd_event_now(sd_event_source_get_event(timeout->begin), CLOCK_MONOTONIC, &now) < 0)
                return;
        (void)sd_event_source_get_enabled(timeout->begin, &enabled);
        if (enabled != SD_EVENT_OFF)
                (void)sd_event_source_get_time(timeout->begin, &due);
        if (now + delay < due)
                (void)sd_event_source_set_time(timeout->begin, now + delay);
        (void)sd_event_source_set_enabled(timeout->begin, SD_EVENT_ONESHOT);
}

/* One that waits was asked for again: it gets the answer to that. */
static void report(struct disk_timeout *timeout, int number, int error)
{
        if (!numbers_have(&timeout->waiting, number))
                timeout->options.done(timeout->options.userdata, number, error);
}

/* The first without a record is the one that hangs; it is set when the kernel comes to it, unless time was up right before.
 * Those behind it get another process. */
static void on_done(void *userdata, int error, const void *answer, size_t size)
{
        struct disk_timeout *timeout = userdata;
        struct numbers numbers = timeout->under_way;
        const char *records = answer;
        size_t known = size / sizeof(struct record);

        timeout->under_way = (struct numbers){};
        for (size_t i = 0; i < numbers.count; i++) {
                struct record record = {.error = error < 0 ? error : -EPIPE};

                if (i < known)
                        memcpy(&record, records + i * sizeof(record), sizeof(record));
                else if (error == -ETIMEDOUT)
                        record.error =
                                i == known ? -ETIMEDOUT : disk_timeout_shorten(timeout, numbers.items[i], 0);
                report(timeout, numbers.items[i], record.error);
        }
        numbers_clear(&numbers);
        if (timeout->waiting.count > 0)
                plan_begin(timeout, 0);
}

static int on_begin(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct disk_timeout *timeout = userdata;
        int r;

        if (timeout->under_way.count > 0) /* then on_done() begins */
                return 0;
        timeout->under_way = timeout->waiting;
        timeout->waiting = (struct numbers){};
        r = apart_begin(timeout->apart);
        if (r < 0)
                on_done(timeout, r, NULL, 0);
        return 0;
}

int disk_timeout_shorten(struct disk_timeout *timeout, int number, uint64_t delay)
{
        int r = numbers_add(&timeout->waiting, number);

        if (r >= 0)
                plan_begin(timeout, delay);
        return r;
}

int disk_timeout_new(sd_event *event, const struct disk_timeout_options *options, struct disk_timeout **ret)
{
        _cleanup_(disk_timeout_free_pointer) struct disk_timeout *timeout = calloc(1, sizeof(*timeout));
        int r;

        if (!timeout)
                return -ENOMEM;
        timeout->options = *options;
        r = sd_event_add_time(event, &timeout->begin, CLOCK_MONOTONIC, 0, 0, on_begin, timeout);
        if (r >= 0)
                r = sd_event_source_set_enabled(timeout->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = apart_new(event,
                        &(struct apart_options){
                                .process = "ublkd-timeout",
                                .patience_usec =
                                        options->patience_usec ? options->patience_usec : PATIENCE_USEC,
                                .look = shorten_all,
                                .done = on_done,
                                .userdata = timeout,
                        },
                        &timeout->apart);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(timeout);
        return 0;
}

struct disk_timeout *disk_timeout_free(struct disk_timeout *timeout)
{
        if (!timeout)
                return NULL;
        apart_free(timeout->apart);
        sd_event_source_disable_unref(timeout->begin);
        numbers_clear(&timeout->waiting);
        numbers_clear(&timeout->under_way);
        free(timeout);
        return NULL;
}
