/* SPDX-License-Identifier: MIT */
/* The layers of an overlay, as its mount names them, and lines of /proc/self/mountinfo. */
#include "targets/loop/mount_table.h"
#include "ublkd/values/path_text.h"
#include "targets/loop/overlay_layer.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

struct found {
        char text[256];
        const char *last; /* where to end; NULL: nowhere */
};

static int note(const char *layer, void *userdata)
{
        struct found *found = userdata;

        strcat(found->text, "<");
        strcat(found->text, layer);
        strcat(found->text, ">");
        return found->last && strcmp(layer, found->last) == 0 ? 7 : -ENOENT;
}

static void check_layers(const char *options, const char *last, int result, const char *wanted)
{
        struct found found = {.last = last};
        char copy[256];

        snprintf(copy, sizeof(copy), "%s", options);
        CHECK_INT(overlay_layers_each(copy, note, &found), result);
        CHECK_STR(found.text, wanted);
}

static void test_layers(void)
{
        check_layers("rw,lowerdir=/a:/b,upperdir=/u,workdir=/w", NULL, -ENOENT, "</u></a></b>");
        check_layers("rw,lowerdir=/a:/b,upperdir=/u,workdir=/w", "/a", 7, "</u></a>");
        check_layers("ro,lowerdir=/a::/b", NULL, -ENOENT, "</a></b>"); /* the data-only layers after "::" */
        check_layers(
                "rw,lowerdir+=/a,lowerdir+=/b:c,datadir+=/d,upperdir=/u", NULL, -ENOENT, "</u></a></b:c>");
        check_layers("rw,lowerdir=/a\\134:b:/c\\040d,upperdir=/u\\054v", NULL, -ENOENT, "</u,v></a:b></c d>");
        check_layers("rw,relatime", NULL, -ENOENT, "");
        check_layers("", NULL, -ENOENT, "");
        check_layers("upperdir=,lowerdir=", NULL, -ENOENT, "");
        check_layers("upperdirs=/x,xupperdir=/y,upperdir", NULL, -ENOENT, "");
        check_layers("lowerdir=/a\\134", NULL, -ENOENT, "</a\\>");
}

static void test_unescape(void)
{
        char text[] = "\\040\\134\\999\\04\\777x\\";

        path_unescape(text);
        CHECK_STR(text, " \\\\999\\04\\777x\\");
}

static int parse(const char *line, struct mount_row *ret)
{
        char copy[256];

        snprintf(copy, sizeof(copy), "%s", line);
        return mount_row_parse(copy, ret);
}

static void test_rows(void)
{
        static const char *const nonsense[] = {"", "36", "36 35 98:0 /root /point rw",
                "36 35 98:0 / / rw - ext4", "36 35 98:0 / / rw - ext4 /dev/x",
                "x 35 98:0 / / rw - ext4 /dev/x rw", "36 35 98 / / rw - ext4 /dev/x rw",
                "36 35  / / rw - ext4 /dev/x rw"};
        _cleanup_mount_row_ struct mount_row row = {};

        CHECK_INT(
                parse("36 35 98:1 /ro\\040ot /po\\134int rw,noatime master:1 shared:2 - ext4 /dev/x rw,a=b c",
                        &row),
                0);
        CHECK_INT(row.id, 36);
        CHECK(row.device == makedev(98, 1));
        CHECK_STR(row.root, "/ro ot");
        CHECK_STR(row.point, "/po\\int");
        CHECK_STR(row.options, "rw,a=b c");
        mount_row_clear(&row);
        CHECK_INT(parse("36 35 98:1 / / rw - tmpfs tmpfs rw,x=\\040", &row), 0);
        CHECK_STR(row.options, "rw,x=\\040"); /* for who takes it apart */
        for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
                struct mount_row none = {};

                CHECK_INT(parse(nonsense[i], &none), -EBADMSG);
        }
}

int main(void)
{
        test_layers();
        test_unescape();
        test_rows();
        return check_report();
}
