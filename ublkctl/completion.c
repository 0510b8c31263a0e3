/* SPDX-License-Identifier: MIT */
/* completion: scripts for bash and zsh, made from the table of verbs. The scripts ask the daemon for the
 * names of devices, at the place that the command line says. That server may be hostile: a shell must expand
 * nothing of what it answers, and what cannot be the name of a device is not offered. */
#include "ublkctl/verbs.h"

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

/* One line of a case on $prev: what an option's value may be. */
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
        } else {
                puts("return ;;");
        }
}

static void print_bash_verb(const struct verb *verb)
{
        static const char *const arguments[] = {
                [COMPLETE_NOTHING] = "",
                [COMPLETE_FILE] = "files=yes",
                [COMPLETE_DEVICE] = "words=$(_ublkctl_devices)",
                [COMPLETE_NODE_OR_FILE] = "files=yes words=$(_ublkctl_devices)",
                [COMPLETE_ADOPTABLE] = "words=$(_ublkctl_devices host)",
                [COMPLETE_CHOICE] = "",
        };

        printf("\t%s)\n\t\toptions='", verb->name);
        print_option_words(verb->settings | SETTINGS_COMMON);
        puts("'\n\t\tcase $prev in");
        for (int id = 0; id < _SETTING_MAX; id++)
                if ((verb->settings | SETTINGS_COMMON) & SETTING_BIT(id) && setting_get(id)->value)
                        print_bash_value(setting_get(id));
        fputs("\t\t*) ", stdout);
        if (verb->words) {
                fputs("words='", stdout);
                print_choices(verb->words);
                fputs("'", stdout);
        } else {
                fputs(arguments[verb->completion], stdout);
        }
        puts(" ;;\n\t\tesac\n\t\t;;");
}

static const char bash_head[] =
        "# bash completion of ublkctl, printed by 'ublkctl completion bash'\n"
        "_ublkctl_devices() {\n"
        "\tlocal i name where=()\n"
        "\tfor ((i = 1; i < COMP_CWORD - 1; i++)); do\n"
        "\t\tcase ${COMP_WORDS[i]} in\n"
        "\t\t-s | --socket | --url | --token-file) where+=(\"${COMP_WORDS[i]}\" "
        "\"${COMP_WORDS[i + 1]}\") ;;\n"
        "\t\tesac\n"
        "\tdone\n"
        "\twhile IFS= read -r name; do\n"
        "\t\t[[ $name =~ ^[a-z0-9][a-z0-9._-]*$ ]] && echo \"$name\"\n"
        "\tdone < <(command ublkctl \"${where[@]}\" \"${1:-list}\" -o name 2>/dev/null)\n"
        "}\n\n"
        "# Unlike compgen -W it expands nothing in the words.\n"
        "_ublkctl_offer() {\n"
        "\tlocal word list\n"
        "\tread -r -d '' -a list <<<\"$1\"\n"
        "\tfor word in \"${list[@]}\"; do\n"
        "\t\t[[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\")\n"
        "\tdone\n"
        "}\n\n"
        "_ublkctl() {\n"
        "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "\tlocal i verb= options= words= files=\n"
        "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
        "\t\tcase ${COMP_WORDS[i]} in\n"
        "\t\t-s | --socket | --url | --token-file) i=$((i + 1)) ;;\n"
        "\t\t-*) ;;\n"
        "\t\t*)\n"
        "\t\t\tverb=${COMP_WORDS[i]}\n"
        "\t\t\tbreak\n"
        "\t\t\t;;\n"
        "\t\tesac\n"
        "\tdone\n"
        "\tcase $verb in\n";

static const char bash_tail[] =
        "\tesac\n"
        "\tCOMPREPLY=()\n"
        "\tif [[ $cur == -* ]]; then\n"
        "\t\t_ublkctl_offer \"$options\"\n"
        "\t\treturn\n"
        "\tfi\n"
        "\t_ublkctl_offer \"$words\"\n"
        "\tif [[ $files ]]; then\n"
        "\t\tcompopt -o filenames 2>/dev/null\n"
        "\t\tlocal file\n"
        "\t\twhile IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- \"$cur\")\n"
        "\tfi\n"
        "}\n"
        "complete -F _ublkctl ublkctl\n";

static void print_verb_words(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        printf("%s%s", i ? " " : "", verbs[i].name);
}

static void print_bash(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        fputs(bash_head, stdout);
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
        fputs(bash_tail, stdout);
}

/* ---- zsh ---- */

/* Text inside single quotes, and inside the brackets or behind the colon of _arguments. */
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
        printf(" \\\n\t\t\t'%s%s%.*s[", setting->kind == SETTING_KIND_LIST ? "*" : "", dashes, (int)length,
                name);
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
        printf("\t%s)\n\t\t_arguments -s", verb->name);
        print_zsh_options(verb->settings | SETTINGS_COMMON);
        if (strcmp(verb->name, "help") == 0) {
                fputs(" \\\n\t\t\t'1:verb:(", stdout);
                print_verb_words();
                fputs(")'", stdout);
        } else if (verb->arguments_max > 0) {
                printf(" \\\n\t\t\t'%s:argument:", verb->arguments_max == ARGUMENTS_ANY ? "*" : "1");
                print_zsh_action(verb->completion, verb->words);
                putchar('\'');
        }
        puts("\n\t\t;;");
}

static const char zsh_head[] =
        "#compdef ublkctl\n"
        "# zsh completion of ublkctl, printed by 'ublkctl completion zsh'\n"
        "_ublkctl_devices() {\n"
        "\tlocal -a names where\n"
        "\tlocal option\n"
        "\tfor option in --socket -s --url --token-file; do\n"
        "\t\t[[ -n ${opt_args[$option]} ]] && where+=($option ${(Q)opt_args[$option]})\n"
        "\tdone\n"
        "\tnames=(${(f)\"$(command ublkctl $ublkctl_where $where ${ublkctl_verb:-list} -o name "
        "2>/dev/null)\"})\n"
        "\tnames=(${${names:#*[^a-z0-9._-]*}:#[^a-z0-9]*})\n"
        "\t_describe -t devices device names\n"
        "}\n\n"
        "_ublkctl_adoptable() {\n"
        "\tlocal ublkctl_verb=host\n"
        "\t_ublkctl_devices\n"
        "}\n\n"
        "_ublkctl_disks() {\n"
        "\t_alternative 'devices:device:_ublkctl_devices' 'files:file:_files'\n"
        "}\n\n"
        "_ublkctl_verbs() {\n"
        "\tlocal -a verbs\n"
        "\tverbs=(\n";

static const char zsh_middle[] = "\t)\n"
                                 "\t_describe -t verbs verb verbs\n"
                                 "}\n\n"
                                 "_ublkctl() {\n"
                                 "\tlocal curcontext=$curcontext state line option\n"
                                 "\tlocal -a ublkctl_where\n"
                                 "\ttypeset -A opt_args\n"
                                 "\t_arguments -C -s";

static const char zsh_switch[] =
        " \\\n"
        "\t\t\t'1:verb:_ublkctl_verbs' \\\n"
        "\t\t\t'*::argument:->arguments'\n"
        "\t[[ $state == arguments ]] || return\n"
        "\tfor option in --socket -s --url --token-file; do\n"
        "\t\t[[ -n ${opt_args[$option]} ]] && ublkctl_where+=($option ${(Q)opt_args[$option]})\n"
        "\tdone\n"
        "\tcurcontext=\"${curcontext%:*:*}:ublkctl-$line[1]:\"\n"
        "\tcase $line[1] in\n";

static void print_zsh(void)
{
        size_t count;
        const struct verb *verbs = verbs_all(&count);

        fputs(zsh_head, stdout);
        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden) {
                        printf("\t\t'%s:", verbs[i].name);
                        print_zsh_text(verbs[i].summary);
                        puts("'");
                }
        fputs(zsh_middle, stdout);
        print_zsh_options(SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION));
        fputs(zsh_switch, stdout);
        for (size_t i = 0; i < count; i++)
                if (!verbs[i].hidden)
                        print_zsh_verb(&verbs[i]);
        fputs("\tesac\n}\n\n_ublkctl \"$@\"\n", stdout);
}

enum exit_status verb_completion(struct context *context _unused_, int argc _unused_, char *argv[])
{
        static const struct {
                const char *shell;
                void (*print)(void);
        } shells[] = {
                {"bash", print_bash},
                {"zsh",  print_zsh }
        };

        for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
                if (strcmp(shells[i].shell, argv[0]) == 0) {
                        shells[i].print();
                        return STATUS_OK;
                }
        fprintf(stderr, "ublkctl completion: '%s' is unknown; there is bash and zsh.\n", argv[0]);
        return STATUS_USAGE;
}
