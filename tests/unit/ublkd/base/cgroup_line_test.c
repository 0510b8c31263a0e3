/* SPDX-License-Identifier: MIT */
/* The line of /proc/PID/cgroup with the group in the hierarchy of the second version. */
#include "ublkd/base/cgroup_line.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <string.h>

int main(void)
{
        static const struct {
                const char *text;
                int r;
                const char *path; /* NULL: none is returned */
        } samples[] = {
                {"0::/\n",                                0,             "/"                      },
                {"0::/system.slice/a.service\n",          0,             "/system.slice/a.service"},
                {"9:name=systemd:/a\n8:pids:/b\n0::/c\n", 0,             "/c"                     },
                {"0::/c\n9:name=systemd:/a\n",            0,             "/c"                     },
                {"0::/a (deleted)\n",                     0,             "/a (deleted)"           },
                {"",                                      -ENODATA,      NULL                     },
                {"9:name=systemd:/a\n",                   -ENODATA,      NULL                     },
                {"9:name=systemd:/0::/a\n",               -ENODATA,      NULL                     },
                {"10::/a\n",                              -ENODATA,      NULL                     },
                {"0::a\n",                                -ENODATA,      NULL                     },
                {"0::",                                   -ENODATA,      NULL                     },
                {"0::/cut-o",                             -ENAMETOOLONG, NULL                     },
                {"9:pids:/a\n0::/",                       -ENAMETOOLONG, NULL                     },
                {"0::/../other\n",                        -EXDEV,        "/../other"              },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                char text[CGROUP_TEXT_SIZE], *path = NULL;

                strcpy(text, samples[i].text);
                CHECK_INT(cgroup_line_find(text, &path), samples[i].r);
                CHECK(!path == !samples[i].path);
                if (path && samples[i].path)
                        CHECK_STR(path, samples[i].path);
        }
        return check_report();
}
