/* SPDX-License-Identifier: MIT */
/* mount_line: a line of mountinfo, taken apart in place. */
#include "ublkd/kernel/mount_line.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>

static char copy[256];

static int parse(const char *line, struct mount_line *ret)
{
        snprintf(copy, sizeof(copy), "%s", line);
        return mount_line_parse(copy, ret);
}

static void test_a_line(void)
{
        struct mount_line line;

        CHECK_INT(parse("36 35 98:1 /ro\\040ot /po\\134int rw,noatime master:1 shared:2 - ext4 /dev/my\\040x "
                        "rw,a=b c\\040",
                          &line),
                0);
        CHECK_INT(line.id, 36);
        CHECK_INT(line.parent, 35);
        CHECK_STR(line.device, "98:1");
        CHECK_STR(line.root, "/ro ot");
        CHECK_STR(line.point, "/po\\int");
        CHECK_STR(line.type, "ext4");
        CHECK_STR(line.source, "/dev/my x");
        CHECK_STR(line.options, "rw,a=b c\\040"); /* each file system has its own escapes */
}

static void test_shared(void)
{
        static const struct {
                const char *words;
                bool shared;
        } cases[] = {
                {"shared:2 ",                  true },
                {"master:1 shared:2 ",         true },
                {"shared:2 propagate_from:3 ", true },
                {"master:1 ",                  false},
                {"unbindable ",                false},
                {"",                           false}
        };
        struct mount_line line;
        char text[128];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                snprintf(text, sizeof(text), "36 35 98:1 / /shared:1 rw,noatime %s- ext4 shared:1 rw",
                        cases[i].words);
                CHECK_INT(parse(text, &line), 0);
                CHECK_INT(line.shared, cases[i].shared);
                CHECK_STR(line.flags, "rw,noatime");
        }
}

static void test_without_optional_words(void)
{
        struct mount_line line;

        CHECK_INT(parse("1 0 0:2 / / rw - tmpfs none rw", &line), 0);
        CHECK_STR(line.point, "/");
        CHECK_STR(line.type, "tmpfs");
        CHECK_STR(line.source, "none");
        CHECK_STR(line.options, "rw");
}

/* mount("", "/point", "tmpfs", …): the kernel writes two spaces. */
static void test_an_empty_source(void)
{
        struct mount_line line;

        CHECK_INT(parse("40 35 0:52 / /point rw shared:9 - tmpfs  rw,size=1k", &line), 0);
        CHECK_STR(line.source, "");
        CHECK_STR(line.options, "rw,size=1k");
}

static void test_nonsense(void)
{
        static const char *const lines[] = {"", "36", " - ", "36 35 98:0 /root /point rw",
                "36 35 98:0 / - ext4 /dev/x rw", "36 35 98:0 / / rw - ext4",
                "36 35 98:0 / / rw - ext4 /dev/x", "x 35 98:0 / / rw - ext4 /dev/x rw",
                "36 x 98:0 / / rw - ext4 /dev/x rw"};

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct mount_line line = {.id = 7};

                CHECK_INT(parse(lines[i], &line), -EBADMSG);
                CHECK_INT(line.id, 7);
        }
}

int main(void)
{
        test_a_line();
        test_shared();
        test_without_optional_words();
        test_an_empty_source();
        test_nonsense();
        return check_report();
}
