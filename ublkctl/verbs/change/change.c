/* SPDX-License-Identifier: MIT */
/* create, set, patch, resize, enable, disable: one request that changes one device. */
#include "ublkctl/text/amounts.h"
#include "ublkctl/spec/assignments.h"
#include "ublkctl/spec/target_lists.h"
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/spec/documents.h"
#include "ublkctl/verbs/change/growth.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs/change/shrink.h"
#include "ublkctl/verbs/change/stop.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/client/url.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/quantity.h"

#include <stdio.h>
#include <string.h>

/* Send `body` to `path`, and wait if the options say so. Otherwise like client_ask(): the answer may be a
 * problem. */
static enum exit_status ask_for_change(struct context *context, struct request *request, const char *name,
        const char *path, struct answer *ret)
{
        struct watch watch = {.context = context, .name = name, .goal = "Live", .began = monotonic_now()};
        bool wait = !context->settings->no_wait;
        _cleanup_free_ char *full = NULL;
        char query[WAIT_QUERY_SIZE];
        enum exit_status status;

        wait_query(context, wait, "wait=ready", query);
        if (asprintf(&full, "%s%s", path, query) < 0)
                full = NULL;
        if (full && context->settings->drop_last_copy)
                full = url_add_parameter(full, "drop-last-copy", "true");
        if (!full)
                return STATUS_FAILED;
        request->path = full;
        request->patience = wait ? context->settings->timeout : 0;
        request->tick = wait ? watch_or_end : NULL;
        request->userdata = &watch;
        status = client_ask(context->client, request, false, ret);
        progress_end();
        if (watch.host_down)
                print_in_force(name);
        request->path = path; /* `full` goes out of scope here */
        return status;
}

/* The same, and print a problem like call() does. */
static enum exit_status send_change(struct context *context, struct request *request, const char *name,
        const char *path, struct answer *ret)
{
        enum exit_status status = ask_for_change(context, request, name, path, ret);

        return status == STATUS_OK && ret->status >= 400 ? report_problem(request, name, ret) : status;
}

/* ---- create ---- */

static bool is_named(const cJSON *spec, const char *wanted)
{
        const char *name = json_text(spec, "name");

        return name && strcmp(name, wanted) == 0;
}

static enum exit_status spec_from_arguments(int argc, char *argv[], cJSON **ret)
{
        cJSON *spec = cJSON_CreateObject();
        enum exit_status status = STATUS_FAILED;
        unsigned lists;

        if (spec && cJSON_AddStringToObject(spec, "name", argv[0]))
                status = assignments_add(spec, argc - 1, argv + 1);
        if (status == STATUS_OK)
                status = target_lists_settle(cJSON_GetObjectItemCaseSensitive(spec, "target"), NULL, &lists);
        if (status == STATUS_OK && !is_named(spec, argv[0])) {
                complain(NULL, "The name is given twice, as '%s' and with 'name='; leave the second out.",
                        argv[0]);
                status = STATUS_USAGE;
        }
        if (status == STATUS_OK)
                *ret = spec;
        else
                cJSON_Delete(spec);
        return status;
}

/* Read the one spec of a file, also of a device as the API shows it. */
static enum exit_status spec_from_file(const char *path, cJSON **ret)
{
        struct documents documents = {};
        enum exit_status status = documents_read(&documents, path);

        if (status == STATUS_OK && documents.count != 1) {
                complain(path,
                        "create takes one spec, and there are %zu; 'ublkctl apply -f %s' takes any number of "
                        "them.",
                        documents.count, path);
                status = STATUS_USAGE;
        }
        if (status == STATUS_OK)
                *ret = TAKE_PTR(documents.items[0].spec);
        documents_clear(&documents);
        return status;
}

static enum exit_status read_spec(struct context *context, int argc, char *argv[], cJSON **ret)
{
        if (context->settings->file && argc == 0)
                return spec_from_file(context->settings->file, ret);
        if (!context->settings->file && argc > 0)
                return spec_from_arguments(argc, argv, ret);
        complain(NULL, "Give the spec either in a file (-f FILE) or as NAME FIELD=VALUE....");
        return STATUS_USAGE;
}

static enum exit_status print_created(struct context *context, const struct answer *answer)
{
        const char *name = json_text(answer->json, "name"), *phase = json_text(answer->json, "status.phase"),
                   *node = device_node(answer->json);

        if (context->settings->output != OUTPUT_DEFAULT)
                return show_device(context, answer->json, context->settings->output);
        print_safely(stdout, name ? name : "");
        fputs(answer->status == 201 ? " created" : " unchanged", stdout);
        if (node && phase && strcmp(phase, "Live") == 0)
                printf(", Live at %s", node);
        putchar('\n');
        warn_of_path(name, answer->json);
        return STATUS_OK;
}

enum exit_status verb_create(struct context *context, int argc, char *argv[])
{
        _cleanup_answer_ struct answer answer = {};
        struct request request = {.method = "POST"};
        cJSON *spec = NULL;
        enum exit_status status = read_spec(context, argc, argv, &spec);
        const char *name;

        if (status != STATUS_OK)
                return status;
        name = json_text(spec, "name");
        request.body = spec;
        status = send_change(context, &request, name ? name : "device", "/devices", &answer);
        cJSON_Delete(spec);
        return status == STATUS_OK ? print_created(context, &answer) : status;
}

/* ---- merge patches ---- */

/* What to print on success. */
struct words {
        const char *done;    /* after waiting */
        const char *ordered; /* with --no-wait */
};

static const struct words changed = {.done = "changed and ready", .ordered = "changed"};

static void print_change(const struct context *context, const char *name, const struct words *words,
        const cJSON *before, const cJSON *after)
{
        bool same = json_number(before, "generation", 0) == json_number(after, "generation", 0);
        const char *old = json_text(before, "status.device"), *now = json_text(after, "status.device");

        print_safely(stdout, name);
        printf(" %s", same ? "unchanged" : context->settings->no_wait ? words->ordered : words->done);
        if (!context->settings->no_wait && old && now && strcmp(old, now) != 0)
                printf("; its disk is %s now, and not %s any more", now, old);
        putchar('\n');
}

/* PATCH /devices/NAME, unless it cuts off data without --allow-shrink. */
static enum exit_status patch_device(
        struct context *context, const char *name, cJSON *patch, const struct words *words)
{
        _cleanup_answer_ struct answer before = {}, after = {};
        _cleanup_free_ char *path = device_path(name, "");
        struct request request = {
                .method = "PATCH", .body = patch, .body_type = "application/merge-patch+json"};
        enum exit_status status = path ? call_get(context, name, &before) : STATUS_FAILED;
        unsigned lists = 0;

        if (status == STATUS_OK)
                status = target_lists_settle(cJSON_GetObjectItemCaseSensitive(patch, "target"),
                        json_find(before.json, "spec.target"), &lists);
        if (lists > 0 && *before.etag) /* the whole list is sent: it would undo what another client changed */
                request.if_match = before.etag;
        if (status == STATUS_OK)
                status = check_shrink(context, name, before.json, json_find(patch, "size"));
        if (status == STATUS_OK)
                status = ask_for_change(context, &request, name, path, &after);
        if (status != STATUS_OK)
                return status;
        if (after.status < 400) {
                print_change(context, name, words, before.json, after.json);
                if (json_find(patch, "target"))
                        warn_of_path(name, after.json);
        } else if (is_problem(&after, "cannot-start") && growth_take_back(context, name, before.json, patch))
                status = STATUS_FAILED;
        else
                status = report_problem(&request, name, &after);
        return status;
}

static enum exit_status patch_and_free(
        struct context *context, const char *name, cJSON *patch, const struct words *words)
{
        enum exit_status status = patch ? patch_device(context, name, patch, words) : STATUS_FAILED;

        cJSON_Delete(patch);
        return status;
}

enum exit_status verb_set(struct context *context, int argc, char *argv[])
{
        cJSON *patch = cJSON_CreateObject();
        enum exit_status status = patch ? assignments_add(patch, argc - 1, argv + 1) : STATUS_FAILED;

        if (status == STATUS_OK)
                return patch_and_free(context, argv[0], patch, &changed);
        cJSON_Delete(patch);
        return status;
}

#define A_PATCH "'{\"size\": \"20GiB\"}'"

enum exit_status verb_patch(struct context *context, int argc, char *argv[])
{
        cJSON *patch = NULL;
        enum exit_status status;

        if ((argc == 2) == (context->settings->file != NULL)) {
                complain(NULL, "Give the patch either as an argument or in a file (-f FILE).");
                return STATUS_USAGE;
        }
        if (argc == 1) {
                status = document_read_one(
                        context->settings->file, "a patch is one JSON object like " A_PATCH, &patch);
                return status == STATUS_OK ? patch_and_free(context, argv[0], patch, &changed) : status;
        }
        patch = cJSON_ParseWithOpts(argv[1], NULL, true);
        if (patch)
                return patch_and_free(context, argv[0], patch, &changed);
        complain(NULL, "The patch is not valid JSON: %s; give one like " A_PATCH ".", argv[1]);
        return STATUS_USAGE;
}

enum exit_status verb_resize(struct context *context, int argc _unused_, char *argv[])
{
        cJSON *patch = cJSON_CreateObject();
        char size[SIZE_ARGUMENT_SIZE];
        uint64_t bytes;

        size_argument(argv[1], size);
        if (parse_bytes(size, &bytes) < 0) {
                cJSON_Delete(patch);
                complain(NULL,
                        "'%s' is not a valid size; give bytes, or a number with KiB, MiB, GiB or TiB, "
                        "like 20GiB.",
                        argv[1]);
                return STATUS_USAGE;
        }
        /* as text: the spec keeps what the user wrote, except for the unit */
        if (patch
                && (strspn(argv[1], "0123456789") == strlen(argv[1])
                                ? cJSON_AddNumberToObject(patch, "size", (double)bytes)
                                : cJSON_AddStringToObject(patch, "size", size)))
                return patch_and_free(context, argv[0], patch, &changed);
        cJSON_Delete(patch);
        return STATUS_FAILED;
}

static enum exit_status set_enabled(struct context *context, const char *name, bool enabled)
{
        static const struct words words[] = {
                [false] = {.done = "disabled",          .ordered = "is being disabled"},
                [true] = {.done = "enabled and ready", .ordered = "is being enabled" },
        };
        cJSON *patch = cJSON_CreateObject();

        if (patch && cJSON_AddBoolToObject(patch, "enabled", enabled))
                return patch_and_free(context, name, patch, &words[enabled]);
        cJSON_Delete(patch);
        return STATUS_FAILED;
}

/* Also start a disk that was stopped. */
static enum exit_status enable_one(struct context *context, const char *name)
{
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = call_get(context, name, &answer);

        if (status == STATUS_OK && !cJSON_IsFalse(json_find(answer.json, "spec.enabled"))
                && !json_text(answer.json, "status.device"))
                return start_device(context, name);
        return status == STATUS_OK ? set_enabled(context, name, true) : status;
}

static enum exit_status disable_one(struct context *context, const char *name)
{
        return set_enabled(context, name, false);
}

enum exit_status verb_enable(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, enable_one);
}

enum exit_status verb_disable(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, disable_one);
}
