/* SPDX-License-Identifier: MIT */
/* Configuration files: each fault has its line, and what is printed of the values can be read again as the same. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/config/config_files.h"
#include "ublkd/config/config_print.h"
#include "ublkd/config/config_values.h"

#include "ublkd/base/utf8.h"

#include <string.h>

static const char name[] = "a file";

static struct config *read_text(char *text, size_t size)
{
        struct config *config;

        FUZZ_CHECK(config_load(&(const struct config_request){.root = "/nonexistent"}, &config) == 0);
        FUZZ_CHECK(config_files_take(config, name, text, size) == 0);
        config_values_parse(config);
        return config;
}

static void check_problems(const struct config *config, unsigned lines)
{
        for (size_t i = 0; i < config->problems.count; i++) {
                const char *detail = config->problems.items[i].detail;
                unsigned line = 0;

                FUZZ_CHECK(strncmp(detail, name, strlen(name)) == 0);
                FUZZ_CHECK(sscanf(detail + strlen(name), ":%u: ", &line) == 1 && line >= 1 && line <= lines);
                FUZZ_CHECK(utf8_is_valid(detail, strlen(detail)) && !strchr(detail, '\n'));
        }
        FUZZ_CHECK(!config->refused || config->problems.count > 0);
}

static void check_values(const struct config *config)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        struct config *again;

        FUZZ_CHECK(file);
        config_print_values(config, file);
        (void)fclose(file);
        again = read_text(text, size);
        FUZZ_CHECK(again->problems.count == 0);
        for (size_t i = 0; i < settings_count; i++)
                FUZZ_CHECK(config_is_same(config, again, &settings[i]));
        config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size);
        struct config *config;
        unsigned lines = 1;

        for (size_t i = 0; i < size; i++)
                lines += data[i] == '\n';
        config = read_text(text, size);
        check_problems(config, lines);
        FUZZ_CHECK(config->values.uids > 0 && config->values.first_uid > 0);
        FUZZ_CHECK(config->values.state_directory[0] == '/' && config->values.runtime_directory[0] == '/');
        check_values(config);
        config_free(config);
        return 0;
}
