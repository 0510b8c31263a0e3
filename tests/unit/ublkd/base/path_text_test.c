/* SPDX-License-Identifier: MIT */
/* Absolute paths made of text alone. */
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/path_text.h"

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
        return check_report();
}
