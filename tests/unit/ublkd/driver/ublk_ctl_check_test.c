/* SPDX-License-Identifier: MIT */
/* The sentences about a machine on which the control plane cannot be had. */
#include "ublkd/driver/ublk_ctl_check.h"

#include "tests/unit/check.h"

#include <sys/stat.h>

static void test_known_bad(void)
{
        static const char *const bad[] = {"6.18.4", "6.18.5", "6.18.4-arch1-1", "6.18.5-zabbly+",
                "6.18.4+deb14-amd64", "6.17.0-1015-azure", "6.17.0-1018-azure", "6.17.0-1017-aws"};
        static const char *const good[] = {"6.18.3", "6.18.6", "6.18.44-x", "6.18.40", "6.18.50-1", "6.18",
                "6.18.0", "6.17.0", "6.17.0-14-generic", "6.17.0-1019-azure", "6.17.0-1014-azure",
                "6.17.0-1016-gcp", "6.17.0-1015-azure-fde", "7.2.4", "16.18.4", "6.1.0-18-amd64", ""};

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (!CHECK(ctl_kernel_is_known_bad(bad[i])))
                        fprintf(stderr, "  release: %s\n", bad[i]);
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                if (!CHECK(!ctl_kernel_is_known_bad(good[i])))
                        fprintf(stderr, "  release: %s\n", good[i]);
}

static void write_file(const char *root, const char *path, const char *text)
{
        char full[256];
        FILE *file;

        snprintf(full, sizeof(full), "%s%s", root, path);
        for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                (void)mkdir(full, 0755);
                *slash = '/';
        }
        file = fopen(full, "w");
        if (!CHECK(file))
                return;
        fputs(text, file);
        fclose(file);
}

static void test_find_module(void)
{
        char root[] = "/tmp/ublk_ctl_check_test.XXXXXX", command[64];

        if (!CHECK(mkdtemp(root)))
                return;
        CHECK_INT(ctl_find_module(root, "1.0"), CTL_MODULE_UNKNOWN);
        write_file(root, "/lib/modules/1.0/modules.dep", "kernel/drivers/block/loop.ko:\n");
        CHECK_INT(ctl_find_module(root, "1.0"), CTL_MODULE_ABSENT);
        CHECK_INT(ctl_find_module(root, "1.1"), CTL_MODULE_UNKNOWN);
        write_file(root, "/lib/modules/1.0/modules.dep",
                "kernel/drivers/x.ko: kernel/drivers/block/ublk_drv.ko\n");
        CHECK_INT(ctl_find_module(root, "1.0"), CTL_MODULE_ABSENT);
        write_file(root, "/lib/modules/1.0/modules.dep",
                "kernel/drivers/block/loop.ko:\nkernel/drivers/block/ublk_drv.ko.xz: kernel/io.ko\n");
        CHECK_INT(ctl_find_module(root, "1.0"), CTL_MODULE_PRESENT);
        write_file(root, "/lib/modules/1.0/modules.builtin", "kernel/drivers/block/ublk_drv.ko\n");
        CHECK_INT(ctl_find_module(root, "1.0"), CTL_MODULE_LOADED);
        write_file(root, "/sys/module/ublk_drv/refcnt", "0\n");
        CHECK_INT(ctl_find_module(root, "1.1"), CTL_MODULE_LOADED);
        snprintf(command, sizeof(command), "rm -r %s", root);
        CHECK_INT(system(command), 0);
}

/* `r` and `problems` come from one explanation; `problems` is emptied. */
static void check_problem(
        int r, struct problem_list *problems, int error, const char *reason, const char *word)
{
        CHECK_INT(r, -error);
        if (CHECK_INT(problems->count, 1)) {
                CHECK_INT(problems->items[0].error, error);
                CHECK_STR(problems->items[0].reason, reason);
                if (!CHECK(strstr(problems->items[0].detail, word)))
                        fprintf(stderr, "  detail: %s\n", problems->items[0].detail);
        }
        problem_list_clear(problems);
}

static void test_sentences(void)
{
        _cleanup_problems_ struct problem_list list = {};

        check_problem(ctl_explain_open(ENOENT, CTL_MODULE_PRESENT, "6.12", &list), &list, ENOENT,
                "DriverNotLoaded", "modprobe ublk_drv");
        check_problem(ctl_explain_open(ENOENT, CTL_MODULE_ABSENT, "6.1", &list), &list, ENOENT,
                "DriverMissing", "CONFIG_BLK_DEV_UBLK");
        check_problem(ctl_explain_open(ENXIO, CTL_MODULE_UNKNOWN, "6.1", &list), &list, ENOENT,
                "DriverMissing", "6.1");
        check_problem(ctl_explain_open(ENOENT, CTL_MODULE_LOADED, "6.12", &list), &list, ENOENT,
                "DriverNodeMissing", "devtmpfs");
        check_problem(ctl_explain_open(EACCES, CTL_MODULE_LOADED, "6.12", &list), &list, EACCES,
                "NotPermitted", "root");
        check_problem(ctl_explain_open(EIO, CTL_MODULE_LOADED, "6.12", &list), &list, EIO, "ControlUnusable",
                "opened");
        check_problem(ctl_explain_ring(EPERM, 2, &list), &list, EPERM, "IoUringDisabled", "sysctl");
        check_problem(ctl_explain_ring(EPERM, 0, &list), &list, EPERM, "IoUringNotPermitted", "filter");
        check_problem(ctl_explain_ring(EPERM, -1, &list), &list, EPERM, "IoUringNotPermitted", "filter");
        check_problem(ctl_explain_ring(ENOSYS, -1, &list), &list, ENOSYS, "IoUringMissing", "io_uring");
        check_problem(ctl_explain_ring(EINVAL, -1, &list), &list, EINVAL, "KernelTooOld", "6.5");
        check_problem(ctl_explain_ring(ENOMEM, -1, &list), &list, ENOMEM, "IoUringUnusable", "memory");
        check_problem(
                ctl_explain_features(EOPNOTSUPP, "6.4.1", &list), &list, EOPNOTSUPP, "KernelTooOld", "6.4.1");
        check_problem(ctl_explain_features(EPERM, "6.12", &list), &list, EPERM, "NotPermitted", "root");
        check_problem(ctl_explain_known_bad("6.18.4", &list), &list, EOPNOTSUPP, "KernelKnownBad", "6.18.4");
        check_problem(
                ctl_explain_helper(ETIMEDOUT, "/x", &list), &list, ETIMEDOUT, "ControlHangs", "kernel's log");
        check_problem(ctl_explain_helper(ENOENT, "/x", &list), &list, ENOENT, "HelperFailed", "/x");
}

int main(void)
{
        test_known_bad();
        test_find_module();
        test_sentences();
        CHECK(ctl_io_uring_disabled() >= -1);
        return check_report();
}
