/* SPDX-License-Identifier: MIT */
/* completion: print the scripts for bash and zsh. Each is completion/ublkctl.SHELL.in, with its marks
 * replaced from the table of verbs. The scripts ask the daemon of the command line for the names of devices.
 * That server may be hostile: a shell must expand nothing of its answer, and the scripts drop every word that
 * cannot be the name of a device. */
#include "ublkctl/completion_texts.h"
#include "ublkctl/verbs.h"
#include "ublkctl/text/list_columns.h"

#include "schemas/spec_fields.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>

/* ---- bash ---- */

static void print_choices(const char *const *choices)
{
        for (size_t i = 0; choices[i]; i++)
                printf("%s%s", i ? " " : "", choices[i]);
}

static void print_option_words(uint64_t mask)
{
        for (int id = 0; id < _SETTING_MAX; id++)
                if (mask & SETTING_BIT(id)) {
                        printf(" --%s", setting_get(id)->name);
                        if (setting_get(id)->letter)
                                printf(" -%c", setting_get(id)->letter);
                }
}

/* Print one line of a case on $prev: the possible values of an option. */
static void print_bash_value(const struct setting *setting)
{
        printf("\t\t--%s", setting->name);
        if (setting->letter)
                printf(" | -%c", setting->letter);
        fputs(") ", stdout);
        if (setting->completion == COMPLETE_CHOICE) {
                fputs("words='", stdout);
                print_choices(setting->choices);
                puts("' ;;");
        } else if (setting->completion == COMPLETE_FILE) {
                puts("files=yes ;;");
        } else if (setting->completion == COMPLETE_DEVICE) {
                puts("words=$(_ublkctl_devices) ;;");
        } else if (setting->completion == COMPLETE_COLUMN) {
                fputs("parts=yes words='", stdout);
                print_choices(list_column_names);
                puts("' ;;");
        } else {
                puts("return ;;");
        }
}

/* Print a variable with the options that take a value. */
static void print_bash_valued(uint64_t mask)
{
        fputs("\t\tvalued='", stdout);
        for (int id = 0; id < _SETTING_MAX; id++)
                if (mask & SETTING_BIT(id) && setting_get(id)->value) {
                        printf(" --%s", setting_get(id)->name);
                        if (setting_get(id)->letter)
                                printf(" -%c", setting_get(id)->letter);
                }
        puts(" '");
}

static void print_field_words(void)
{
        for (const struct spec_field *field = spec_fields; field->name; field++)
                printf("%s%s", field > spec_fields ? " " : "", field->name);
}

/* Print the lines of a case on a field, for both shells. */
static void print_field_values(void)
{
        for (const struct spec_field *field = spec_fields; field->name; field++) {
                if (!field->choices)
                        continue;
                printf("\t%s) values=(", field->name);
                print_choices(field->choices);
                puts(") ;;");
        }
}

static void print_bash_verb(const struct verb *verb)
{
        static const char *const arguments[] = {
                [COMPLETE_NOTHING] = "",
                [COMPLETE_FILE] = "files=yes",
                [COMPLETE_DEVICE] = "words=$(_ublkctl_devices)",
                [COMPLETE_NODE_OR_FILE] = "_ublkctl_disks",
                [COMPLETE_ADOPTABLE] = "words=$(_ublkctl_devices host)",
                [COMPLETE_CHOICE] = "",
                [COMPLETE_COLUMN] = "",
        };

        printf("\t%s%s%s)\n\t\toptions='", verb->name, verb->alias ? " | " : "",
                verb->alias ? verb->alias : "");
        print_option_words(verb->settings | SETTINGS_COMMON);
        puts("'");
        if (verb->fields || verb->actions)
                print_bash_valued(verb->settings | SETTINGS_COMMON);
        puts("\t\tcase $prev in");
        for (int id = 0; id < _SETTING_MAX; id++)
                if ((verb->settings | SETTINGS_COMMON) & SETTING_BIT(id) && setting_get(id)->value)
                        print_bash_value(setting_get(id));
        fputs("\t\t*) ", stdout);
        if (verb->words) {
                fputs("words='", stdout);
                print_choices(verb->words);
                fputs("'", stdout);
        } else if (verb->fields) {
                printf("if _ublkctl_is_argument 0 \"$valued\"; then %s; else _ublkctl_fields; fi",
                        *arguments[verb->completion] ? arguments[verb->completion] : ":");
        } else if (verb->actions) {
                printf("if _ublkctl_is_argument 0 \"$valued\"; then %s; elif _ublkctl_is_argument 1 "
                       "\"$valued\"; then words='",
                        arguments[verb->completion]);
                print_choices(target_action_names);
                fputs("'; fi", stdout);
        } else {
                fputs(arguments[verb->completion], stdout);
        }
        puts(" ;;\n\t\tesac\n\t\t;;");
}

static void print_verb_words(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        printf("%s%s", i ? " " : "", verbs[i].name);
}

static void print_bash_cases(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        fputs("\t'')\n\t\toptions='", stdout);
        print_option_words(SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION));
        puts("'\n\t\tcase $prev in");
        for (int id = 0; id < _SETTING_MAX; id++)
                if (SETTINGS_COMMON & SETTING_BIT(id) && setting_get(id)->value)
                        print_bash_value(setting_get(id));
        fputs("\t\t*) words='", stdout);
        print_verb_words();
        puts("' ;;\n\t\tesac\n\t\t;;");
        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden && strcmp(verbs[i].name, "help") != 0)
                        print_bash_verb(&verbs[i]);
        fputs("\thelp) words='", stdout);
        print_verb_words();
        puts("' ;;");
}

/* ---- zsh ---- */

/* Print text for inside single quotes, and inside the brackets or behind the colon of _arguments. */
static void print_zsh_text(const char *text)
{
        for (; *text; text++) {
                if (*text == '\'')
                        fputs("'\\'", stdout);
                else if (strchr("[]:", *text))
                        putchar('\\');
                putchar(*text);
        }
}

static void print_zsh_action(enum completion completion, const char *const *choices)
{
        static const char *const actions[] = {
                [COMPLETE_NOTHING] = " ",
                [COMPLETE_FILE] = "_files",
                [COMPLETE_DEVICE] = "_ublkctl_devices",
                [COMPLETE_NODE_OR_FILE] = "_ublkctl_disks",
                [COMPLETE_ADOPTABLE] = "_ublkctl_adoptable",
                [COMPLETE_COLUMN] = "_ublkctl_columns",
        };

        if (completion != COMPLETE_CHOICE) {
                fputs(actions[completion], stdout);
                return;
        }
        putchar('(');
        print_choices(choices);
        putchar(')');
}

static void print_zsh_form(const struct setting *setting, const char *dashes, const char *name, size_t length)
{
        bool may_be_one_word = setting->value && strlen(dashes) == 2; /* --sort=SIZE */

        printf(" \\\n\t\t\t'%s%s%.*s%s[", setting->kind == SETTING_KIND_LIST ? "*" : "", dashes, (int)length,
                name, may_be_one_word ? "=" : "");
        print_zsh_text(setting->help);
        putchar(']');
        if (setting->value) {
                putchar(':');
                print_zsh_text(setting->value);
                putchar(':');
                print_zsh_action(setting->completion, setting->choices);
        }
        putchar('\'');
}

static void print_zsh_options(uint64_t mask)
{
        for (int id = 0; id < _SETTING_MAX; id++) {
                const struct setting *setting = setting_get(id);

                if (!(mask & SETTING_BIT(id)))
                        continue;
                print_zsh_form(setting, "--", setting->name, strlen(setting->name));
                if (setting->letter)
                        print_zsh_form(setting, "-", &setting->letter, 1);
        }
}

static void print_zsh_verb(const struct verb *verb)
{
        printf("\t%s%s%s)\n\t\t_arguments -s", verb->name, verb->alias ? "|" : "",
                verb->alias ? verb->alias : "");
        print_zsh_options(verb->settings | SETTINGS_COMMON);
        if (strcmp(verb->name, "help") == 0) {
                fputs(" \\\n\t\t\t'1:verb:(", stdout);
                print_verb_words();
                fputs(")'", stdout);
        } else if (verb->fields) {
                fputs(" \\\n\t\t\t'1:argument:", stdout);
                print_zsh_action(verb->completion, NULL);
                fputs("' \\\n\t\t\t'*:field:_ublkctl_fields'", stdout);
        } else if (verb->actions) {
                fputs(" \\\n\t\t\t'1:argument:", stdout);
                print_zsh_action(verb->completion, NULL);
                fputs("' \\\n\t\t\t'2:action:", stdout);
                print_zsh_action(COMPLETE_CHOICE, target_action_names);
                fputs("' \\\n\t\t\t'*:argument: '", stdout);
        } else if (verb->arguments_max > 0) {
                printf(" \\\n\t\t\t'%s:argument:", verb->arguments_max == ARGUMENTS_ANY ? "*" : "1");
                print_zsh_action(verb->completion, verb->words);
                putchar('\'');
        }
        puts("\n\t\t;;");
}

static void print_zsh_verbs(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden) {
                        printf("\t\t'%s:", verbs[i].name);
                        print_zsh_text(verbs[i].summary);
                        puts("'");
                }
}

static void print_zsh_common_options(void)
{
        print_zsh_options(SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION));
}

static void print_column_words(void)
{
        print_choices(list_column_names);
}

static void print_zsh_cases(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        print_zsh_verb(&verbs[i]);
}

/* ---- the scripts ---- */

/* The text that replaces "@NAME@". */
struct part {
        const char *mark;
        void (*print)(void);
};

static const struct script {
        const char *shell, *text;
        struct part parts[8]; /* ends with a NULL */
} scripts[] = {
        {"bash", completion_bash,
         {{"@CASES@", print_bash_cases}, {"@FIELDS@", print_field_words},
                        {"@VALUES@", print_field_values}}                                   },
        {"zsh",  completion_zsh,
         {{"@VERBS@", print_zsh_verbs}, {"@OPTIONS@", print_zsh_common_options},
                        {"@CASES@", print_zsh_cases}, {"@FIELDS@", print_field_words},
                        {"@VALUES@", print_field_values}, {"@COLUMNS@", print_column_words}}},
};

static const struct part *part_at(const struct script *script, const char *text)
{
        for (const struct part *part = script->parts; part->mark; part++)
                if (strncmp(text, part->mark, strlen(part->mark)) == 0)
                        return part;
        return NULL;
}

static void print_script(const struct script *script)
{
        const char *text = script->text;

        while (*text) {
                const struct part *part = *text == '@' ? part_at(script, text) : NULL;
                bool begins_line = text == script->text || text[-1] == '\n';

                if (!part) {
                        putchar(*text++);
                        continue;
                }
                part->print();
                text += strlen(part->mark);
                if (begins_line && *text == '\n') /* a part of whole lines ends them itself */
                        text++;
        }
}

enum exit_status verb_completion(struct context *context _unused_, int argc _unused_, char *argv[])
{
        for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
                if (strcmp(scripts[i].shell, argv[0]) == 0) {
                        print_script(&scripts[i]);
                        return STATUS_OK;
                }
        fprintf(stderr, "ublkctl completion: unsupported shell '%s'; use bash or zsh.\n", argv[0]);
        return STATUS_USAGE;
}
