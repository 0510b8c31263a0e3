/* SPDX-License-Identifier: MIT */
/* What the tests of path_watch share: real directories, a loop, and this very program as the process. */
#pragma once

#include "ublkd/paths/path_watch.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

enum {
        HASTY_USEC = 200 * 1000, /* between two pings, where a process is to be given up */
        PAUSE_USEC = 400 * 1000,
};

extern sd_event *event;
extern struct path_watches *watches;
extern unsigned changes; /* how often a watch has called back */
extern bool unkillable;  /* signals to processes get lost */

/* A path below the root of the test; four are valid at once. */
const char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_file(const char *path);
void make_directory(const char *path);
void make_link(const char *target, const char *path);
void move(const char *from, const char *to);
const char *root_path(void);

/* With PATH_WATCH_TEST_HANGS in the environment a look hangs beside a file "hang"; with PATH_WATCH_TEST_DEAF
 * no directory can be watched. */
/* Counts. */
void on_changed(void *userdata, const struct path_view *view);
struct path_watch *watch_store(const char *path, const struct path_store *store);
/* What it leads to now is what is served. */
struct path_watch *watch_path(const char *path);
struct path_store store_at(const char *path);

enum path_state state_of(const struct path_watch *watch);
int error_of(const struct path_watch *watch);
bool run_loop_until(bool (*is_reached)(const void *), const void *what);
bool check_await(const struct path_watch *watch, enum path_state state, int line);
void await_starts(uint64_t starts);

#define AWAIT(watch, state) check_await((watch), (state), __LINE__)

/* The whole of main(): as the process, or the tests, each with an empty root. */
struct path_test {
        void (*run)(void);
        uint64_t ping_usec; /* 0: the usual one */
};
int run_tests(int argc, char *argv[], const struct path_test *tests, size_t count);
