/* SPDX-License-Identifier: MIT */
/* top: show the load of devices, from the differences of their counters. */
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/load.h"
#include "ublkctl/verbs/show/rate.h"
#include "ublkctl/verbs/show/stats.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

struct top {
        struct context *context;
        int count;
        char *const *names;
        bool refreshes; /* in place, on a terminal; else one table after the other */
        int signals;    /* signalfd of SIGINT and SIGTERM, or -1 */
        cJSON *before;
        uint64_t before_at;
        struct load *rows; /* of the last table; the names belong to `before` */
        size_t row_count;
};

static const cJSON *find_stats(const cJSON *all, const char *name)
{
        const cJSON *stats;

        cJSON_ArrayForEach (stats, all) {
                const char *other = json_text(stats, "name");

                if (other && strcmp(other, name) == 0)
                        return stats;
        }
        return NULL;
}

static double load_of(const struct load *row)
{
        return row->rate.reads + row->rate.writes + row->rate.others;
}

/* Continue the history of the device from its row in the last table. */
static void remember_load(const struct top *top, struct load *row)
{
        for (size_t i = 0; i < top->row_count; i++) {
                const struct load *old = &top->rows[i];
                size_t dropped = old->load_count == LOAD_HISTORY;

                if (strcmp(old->name, row->name) != 0)
                        continue;
                row->load_count = old->load_count - dropped;
                memcpy(row->loads, old->loads + dropped, row->load_count * sizeof(row->loads[0]));
        }
        row->loads[row->load_count++] = load_of(row);
}

/* The busiest first; equal ones in the order of their names. */
static int compare_rows(const void *one, const void *other)
{
        double a = load_of(one), b = load_of(other);

        return a > b   ? -1
               : a < b ? 1
                       : strcmp(((const struct load *)one)->name, ((const struct load *)other)->name);
}

static size_t make_rows(const struct top *top, const cJSON *now, double seconds, struct load *rows)
{
        const cJSON *stats;
        size_t count = 0;

        cJSON_ArrayForEach (stats, now) {
                struct load *row = &rows[count];

                *row = (struct load){.name = json_text(stats, "name")};
                if (!row->name)
                        continue;
                rate_between(find_stats(top->before, row->name), stats, seconds, &row->rate);
                remember_load(top, row);
                count++;
        }
        qsort(rows, count, sizeof(*rows), compare_rows);
        return count;
}

static enum exit_status print_rows(const struct top *top, const struct load *rows, size_t count)
{
        unsigned columns = 0, lines = 0;
        enum exit_status status;

        if (top->refreshes) {
                terminal_size(STDOUT_FILENO, &columns, &lines);
                fputs("\033[H\033[J", stdout); /* move to the corner, clear everything below */
        }
        /* one line for the headings, one for the cursor */
        status = load_table_print(top->context, rows, count, lines > 2 ? lines - 2 : 0, columns);
        if (status != STATUS_OK)
                return status;
        if (!top->refreshes)
                putchar('\n');
        return fflush(stdout) == 0 && !ferror(stdout) ? STATUS_OK : STATUS_FAILED;
}

static enum exit_status print_table(
        const struct top *top, const struct load *rows, size_t count, double seconds)
{
        int format = top->context->settings->output;
        enum exit_status status;

        if (!output_is_data(format))
                return print_rows(top, rows, count);
        status = load_data_print(format, rows, count, seconds);
        return fflush(stdout) == 0 && !ferror(stdout) ? status : STATUS_FAILED;
}

/* Read the counters, and print a table unless it is the first reading. */
static enum exit_status look(struct top *top)
{
        cJSON *now = NULL;
        enum exit_status status = fetch_stats(top->context, top->count, top->names, &now);
        uint64_t now_at = monotonic_now();

        if (status == STATUS_OK && top->before) {
                struct load *rows = calloc((size_t)cJSON_GetArraySize(now) + 1, sizeof(*rows));
                double seconds = (double)(now_at - top->before_at) / 1e6;
                size_t count = rows ? make_rows(top, now, seconds, rows) : 0;

                status = rows ? print_table(top, rows, count, seconds) : STATUS_FAILED;
                free(top->rows);
                top->rows = rows;
                top->row_count = count;
        }
        cJSON_Delete(top->before);
        top->before = now;
        top->before_at = now_at;
        return status;
}

/* Print why the last reading failed again, on the normal screen. STATUS_OK: it works now. */
static enum exit_status ask_again(const struct top *top)
{
        cJSON *stats = NULL;
        enum exit_status status = fetch_stats(top->context, top->count, top->names, &stats);

        cJSON_Delete(stats);
        return status;
}

static bool is_interrupted(const struct top *top)
{
        struct pollfd poll_fd = {.fd = top->signals, .events = POLLIN};

        return poll(&poll_fd, 1, 0) > 0;
}

/* Return true if the user has ended it. */
static bool pause_is_interrupted(const struct top *top)
{
        struct pollfd poll_fd = {.fd = top->signals, .events = POLLIN};
        uint64_t end = monotonic_now() + top->context->settings->interval, now;

        while ((now = monotonic_now()) < end)
                if (poll(&poll_fd, 1, (int)((end - now + 999) / 1000)) > 0)
                        return true;
        return false;
}

static enum exit_status run(struct top *top)
{
        const struct settings *settings = top->context->settings;
        bool counted = settings->given & SETTING_BIT(SETTING_ROUNDS);
        enum exit_status status = look(top);

        for (uint64_t round = 0; status == STATUS_OK && (!counted || round < settings->rounds); round++) {
                if (pause_is_interrupted(top))
                        break;
                status = look(top);
        }
        return is_interrupted(top) ? STATUS_OK : status;
}

/* Ctrl-C takes effect between two tables, or while the daemon does not answer, so that the terminal is
 * restored. */
static int catch_signals(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGTERM);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -1;
        return signalfd(-1, &set, SFD_CLOEXEC);
}

enum exit_status verb_top(struct context *context, int argc, char *argv[])
{
        struct top top = {.context = context,
                .count = argc,
                .names = argv,
                .refreshes = isatty(STDOUT_FILENO) && !context->settings->batch
                             && !output_is_data(context->settings->output),
                .signals = -1};
        enum exit_status status;

        if (top.refreshes) {
                top.signals = catch_signals();
                client_abort_on(context->client, top.signals);
                fputs("\033[?1049h\033[?25l", stdout); /* the alternate screen, without a cursor */
                fflush(stdout);
        }
        status = run(&top);
        if (top.refreshes) {
                fputs("\033[?25h\033[?1049l", stdout);
                fflush(stdout);
                if (status != STATUS_OK && !ferror(stdout)) /* messages are gone with that screen */
                        status = ask_again(&top);
        }
        client_abort_on(context->client, -1);
        close_fd(top.signals);
        free(top.rows);
        cJSON_Delete(top.before);
        return status;
}
