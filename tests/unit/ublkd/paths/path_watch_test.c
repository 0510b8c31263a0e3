/* SPDX-License-Identifier: MIT */
/* path_watch: what can happen to a path. Real directories, links and mounts. */
#include "tests/unit/ublkd/paths/path_world.h"
#include "ublkd/base/clock.h"

#include <sched.h>
#include <sys/mount.h>

static void test_replaced_by_rename(void)
{
        struct path_watch *watch;
        struct path_store other;

        make_file(at("a.img"));
        make_file(at("b.img"));
        other = store_at(at("b.img"));
        watch = watch_path(at("a.img"));
        CHECK(!path_watch_view(watch));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(link(at("a.img"), at("kept")), 0);
        move(at("b.img"), at("a.img"));
        if (AWAIT(watch, PATH_OTHER)) {
                CHECK(path_watch_view(watch)->is_store);
                CHECK(path_store_equal(&path_watch_view(watch)->found, &other));
        }
        move(at("kept"), at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(changes, 3);
        path_watch_free(watch);
}

static void test_deleted_and_made_again(void)
{
        _cleanup_close_ int served = -1;
        struct path_watch *watch;

        make_file(at("a.img"));
        served = open(at("a.img"), O_RDWR | O_CLOEXEC); /* its inode number is not given to another */
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(unlink(at("a.img")), 0);
        AWAIT(watch, PATH_GONE);
        CHECK_INT(error_of(watch), ENOENT);
        make_file(at("a.img"));
        AWAIT(watch, PATH_OTHER);
        CHECK_INT(unlink(at("a.img")), 0);
        make_directory(at("a.img"));
        AWAIT(watch, PATH_OTHER);
        CHECK(path_watch_view(watch));
        path_watch_free(watch);
}

static bool is_not_a_store(const void *watch)
{
        return state_of(watch) == PATH_OTHER && !path_watch_view(watch)->is_store;
}

static void test_a_directory_is_not_a_store(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("a.img"), at("b.img"));
        make_directory(at("a.img"));
        CHECK(run_loop_until(is_not_a_store, watch));
        path_watch_free(watch);
}

static void test_link_re_pointed(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        make_file(at("b.img"));
        make_link("a.img", at("link"));
        watch = watch_path(at("link"));
        AWAIT(watch, PATH_SAME);
        make_link(at("b.img"), at("new"));
        move(at("new"), at("link"));
        AWAIT(watch, PATH_OTHER);
        make_link("./a.img", at("new"));
        move(at("new"), at("link"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(unlink(at("link")), 0);
        AWAIT(watch, PATH_GONE);
        path_watch_free(watch);
}

/* The name that changes is found only behind the links. */
static void test_behind_links_and_dots(void)
{
        struct path_watch *watch;

        make_directory(at("one"));
        make_directory(at("one/deep"));
        make_directory(at("two"));
        make_file(at("two/a.img"));
        make_link("../../two", at("one/deep/sideways"));
        make_link(at("one/deep"), at("begin"));
        make_link("begin/sideways/../two/./a.img", at("path"));
        watch = watch_path(at("path"));
        AWAIT(watch, PATH_SAME);
        move(at("two/a.img"), at("two/b.img"));
        AWAIT(watch, PATH_GONE);
        move(at("two/b.img"), at("two/a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("one/deep/sideways"), at("one/deep/other"));
        AWAIT(watch, PATH_GONE);
        move(at("one/deep/other"), at("one/deep/sideways"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
}

static void test_parent_renamed(void)
{
        struct path_watch *watch;

        make_directory(at("one"));
        make_directory(at("one/two"));
        make_file(at("one/two/a.img"));
        watch = watch_path(at("one/two/a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("one"), at("away"));
        AWAIT(watch, PATH_GONE);
        make_directory(at("one"));
        make_directory(at("one/two"));
        make_file(at("one/two/a.img"));
        AWAIT(watch, PATH_OTHER);
        move(at("one/two"), at("one/other"));
        AWAIT(watch, PATH_GONE);
        move(at("away/two"), at("one/two"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
}

static void test_component_replaced_by_a_link(void)
{
        struct path_watch *watch;

        make_directory(at("data"));
        make_file(at("data/a.img"));
        watch = watch_path(at("data/a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("data"), at("moved"));
        AWAIT(watch, PATH_GONE);
        make_link("moved", at("data"));
        AWAIT(watch, PATH_SAME);
        move(at("moved/a.img"), at("moved/b.img"));
        AWAIT(watch, PATH_GONE);
        make_file(at("moved/a.img"));
        AWAIT(watch, PATH_OTHER);
        path_watch_free(watch);
}

static void test_component_replaced_by_a_file(void)
{
        struct path_watch *watch;

        make_directory(at("data"));
        make_file(at("data/a.img"));
        watch = watch_path(at("data/a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("data"), at("moved"));
        AWAIT(watch, PATH_GONE);
        make_file(at("data"));
        CHECK_INT(unlink(at("data")), 0);
        make_file(at("data"));
        move(at("moved"), at("again")); /* nothing to do with it */
        CHECK_INT(unlink(at("data")), 0);
        move(at("again"), at("data"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
}

static void test_dangling_link(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        make_link("a.img", at("link"));
        watch = watch_path(at("link"));
        AWAIT(watch, PATH_SAME);
        move(at("a.img"), at("away"));
        AWAIT(watch, PATH_GONE);
        CHECK_INT(error_of(watch), ENOENT);
        make_file(at("a.img"));
        AWAIT(watch, PATH_OTHER);
        path_watch_free(watch);
}

static void test_loop_of_links(void)
{
        struct path_watch *watch;

        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("a.img"), at("kept"));
        make_link("b.img", at("a.img"));
        make_link("a.img", at("b.img"));
        AWAIT(watch, PATH_GONE);
        make_link("kept", at("new"));
        move(at("new"), at("b.img"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
}

/* 200 directories, some of them behind 30 links. */
static void test_deep_paths(void)
{
        char path[PATH_MAX], away[PATH_MAX];
        struct path_watch *watch;
        size_t used;

        used = (size_t)snprintf(path, sizeof(path), "%s", root_path());
        for (int i = 0; i < 200; i++) {
                used += (size_t)snprintf(path + used, sizeof(path) - used, "/d%d", i);
                make_directory(path);
        }
        make_link(path, at("l0"));
        for (int i = 1; i < 30; i++)
                make_link(at("l%d", i - 1), at("l%d", i));
        make_file(at("l29/a.img"));
        watch = watch_path(at("l29/a.img"));
        AWAIT(watch, PATH_SAME);
        snprintf(path, sizeof(path), "%s", at("l29/a.img"));
        snprintf(away, sizeof(away), "%s", at("l29/b.img"));
        move(path, away);
        AWAIT(watch, PATH_GONE);
        move(away, path);
        AWAIT(watch, PATH_SAME);
        move(at("d0/d1"), at("d0/away"));
        AWAIT(watch, PATH_GONE);
        move(at("d0/away"), at("d0/d1"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
}

static void test_names_that_cannot_be(void)
{
        struct path_store store = {.device = 1, .inode = 1};
        struct path_watch *watch = NULL, *relative = NULL;
        char name[300] = "";

        CHECK_INT(path_watch_new(watches, "a.img", &store, on_changed, NULL, &relative), -EINVAL);
        memset(name, 'x', sizeof(name) - 1);
        watch = watch_store(at("%s", name), &store);
        AWAIT(watch, PATH_GONE);
        CHECK_INT(error_of(watch), ENAMETOOLONG);
        path_watch_free(watch);
}

/* A link of /proc leads elsewhere than it reads, which no directory reports: such a path is polled. */
static void test_link_of_proc(void)
{
        char path[64];
        struct path_watch *watch;
        int fd;

        make_file(at("a.img"));
        make_file(at("b.img"));
        fd = open(at("a.img"), O_RDONLY | O_CLOEXEC);
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
        watch = watch_path(path);
        AWAIT(watch, PATH_SAME);
        CHECK_INT(unlink(at("a.img")), 0);
        close_fd(fd);
        CHECK_INT(open(at("b.img"), O_RDONLY | O_CLOEXEC), fd);
        AWAIT(watch, PATH_OTHER);
        close_fd(fd);
        path_watch_free(watch);
}

/* As on a machine whose watches are used up. */
static void test_directories_that_cannot_be_watched(void)
{
        struct path_watch *watch;

        CHECK_INT(setenv("PATH_WATCH_TEST_DEAF", "1", 1), 0);
        make_file(at("a.img"));
        watch = watch_path(at("a.img"));
        AWAIT(watch, PATH_SAME);
        move(at("a.img"), at("b.img"));
        AWAIT(watch, PATH_GONE);
        move(at("b.img"), at("a.img"));
        AWAIT(watch, PATH_SAME);
        path_watch_free(watch);
        CHECK_INT(unsetenv("PATH_WATCH_TEST_DEAF"), 0);
}

/* A change of one concerns no other one, although all share their directories. */
static void test_many_paths(void)
{
        enum { MANY = 500 };
        struct path_watch *many[MANY];
        unsigned before;

        make_file(at("other"));
        for (int i = 0; i < MANY; i++) {
                make_file(at("%d.img", i));
                many[i] = watch_path(at("%d.img", i));
        }
        for (int i = 0; i < MANY; i++)
                AWAIT(many[i], PATH_SAME);
        before = changes;
        CHECK_INT(before, MANY);
        move(at("other"), at("321.img"));
        AWAIT(many[321], PATH_OTHER);
        CHECK_INT(changes, before + 1);
        CHECK_INT(path_watches_starts(watches), 1);
        for (int i = 0; i < MANY; i++)
                path_watch_free(many[i]);
        CHECK_INT(path_watches_pid(watches), 0);
}

/* A mount namespace of our own, which the process shares. */
static bool may_mount(void)
{
        return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static void test_mounts(void)
{
        struct path_watch *watch;

        if (!may_mount())
                return;

        make_directory(at("one"));
        make_directory(at("one/two"));
        make_file(at("one/two/a.img"));
        make_directory(at("twin"));
        watch = watch_path(at("one/two/a.img"));
        AWAIT(watch, PATH_SAME);
        if (!CHECK_INT(mount("none", at("one"), "tmpfs", 0, NULL), 0))
                return;
        AWAIT(watch, PATH_GONE);
        make_directory(at("one/two"));
        make_file(at("one/two/a.img"));
        AWAIT(watch, PATH_OTHER);
        CHECK_INT(umount2(at("one"), MNT_DETACH), 0);
        AWAIT(watch, PATH_SAME);
        make_file(at("other"));
        CHECK_INT(mount(at("other"), at("one/two/a.img"), NULL, MS_BIND, NULL), 0); /* over the file itself */
        AWAIT(watch, PATH_OTHER);
        CHECK_INT(umount(at("one/two/a.img")), 0);
        AWAIT(watch, PATH_SAME);
        CHECK_INT(mount(at("one"), at("one"), NULL, MS_BIND, NULL), 0); /* the same, another way */
        move(at("one/two/a.img"), at("one/two/b.img"));
        AWAIT(watch, PATH_GONE);
        move(at("one/two/b.img"), at("one/two/a.img"));
        AWAIT(watch, PATH_SAME);
        CHECK_INT(umount2(at("one"), MNT_DETACH), 0);
        path_watch_free(watch);
}

static bool is_low(const void *watch)
{
        return path_watch_view(watch) && path_watch_view(watch)->room.low;
}

static bool is_not_low(const void *watch)
{
        return !is_low(watch);
}

/* The watcher measures it without a change of any name: "full" is beside the path, and not on it. */
static void test_room_below_a_sparse_file(void)
{
        struct path_watch *sparse, *full;
        uint64_t began;

        make_file(at("a.img"));
        CHECK_INT(truncate(at("a.img"), 16 << 20), 0);
        make_file(at("empty.img"));
        sparse = watch_path(at("a.img"));
        full = watch_path(at("empty.img"));
        AWAIT(sparse, PATH_SAME);
        CHECK(!path_watch_view(sparse)->room.low);
        began = clock_usec(CLOCK_REALTIME);
        make_file(at("full"));
        if (CHECK(run_loop_until(is_low, sparse))) {
                CHECK_INT(path_watch_view(sparse)->room.missing, 16 << 20);
                CHECK_INT(path_watch_view(sparse)->room.available, 4096);
                CHECK(path_watch_view(sparse)->room.seen_at >= began);
                CHECK_INT(path_watch_view(sparse)->state, PATH_SAME);
        }
        CHECK(!is_low(full)); /* it needs nothing */
        CHECK_INT(unlink(at("full")), 0);
        CHECK(run_loop_until(is_not_low, sparse));
        path_watch_free(sparse);
        path_watch_free(full);
}

int main(int argc, char *argv[])
{
        static const struct path_test tests[] = {
                {.run = test_replaced_by_rename},
                {.run = test_deleted_and_made_again},
                {.run = test_a_directory_is_not_a_store},
                {.run = test_link_re_pointed},
                {.run = test_behind_links_and_dots},
                {.run = test_parent_renamed},
                {.run = test_component_replaced_by_a_link},
                {.run = test_component_replaced_by_a_file},
                {.run = test_dangling_link},
                {.run = test_loop_of_links},
                {.run = test_deep_paths},
                {.run = test_names_that_cannot_be},
                {.run = test_link_of_proc},
                {.run = test_directories_that_cannot_be_watched},
                {.run = test_many_paths},
                {.run = test_mounts},
                {.run = test_room_below_a_sparse_file},
        };

        return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
