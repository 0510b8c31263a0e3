/* SPDX-License-Identifier: MIT */
/* What is printed can be read again: the same values, now all from one file. */
#include "ublkd/config/config_print.h"

#include "tests/unit/check.h"
#include "ublkd/config/config_files.h"
#include "ublkd/config/config_values.h"

static const char root[] = "/nonexistent";

static char *printed(const struct config *config, size_t *ret_size)
{
        char *text = NULL;
        FILE *file = open_memstream(&text, ret_size);

        config_print_values(config, file);
        fclose(file);
        return text;
}

static void test_values_can_be_read_again(void)
{
        const struct config_option options[] = {
                {setting_find("Listen"),   "/x"      },
                {setting_find("Listen"),   "/y"      },
                {setting_find("LogLevel"), "debug"   },
                {setting_find("Readers"),  "everyone"},
        };
        const struct config_request request = {
                .root = root, .options = options, .option_count = ARRAY_SIZE(options)};
        _cleanup_(config_free_pointer) struct config *one = NULL, *other = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        CHECK_INT(config_load(&request, &one), 0);
        CHECK_INT(config_load(&(const struct config_request){.root = root}, &other), 0);
        text = printed(one, &size);
        CHECK(strstr(text, "[Manager]\n# command line\nListen=/x\n# command line\nListen=/y\n"));
        CHECK(strstr(text, "# default\nStateDirectory=/var/lib/ublkd\n"));
        CHECK(strstr(text, "# default: none\n#IgnoreFeature=\n"));
        CHECK_INT(config_files_take(other, "printed", text, size), 0);
        config_values_parse(other);
        CHECK_INT(other->problems.count, 0);
        for (size_t i = 0; i < settings_count; i++)
                CHECK(config_is_same(one, other, &settings[i]));
}

static void test_problems(void)
{
        char text[] = "x\n[Manager]\ny=1\n";
        _cleanup_(config_free_pointer) struct config *config = NULL;
        _cleanup_free_ char *out = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&out, &size);

        CHECK_INT(config_load(&(const struct config_request){.root = root}, &config), 0);
        CHECK_INT(config_files_take(config, "f", text, strlen(text)), 0);
        config->problems.dropped = 3;
        config_print_problems(config, file);
        fclose(file);
        CHECK_STR(out, "f:1: x: there is no '=' in the line; write KEY=VALUE (ignored)\n"
                       "f:3: y: the key is unknown; ublkd.conf(5) has all keys (ignored)\n"
                       "3 more problems are not shown\n");
}

int main(void)
{
        test_values_can_be_read_again();
        test_problems();
        return check_report();
}
