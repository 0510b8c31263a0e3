/* SPDX-License-Identifier: MIT */
/* apply: create and change devices until they match their files. */
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/spec/documents.h"
#include "ublkctl/verbs/change/dry_run.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/change/prune.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs/change/shrink.h"
#include "ublkctl/spec/image_path.h"
#include "ublkctl/spec/spec_diff.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { COLLISIONS_MAX = 5 };

enum outcome { OUTCOME_NONE, OUTCOME_CREATED, OUTCOME_CHANGED, OUTCOME_UNCHANGED, _OUTCOME_MAX };

static const struct {
        const char *done, *would;
        enum paint paint;
} outcomes[] = {
        [OUTCOME_NONE] = {.done = "", .would = ""},
        [OUTCOME_CREATED] = {.done = "created", .would = "would be created", .paint = PAINT_GOOD},
        [OUTCOME_CHANGED] = {.done = "changed", .would = "would be changed", .paint = PAINT_BUSY},
        [OUTCOME_UNCHANGED] = {.done = "unchanged", .would = "unchanged", .paint = PAINT_DIM},
};
static_assert(ARRAY_SIZE(outcomes) == _OUTCOME_MAX, "every outcome has words");

struct apply {
        struct context *context;
        struct documents documents;
        enum exit_status *results; /* one for each document */
        enum exit_status pruned;
        bool nameless; /* a spec has no name, so its device is unknown */
};

static void print_outcome(const struct context *context, const char *name, enum outcome outcome)
{
        print_safely(stdout, name);
        printf(" %s%s%s\n", context->colours ? paint_begin(outcomes[outcome].paint) : "",
                context->settings->dry_run ? outcomes[outcome].would : outcomes[outcome].done,
                context->colours ? paint_end() : "");
}

/* ---- dry run ---- */

static void print_value(const cJSON *value)
{
        char *text = value ? json_print(value) : NULL;

        print_safely(stdout, text ? text : "(unset)");
        cJSON_free(text);
}

static void print_difference(void *userdata _unused_, const char *field, const cJSON *old, const cJSON *new)
{
        fputs("  ", stdout);
        print_safely(stdout, field);
        fputs(": ", stdout);
        print_value(old);
        fputs(" -> ", stdout);
        print_value(new);
        putchar('\n');
}

static void ignore_difference(void *userdata _unused_, const char *field _unused_, const cJSON *old _unused_,
        const cJSON *new _unused_)
{
}

/* Fetch a schema for its defaults; the caller deletes it. NULL: none. */
static cJSON *fetch_schema(struct context *context, const char *folder, const char *name)
{
        _cleanup_free_ char *encoded = url_encode(name);
        _cleanup_free_ char *path = NULL;
        _cleanup_answer_ struct answer answer = {};
        struct request request = {.method = "GET"};

        if (!encoded || asprintf(&path, "/schemas/%s%s", folder, encoded) < 0) {
                path = NULL;
                return NULL;
        }
        request.path = path;
        if (client_ask(context->client, &request, true, &answer) != STATUS_OK || answer.status >= 400)
                return NULL;
        return TAKE_PTR(answer.json);
}

static enum outcome compare(struct context *context, const char *name, const cJSON *old, const cJSON *new)
{
        const char *type = json_text(new, "target.type");
        cJSON *schema = fetch_schema(context, "", "device"),
              *target = type ? fetch_schema(context, "targets/", type) : NULL;
        unsigned count = spec_diff(old, new, schema, target, ignore_difference, NULL);

        print_outcome(context, name, count ? OUTCOME_CHANGED : OUTCOME_UNCHANGED);
        (void)spec_diff(old, new, schema, target, print_difference, NULL);
        cJSON_Delete(schema);
        cJSON_Delete(target);
        return count ? OUTCOME_CHANGED : OUTCOME_UNCHANGED;
}

/* Return the file that alone may change the device, or NULL. When the file has gone, a client may. */
static const char *owner_of(const cJSON *device)
{
        const char *source = json_text(device, "source"),
                   *reason = json_text(json_condition(device, "Source"), "reason");

        return source && (!reason || strcmp(reason, "FileGone") != 0) ? source : NULL;
}

static enum exit_status refuse_owned(const char *name, const char *owner)
{
        print_safely(stdout, name);
        fputs(" owned by ", stdout);
        print_safely(stdout, owner);
        puts(", would be refused");
        return STATUS_REFUSED;
}

/* `device`: its present state; NULL: it does not exist. */
static enum exit_status rehearse(
        struct context *context, const char *name, const cJSON *device, const cJSON *spec)
{
        enum exit_status status = dry_run_check(name, spec);
        cJSON *whole = image_path_carry(spec, json_find(device, "spec"));

        if (status == STATUS_OK && !whole)
                status = STATUS_FAILED;
        if (status == STATUS_OK)
                status = check_shrink(context, name, device, json_find(spec, "size"));
        if (status == STATUS_OK && !device)
                print_outcome(context, name, OUTCOME_CREATED);
        else if (status == STATUS_OK
                 && compare(context, name, json_find(device, "spec"), whole) == OUTCOME_CHANGED)
                status = owner_of(device) ? refuse_owned(name, owner_of(device))
                                          : dry_run_report_disk(context, device, whole);
        cJSON_Delete(whole);
        return status;
}

/* ---- one device ---- */

/* Make one attempt. *ret_collision: another client changed the device between our GET and our PUT. */
static enum exit_status put_once(struct context *context, const char *name, const cJSON *spec,
        const struct answer *before, enum outcome *ret, bool *ret_collision)
{
        _cleanup_free_ char *path = device_path(name, "");
        bool exists = before->status == 200;
        struct request request = {.method = "PUT",
                .path = path,
                .body = spec,
                .if_match = exists && *before->etag ? before->etag : NULL,
                .if_none_match = !exists};
        _cleanup_answer_ struct answer after = {};
        enum exit_status status = path ? client_ask(context->client, &request, false, &after) : STATUS_FAILED;

        *ret_collision = status == STATUS_OK && after.status == 412;
        if (status != STATUS_OK || *ret_collision)
                return status;
        if (after.status >= 400)
                return report_problem(&request, name, &after);
        *ret = !exists ? OUTCOME_CREATED
               : json_number(before->json, "generation", 0) == json_number(after.json, "generation", 0)
                       ? OUTCOME_UNCHANGED
                       : OUTCOME_CHANGED;
        return STATUS_OK;
}

/* Compare the device with its spec, and change it if needed. */
static enum exit_status apply_once(
        struct context *context, const char *name, const cJSON *spec, enum outcome *ret, bool *ret_collision)
{
        _cleanup_free_ char *path = device_path(name, "");
        struct request request = {.method = "GET", .path = path};
        _cleanup_answer_ struct answer before = {};
        enum exit_status status =
                path ? client_ask(context->client, &request, false, &before) : STATUS_FAILED;
        bool missing = is_problem(&before, "no-such-device");
        const cJSON *stored = json_find(before.json, "spec");

        *ret_collision = false;
        if (status != STATUS_OK)
                return status;
        if (before.status >= 400 && !missing)
                return report_problem(&request, name, &before);
        if (context->settings->dry_run) {
                *ret = OUTCOME_NONE; /* printed */
                return rehearse(context, name, missing ? NULL : before.json, spec);
        }
        if (stored && cJSON_Compare(stored, spec, true)) {
                *ret = OUTCOME_UNCHANGED;
                return STATUS_OK;
        }
        status = check_shrink(context, name, missing ? NULL : before.json, json_find(spec, "size"));
        return status == STATUS_OK ? put_once(context, name, spec, &before, ret, ret_collision) : status;
}

static enum exit_status apply_one(struct context *context, const char *name, const cJSON *spec)
{
        enum outcome outcome = OUTCOME_NONE;
        enum exit_status status;
        bool collision;

        for (int i = 0; i < COLLISIONS_MAX; i++) {
                status = apply_once(context, name, spec, &outcome, &collision);
                if (status != STATUS_OK)
                        return status;
                if (collision)
                        continue;
                if (outcome != OUTCOME_NONE)
                        print_outcome(context, name, outcome);
                return STATUS_OK;
        }
        complain(name, "Another client keeps changing this device, which was left as it is; try again.");
        return STATUS_REFUSED;
}

/* ---- all of them ---- */

static const char *document_name(const struct document *document)
{
        return json_text(document->spec, "name");
}

static bool has_name(const struct document *document)
{
        const char *name = document_name(document);

        return name && *name;
}

static const struct document *find_document(
        const struct documents *documents, const char *name, size_t before)
{
        for (size_t i = 0; i < before; i++) {
                const char *other = document_name(&documents->items[i]);

                if (other && strcmp(other, name) == 0)
                        return &documents->items[i];
        }
        return NULL;
}

/* Check that every spec has a name of its own; leave out a spec without one. */
static enum exit_status check_document(const struct documents *documents, size_t index)
{
        const struct document *document = &documents->items[index], *other;
        const char *name = document_name(document);

        if (!has_name(document)) {
                complain(document->source, "A spec has no name; give it one (\"name\": \"…\").");
                return STATUS_FAILED;
        }
        other = find_document(documents, name, index);
        if (!other)
                return STATUS_OK;
        complain(name, "The device is described twice, in %s and in %s; the second spec was left out.",
                other->source, document->source);
        return STATUS_FAILED;
}

/* STATUS_NO_DAEMON: the rest was not attempted. */
static enum exit_status apply_all(struct apply *apply)
{
        for (size_t i = 0; i < apply->documents.count; i++) {
                const struct document *document = &apply->documents.items[i];
                enum exit_status status = check_document(&apply->documents, i);

                if (status == STATUS_OK)
                        status = apply_one(apply->context, document_name(document), document->spec);
                apply->results[i] = status;
                apply->nameless = apply->nameless || !has_name(document);
                if (status == STATUS_NO_DAEMON)
                        return status;
        }
        return STATUS_OK;
}

static void wait_for_all(struct apply *apply)
{
        uint64_t deadline = monotonic_now() + apply->context->settings->timeout;

        for (size_t i = 0; i < apply->documents.count; i++)
                if (apply->results[i] == STATUS_OK)
                        apply->results[i] = await_live(
                                apply->context, document_name(&apply->documents.items[i]), deadline);
}

static bool is_described(const void *userdata, const char *name)
{
        const struct documents *documents = userdata;

        return find_document(documents, name, documents->count) != NULL;
}

/* Of several specs with one name, only the first is applied. */
static void name_failure(const struct documents *documents, size_t index)
{
        const char *name = document_name(&documents->items[index]);
        bool again = name && find_document(documents, name, index);

        print_safely(stderr, name && *name ? name : "(no name)");
        fputs(again ? " (again)" : "", stderr);
}

static void name_failures(const struct apply *apply)
{
        const struct documents *documents = &apply->documents;
        size_t failed = documents->unreadable_count;
        const char *comma = "";

        for (size_t i = 0; i < documents->count; i++)
                failed += apply->results[i] != STATUS_OK;
        if (failed == 0)
                return;
        begin_line(NULL);
        fprintf(stderr, "%zu of %zu failed: ", failed, documents->count + documents->unreadable_count);
        for (size_t i = 0; i < documents->unreadable_count; i++, comma = ", ") {
                fputs(comma, stderr);
                print_safely(stderr, documents->unreadable[i]);
        }
        for (size_t i = 0; i < documents->count; i++) {
                if (apply->results[i] == STATUS_OK)
                        continue;
                fputs(comma, stderr);
                name_failure(documents, i);
                comma = ", ";
        }
        fputs(".\n", stderr);
}

static enum exit_status check_settings(const struct settings *settings)
{
        if (settings->files.count == 0) {
                complain(NULL, "No file to apply; give -f FILE, -f DIR or -f - (standard input).");
                return STATUS_USAGE;
        }
        if (settings->prune != (settings->labels.count > 0)) {
                complain(NULL,
                        settings->prune
                                ? "--prune needs a label, because it removes only devices with it; give "
                                  "-l KEY=VALUE."
                                : "-l needs --prune: it selects the devices to remove.");
                return STATUS_USAGE;
        }
        if (settings->prune_in_use.count > 0 && !settings->prune) {
                complain(NULL,
                        "--prune-in-use needs --prune: it names devices to remove even while they are in "
                        "use.");
                return STATUS_USAGE;
        }
        return STATUS_OK;
}

static enum exit_status run(struct apply *apply, enum exit_status reading)
{
        const struct settings *settings = apply->context->settings;
        enum exit_status status = apply_all(apply);

        if (status == STATUS_NO_DAEMON)
                return status;
        if (settings->wait && !settings->dry_run)
                wait_for_all(apply);
        if (settings->prune && (reading != STATUS_OK || apply->nameless))
                complain(NULL, "Nothing was removed, because a spec could not be read.");
        else if (settings->prune)
                apply->pruned = prune(apply->context, is_described, &apply->documents);
        name_failures(apply);
        for (size_t i = 0; i < apply->documents.count; i++)
                status = exit_status_merge(status, apply->results[i]);
        return exit_status_merge(status, apply->pruned);
}

enum exit_status verb_apply(struct context *context, int argc _unused_, char *argv[] _unused_)
{
        struct apply apply = {.context = context};
        enum exit_status status = check_settings(context->settings), reading = STATUS_OK;

        if (status != STATUS_OK)
                return status;
        for (size_t i = 0; i < context->settings->files.count; i++)
                reading = exit_status_merge(
                        reading, documents_read(&apply.documents, context->settings->files.items[i]));
        apply.results = calloc(apply.documents.count + 1, sizeof(*apply.results));
        status = apply.results ? run(&apply, reading) : STATUS_FAILED;
        free(apply.results);
        documents_clear(&apply.documents);
        return exit_status_merge(reading, status);
}
