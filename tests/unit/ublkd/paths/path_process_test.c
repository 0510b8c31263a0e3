/* SPDX-License-Identifier: MIT */
/* path_watch: what can happen to its process. */
#include "tests/unit/ublkd/paths/path_world.h"

static void test_no_process_without_paths(void)
{
        struct path_watch *watch;

        CHECK_INT(path_watches_pid(watches), 0);
        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK(path_watches_pid(watches) > 0);
        path_watch_free(watch);
        CHECK_INT(path_watches_pid(watches), 0);
        watch = watch_path(at("a.img"));
        path_watch_free(watch);
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(path_watches_starts(watches), 2);
        path_watch_free(watch);
}

static void test_killed(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(kill(path_watches_pid(watches), SIGKILL), 0);
        await_starts(2);
        CHECK_INT(state_of(watch), PATH_SAME);
        move(at("a.img"), at("b.img"));
        AWAIT(watch, PATH_GONE);
        path_watch_free(watch);
}

static void test_stopped(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(kill(path_watches_pid(watches), SIGSTOP), 0);
        move(at("a.img"), at("b.img"));
        AWAIT(watch, PATH_GONE);
        CHECK(path_watches_starts(watches) >= 2);
        path_watch_free(watch);
}

/* It costs the watch of that path and of its file system, and they are watched again once it does not hang.
 */
static void test_a_path_that_hangs(void)
{
        static const struct path_store elsewhere = {.is_disk = true, .device = 1};
        struct path_watch *hung, *neighbour, *other;

        CHECK_INT(setenv("PATH_WATCH_TEST_HANGS", "1", 1), 0);
        make_directory(at("dead"));
        make_file(at("dead/a.img"));
        make_file(at("dead/hang"));
        make_file(at("b.img"));
        other = watch_store(at("b.img"), &elsewhere);
        AWAIT(other, PATH_OTHER);
        hung = watch_path(at("dead/a.img"));
        neighbour = watch_path(at("dead/a.img"));
        AWAIT(hung, PATH_UNKNOWN);
        AWAIT(neighbour, PATH_UNKNOWN);
        CHECK_INT(error_of(hung), ETIMEDOUT);
        CHECK_INT(state_of(other), PATH_OTHER);
        move(at("b.img"), at("c.img"));
        AWAIT(other, PATH_GONE);
        CHECK_INT(unlink(at("dead/hang")), 0);
        AWAIT(hung, PATH_SAME);
        AWAIT(neighbour, PATH_SAME);
        path_watch_free(hung);
        path_watch_free(neighbour);
        path_watch_free(other);
        CHECK_INT(unsetenv("PATH_WATCH_TEST_HANGS"), 0);
}

static bool has_no_room(const void *watch)
{
        return state_of(watch) == PATH_UNKNOWN && error_of(watch) == EAGAIN;
}

/* Processes that do not die: five at most, then nothing is known, until one of them has died after all. */
static void test_processes_that_cannot_be_killed(void)
{
        struct path_watch *watch;
        pid_t pids[5] = {};

        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        unkillable = true;
        for (unsigned i = 0; i < ARRAY_SIZE(pids); i++) {
                await_starts(i + 1);
                pids[i] = path_watches_pid(watches);
                CHECK_INT(kill(pids[i], SIGSTOP), 0);
        }
        CHECK(run_loop_until(has_no_room, watch));
        CHECK_INT(path_watches_starts(watches), 5);
        unkillable = false;
        CHECK_INT(kill(pids[2], SIGKILL), 0);
        AWAIT(watch, PATH_SAME);
        CHECK(path_watches_starts(watches) >= 6);
        path_watch_free(watch);
        for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
                if (i != 2)
                        CHECK_INT(kill(pids[i], SIGKILL), 0);
}

int main(int argc, char *argv[])
{
        static const struct path_test tests[] = {
                {.run = test_no_process_without_paths},
                {.run = test_killed},
                {.run = test_stopped, .ping_usec = HASTY_USEC},
                {.run = test_a_path_that_hangs, .ping_usec = HASTY_USEC},
                {.run = test_processes_that_cannot_be_killed, .ping_usec = HASTY_USEC},
        };

        return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
