/* SPDX-License-Identifier: MIT */
/* host and targets: show what this machine and this build support. */
#include "ublkctl/client/call.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/text/table.h"
#include "ublkctl/verbs.h"
#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <string.h>

static void print_field(const char *name, const char *value)
{
        printf("%-10s", name);
        print_safely(stdout, value ? value : "-");
        putchar('\n');
}

static void print_part(const char *before, const char *value)
{
        fputs(before, stdout);
        print_safely(stdout, value);
}

static void print_features(const cJSON *features)
{
        const cJSON *feature;

        fputs("Features: ", stdout);
        cJSON_ArrayForEach (feature, features)
                if (cJSON_IsString(feature)) {
                        print_safely(stdout, feature->valuestring);
                        putchar(feature->next ? ' ' : '\n');
                }
        if (cJSON_GetArraySize(features) == 0)
                puts("-");
}

static void print_sockets(const cJSON *sockets)
{
        const cJSON *socket;

        cJSON_ArrayForEach (socket, sockets) {
                const char *path = json_text(socket, "path"), *group = json_text(socket, "group"),
                           *mode = json_text(socket, "mode"), *opener = json_text(socket, "openedBy");

                printf("%-10s", "Socket:");
                print_safely(stdout, path ? path : "-");
                if (group)
                        print_part(", group ", group);
                else if (mode)
                        printf(", group %.0f", json_number(socket, "gid", 0));
                if (mode)
                        print_part(", mode ", mode);
                puts(opener && strcmp(opener, "systemd") == 0 ? ", from systemd" : "");
        }
}

/* Who may read, beside clients that may change devices. */
static void print_readers(const cJSON *policy)
{
        const char *readers = json_text(policy, "readers"), *group = json_text(policy, "readersGroup");

        printf("%-10s", "Readers:");
        if (group)
                print_part("group ", group);
        else
                fputs(readers && strcmp(readers, "everyone") == 0 ? "everyone" : "-", stdout);
        putchar('\n');
}

/* What workers are confined with. An earlier ublkd does not say it. */
static void print_walls(const cJSON *walls, const char *sandbox)
{
        const struct {
                const char *name;
                bool missing;
        } parts[] = {
                {"Landlock", json_number(walls, "landlock", 0) == 0},
                {"a filter of system calls", !json_true(walls, "callFilter")},
                {"failfs", !json_true(walls, "noPaths")},
        };
        const char *before = "";

        if (sandbox)
                print_field("Sandbox:", sandbox);
        for (size_t i = 0; walls && i < ARRAY_SIZE(parts); i++)
                if (parts[i].missing) {
                        printf("%s%s", *before ? before : "Lacks:    ", parts[i].name);
                        before = ", ";
                }
        if (*before)
                putchar('\n');
}

/* A setting that has no effect is worth a sentence. */
static void print_socket_group(const cJSON *group)
{
        const char *name = json_text(group, "name");

        if (!name || json_true(group, "effective"))
                return;
        printf("%-10sSocketGroup=", "");
        print_safely(stdout, name);
        fputs(" is not in effect; set SocketGroup= and SocketMode=0660 in a drop-in of ublkd.socket: "
              "'systemctl edit ublkd.socket'\n",
                stdout);
}

static void print_problems(const struct context *context, const cJSON *problems)
{
        const cJSON *problem;

        puts(cJSON_GetArraySize(problems) ? "\nProblems:" : "\nNo problems.");
        cJSON_ArrayForEach (problem, problems) {
                const char *title = json_text(problem, "title"), *detail = json_text(problem, "detail");

                printf("  %s", context->colours ? paint_begin(PAINT_BAD) : "");
                print_safely(stdout, title ? title : "");
                printf("%s: ", context->colours ? paint_end() : "");
                print_safely(stdout, detail ? detail : "");
                putchar('\n');
        }
}

/* Those to adopt have a list of their own. */
static bool is_listed(const cJSON *adoptable, const cJSON *disk)
{
        const cJSON *item, *id = json_find(disk, "id");

        cJSON_ArrayForEach (item, adoptable)
                if (cJSON_IsNumber(id) && cJSON_Compare(json_find(item, "id"), id, true))
                        return true;
        return false;
}

static void print_foreign_disks(const cJSON *disks, const cJSON *adoptable)
{
        const cJSON *disk;
        bool begun = false;

        cJSON_ArrayForEach (disk, disks) {
                const char *device = json_text(disk, "device"), *state = json_text(disk, "state"),
                           *command = json_text(disk, "process.command");
                const cJSON *pid = json_find(disk, "process.pid");

                if (is_listed(adoptable, disk))
                        continue;
                fputs(begun ? "  " : "\nDisks of other programs:\n  ", stdout);
                begun = true;
                print_safely(stdout, device ? device : "");
                fputs(", ", stdout);
                print_safely(stdout, state ? state : "");
                if (cJSON_IsNumber(pid) && command) {
                        printf(", served by process %.0f (", pid->valuedouble);
                        print_safely(stdout, command);
                        putchar(')');
                }
                puts(json_true(disk, "managed") ? ", of another ublkd" : "");
        }
}

/* Return the name; the uid if it has no name here. */
static const char *adoptable_name(const cJSON *item)
{
        const char *name = json_text(item, "name");

        return name ? name : json_text(item, "uid");
}

static void print_adoptable(const cJSON *adoptable)
{
        const cJSON *item;

        if (cJSON_GetArraySize(adoptable) > 0)
                puts("\nDisks to adopt, of another database:");
        cJSON_ArrayForEach (item, adoptable) {
                const char *name = adoptable_name(item), *device = json_text(item, "device"),
                           *detail = json_text(item, "detail");

                fputs("  ", stdout);
                print_safely(stdout, name ? name : device ? device : "-");
                if (name && device) {
                        fputs(", ", stdout);
                        print_safely(stdout, device);
                }
                fputs(json_true(item, "served") ? ", served: " : ": ", stdout);
                print_safely(stdout, detail ? detail : "");
                putchar('\n');
        }
}

static void print_adoptable_names(const cJSON *adoptable)
{
        const cJSON *item;

        cJSON_ArrayForEach (item, adoptable) {
                const char *name = adoptable_name(item);

                if (name) {
                        print_safely(stdout, name);
                        putchar('\n');
                }
        }
}

enum exit_status verb_host(struct context *context, int argc _unused_, char *argv[] _unused_)
{
        struct request request = {.method = "GET", .path = "/host"};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = call(context, &request, NULL, &answer);
        const cJSON *problems;

        if (status != STATUS_OK)
                return status;
        problems = json_find(answer.json, "problems");
        if (output_is_data(context->settings->output)) {
                status = show_data(context->settings->output, answer.json);
        } else if (context->settings->output == OUTPUT_NAME) {
                print_adoptable_names(json_find(answer.json, "adoptable"));
        } else {
                print_field("ublkd:", json_text(answer.json, "version"));
                print_field("Kernel:", json_text(answer.json, "kernel"));
                print_field(
                        "ublk:", json_true(answer.json, "ublk.available") ? "available" : "not available");
                print_features(json_find(answer.json, "ublk.features"));
                print_sockets(json_find(answer.json, "sockets"));
                print_socket_group(json_find(answer.json, "policy.socketGroup"));
                print_readers(json_find(answer.json, "policy"));
                print_walls(json_find(answer.json, "walls"),
                        json_text(json_find(answer.json, "policy"), "sandbox"));
                print_foreign_disks(
                        json_find(answer.json, "foreignDisks"), json_find(answer.json, "adoptable"));
                print_adoptable(json_find(answer.json, "adoptable"));
                print_problems(context, problems);
        }
        return cJSON_GetArraySize(problems) > 0 ? exit_status_merge(status, STATUS_FAILED) : status;
}

enum exit_status verb_targets(struct context *context, int argc _unused_, char *argv[] _unused_)
{
        static const char *const headings[] = {"NAME", "SUMMARY", NULL};
        struct request request = {.method = "GET", .path = "/targets"};
        _cleanup_table_ struct table *table = table_new(headings);
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = table ? call(context, &request, NULL, &answer) : STATUS_FAILED;
        const cJSON *target;

        if (status != STATUS_OK)
                return status;
        if (output_is_data(context->settings->output))
                return show_data(context->settings->output, answer.json);
        cJSON_ArrayForEach (target, json_find(answer.json, "items")) {
                if (context->settings->output == OUTPUT_NAME)
                        puts(json_text(target, "name"));
                table_add(table, json_text(target, "name"));
                table_add(table, json_text(target, "summary"));
        }
        if (context->settings->output == OUTPUT_NAME)
                return STATUS_OK;
        return table_print(table, stdout, context->colours, 0, 0) < 0 ? STATUS_FAILED : STATUS_OK;
}
