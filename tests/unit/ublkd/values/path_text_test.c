/* SPDX-License-Identifier: MIT */
/* Absolute paths made of text alone. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/values/path_text.h"

static void test_escapes(void)
{
        static const char *const samples[][2] = {
                {"/plain",         "/plain"   },
                {"/a\\040b\\011c", "/a b\tc"  },
                {"\\134\\012",     "\\\n"     },
                {"/cut\\04",       "/cut\\04" },
                {"/not\\048",      "/not\\048"},
                {"",               ""         },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                char text[32];

                strcpy(text, samples[i][0]);
                path_unescape(text);
                CHECK_STR(text, samples[i][1]);
        }
}

static void test_what_follows_a_directory(void)
{
        CHECK_STR(path_rest("/srv/a", "/srv"), "/a");
        CHECK_STR(path_rest("/srv", "/srv"), "");
        CHECK_STR(path_rest("/srv/a", "/"), "/srv/a");
        CHECK_STR(path_rest("/", "/"), "/");
        CHECK(!path_rest("/srv-evil/a", "/srv"));
        CHECK(!path_rest("/x/srv", "/srv"));
        CHECK(!path_rest("/srv", "/srv/a"));
        CHECK(!path_rest("/", "/srv"));
}

int main(void)
{
        static const struct {
                const char *directory, *path, *absolute;
        } samples[] = {
                {"/srv",  "data.img",            "/srv/data.img"      },
                {"/srv",  "/dev/mapper/vg-data", "/dev/mapper/vg-data"},
                {"/",     "data.img",            "/data.img"          },
                {"/srv/", "./a//b/",             "/srv/a/b"           },
                {"/srv",  "../x/./y",            "/x/y"               },
                {"/srv",  "a/../b",              "/srv/b"             },
                {"/srv",  "../../../x",          "/x"                 },
                {"/srv",  "..",                  "/"                  },
                {"/srv",  ".",                   "/srv"               },
                {"/srv",  "",                    "/srv"               },
                {"/",     "/",                   "/"                  },
                {"/x",    "//dev///sdb",         "/dev/sdb"           },
                {"/x",    "...",                 "/x/..."             },
                {"/x",    ".hidden/..y",         "/x/.hidden/..y"     },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                _cleanup_free_ char *absolute = NULL;

                CHECK_INT(path_make_absolute(samples[i].directory, samples[i].path, &absolute), 0);
                CHECK_STR(absolute, samples[i].absolute);
        }
        test_escapes();
        test_what_follows_a_directory();
        return check_report();
}
