/* SPDX-License-Identifier: MIT */
/* The options of ublkd. */
#include "ublkd/config/command_line.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <getopt.h>

static int run_role(void)
{
        return 42;
}

static const struct command_role roles[] = {
        {"some-role", run_role}
};

enum { WORDS_MAX = 64 };

/* Parse the words, which end with NULL, with stdout and stderr away. */
static int parse(const char *const *words, struct command_line *ret)
{
        static char copies[WORDS_MAX][64];
        char *argv[WORDS_MAX + 1] = {};
        int argc = 0, saved[2] = {dup(1), dup(2)}, null = open("/dev/null", O_WRONLY | O_CLOEXEC), r;

        for (; words[argc]; argc++) {
                snprintf(copies[argc], sizeof(copies[0]), "%s", words[argc]);
                argv[argc] = copies[argc];
        }
        fflush(NULL);
        dup2(null, 1);
        dup2(null, 2);
        optind = 0; /* from the beginning, says getopt(3) */
        r = command_line_parse(argc, argv, roles, ARRAY_SIZE(roles), ret);
        fflush(NULL);
        for (int i = 0; i < 2; i++) {
                dup2(saved[i], i + 1);
                close_fd(saved[i]);
        }
        close_fd(null);
        return r;
}

#define WORDS(...) ((const char *const[]){"ublkd", __VA_ARGS__, NULL})

static void test_settings(void)
{
        struct command_line line;

        CHECK_INT(parse(WORDS("--listen", "/a", "--log-level=debug", "--listen", "b"), &line), 0);
        CHECK_INT(line.mode, COMMAND_RUN);
        CHECK_STR(line.request.root, "");
        if (CHECK_INT(line.request.option_count, 3)) {
                CHECK_STR(line.options[0].setting->key, "Listen");
                CHECK_STR(line.options[0].text, "/a");
                CHECK_STR(line.options[1].setting->key, "LogLevel");
                CHECK_STR(line.options[2].text, "b");
        }
        command_line_clear(&line);
}

static void test_every_setting_has_an_option(void)
{
        for (size_t i = 0; i < settings_count; i++) {
                const char *value = settings[i].preset                              ? settings[i].preset
                                    : strcmp(settings[i].key, "IgnoreFeature") == 0 ? "BATCH_IO"
                                                                                    : "/x";
                struct command_line line;
                char word[64];

                snprintf(word, sizeof(word), "--%s=%s", settings[i].option, value);
                CHECK_INT(parse(WORDS(word), &line), 0);
                if (CHECK_INT(line.request.option_count, 1))
                        CHECK(line.options[0].setting == &settings[i]);
                command_line_clear(&line);
        }
}

static void test_modes(void)
{
        struct command_line line;

        CHECK_INT(parse(WORDS("--check-config", "--config-root", "/somewhere"), &line), 0);
        CHECK_INT(line.mode, COMMAND_CHECK);
        CHECK_STR(line.request.root, "/somewhere");
        command_line_clear(&line);
        CHECK_INT(parse(WORDS("--config-root=/"), &line), 0);
        CHECK_STR(line.request.root, "");
        command_line_clear(&line);
        CHECK_INT(parse(WORDS("--some-role"), &line), 0);
        CHECK_INT(line.mode, COMMAND_ROLE);
        CHECK(line.role == roles && line.role->run() == 42);
        command_line_clear(&line);
        CHECK_INT(parse(WORDS("-h", "--bogus"), &line), 0);
        CHECK_INT(line.mode, COMMAND_DONE);
        command_line_clear(&line);
        CHECK_INT(parse(WORDS("--version"), &line), 0);
        CHECK_INT(line.mode, COMMAND_DONE);
        command_line_clear(&line);
}

static void test_invalid_words_are_refused(void)
{
        static const char *const words[] = {"--bogus", "word", "--log-level=loud", "--listen=", "--log-level",
                "--check-config=1", "--worker-uids=0-1", "--readers=group:", "--sandbox=off", "--state-dir="};

        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                struct command_line line;

                if (!CHECK_INT(parse(WORDS(words[i]), &line), -EINVAL))
                        fprintf(stderr, "... of %s\n", words[i]);
                command_line_clear(&line);
        }
}

static void test_as_many_as_there_is_room_for(void)
{
        const char *words[SETTING_LISTEN_MAX + 3] = {"ublkd"};
        struct command_line line;

        for (size_t i = 0; i < SETTING_LISTEN_MAX; i++)
                words[i + 1] = "--listen=/a";
        CHECK_INT(parse(words, &line), 0);
        CHECK_INT(line.request.option_count, SETTING_LISTEN_MAX);
        command_line_clear(&line);
        words[SETTING_LISTEN_MAX + 1] = "--listen=/a";
        CHECK_INT(parse(words, &line), -EINVAL);
        command_line_clear(&line);
}

int main(void)
{
        test_settings();
        test_every_setting_has_an_option();
        test_modes();
        test_invalid_words_are_refused();
        test_as_many_as_there_is_room_for();
        return check_report();
}
