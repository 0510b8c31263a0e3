/* SPDX-License-Identifier: MIT */
/* policy_files: which files are read, in which order, and which are refused. */
#include "ublkd/policy/policy_files.h"

#include "tests/unit/ublkd/policy/policy_world.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static void use(struct world *world, int result, size_t count)
{
        _cleanup_policy_files_ struct policy_files files = {};

        problem_list_clear(&world->problems);
        CHECK_INT(policy_files_read(world->directory, &files, &world->problems), result);
        CHECK_INT(files.count, count);
        for (size_t i = 1; i < files.count; i++)
                CHECK(strcmp(files.items[i - 1].path, files.items[i].path) < 0);
}

static const char *path_of(const struct world *world, const char *name)
{
        static char path[256];

        snprintf(path, sizeof(path), "%s/%s", world->directory, name);
        return path;
}

static void check_refused(struct world *world, int error)
{
        use(world, -EINVAL, 0);
        if (world->problems.count > 0)
                CHECK_INT(world->problems.items[0].error, error);
        check_one_problem(&world->problems, "PolicyInvalid", "");
}

static void test_which_files(struct world *world)
{
        use(world, 0, 0); /* there is no directory */
        world_write(world, "b.json", "1");
        world_write(world, "a.json", "1");
        world_write(world, "10.json", "1");
        world_write(world, ".hidden.json", "1");
        world_write(world, "c.json~", "1");
        world_write(world, "json", "1");
        world_write(world, ".json", "1");
        use(world, 0, 3);
}

static void test_writable_by_others(struct world *world)
{
        static const mode_t modes[] = {0664, 0646, 0666};

        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
                CHECK_INT(chmod(path_of(world, "a.json"), modes[i]), 0);
                check_refused(world, EPERM);
        }
        CHECK_INT(chmod(path_of(world, "a.json"), 0600), 0);
        CHECK_INT(chmod(world->directory, 0775), 0);
        check_refused(world, EPERM);
        CHECK_INT(chmod(world->directory, 0755), 0);
        use(world, 0, 3);
}

static void test_of_another_user(struct world *world)
{
        if (geteuid() != 0)
                return;
        CHECK_INT(chown(path_of(world, "a.json"), 4242, (gid_t)-1), 0);
        check_refused(world, EPERM);
        CHECK_INT(chown(path_of(world, "a.json"), 0, (gid_t)-1), 0);
        CHECK_INT(chown(world->directory, 4242, (gid_t)-1), 0);
        check_refused(world, EPERM);
        CHECK_INT(chown(world->directory, 0, (gid_t)-1), 0);
}

static void test_not_a_file(struct world *world)
{
        CHECK_INT(mkfifo(path_of(world, "fifo.json"), 0600), 0);
        check_refused(world, EPERM);
        CHECK_INT(remove(path_of(world, "fifo.json")), 0);
        CHECK_INT(symlink("/nonexistent", path_of(world, "link.json")), 0);
        check_refused(world, ENOENT);
        CHECK_INT(remove(path_of(world, "link.json")), 0);
        CHECK_INT(symlink("a.json", path_of(world, "link.json")), 0);
        use(world, 0, 4);
        CHECK_INT(remove(path_of(world, "link.json")), 0);
}

/* All faults are reported. */
static void test_too_large(struct world *world)
{
        CHECK_INT(truncate(path_of(world, "a.json"), POLICY_FILE_SIZE_MAX + 1), 0);
        check_refused(world, EFBIG);
        CHECK_INT(chmod(path_of(world, "b.json"), 0666), 0);
        use(world, -EINVAL, 0);
        CHECK_INT(world->problems.count, 2);
}

static void test_no_directory(struct world *world)
{
        snprintf(world->directory, sizeof(world->directory), "%s", world->passwd);
        check_refused(world, ENOTDIR);
}

int main(void)
{
        struct world world;

        world_open(&world);
        test_which_files(&world);
        test_writable_by_others(&world);
        test_of_another_user(&world);
        test_not_a_file(&world);
        test_too_large(&world);
        test_no_directory(&world);
        world_close(&world);
        return check_report();
}
