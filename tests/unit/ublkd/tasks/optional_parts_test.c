/* SPDX-License-Identifier: MIT */
/* optional_parts: ublkd starts without them, and says so in its log. */
#include "ublkd/tasks/optional_parts.h"

#include "tests/unit/check.h"
#include "ublkd/base/log.h"

#include <sys/inotify.h>

static int groups_error, inotify_error, logged, logged_error;

int __wrap_worker_groups_new(
        sd_event *event, const struct group_sources *sources, struct worker_groups **ret);
int __wrap_worker_groups_new(sd_event *event, const struct group_sources *sources, struct worker_groups **ret)
{
        CHECK(event && sources);
        if (groups_error < 0)
                return groups_error;
        *ret = (struct worker_groups
                        *)&groups_error; /* the real one would look at the groups of this machine */
        return 0;
}

int __real_inotify_init1(int flags);
int __wrap_inotify_init1(int flags);
int __wrap_inotify_init1(int flags)
{
        errno = inotify_error;
        return inotify_error ? -1 : __real_inotify_init1(flags);
}

void __wrap_log_record(int level, const struct log_fields *fields, const char *format, ...);
void __wrap_log_record(int level, const struct log_fields *fields, const char *format _unused_, ...)
{
        CHECK_INT(level, LOG_WARNING);
        logged++;
        logged_error = fields->error;
}

static void check_logged(int error)
{
        CHECK_INT(logged, error ? 1 : 0);
        CHECK_INT(logged_error, error);
        logged = logged_error = 0;
}

int main(void)
{
        struct partition_scanner *scanner;
        sd_event *event = NULL;

        CHECK(sd_event_new(&event) >= 0);
        CHECK((void *)optional_worker_groups(event) == &groups_error);
        check_logged(0);
        groups_error = -EMFILE;
        CHECK(!optional_worker_groups(event));
        check_logged(-EMFILE);
        scanner = optional_partition_scanner(event, NULL);
        CHECK(scanner);
        check_logged(0);
        partition_scanner_free(scanner);
        inotify_error = EMFILE;
        scanner = optional_partition_scanner(event, NULL);
        CHECK(scanner);
        check_logged(-EMFILE);
        partition_scanner_free(scanner);
        sd_event_unref(event);
        return check_report();
}
