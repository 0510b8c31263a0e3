/* SPDX-License-Identifier: MIT */
/* --help, printed from the table of verbs. */
#include "ublkctl/help.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

enum { WIDTH = 79, INDENT = 2, COLUMN = 28 };

/* Break `text` into lines of WIDTH. The first line begins at column `at`, the others at `indent`. */
static void print_wrapped(FILE *file, const char *text, size_t at, size_t indent)
{
        size_t column = at;
        bool first = true;

        while (*text) {
                size_t length = strcspn(text, " ");

                if (!first && column + 1 + length > WIDTH) {
                        fprintf(file, "\n%*s", (int)indent, "");
                        column = indent;
                } else if (!first) {
                        fputc(' ', file);
                        column++;
                }
                fprintf(file, "%.*s", (int)length, text);
                column += length;
                text += length + strspn(text + length, " ");
                first = false;
        }
        fputc('\n', file);
}

static void print_setting(FILE *file, const struct setting *setting)
{
        char left[64];
        int n;

        n = snprintf(left, sizeof(left), "%*s%c%c%s--%s%s%s", INDENT, "", setting->letter ? '-' : ' ',
                setting->letter ? setting->letter : ' ', setting->letter ? ", " : "  ", setting->name,
                setting->value ? " " : "", setting->value ? setting->value : "");
        if (n < COLUMN)
                fprintf(file, "%-*s", COLUMN, left);
        else
                fprintf(file, "%s\n%*s", left, COLUMN, "");
        print_wrapped(file, setting->help, COLUMN, COLUMN);
}

static void print_settings(FILE *file, uint64_t mask)
{
        for (int id = 0; id < _SETTING_MAX; id++)
                if (mask & SETTING_BIT(id))
                        print_setting(file, setting_get(id));
}

void help_synopsis(const struct verb *verb, FILE *file)
{
        fprintf(file, "%s%s%s%s", verb->name, verb->settings ? " [OPTION]..." : "",
                *verb->arguments ? " " : "", verb->arguments);
}

void help_verb(const struct verb *verb, FILE *file)
{
        fputs("Usage: ublkctl ", file);
        help_synopsis(verb, file);
        if (verb->alias)
                fprintf(file, "\nAlso:  ublkctl %s", verb->alias);
        fputs("\n\n", file);
        print_wrapped(file, verb->description, 0, 0);
        fputs("\nOptions:\n", file);
        print_settings(file, verb->settings);
        print_settings(file, SETTINGS_COMMON);
}

void help_program(FILE *file)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        fputs("Usage: ublkctl [OPTION]... VERB ...\n"
              "Manage the block devices of ublkd.\n\nVerbs:\n",
                file);
        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        fprintf(file, "%*s%-12s%s\n", INDENT, "", verbs[i].name, verbs[i].summary);
        fputs("\nOptions:\n", file);
        print_settings(file, SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION));
        fputs("\n'ublkctl VERB --help' explains a verb. The exit status is 0 on success, 1 when "
              "something\nfailed, 2 for a wrong command line, 3 when the device does not exist, 4 on a "
              "timeout,\n5 when ublkd does not answer, 6 when you lack the permission, 7 when the state of "
              "the\ndevice does not allow it.\n",
                file);
}

enum exit_status verb_help(struct context *context _unused_, int argc, char *argv[])
{
        const struct verb *verb = argc > 0 ? verb_find(argv[0]) : NULL;

        if (argc > 0 && !verb)
                return verb_refuse(argv[0]);
        if (verb)
                help_verb(verb, stdout);
        else
                help_program(stdout);
        return STATUS_OK;
}
