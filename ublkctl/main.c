/* SPDX-License-Identifier: MIT */
/* ublkctl: a client of ublkd for the command line. Finds the verb and runs it. */
#include "ublkctl/client/client.h"
#include "ublkctl/help.h"
#include "ublkctl/verbs.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/version.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool wants_colours(void)
{
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

static enum exit_status check_url(const char *url)
{
        static const char plain[] = "http://", tls[] = "https://";

        if (strncasecmp(url, plain, strlen(plain)) == 0)
                return STATUS_OK;
        if (strncasecmp(url, tls, strlen(tls)) == 0)
                fprintf(stderr,
                        "ublkctl: %s: ublkd does not support TLS; give http://HOST:PORT, and reach another "
                        "machine through a tunnel, as with 'ssh -L 8080:127.0.0.1:PORT HOST'.\n",
                        url);
        else
                fprintf(stderr,
                        "ublkctl: '%s' is not a valid ublkd URL; give one like http://127.0.0.1:8080.\n",
                        url);
        return STATUS_USAGE;
}

/* Choose the address of the daemon: the command line overrides the environment. */
static enum exit_status choose_daemon(struct settings *settings)
{
        bool socket = settings->given & SETTING_BIT(SETTING_SOCKET);

        if (socket && settings->given & SETTING_BIT(SETTING_URL)) {
                fputs("ublkctl: give --socket or --url, not both.\n", stderr);
                return STATUS_USAGE;
        }
        if (socket)
                settings->url = NULL;
        return settings->url ? check_url(settings->url) : STATUS_OK;
}

static enum exit_status run_with_daemon(
        const struct verb *verb, struct settings *settings, int argc, char *argv[])
{
        struct context context = {.settings = settings,
                .colours = wants_colours(),
                .terminal = isatty(STDOUT_FILENO),
                .progress = isatty(STDERR_FILENO)};
        enum exit_status status = choose_daemon(settings);

        if (status == STATUS_OK)
                status = client_new(settings, &context.client);
        if (status == STATUS_OK)
                status = verb->run(&context, argc, argv);
        client_free(context.client);
        return status;
}

/* selects: KEY!=VALUE is allowed, too. */
static enum exit_status check_labels(const struct text_list *labels, bool selects)
{
        for (size_t i = 0; i < labels->count; i++) {
                const char *equals = strchr(labels->items[i], '=');

                bool negated = equals && equals > labels->items[i] && equals[-1] == '!';

                if (equals && equals > labels->items[i] + negated && (selects || !negated)
                        && strcspn(labels->items[i], " !<>,()")
                                   >= (size_t)(equals - labels->items[i]) - negated)
                        continue;
                fprintf(stderr, "ublkctl: -l %s is not KEY=VALUE%s; give it like -l app=db.\n",
                        labels->items[i], selects ? " or KEY!=VALUE" : "");
                return STATUS_USAGE;
        }
        return STATUS_OK;
}

static enum exit_status run_verb(const struct verb *verb, struct settings *settings, int argc, char *argv[])
{
        enum exit_status status;
        char who[64];
        int first;

        snprintf(who, sizeof(who), "ublkctl %s", verb->name);
        status = settings_parse(settings, verb->settings | SETTINGS_COMMON, who, false, argc, argv, &first);
        if (status != STATUS_OK)
                return status;
        if (settings->help) {
                help_verb(verb, stdout);
                return STATUS_OK;
        }
        argc -= first;
        argv += first;
        if (argc < verb->arguments_min || argc > verb->arguments_max) {
                fputs("ublkctl: usage: ublkctl ", stderr);
                help_synopsis(verb, stderr);
                if (verb->arguments_max == 0 && verb->settings & SETTING_BIT(SETTING_FILES))
                        fputs("; each file needs an -f of its own", stderr);
                fprintf(stderr, "; try '%s --help'.\n", who);
                return STATUS_USAGE;
        }
        if (verb->local)
                return verb->run(NULL, argc, argv);
        status = check_labels(&settings->labels, verb->selects);
        if (status != STATUS_OK)
                return status;
        return run_with_daemon(verb, settings, argc, argv);
}

static enum exit_status run(int argc, char *argv[])
{
        struct settings settings;
        const struct verb *verb;
        enum exit_status status;
        int first;

        settings_default(&settings);
        status = settings_parse(&settings, SETTINGS_COMMON | SETTING_BIT(SETTING_VERSION), "ublkctl", true,
                argc, argv, &first);
        if (status != STATUS_OK)
                return status;
        if (settings.version)
                printf("ublkctl %s\n", ublkd_version);
        else if (settings.help)
                help_program(stdout);
        if (settings.version || settings.help)
                return STATUS_OK;
        verb = first < argc ? verb_find(argv[first]) : NULL;
        if (verb)
                return run_verb(verb, &settings, argc - first, argv + first);
        if (first < argc)
                return verb_refuse(argv[first]);
        help_program(stderr);
        return STATUS_USAGE;
}

/* All output must arrive: a full disk is a failure too. A reader that has left (head) needs no message. */
static enum exit_status close_output(void)
{
        struct stat stat;
        bool reader = fstat(STDOUT_FILENO, &stat) == 0 && (S_ISFIFO(stat.st_mode) || S_ISSOCK(stat.st_mode));
        bool failed = ferror(stdout);

        if (fclose(stdout) == 0 && !failed)
                return STATUS_OK;
        if (!reader)
                fputs("ublkctl: cannot write the whole output; is the disk full?\n", stderr);
        return STATUS_FAILED;
}

int main(int argc, char *argv[])
{
        enum exit_status status;

        (void)setlocale(LC_CTYPE, "");
        /* Finish the work even if the reader of the messages has left. */
        (void)signal(SIGPIPE, SIG_IGN);
        /* keep the order of both streams when they go to one file */
        (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
        status = run(argc, argv);
        return (int)exit_status_merge(status, close_output());
}
