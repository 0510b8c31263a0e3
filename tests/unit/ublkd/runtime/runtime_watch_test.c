/* SPDX-License-Identifier: MIT */
/* The runtime directory is removed under a supervisor: it is noticed, and made again. */
#include "tests/unit/check.h"
#include "ublkd/runtime/runtime_watch.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned failing; /* calls of sd_event_add_inotify() from now on */

int __real_sd_event_add_inotify(sd_event *event, sd_event_source **ret, const char *path, uint32_t mask,
        sd_event_inotify_handler_t callback, void *userdata);
int __wrap_sd_event_add_inotify(sd_event *event, sd_event_source **ret, const char *path, uint32_t mask,
        sd_event_inotify_handler_t callback, void *userdata);
int __wrap_sd_event_add_inotify(sd_event *event, sd_event_source **ret, const char *path, uint32_t mask,
        sd_event_inotify_handler_t callback, void *userdata)
{
        if (failing == 0)
                return __real_sd_event_add_inotify(event, ret, path, mask, callback, userdata);
        failing--;
        return -ENOSPC;
}

static struct {
        unsigned count;
        enum runtime_change change;
        int error;
} seen;

static void on_changed(void *userdata _unused_, enum runtime_change change, int error)
{
        seen.count++;
        seen.change = change;
        seen.error = error;
}

static void run(const char *format, const char *path)
{
        char command[256];

        snprintf(command, sizeof(command), "p=%s; %s", path, format);
        CHECK_INT(system(command), 0);
}

/* Waits until it is noticed. */
static void await_change_with(enum runtime_change change, int error)
{
        sd_event *event = NULL;

        (void)sd_event_default(&event);
        seen.count = 0;
        while (seen.count == 0 && sd_event_run(event, 10 * 1000 * 1000) > 0)
                ;
        CHECK_INT(seen.count, 1);
        CHECK_INT(seen.change, change);
        CHECK_INT(seen.error, error);
        sd_event_unref(event);
}

static void await_change(enum runtime_change change)
{
        await_change_with(change, 0);
}

static int count_one(void *userdata, const char *uid _unused_)
{
        ++*(unsigned *)userdata;
        return 0;
}

static void check_works(struct runtime_dir *dir)
{
        unsigned count = 0;

        CHECK_INT(runtime_dir_check(dir), 0);
        CHECK_INT(runtime_dir_write_record(dir, "one", "text"), 0);
        CHECK_INT(runtime_dir_each_record(dir, count_one, &count), 0);
        CHECK_INT(count, 1);
}

/* Another supervisor would take it for free. */
static void check_locked(const char *path)
{
        _cleanup_free_ char *command = NULL;

        if (CHECK(asprintf(&command, "%s --lock %s", program_invocation_name, path) >= 0))
                CHECK_INT(system(command), 0);
}

static void test_removed(const char *path, struct runtime_dir *dir)
{
        static const char *const ways[] = {
                "rm -r $p", "mv $p $p.moved", "rm -r $p; mkdir $p", "rm -r $p/workers", "rm $p/lock"};

        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                check_works(dir);
                run(ways[i], path);
                CHECK_INT(runtime_dir_check(dir), -ENOLINK);
                await_change(RUNTIME_REMADE);
                check_works(dir);
                check_locked(path);
        }
        run("touch $p/other; rm $p/other", path);
        await_change(RUNTIME_KEPT);
        check_works(dir);
        CHECK(runtime_dir_has_record(dir, "one"));
        run("rm $p/workers/*", path);
        await_change(RUNTIME_KEPT);
        CHECK(!runtime_dir_has_record(dir, "one"));
        check_works(dir);
}

static void test_cannot_be_made(const char *path, struct runtime_dir *dir)
{
        run("rm -r $p; touch $p", path);
        await_change_with(RUNTIME_GONE, -ENOTDIR);
        run("rm $p", path);
        await_change(RUNTIME_REMADE);
        check_works(dir);
}

/* The user has no inotify watch left: the directory is there, and the watch tries again. */
static void test_cannot_be_watched(const char *path, struct runtime_dir *dir)
{
        failing = 1;
        run("rm -r $p", path);
        await_change_with(RUNTIME_REMADE, -ENOSPC);
        check_works(dir);
        await_change(RUNTIME_KEPT);
        run("rm -r $p", path); /* it is watched again */
        await_change(RUNTIME_REMADE);
        check_works(dir);
}

/* In a process of its own: 0 when another one has the directory. */
static int try_lock(const char *path)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct runtime_dir *dir = NULL;

        return runtime_dir_open(path, &dir, &problems) == -EBUSY ? 0 : 1;
}

int main(int argc, char *argv[])
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/runtime_watch_test.XXXXXX", path[64];
        struct runtime_watch *watch = NULL;
        struct runtime_dir *dir = NULL;
        sd_event *event = NULL;

        if (argc == 3)
                return try_lock(argv[2]);
        if (!CHECK(mkdtemp(base)))
                return check_report();
        snprintf(path, sizeof(path), "%s/run", base);
        CHECK_INT(sd_event_default(&event) < 0, 0);
        CHECK_INT(runtime_dir_open(path, &dir, &problems), 0);
        CHECK_INT(runtime_watch_new(event, dir, on_changed, NULL, &watch), 0);
        test_removed(path, dir);
        test_cannot_be_made(path, dir);
        test_cannot_be_watched(path, dir);
        runtime_watch_free(watch);
        runtime_dir_free(dir);
        sd_event_unref(event);
        run("rm -r $p", base);
        return check_report();
}
