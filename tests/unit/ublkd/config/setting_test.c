/* SPDX-License-Identifier: MIT */
/* The table of settings. */
#include "ublkd/config/setting.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

static void test_every_row(void)
{
        CHECK_INT(settings_count, 19);
        for (size_t i = 0; i < settings_count; i++) {
                const struct setting *setting = &settings[i];
                struct setting_values values = {};

                CHECK(setting_find(setting->key) == setting);
                CHECK(setting->parse && setting->wanted);
                if (setting->preset)
                        CHECK_INT(setting->parse(setting->preset, true, &values), 0);
                CHECK_INT(setting->parse("", true, &values), -EINVAL);
                CHECK(strstr(settings_usage, setting->option));
        }
        CHECK(!setting_find("") && !setting_find("statedirectory") && !setting_find("Manager"));
}

static const char *meant(const char *key)
{
        const struct setting *setting = setting_meant(key);

        return setting ? setting->key : "none";
}

static void test_a_misspelt_key_finds_the_closest_setting(void)
{
        CHECK_STR(meant("StateDirectoy"), "StateDirectory");
        CHECK_STR(meant("statedirectory"), "StateDirectory");
        CHECK_STR(meant("StateDir"), "StateDirectory");
        CHECK_STR(meant("state-dir"), "StateDirectory");
        CHECK_STR(meant("Reader"), "Readers");
        CHECK_STR(meant("WorkerUid"), "WorkerUids");
        CHECK_STR(meant("SandBox"), "Sandbox");
        CHECK_STR(meant("Loglevel"), "LogLevel");
        CHECK_STR(meant("Colour"), "none");
        CHECK_STR(meant(""), "none");
        CHECK_STR(meant("StateDirectoryStateDirectoryStateDirectory"), "none");
}

int main(void)
{
        test_every_row();
        test_a_misspelt_key_finds_the_closest_setting();
        return check_report();
}
