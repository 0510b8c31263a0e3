/* SPDX-License-Identifier: MIT */
/* Which files are read, and in which order. */
#include "ublkd/config/config_paths.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/config/config_root.h"

#include <fcntl.h>
#include <sys/stat.h>

/* The paths below the root, with spaces between. */
static const char *list(void)
{
        static char text[4096];
        struct config_paths paths;

        text[0] = '\0';
        CHECK_INT(config_paths_list(config_root(), &paths), 0);
        for (size_t i = 0; i < paths.count; i++)
                strcat(strcat(text, i ? " " : ""), paths.items[i] + strlen(config_root()));
        config_paths_clear(&paths);
        return text;
}

static void test_the_first_main_file_counts(void)
{
        config_root_make();
        CHECK_STR(list(), "");
        config_root_write("usr/lib/ublkd/ublkd.conf", "");
        CHECK_STR(list(), "/usr/lib/ublkd/ublkd.conf");
        config_root_write("usr/local/lib/ublkd/ublkd.conf", "");
        CHECK_STR(list(), "/usr/local/lib/ublkd/ublkd.conf");
        config_root_write("run/ublkd/ublkd.conf", "");
        CHECK_STR(list(), "/run/ublkd/ublkd.conf");
        config_root_link("etc/ublkd/ublkd.conf", "/nowhere");
        CHECK_STR(list(), "/etc/ublkd/ublkd.conf");
        config_root_remove();
}

static void test_drop_ins_are_sorted_by_name(void)
{
        config_root_make();
        config_root_write("etc/ublkd/ublkd.conf.d/30-c.conf", "");
        config_root_write("run/ublkd/ublkd.conf.d/20-b.conf", "");
        config_root_write("usr/lib/ublkd/ublkd.conf.d/10-a.conf", "");
        config_root_write("usr/lib/ublkd/ublkd.conf.d/40-d.conf", "");
        config_root_write("usr/lib/ublkd/ublkd.conf", "");
        CHECK_STR(list(), "/usr/lib/ublkd/ublkd.conf /usr/lib/ublkd/ublkd.conf.d/10-a.conf "
                          "/run/ublkd/ublkd.conf.d/20-b.conf /etc/ublkd/ublkd.conf.d/30-c.conf "
                          "/usr/lib/ublkd/ublkd.conf.d/40-d.conf");
        config_root_remove();
}

static void test_the_same_name_counts_once(void)
{
        config_root_make();
        config_root_write("usr/lib/ublkd/ublkd.conf.d/a.conf", "");
        config_root_write("usr/local/lib/ublkd/ublkd.conf.d/a.conf", "");
        CHECK_STR(list(), "/usr/local/lib/ublkd/ublkd.conf.d/a.conf");
        config_root_link("run/ublkd/ublkd.conf.d/a.conf", "/dev/null");
        CHECK_STR(list(), "/run/ublkd/ublkd.conf.d/a.conf");
        config_root_write("etc/ublkd/ublkd.conf.d/a.conf", "");
        CHECK_STR(list(), "/etc/ublkd/ublkd.conf.d/a.conf");
        config_root_remove();
}

static void test_other_names_are_not_read(void)
{
        config_root_make();
        config_root_write("etc/ublkd/ublkd.conf.d/.conf", "");
        config_root_write("etc/ublkd/ublkd.conf.d/.a.conf", "");
        config_root_write("etc/ublkd/ublkd.conf.d/a.conf~", "");
        config_root_write("etc/ublkd/ublkd.conf.d/a.conf.dpkg-new", "");
        config_root_write("etc/ublkd/ublkd.conf.d/aconf", "");
        CHECK_STR(list(), "");
        config_root_remove();
}

static void test_files_in_place_of_directories(void)
{
        config_root_make();
        config_root_write("etc/ublkd", "a file");
        config_root_write("run/ublkd/ublkd.conf.d", "a file");
        CHECK_STR(list(), "");
        config_root_remove();
}

static void check_failure(const char *path)
{
        struct config_paths paths;

        CHECK_INT(config_paths_list(config_root(), &paths), -ELOOP);
        CHECK_STR(paths.failed, config_root_path(path));
        CHECK_INT(paths.error, -ELOOP);
        config_paths_clear(&paths);
}

/* As root, permissions do not count; a loop of links fails for every user. */
static void test_a_directory_that_cannot_be_read(void)
{
        config_root_make();
        config_root_link("etc/ublkd/ublkd.conf.d", "ublkd.conf.d");
        check_failure("etc/ublkd/ublkd.conf.d");
        config_root_link("run/ublkd", "ublkd");
        check_failure("run/ublkd/ublkd.conf");
        config_root_remove();
}

static int try_read(const char *name, size_t *ret_size)
{
        _cleanup_free_ char *text = NULL;
        int r = config_paths_read(config_root_path(name), &text, ret_size);

        if (r >= 0)
                CHECK_INT(text[*ret_size], '\0');
        return r;
}

static void test_reading(void)
{
        static char large[CONFIG_FILE_MAX + 1];
        size_t size = 0;

        config_root_make();
        config_root_write_bytes("nul", "a\0b", 3);
        CHECK_INT(try_read("nul", &size), 0);
        CHECK_INT(size, 3);
        config_root_write("empty", "");
        CHECK_INT(try_read("empty", &size), 0);
        CHECK_INT(size, 0);
        config_root_link("masked", "/dev/null");
        size = 1;
        CHECK_INT(try_read("masked", &size), 0);
        CHECK_INT(size, 0);
        config_root_write_bytes("large", large, sizeof(large) - 1);
        CHECK_INT(try_read("large", &size), 0);
        CHECK_INT(size, CONFIG_FILE_MAX);
        config_root_write_bytes("larger", large, sizeof(large));
        CHECK_INT(try_read("larger", &size), -EFBIG);
        CHECK_INT(try_read("missing", &size), -ENOENT);
        config_root_link("zero", "/dev/zero");
        CHECK_INT(try_read("zero", &size), -EBADMSG);
        CHECK_INT(mkfifo(config_root_path("fifo"), 0600), 0);
        CHECK_INT(try_read("fifo", &size), -EBADMSG); /* and does not wait for a writer */
        CHECK_INT(mkdir(config_root_path("directory"), 0700), 0);
        CHECK_INT(try_read("directory", &size), -EISDIR);
        config_root_remove();
}

int main(void)
{
        test_the_first_main_file_counts();
        test_drop_ins_are_sorted_by_name();
        test_the_same_name_counts_once();
        test_other_names_are_not_read();
        test_files_in_place_of_directories();
        test_a_directory_that_cannot_be_read();
        test_reading();
        return check_report();
}
