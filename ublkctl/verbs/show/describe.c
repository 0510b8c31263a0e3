/* SPDX-License-Identifier: MIT */
/* describe: show everything about a device to people. */
#include "ublkctl/text/amounts.h"
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/client/event_list.h"
#include "ublkctl/verbs/show/removal.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/table.h"
#include "ublkctl/text/times.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"

#include <stdio.h>
#include <string.h>

enum { COLUMN = 16, SPEC_DEPTH_MAX = 24 };

static void print_name(const char *name)
{
        printf("%s:%*s", name, (int)(COLUMN - strlen(name) - 1), "");
}

static void print_field(const char *name, const char *value)
{
        print_name(name);
        print_safely(stdout, value && *value ? value : "-");
        putchar('\n');
}

/* Print a field only if there is a value. */
static void print_given(const char *name, const char *value)
{
        if (value)
                print_field(name, value);
}

static void print_phase(const struct context *context, const cJSON *device)
{
        const char *phase = json_text(device, "status.phase");

        print_name("Phase");
        printf("%s", context->colours && phase ? paint_begin(phase_paint(phase)) : "");
        print_safely(stdout, phase ? phase : "-");
        puts(context->colours && phase ? paint_end() : "");
}

static void print_disk(const cJSON *device)
{
        const char *node = json_text(device, "status.device");
        const cJSON *link;

        print_name("Disk");
        print_safely(stdout, node ? node : "-");
        cJSON_ArrayForEach (link, json_find(device, "status.links"))
                if (cJSON_IsString(link)) {
                        fputs(", ", stdout);
                        print_safely(stdout, link->valuestring);
                }
        putchar('\n');
}

static void print_size(const cJSON *device)
{
        double bytes = json_number(device, "status.size", 0);
        char text[AMOUNT_TEXT_SIZE];

        print_name("Size");
        format_bytes(bytes, text);
        if (bytes > 0)
                printf("%s (%.0f bytes)\n", text, bytes);
        else
                puts("-");
}

/* Print a time and how long ago it was; on a terminal in the local time zone. */
static void print_time(const struct context *context, const char *time)
{
        char text[TIME_SHOWN_SIZE], age[AGE_SIZE];

        time_show(time, context->terminal, text);
        time_age(time, age);
        print_safely(stdout, text);
        printf(" (%s ago)", age);
}

static void print_created(const struct context *context, const cJSON *device)
{
        const char *created = json_text(device, "createdAt");

        if (!created)
                return;
        print_name("Created");
        print_time(context, created);
        if (json_true(device, "spec.temporary") && !json_text(device, "source")) /* a file brings it back */
                fputs(", until the next boot", stdout);
        putchar('\n');
}

static void print_worker(const struct context *context, const cJSON *device)
{
        const char *since = json_text(device, "status.worker.startedAt"),
                   *version = json_text(device, "status.worker.version");
        double pid = json_number(device, "status.worker.pid", 0), replaced;

        print_name("Worker");
        if (pid == 0) {
                puts("-");
                return;
        }
        printf("pid %.0f", pid);
        if (since) {
                fputs(" since ", stdout);
                print_time(context, since);
        }
        replaced = json_number(device, "status.worker.restarts", 0);
        printf(", %.0f worker%s replaced", replaced, replaced == 1 ? "" : "s");
        if (version) {
                fputs(", version ", stdout);
                print_safely(stdout, version);
        }
        puts(json_true(device, "status.needsRestart") ? ", needs a restart" : "");
}

/* Print the identity of a store. */
static void print_identity(const char *name, const cJSON *store, const char *more)
{
        const char *identity = json_text(store, "identity"), *basis = json_text(store, "basis");

        if (!cJSON_IsObject(store))
                return;
        print_name(name);
        print_safely(stdout, identity ? identity : "cannot be distinguished from others");
        if (identity && basis) {
                fputs(" (", stdout);
                print_safely(stdout, basis);
                fputs(json_true(store, "lasting") ? ")" : "; until the next boot)", stdout);
        }
        puts(more);
}

/* Print the store that the disk was created on, and a store that was found in its place. */
static void print_backing(const cJSON *device)
{
        const cJSON *backing = json_find(device, "status.backing"), *stores = json_find(backing, "stores"),
                    *store;

        cJSON_ArrayForEach (store, stores) {
                print_identity(
                        json_text(store, "target"), store, json_true(store, "kept") ? ", kept open" : "");
                print_identity("Found", json_find(store, "found"), ", which is another store");
        }
        if (cJSON_GetArraySize(stores) > 0)
                return;
        print_identity("Backing", backing, json_true(backing, "kept") ? ", kept open" : "");
        print_identity("Found", json_find(backing, "found"), ", which is another store");
}

static void print_data_path(const cJSON *device)
{
        const char *path = json_text(device, "status.dataPath"),
                   *reason = json_text(device, "status.dataPathReason");

        print_name("Data path");
        print_safely(stdout, path ? path : "-");
        if (path && json_true(device, "status.batch"))
                fputs(", in batches", stdout);
        if (path && reason) {
                fputs(": ", stdout);
                print_safely(stdout, reason);
        }
        putchar('\n');
}

static void print_errors_of_each(const cJSON *ops)
{
        const char *before = " (";
        const cJSON *op;

        cJSON_ArrayForEach (op, ops) {
                double errors = json_number(op, "errors", 0);

                if (errors <= 0)
                        continue;
                printf("%s%s %.0f", before, op->string, errors);
                before = ", ";
        }
        puts(")");
}

static double sum_of_errors(const cJSON *ops)
{
        double sum = 0;
        const cJSON *op;

        cJSON_ArrayForEach (op, ops)
                sum += json_number(op, "errors", 0);
        return sum;
}

/* Print the requests that the worker has answered with an error, from its counters; "-" if they cannot be
 * read. */
static void print_io_errors(const struct context *context, const char *device)
{
        _cleanup_free_ char *path = device ? device_path(device, "/stats") : NULL;
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer answer = {};
        const cJSON *ops = NULL;
        double errors;

        if (path && client_ask(context->client, &request, true, &answer) == STATUS_OK && answer.status < 400)
                ops = json_find(answer.json, "total.ops");
        errors = sum_of_errors(ops);
        print_name("I/O errors");
        if (errors == 0) {
                puts(ops ? "none" : "-");
                return;
        }
        printf("%s%.0f%s", context->colours ? paint_begin(PAINT_BAD) : "", errors,
                context->colours ? paint_end() : "");
        print_errors_of_each(ops);
}

/* Print the newest failed request of each operation. */
static void print_newest_errors(const struct context *context, const cJSON *device)
{
        const cJSON *error;

        cJSON_ArrayForEach (error, json_find(device, "status.ioErrors")) {
                const char *op = json_text(error, "op"), *number = json_text(error, "errno"),
                           *at = json_text(error, "at");

                print_name("Last error");
                print_safely(stdout, op ? op : "-");
                if (cJSON_IsNumber(json_find(error, "offset")))
                        printf(" of %.0f bytes at byte %.0f", json_number(error, "length", 0),
                                json_number(error, "offset", 0));
                fputs(": ", stdout);
                print_safely(stdout, number ? number : "-");
                if (at) {
                        fputs(", ", stdout);
                        print_time(context, at);
                }
                putchar('\n');
        }
}

static void print_recoveries(const cJSON *device)
{
        double count = json_number(device, "status.recoveries.count", 0);

        print_name("Recoveries");
        if (count > 0)
                printf("%.0f, the last one took %.1f ms\n", count,
                        json_number(device, "status.recoveries.lastMs", 0));
        else
                puts("none");
}

static void print_generation(const cJSON *device)
{
        double generation = json_number(device, "generation", 0),
               observed = json_number(device, "status.observedGeneration", 0);

        print_name("Generation");
        printf("%.0f%s\n", generation, observed < generation ? " (not yet in effect)" : "");
}

static void print_features(const cJSON *device)
{
        const cJSON *feature;

        print_name("ublk features");
        cJSON_ArrayForEach (feature, json_find(device, "status.kernelFeatures"))
                if (cJSON_IsString(feature)) {
                        print_safely(stdout, feature->valuestring);
                        putchar(feature->next ? ' ' : '\n');
                }
        if (cJSON_GetArraySize(json_find(device, "status.kernelFeatures")) == 0)
                puts("-");
}

static void print_value(const cJSON *value)
{
        char *text = cJSON_IsString(value) ? NULL : json_print(value);

        print_safely(stdout, cJSON_IsString(value) ? value->valuestring : text ? text : "?");
        putchar('\n');
        cJSON_free(text);
}

/* Return whether the value has fields, or items with fields, as the children of a target. */
static bool has_fields(const cJSON *value)
{
        return cJSON_IsObject(value) || (cJSON_IsArray(value) && cJSON_IsObject(value->child));
}

/* Print the fields of the spec, with dots for those of objects and the numbers of items. */
static void print_spec(const cJSON *object, const char *path, unsigned depth)
{
        const cJSON *member;
        int number = 0;

        cJSON_ArrayForEach (member, object) {
                _cleanup_free_ char *name = NULL;
                int r = member->string ? asprintf(&name, "%s%s%s", path, *path ? "." : "", member->string)
                                       : asprintf(&name, "%s.%d", path, number++);

                if (r < 0) {
                        name = NULL;
                        return;
                }
                if (has_fields(member) && depth < SPEC_DEPTH_MAX) {
                        print_spec(member, name, depth + 1);
                        continue;
                }
                fputs("  ", stdout);
                print_safely(stdout, name);
                fputs(" = ", stdout);
                print_value(member);
        }
}

/* Add the message, with the age of what it is about where the condition has that. */
static void add_message(struct table *table, const cJSON *condition)
{
        const char *message = json_text(condition, "message"), *at = json_text(condition, "observedAt");
        char age[AGE_SIZE];

        if (!message || !at) {
                table_add(table, message);
                return;
        }
        time_age(at, age);
        table_add_format(table, "%s (ublkd looked %s ago.)", message, age);
}

static enum exit_status print_conditions(const struct context *context, const cJSON *device)
{
        static const char *const headings[] = {
                "  TYPE", "STATUS", "REASON", "SINCE", ">AGE", "MESSAGE", NULL};
        _cleanup_table_ struct table *table = table_new(headings);
        char since[TIME_SHOWN_SIZE], age[AGE_SIZE];
        const cJSON *condition;

        puts("Conditions:");
        if (!table)
                return STATUS_FAILED;
        cJSON_ArrayForEach (condition, json_find(device, "status.conditions")) {
                const char *type = json_text(condition, "type"), *is = json_text(condition, "status");
                bool good = is && strcmp(is, "True") == 0;

                table_add_format(table, "  %s", type ? type : "-");
                table_add_painted(table, good ? PAINT_GOOD : PAINT_BAD, is);
                table_add(table, json_text(condition, "reason"));
                time_show(json_text(condition, "lastTransitionTime"), context->terminal, since);
                time_age(json_text(condition, "lastTransitionTime"), age);
                table_add(table, since);
                table_add(table, age);
                add_message(table, condition);
        }
        return table_print(table, stdout, context->colours, 0, 0) < 0 ? STATUS_FAILED : STATUS_OK;
}

static void print_next_try(const struct context *context, const cJSON *device)
{
        const char *at = json_text(device, "status.nextTryAt");
        double attempts = json_number(device, "status.attempts", 0);
        char text[128], when[TIME_SHOWN_SIZE];

        if (!at)
                return;
        time_show(at, context->terminal, when);
        snprintf(text, sizeof(text), "%s; %.0f in a row %s failed", when, attempts,
                attempts == 1 ? "has" : "have");
        print_field("Next attempt", text);
}

static void print_fault(const cJSON *device, const char *type)
{
        const cJSON *condition = json_condition(device, type);
        const char *status = json_text(condition, "status"), *message = json_text(condition, "message");

        if (!status || !message || strcmp(status, "False") != 0)
                return;
        putchar(' ');
        print_safely(stdout, message);
}

/* Print what the users of a disk in service must know of its store, its worker and its partitions. */
static void print_store_faults(const cJSON *device)
{
        static const char *const types[] = {"BackingWhole", "Durable", "Space", "ErrorFree", "Progress",
                "Resources", "Partitions", "Source"};

        if (device_is_ready(device)) /* else the message of Ready names the fault of the path */
                print_fault(device, "PathLeadsToStore");
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                print_fault(device, types[i]);
}

/* Print why the device is not Live, and what ublkd does next. */
static void print_next(const struct context *context, const cJSON *device)
{
        const char *message = device_message(device);

        if (*message) {
                print_name(device_is_ready(device) ? "Now" : "Next");
                print_safely(stdout, message);
                print_store_faults(device);
                putchar('\n');
        }
        print_next_try(context, device);
}

static void print_filesystem(const cJSON *device)
{
        const char *type = json_text(device, "status.filesystem.type");
        const char *state = json_text(device, "status.filesystem.state");
        const char *uuid = json_text(device, "status.filesystem.uuid");
        char text[128];

        if (type && state && uuid) {
                snprintf(text, sizeof(text), "%s, %s, UUID %s", type, state, uuid);
                print_field("File system", text);
        }
        if (json_text(device, "status.mount")) {
                print_name("Mount");
                print_safely(stdout, json_text(device, "status.mount"));
                puts(", keeps the disk in use");
        }
}

static enum exit_status print_users(struct context *context, const char *name)
{
        cJSON *foreseen = NULL;
        enum exit_status status = removal_foresee(context, name, true, &foreseen);
        const char *users = removal_users(foreseen);

        if (status == STATUS_OK)
                print_field("Users", users ? users : "none");
        else
                print_field("Users", "not known: only who may remove the device may ask; see 'fuser -vm' and "
                                     "'findmnt' of its node");
        cJSON_Delete(foreseen);
        return status;
}

static enum exit_status describe(struct context *context, const cJSON *device)
{
        const char *name = json_text(device, "name");
        enum exit_status status = STATUS_OK;

        print_field("Name", name);
        print_phase(context, device);
        print_next(context, device);
        print_disk(device);
        print_given("Node", json_text(device, "status.node"));
        if (name && context->settings->users)
                status = print_users(context, name);
        print_size(device);
        print_backing(device);
        print_filesystem(device);
        print_data_path(device);
        print_worker(context, device);
        print_io_errors(context, name);
        print_newest_errors(context, device);
        print_recoveries(device);
        print_features(device);
        print_generation(device);
        print_created(context, device);
        print_field("Uid", json_text(device, "uid"));
        print_given("Tenant", json_text(device, "tenant"));
        print_given("Source", json_text(device, "source"));
        puts("Spec:");
        print_spec(json_find(device, "spec"), "", 0);
        status = exit_status_merge(status, print_conditions(context, device));
        if (name)
                print_device_events(context, name, json_text(device, "uid"));
        return status;
}

enum exit_status verb_describe(struct context *context, int argc, char *argv[])
{
        enum exit_status status = STATUS_OK;
        bool first = true;

        for (int i = 0; i < argc; i++) {
                _cleanup_answer_ struct answer answer = {};
                enum exit_status one = call_get(context, argv[i], &answer);

                if (one == STATUS_OK) {
                        fputs(first ? "" : "\n", stdout);
                        first = false;
                        one = describe(context, answer.json);
                }
                status = exit_status_merge(status, one);
                if (one == STATUS_NO_DAEMON)
                        break;
        }
        return status;
}
