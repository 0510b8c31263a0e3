/* SPDX-License-Identifier: MIT */
/* The parser of each setting. */
#include "ublkd/config/setting_values.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <limits.h>
#include <syslog.h>

static void test_addresses(void)
{
        static const struct {
                const char *text;
                bool option, file;
        } cases[] = {
                {"/run/a.sock",           true,  true },
                {"a.sock",                true,  false},
                {"",                      false, false},
                {"tcp://127.0.0.1:80",    true,  true },
                {"tcp://127.9.0.1:0",     true,  true },
                {"tcp://[::1]:65535",     true,  true },
                {"tcp://127.0.0.1:65536", false, false},
                {"tcp://127.0.0.1:",      false, false},
                {"tcp://127.0.0.1",       false, false},
                {"tcp://127.0.0.1:-1",    false, false},
                {"tcp://127.0.0.1: 1",    false, false},
                {"tcp://127.0.0.1:1x",    false, false},
                {"tcp://10.0.0.1:80",     false, false},
                {"tcp://0.0.0.0:80",      false, false},
                {"tcp://localhost:80",    false, false},
                {"tcp://[::]:80",         false, false},
                {"tcp://:80",             false, false},
                {"tcp://",                false, false},
                {"http://127.0.0.1:80",   true,  false}, /* a path */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct setting_values values = {};

                if (!CHECK_INT(setting_parse_listen(cases[i].text, false, &values),
                            cases[i].option ? 0 : -EINVAL)
                        || !CHECK_INT(setting_parse_listen(cases[i].text, true, &values),
                                cases[i].file ? 0 : -EINVAL))
                        fprintf(stderr, "... of %s\n", cases[i].text);
                CHECK_INT(values.listen_count, cases[i].option + cases[i].file);
        }
}

static void test_as_many_addresses_as_there_is_room_for(void)
{
        struct setting_values values = {};

        for (size_t i = 0; i < SETTING_LISTEN_MAX; i++)
                CHECK_INT(setting_parse_listen("/a", true, &values), 0);
        CHECK_INT(setting_parse_listen("/a", true, &values), -E2BIG);
        CHECK_INT(values.listen_count, SETTING_LISTEN_MAX);
}

static void test_paths(void)
{
        setting_parse *const parsers[] = {setting_parse_state_directory, setting_parse_runtime_directory,
                setting_parse_policy_directory, setting_parse_cdi_directory, setting_parse_worker};
        static char longest[PATH_MAX + 1];

        memset(longest, '/', PATH_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(parsers); i++) {
                struct setting_values values = {};

                CHECK_INT(parsers[i]("/srv", true, &values), 0);
                CHECK_INT(parsers[i]("srv", false, &values), 0);
                CHECK_INT(parsers[i]("srv", true, &values), -EINVAL);
                CHECK_INT(parsers[i]("\"/srv\"", true, &values), -EINVAL);
                CHECK_INT(parsers[i]("", false, &values), -EINVAL);
                CHECK_INT(parsers[i](longest, true, &values), -EINVAL);
                CHECK_INT(parsers[i](longest + 1, true, &values), 0);
        }
}

static void test_words(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_upgrade_workers("replace", true, &values), 0);
        CHECK(values.replace_workers);
        CHECK_INT(setting_parse_upgrade_workers("yes", true, &values), -EINVAL);
        CHECK(values.replace_workers);
        CHECK_INT(setting_parse_upgrade_workers("keep", true, &values), 0);
        CHECK(!values.replace_workers);
        CHECK_INT(setting_parse_allow_fault_target("yes", true, &values), 0);
        CHECK(values.allow_fault_target);
        CHECK_INT(setting_parse_allow_fault_target("true", true, &values), -EINVAL);
        CHECK(values.allow_fault_target);
        CHECK_INT(setting_parse_allow_fault_target("no", true, &values), 0);
        CHECK(!values.allow_fault_target);
        CHECK_INT(setting_parse_unstable_paths("refuse", true, &values), 0);
        CHECK(values.refuse_unstable_paths);
        CHECK_INT(setting_parse_unstable_paths("Warn", true, &values), -EINVAL);
        CHECK(values.refuse_unstable_paths);
        CHECK_INT(setting_parse_unstable_paths("warn", true, &values), 0);
        CHECK(!values.refuse_unstable_paths);
        CHECK_INT(setting_parse_sandbox("best-effort", true, &values), 0);
        CHECK(values.best_effort);
        CHECK_INT(setting_parse_sandbox("required", true, &values), 0);
        CHECK(!values.best_effort);
        CHECK_INT(setting_parse_sandbox("off", true, &values), -EINVAL);
        CHECK_INT(setting_parse_log_level("debug", true, &values), 0);
        CHECK_INT(values.log_level, LOG_DEBUG);
        CHECK_INT(setting_parse_log_level("7", true, &values), -EINVAL);
        CHECK_INT(values.log_level, LOG_DEBUG);
        CHECK_INT(setting_parse_log_level("error", true, &values), 0);
        CHECK_INT(values.log_level, LOG_ERR);
}

static void test_readers(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_readers("everyone", true, &values), 0);
        CHECK(values.everyone_reads);
        CHECK_INT(setting_parse_readers("noone", true, &values), -EINVAL);
        CHECK(values.everyone_reads);
        CHECK_INT(setting_parse_readers("group:disk", true, &values), 0);
        CHECK(!values.everyone_reads);
        CHECK_STR(values.readers_group, "disk");
        CHECK_INT(setting_parse_readers("group:", true, &values), -EINVAL);
        CHECK_INT(setting_parse_readers("group", true, &values), 0);
        CHECK_STR(values.readers_group, "ublk");
}

/* Never everyone, whatever is written. */
static void test_administrators(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_administrators("group", true, &values), 0);
        CHECK_STR(values.administrators_group, "ublk-admin");
        CHECK_INT(setting_parse_administrators("group:disk", true, &values), 0);
        CHECK_INT(setting_parse_administrators("everyone", true, &values), -EINVAL);
        CHECK_INT(setting_parse_administrators("group:", true, &values), -EINVAL);
        CHECK_INT(setting_parse_administrators("", true, &values), -EINVAL);
        CHECK_STR(values.administrators_group, "disk");
        CHECK_INT(setting_parse_administrators("none", true, &values), 0);
        CHECK_STR(values.administrators_group, NULL);
}

static void test_polkit(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_polkit("yes", true, &values), 0);
        CHECK(values.asks_polkit);
        CHECK_INT(setting_parse_polkit("maybe", true, &values), -EINVAL);
        CHECK_INT(setting_parse_polkit("", true, &values), -EINVAL);
        CHECK(values.asks_polkit);
        CHECK_INT(setting_parse_polkit("no", true, &values), 0);
        CHECK(!values.asks_polkit);
}

static void test_socket_group(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_socket_group("disk", true, &values), 0);
        CHECK_STR(values.socket_group, "disk");
        CHECK_INT(setting_parse_socket_group("", true, &values), -EINVAL);
        CHECK_INT(setting_parse_socket_group("group:disk", true, &values), -EINVAL);
        CHECK_STR(values.socket_group, "disk");
}

static void test_uids(void)
{
        static const char *const bad[] = {
                "0-1", "2-1", "1", "1-", "-1", "1-4294967295", "1-99999999999", "1-2x", "a-b", "1 - 2", ""};
        struct setting_values values = {};

        CHECK_INT(setting_parse_worker_uids("1000-1000", true, &values), 0);
        CHECK_INT(values.first_uid, 1000);
        CHECK_INT(values.uids, 1);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (!CHECK_INT(setting_parse_worker_uids(bad[i], true, &values), -EINVAL))
                        fprintf(stderr, "... of '%s'\n", bad[i]);
        CHECK_INT(values.first_uid, 1000);
        CHECK_INT(setting_parse_worker_uids("1-4294967294", true, &values), 0);
        CHECK_INT(values.uids, 4294967294);
}

static void test_spare_workers(void)
{
        static const char *const bad[] = {
                "", "-1", "+1", " 1", "1 ", "65", "99999", "4294967297", "1x", "many"};
        struct setting_values values = {};

        CHECK_INT(setting_parse_spare_workers("64", true, &values), 0);
        CHECK_INT(values.spare_workers, SETTING_SPARES_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (!CHECK_INT(setting_parse_spare_workers(bad[i], true, &values), -EINVAL))
                        fprintf(stderr, "... of '%s'\n", bad[i]);
        CHECK_INT(values.spare_workers, SETTING_SPARES_MAX);
        CHECK_INT(setting_parse_spare_workers("0", true, &values), 0);
        CHECK_INT(values.spare_workers, 0);
}

static void test_features(void)
{
        struct setting_values values = {};

        CHECK_INT(setting_parse_ignored_feature("SUPPORT_ZERO_COPY", true, &values), 0);
        CHECK_INT(values.ignored_features, 1);
        CHECK_INT(setting_parse_ignored_feature("BATCH_IO", true, &values), 0);
        CHECK(values.ignored_features > 1 && (values.ignored_features & 1));
        CHECK_INT(setting_parse_ignored_feature("UBLK_F_BATCH_IO", true, &values), -EINVAL);
        CHECK_INT(setting_parse_ignored_feature("", true, &values), -EINVAL);
}

int main(void)
{
        test_addresses();
        test_as_many_addresses_as_there_is_room_for();
        test_paths();
        test_words();
        test_readers();
        test_administrators();
        test_polkit();
        test_socket_group();
        test_uids();
        test_spare_workers();
        test_features();
        return check_report();
}
