/* SPDX-License-Identifier: MIT */
/* adopt: disks whose record the database does not have, because it was lost or is older. */
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include <stdio.h>
#include <string.h>

/* Return the uid that GET /host shows for a name or uid, or `word` itself; the caller frees it. NULL on
 * ENOMEM. */
static char *find_uid(const cJSON *adoptable, const char *word)
{
        const cJSON *item;

        cJSON_ArrayForEach (item, adoptable) {
                const char *name = json_text(item, "name"), *uid = json_text(item, "uid");

                if (uid && name && strcmp(name, word) == 0)
                        return strdup(uid);
        }
        return strdup(word);
}

static bool is_uid(const char *word)
{
        return strlen(word) == 36 && strspn(word, "0123456789abcdef-") == 36;
}

/* Find a device of the database by its name too, so that an adoption can be repeated. */
static char *find_device(struct context *context, const cJSON *adoptable, const char *word)
{
        _cleanup_free_ char *uid = find_uid(adoptable, word);
        _cleanup_answer_ struct answer answer = {};
        const char *known;

        if (!uid || is_uid(uid))
                return TAKE_PTR(uid);
        if (call_get(context, word, &answer) != STATUS_OK)
                return NULL;
        known = json_text(answer.json, "uid");
        return known ? strdup(known) : NULL;
}

static void print_adopted(const char *name)
{
        print_safely(stdout, name);
        puts(" adopted");
}

/* Print one item of the answer. */
static enum exit_status report(struct context *context, const cJSON *item, uint64_t deadline)
{
        const char *name = json_text(item, "name"), *uid = json_text(item, "uid"),
                   *detail = json_text(item, "detail");
        enum exit_status status = STATUS_OK;

        if (!json_true(item, "adopted") || !name) {
                complain(name ? name : uid, "%s", detail ? detail : "The device was not adopted.");
                return STATUS_FAILED;
        }
        if (context->settings->name && strcmp(name, context->settings->name) != 0) {
                complain(name,
                        "The device was adopted earlier under this name, which cannot change: --name was "
                        "ignored.");
                return STATUS_REFUSED;
        }
        if (!context->settings->no_wait)
                status = await_live(context, name, deadline);
        if (status == STATUS_OK)
                print_adopted(name);
        return status;
}

/* Takes over `body`. */
static enum exit_status adopt(struct context *context, cJSON *body, double *ret_remaining)
{
        uint64_t deadline = monotonic_now() + context->settings->timeout;
        struct request request = {.method = "POST", .path = "/devices/adopt", .body = body};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = body ? call(context, &request, NULL, &answer) : STATUS_FAILED;
        const cJSON *item;

        cJSON_Delete(body);
        *ret_remaining = 0;
        if (status != STATUS_OK)
                return status;
        if (cJSON_GetArraySize(json_find(answer.json, "items")) == 0)
                complain(NULL, "No device to adopt.");
        cJSON_ArrayForEach (item, json_find(answer.json, "items"))
                status = exit_status_merge(status, report(context, item, deadline));
        *ret_remaining = json_number(answer.json, "remaining", 0);
        return status;
}

/* The daemon adopts a limited number for each request. */
static enum exit_status adopt_all(struct context *context)
{
        enum exit_status status = STATUS_OK;
        double before = 0, remaining = 0;

        do {
                cJSON *body = cJSON_CreateObject();

                before = remaining;
                cJSON_AddTrueToObject(body, "all");
                status = exit_status_merge(status, adopt(context, body, &remaining));
        } while (remaining > 0 && (before == 0 || remaining < before));
        return status;
}

static enum exit_status adopt_one(struct context *context, const cJSON *adoptable, const char *word)
{
        _cleanup_free_ char *uid = find_device(context, adoptable, word);
        cJSON *body, *uids;
        double remaining;

        if (!uid)
                return STATUS_NOT_FOUND;
        body = cJSON_CreateObject();
        uids = cJSON_AddArrayToObject(body, "uids");
        cJSON_AddItemToArray(uids, cJSON_CreateString(uid));
        if (context->settings->name)
                cJSON_AddStringToObject(body, "name", context->settings->name);
        return adopt(context, body, &remaining);
}

static enum exit_status adopt_named(struct context *context, int argc, char *argv[])
{
        struct request request = {.method = "GET", .path = "/host"};
        _cleanup_answer_ struct answer host = {};
        enum exit_status status = call(context, &request, NULL, &host);

        if (status != STATUS_OK)
                return status;
        for (int i = 0; i < argc; i++)
                status = exit_status_merge(
                        status, adopt_one(context, json_find(host.json, "adoptable"), argv[i]));
        return status;
}

enum exit_status verb_adopt(struct context *context, int argc, char *argv[])
{
        const struct settings *settings = context->settings;

        if (settings->all ? argc > 0 || settings->name : argc == 0) {
                complain(NULL, "adopt: give names or uids, or --all alone; 'ublkctl host' lists them.");
                return STATUS_USAGE;
        }
        if (settings->name && argc != 1) {
                complain(NULL, "adopt: --name applies to one device only; name one.");
                return STATUS_USAGE;
        }
        return settings->all ? adopt_all(context) : adopt_named(context, argc, argv);
}
