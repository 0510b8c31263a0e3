/* SPDX-License-Identifier: MIT */
/* The command line of ublkd: an option for each setting, and a few that are none. */
#include "ublkd/config/command_line.h"

#include "ublkd/base/version.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

enum { SETTINGS_MAX = 32 };

/* getopt's value of the first role and of the first setting; those that follow count on. */
enum {
        OPTION_HELP = 'h',
        OPTION_VERSION = 256,
        OPTION_CHECK,
        OPTION_ROOT,
        OPTION_ROLE = 512,
        OPTION_SETTING = 1024
};

static const struct option own_options[] = {
        {"help",         no_argument,       NULL, OPTION_HELP   },
        {"version",      no_argument,       NULL, OPTION_VERSION},
        {"check-config", no_argument,       NULL, OPTION_CHECK  },
        {"config-root",  required_argument, NULL, OPTION_ROOT   },
};

/* The table of getopt ends with a row of zeroes. */
typedef struct option option_rows[ARRAY_SIZE(own_options) + COMMAND_ROLES_MAX + SETTINGS_MAX + 1];

static void make_rows(option_rows rows, const struct command_role *roles, size_t count)
{
        struct option *row = rows;

        assert(count <= COMMAND_ROLES_MAX && settings_count <= SETTINGS_MAX);
        memset(rows, 0, sizeof(option_rows));
        memcpy(row, own_options, sizeof(own_options));
        row += ARRAY_SIZE(own_options);
        for (size_t i = 0; i < count; i++)
                *row++ = (struct option){roles[i].option, no_argument, NULL, OPTION_ROLE + (int)i};
        for (size_t i = 0; i < settings_count; i++)
                *row++ =
                        (struct option){settings[i].option, required_argument, NULL, OPTION_SETTING + (int)i};
}

static size_t count_of(const struct command_line *line, const struct setting *setting)
{
        size_t count = 0;

        for (size_t i = 0; i < line->request.option_count; i++)
                count += line->options[i].setting == setting;
        return count;
}

static int take_setting(struct command_line *line, const struct setting *setting, const char *text)
{
        struct setting_values scratch = {};

        if (setting->list_max > 0 && count_of(line, setting) == setting->list_max) {
                fprintf(stderr, "ublkd: at most %zu --%s are possible\n", setting->list_max, setting->option);
                return -EINVAL;
        }
        if (setting->parse(text, false, &scratch) < 0) {
                fprintf(stderr, "ublkd: --%s '%s' is not valid; %s\n", setting->option, text,
                        setting->wanted);
                return -EINVAL;
        }
        line->options[line->request.option_count++] =
                (struct config_option){.setting = setting, .text = text};
        return 0;
}

static int take_own(struct command_line *line, int option)
{
        switch (option) {
        case OPTION_HELP:
                fputs(settings_usage, stdout);
                line->mode = COMMAND_DONE;
                return 0;
        case OPTION_VERSION:
                printf("ublkd %s\n", ublkd_version);
                line->mode = COMMAND_DONE;
                return 0;
        case OPTION_CHECK:
                line->mode = COMMAND_CHECK;
                return 0;
        case OPTION_ROOT:
                line->request.root = strcmp(optarg, "/") == 0 ? "" : optarg;
                return 0;
        default: /* getopt_long() has printed the problem */
                fputs("Try 'ublkd --help'.\n", stderr);
                return -EINVAL;
        }
}

static int take(struct command_line *line, const struct command_role *roles, int option)
{
        if (option >= OPTION_SETTING)
                return take_setting(line, &settings[option - OPTION_SETTING], optarg);
        if (option < OPTION_ROLE)
                return take_own(line, option);
        line->mode = COMMAND_ROLE;
        line->role = &roles[option - OPTION_ROLE];
        return 0;
}

int command_line_parse(
        int argc, char *argv[], const struct command_role *roles, size_t count, struct command_line *ret)
{
        option_rows rows;
        int option, r = 0;

        make_rows(rows, roles, count);
        *ret = (struct command_line){
                .request.root = "", .options = calloc((size_t)argc + 1, sizeof(*ret->options))};
        if (!ret->options)
                return -ENOMEM;
        ret->request.options = ret->options;
        while (r >= 0 && ret->mode != COMMAND_DONE
                && (option = getopt_long(argc, argv, "h", rows, NULL)) >= 0)
                r = take(ret, roles, option);
        if (r >= 0 && ret->mode != COMMAND_DONE && optind < argc) {
                fprintf(stderr, "ublkd: '%s' is not an option; try 'ublkd --help'\n", argv[optind]);
                r = -EINVAL;
        }
        return r;
}

void command_line_clear(struct command_line *line)
{
        free(line->options);
        *line = (struct command_line){};
}
