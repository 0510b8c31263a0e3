/* SPDX-License-Identifier: MIT */
/* What the tests of path_watch share. */
#include "tests/unit/remove_tree.h"
#include "tests/unit/ublkd/paths/path_world.h"

#include "ublkd/paths/path_watcher.h"

#include <stdarg.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/statvfs.h>

enum { PATIENCE_USEC = 60 * 1000 * 1000 };

/* ---- in the process ---- */

int __real_stat(const char *path, struct stat *info);
int __wrap_stat(const char *path, struct stat *info);
int __real_statvfs(const char *path, struct statvfs *info);
int __wrap_statvfs(const char *path, struct statvfs *info);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags);

bool unkillable;

/* Beside a file "hang" a look hangs. */
int __wrap_stat(const char *path, struct stat *info)
{
        const char *slash = strrchr(path, '/');
        char hang[PATH_MAX + 8];

        snprintf(hang, sizeof(hang), "%.*s/hang", (int)(slash - path), path);
        if (getenv("PATH_WATCH_TEST_HANGS") && access(hang, F_OK) == 0)
                for (;;)
                        pause();
        return __real_stat(path, info);
}

/* Beside a file "full" a file system of 100 blocks of 4 KiB has one left. */
int __wrap_statvfs(const char *path, struct statvfs *info)
{
        const char *slash = strrchr(path, '/');
        char full[PATH_MAX + 8];
        int r = __real_statvfs(path, info);

        info->f_frsize = 4096;
        info->f_blocks = 100;
        snprintf(full, sizeof(full), "%.*s/full", (int)(slash - path), path);
        info->f_bavail = access(full, F_OK) == 0 ? 1 : 50;
        return r;
}

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
        if (getenv("PATH_WATCH_TEST_DEAF")) {
                errno = ENOSPC;
                return -1;
        }
        return __real_inotify_add_watch(fd, path, mask);
}

int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
        return unkillable ? 0 : __real_pidfd_send_signal(pidfd, sig, info, flags);
}

/* ---- files ---- */

static char root[] = "/tmp/path_watch_test.XXXXXX";

const char *at(const char *format, ...)
{
        static char texts[4][2 * PATH_MAX];
        static unsigned next;
        char *text = texts[next++ % ARRAY_SIZE(texts)];
        size_t used = (size_t)sprintf(text, "%s/", root);
        va_list arguments;

        va_start(arguments, format);
        (void)vsnprintf(text + used, sizeof(texts[0]) - used, format, arguments);
        va_end(arguments);
        return text;
}

void make_file(const char *path)
{
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

        CHECK(fd >= 0);
        close_fd(fd);
}

void make_directory(const char *path)
{
        CHECK_INT(mkdir(path, 0700), 0);
}

void make_link(const char *target, const char *path)
{
        CHECK_INT(symlink(target, path), 0);
}

void move(const char *from, const char *to)
{
        CHECK_INT(rename(from, to), 0);
}

static void empty_root(void)
{
        (void)remove_tree(root);
        make_directory(root);
}

struct path_store store_at(const char *path)
{
        struct stat info = {};

        CHECK_INT(__real_stat(path, &info), 0);
        return (struct path_store){.device = info.st_dev, .inode = info.st_ino};
}

/* ---- watches ---- */

sd_event *event;
struct path_watches *watches;
unsigned changes;

void on_changed(void *userdata _unused_, const struct path_view *view _unused_)
{
        changes++;
}

static void begin(uint64_t ping_usec)
{
        const struct path_watches_options options = {.ping_usec = ping_usec, .pause_usec = PAUSE_USEC};

        empty_root();
        changes = 0;
        CHECK_INT(sd_event_new(&event), 0);
        CHECK_INT(path_watches_new(event, &options, &watches), 0);
}

static void end(void)
{
        watches = path_watches_free(watches);
        event = sd_event_unref(event);
}

struct path_watch *watch_store(const char *path, const struct path_store *store)
{
        struct path_watch *watch = NULL;

        CHECK_INT(path_watch_new(watches, path, store, on_changed, NULL, &watch), 0);
        return watch;
}

struct path_watch *watch_path(const char *path)
{
        struct path_store store = store_at(path);

        return watch_store(path, &store);
}

enum path_state state_of(const struct path_watch *watch)
{
        const struct path_view *view = path_watch_view(watch);

        return view ? view->state : _PATH_STATE_MAX;
}

int error_of(const struct path_watch *watch)
{
        const struct path_view *view = path_watch_view(watch);

        return view ? view->error : -1;
}

bool run_loop_until(bool (*is_reached)(const void *), const void *what)
{
        uint64_t deadline = clock_usec(CLOCK_MONOTONIC) + PATIENCE_USEC;

        while (!is_reached(what) && clock_usec(CLOCK_MONOTONIC) < deadline)
                (void)sd_event_run(event, 100 * 1000);
        return is_reached(what);
}

struct wanted {
        const struct path_watch *watch;
        enum path_state state;
};

static bool has_state(const void *what)
{
        const struct wanted *wanted = what;

        return state_of(wanted->watch) == wanted->state;
}

bool check_await(const struct path_watch *watch, enum path_state state, int line)
{
        const struct wanted wanted = {watch, state};
        bool reached = run_loop_until(has_state, &wanted);

        return check_integers(state_of(watch), state, reached ? "" : "state, in time", __FILE__, line);
}

static bool has_process(const void *what)
{
        return path_watches_pid(watches) != 0 && path_watches_starts(watches) >= *(const uint64_t *)what;
}

void await_starts(uint64_t starts)
{
        CHECK(run_loop_until(has_process, &starts));
}

const char *root_path(void)
{
        return root;
}

static void run_test(const struct path_test *test)
{
        begin(test->ping_usec);
        test->run();
        end();
}

int run_tests(int argc, char *argv[], const struct path_test *tests, size_t count)
{
        if (argc == 2 && strcmp(argv[1], "--path-watcher") == 0)
                return path_watcher_main(3,
                        &(struct path_watcher_options){
                                .poll_usec = 100 * 1000, .room_usec = 50 * 1000, .settle_usec = 10 * 1000});
        if (!CHECK(mkdtemp(root)))
                return check_report();
        for (size_t i = 0; i < count; i++)
                run_test(&tests[i]);
        (void)remove_tree(root);
        return check_report();
}
