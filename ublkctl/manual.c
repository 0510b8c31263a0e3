/* SPDX-License-Identifier: MIT */
/* manual: print the parts of ublkctl(1) that come from the table of verbs, in mdoc. The build inserts
 * them. */
#include "ublkctl/verbs.h"

#include "ublkd/base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Print a paragraph: one sentence for each line, as mdoc wants it, with everything escaped that roff would
 * interpret. */
static void print_text(const char *text)
{
        for (; *text; text++) {
                bool end =
                        (*text == '.' || *text == '?') && text[1] == ' ' && isupper((unsigned char)text[2]);

                if (*text == '\\')
                        fputs("\\e", stdout);
                else if (*text == '-')
                        fputs("\\-", stdout);
                else if (*text == '\'')
                        fputs("\\(aq", stdout);
                else
                        putchar(*text);
                if (end) {
                        putchar('\n');
                        text++;
                }
        }
}

static void print_setting(const struct setting *setting)
{
        fputs(".It ", stdout);
        if (setting->letter)
                printf("Fl %c , ", setting->letter);
        printf("Fl \\-%s", setting->name);
        if (setting->value)
                printf(" Ar %s", setting->value);
        putchar('\n');
        print_text(setting->help);
        puts(".");
}

static void print_settings(uint64_t mask)
{
        if (!mask)
                return;
        puts(".Bl -tag -width Ds -compact");
        for (int id = 0; id < _SETTING_MAX; id++)
                if (mask & SETTING_BIT(id))
                        print_setting(setting_get(id));
        puts(".El");
}

static void print_verb(const struct verb *verb)
{
        printf(".It Cm %s", verb->name);
        if (verb->settings)
                fputs(" Oo Ar OPTION ... Oc", stdout);
        if (*verb->arguments)
                printf(" Ar %s", verb->arguments);
        putchar('\n');
        print_text(verb->description);
        putchar('\n');
        if (verb->alias)
                printf("Its short name is\n.Cm %s .\n", verb->alias);
        print_settings(verb->settings);
}

enum exit_status verb_manual(struct context *context _unused_, int argc _unused_, char *argv[] _unused_)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        puts(".Sh OPTIONS\nThese are valid before and after every verb.\n.Pp");
        print_settings(SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION));
        puts(".Sh VERBS\n.Bl -tag -width Ds");
        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        print_verb(&verbs[i]);
        puts(".El");
        return STATUS_OK;
}
