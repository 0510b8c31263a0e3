/* SPDX-License-Identifier: MIT */
/* Which name of a disk is advised, and for which. Character devices that every machine has stand for disks.
 */
#include "targets/loop/stable_name.h"
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <unistd.h>

static void make_link(const char *dev, const char *name, const char *target)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", dev, name);
        CHECK_INT(symlink(target, path), 0);
}

static void make_folder(const char *dev, const char *name)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", dev, name);
        CHECK_INT(mkdir(path, 0700), 0);
}

static void check_found(const char *dev, const char *device, const char *name)
{
        _cleanup_free_ char *found = NULL;
        char path[512];
        struct stat info;

        snprintf(path, sizeof(path), "%s/%s", dev, name ? name : "");
        CHECK_INT(stat(device, &info), 0);
        CHECK_INT(stable_name_find(dev, &info, &found), 0);
        CHECK_STR(found, name ? path : NULL);
}

/* Each link that is added is better than those before it. */
static void test_what_stands_for_the_disk_comes_first(const char *dev)
{
        static const char *const names[] = {"md/home", "mapper/vg-data", "disk/by-partuuid/0c5a",
                "disk/by-id/ata-Model_Serial", "disk/by-id/md-uuid-1", "disk/by-id/dm-uuid-LVM-1",
                "disk/by-id/nvme-uuid.1", "disk/by-id/nvme-eui.2", "disk/by-id/wwn-0x5000-part1",
                "disk/by-id/wwn-0x5000"};

        check_found(dev, "/dev/null", NULL);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                make_link(dev, names[i], "/dev/null");
                check_found(dev, "/dev/null", names[i]);
        }
        check_found(dev, "/dev/zero", NULL);
}

static void test_content_of_the_disk_is_not_a_name_of_it(const char *dev)
{
        static const char *const names[] = {"disk/by-uuid/1234", "disk/by-label/root", "disk/by-path/pci-0",
                "disk/by-id/lvm-pv-uuid-1", "disk/by-id/dm-name-vg-data", "disk/by-id/md-name-x",
                "disk/by-id/.hidden"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                make_link(dev, names[i], "/dev/zero");
        make_link(dev, "disk/by-id/wwn-broken", "/dev/there-is-none");
        check_found(dev, "/dev/zero", NULL);
}

static void test_for_which_paths_a_name_is_wanted(const char *dev)
{
        char path[512];
        static const struct {
                const char *link, *target;
                bool wanted;
        } samples[] = {
                {"to-kernel-name",  "/dev/sdb",                 true },
                {"to-that-link",    "to-kernel-name",           true },
                {"to-by-id",        "/dev/disk/by-id/wwn-1",    false},
                {"to-mapper",       "/dev/mapper/vg-data",      false},
                {"to-ours",         "/dev/ublkb0",              false},
                {"circle",          "circle",                   false},
                {"by-another-path", "/proc/self/root/dev/dm-0", true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
                make_link(dev, samples[i].link, samples[i].target);
                snprintf(path, sizeof(path), "%s/%s", dev, samples[i].link);
                if (!CHECK_INT(stable_name_is_wanted(path), samples[i].wanted))
                        fprintf(stderr, "for %s\n", samples[i].link);
        }
        CHECK(stable_name_is_wanted("/dev/dm-0"));
        CHECK(stable_name_is_wanted("/dev/../dev/loop0"));
        CHECK(!stable_name_is_wanted("/dev/null"));
        snprintf(path, sizeof(path), "%s/mapper", dev); /* not a link: here a node would be */
        CHECK(stable_name_is_wanted(path));
}

int main(void)
{
        static const char *const folders[] = {"disk", "disk/by-id", "disk/by-partuuid", "disk/by-uuid",
                "disk/by-label", "disk/by-path", "mapper", "md"};
        char dev[] = "/tmp/stable-name-XXXXXX", command[64];

        if (!CHECK(mkdtemp(dev)))
                return check_report();
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                make_folder(dev, folders[i]);
        test_what_stands_for_the_disk_comes_first(dev);
        test_content_of_the_disk_is_not_a_name_of_it(dev);
        test_for_which_paths_a_name_is_wanted(dev);
        snprintf(command, sizeof(command), "rm -r %s", dev);
        CHECK_INT(system(command), 0);
        return check_report();
}
