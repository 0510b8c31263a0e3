/* SPDX-License-Identifier: MIT */
/* Values that are set and reset. */
#include "ublkd/config/config_values.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/config/config_root.h"

static const struct setting *of(const char *key)
{
        return setting_find(key);
}

static void test_setting_and_resetting(void)
{
        struct config *config;

        config_root_make();
        config = config_root_load();
        CHECK_INT(config_values_set(config, of("LogLevel"), "debug", true, "a:1"), 0);
        CHECK_INT(config_values_set(config, of("LogLevel"), "loud", true, "a:2"), -EINVAL);
        CHECK_STR(config_root_value(config, "LogLevel"), "debug");
        CHECK_INT(config_values_set(config, of("LogLevel"), "error", true, "a:3"), 0);
        CHECK_STR(config_root_value(config, "LogLevel"), "error");
        CHECK_INT(config_values_set(config, of("StateDirectory"), "here", true, "a:4"), -EINVAL);
        CHECK_INT(config_values_set(config, of("StateDirectory"), "here", false, "a:4"), 0);
        config_values_parse(config);
        CHECK_STR(config->values.state_directory, "here");
        config_values_reset(config, of("StateDirectory"));
        config_values_reset(config, of("StateDirectory"));
        config_values_parse(config);
        CHECK_STR(config->values.state_directory, "/var/lib/ublkd");
        config_free(config);
        config_root_remove();
}

static void test_a_full_list(void)
{
        struct config *config;

        config_root_make();
        config = config_root_load();
        for (size_t i = 0; i < SETTING_LISTEN_MAX; i++)
                CHECK_INT(config_values_set(config, of("Listen"), "/a", true, "a:1"), 0);
        CHECK_INT(config_values_set(config, of("Listen"), "/a", true, "a:1"), -E2BIG);
        CHECK_INT(config_values_set(config, of("Listen"), "", true, "a:1"), -EINVAL);
        config_values_parse(config);
        CHECK_INT(config->values.listen_count, SETTING_LISTEN_MAX);
        config_free(config);
        config_root_remove();
}

int main(void)
{
        test_setting_and_resetting();
        test_a_full_list();
        return check_report();
}
