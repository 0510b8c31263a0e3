/* SPDX-License-Identifier: MIT */
/* Tests of names of devices, derived from names of files. */
#include "tests/unit/check.h"
#include "ublkctl/spec/device_name.h"
#include "ublkd/base/cleanup.h"

static bool is_below(void *userdata, const char *name)
{
        unsigned *calls = userdata;

        (void)name;
        return (*calls)++ < 3;
}

int main(void)
{
        static const struct {
                const char *path, *name;
        } samples[] = {
                {"/srv/data.img",                             "data"                     },
                {"data.img",                                  "data"                     },
                {"/srv/My File.qcow2",                        "my-file"                  },
                {"/srv/.hidden",                              "hidden"                   },
                {"/srv/a.b.img",                              "a.b"                      },
                {"/srv/--x--.img",                            "x"                        },
                {"/srv/a   b",                                "a-b"                      },
                {"/srv/.img",                                 "img"                      },
                {"/srv/\xc3\xa4\xc3\xb6",                     "disk"                     },
                {"/dev/disk/by-id/X_1",                       "x_1"                      },
                {"/",                                         "disk"                     },
                {"/dev/mapper/vg-data",                       "vg-data"                  },
                {"/dev/disk/by-id/nvme-eui.0025385b71b0a1c2", "nvme-eui.0025385b71b0a1c2"},
                {"/dev/ublkb0",                               "on-ublkb0"                },
                {"/dev/ublkb12p1",                            "on-ublkb12p1"             },
                {"/srv/ublkb0.img",                           "on-ublkb0"                },
                {"/srv/ublkb.img",                            "ublkb"                    },
                {"/dev/ublk/by-name/data",                    "on-data"                  },
        };
        static const char long_path[] =
                "/srv/0123456789012345678901234567890123456789012345678901234567890123456789.img";
        char name[DEVICE_NAME_SIZE];
        unsigned calls = 0;

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                device_name(samples[i].path, name);
                CHECK_STR(name, samples[i].name);
        }
        device_name(long_path, name);
        CHECK_INT(strlen(name), 52);
        device_name_make_unique(name, is_below, &calls);
        CHECK_INT(strlen(name), 54);
        CHECK_STR(name + 52, "-4");
        return check_report();
}
