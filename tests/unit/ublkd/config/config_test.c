/* SPDX-License-Identifier: MIT */
/* Files and command line together. */
#include "ublkd/config/config.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/config/config_root.h"

#include <syslog.h>

static struct config *load(const struct config_option *options, size_t count)
{
        struct config *config = NULL;

        CHECK_INT(config_load(
                          &(const struct config_request){
                                  .root = config_root(), .options = options, .option_count = count},
                          &config),
                0);
        return config;
}

static void test_defaults(void)
{
        struct config *config;

        config_root_make();
        config = load(NULL, 0);
        CHECK_INT(config->problems.count, 0);
        CHECK_INT(config->values.listen_count, 0);
        CHECK_STR(config->values.state_directory, "/var/lib/ublkd");
        CHECK_STR(config->values.runtime_directory, "/run/ublkd");
        CHECK(!config->values.worker);
        CHECK_INT(config->values.ignored_features, 0);
        CHECK(!config->values.refuse_unstable_paths && !config->values.everyone_reads
                && !config->values.best_effort);
        CHECK_STR(config->values.readers_group, "ublk");
        CHECK_INT(config->values.first_uid, 0x77800000);
        CHECK_INT(config->values.uids, 1 << 20);
        CHECK_INT(config->values.log_level, LOG_INFO);
        config_free(config);
        config_root_remove();
}

static void test_the_command_line_has_priority(void)
{
        const struct config_option options[] = {
                {setting_find("LogLevel"), "error"},
                {setting_find("Listen"),   "/x"   },
                {setting_find("Listen"),   "/y"   },
        };
        struct config *config;

        config_root_make();
        config_root_write(
                "etc/ublkd/ublkd.conf", "[Manager]\nListen=/a\nLogLevel=debug\nUnstablePaths=refuse\n");
        config = load(options, ARRAY_SIZE(options));
        CHECK_STR(config_root_value(config, "Listen"), "/x,/y");
        CHECK_INT(config->values.log_level, LOG_ERR);
        CHECK(config->values.refuse_unstable_paths);
        CHECK_STR(config->settings[setting_find("LogLevel") - settings].items[0].place, "command line");
        config_free(config);
        config_root_remove();
}

static void test_what_differs(void)
{
        struct config *one, *other;

        config_root_make();
        config_root_write("etc/ublkd/ublkd.conf", "[Manager]\nListen=/a\nLogLevel=debug\n");
        one = load(NULL, 0);
        config_root_write(
                "etc/ublkd/ublkd.conf", "[Manager]\nListen=/a\nListen=/b\n# moved\nLogLevel=debug\n");
        other = load(NULL, 0);
        CHECK(config_is_same(one, other, setting_find("LogLevel")));
        CHECK(config_is_same(one, other, setting_find("Sandbox")));
        CHECK(!config_is_same(one, other, setting_find("Listen")));
        config_free(other);
        config_root_write("etc/ublkd/ublkd.conf", "[Manager]\nListen=/b\nLogLevel=info\n");
        other = load(NULL, 0);
        CHECK(!config_is_same(one, other, setting_find("Listen")));
        CHECK(!config_is_same(one, other, setting_find("LogLevel")));
        config_free(other);
        config_free(one);
        config_root_remove();
}

/* A default that is written out is the same value. */
static void test_a_default_that_is_written_out(void)
{
        struct config *one, *other;

        config_root_make();
        one = load(NULL, 0);
        config_root_write(
                "etc/ublkd/ublkd.conf", "[Manager]\nStateDirectory=/var/lib/ublkd\nSandbox=best-effort\n");
        other = load(NULL, 0);
        CHECK(config_is_same(one, other, setting_find("StateDirectory")));
        CHECK(config_is_same(other, one, setting_find("StateDirectory")));
        CHECK(!config_is_same(one, other, setting_find("Sandbox")));
        CHECK(!config_is_same(other, one, setting_find("Sandbox")));
        config_free(other);
        config_free(one);
        config_root_remove();
}

int main(void)
{
        test_defaults();
        test_the_command_line_has_priority();
        test_what_differs();
        test_a_default_that_is_written_out();
        return check_report();
}
