/* SPDX-License-Identifier: MIT */
/* Undo a growth that failed. Only opening the backing store shows that it fails; by then ublkd has stored the
 * change, and would retry for ever. */
#include "ublkctl/verbs/change/growth.h"

#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"

#include <stdio.h>
#include <string.h>

/* Return whether a disk cannot grow: it stays in service, so Ready says nothing about its size. */
static bool cannot_grow(const cJSON *device)
{
        return device_has_reason(device, "CannotGrow");
}

static bool was_live(const cJSON *device)
{
        const char *phase = json_text(device, "status.phase");

        return phase && strcmp(phase, "Live") == 0 && !cannot_grow(device);
}

static bool changes_only_the_size(const cJSON *patch)
{
        return cJSON_GetArraySize(patch) == 1 && json_find(patch, "size");
}

/* Return whether the spec is the one of our request, and the disk does not match it. */
static bool has_failed(const cJSON *before, const cJSON *now)
{
        return json_number(now, "generation", 0) == json_number(before, "generation", 0) + 1
               && (!device_is_ready(now) || cannot_grow(now));
}

static cJSON *patch_back(const cJSON *before)
{
        const cJSON *size = json_find(before, "spec.size");
        cJSON *patch = cJSON_CreateObject(), *old = size ? cJSON_Duplicate(size, true) : cJSON_CreateNull();

        if (patch && old && cJSON_AddItemToObject(patch, "size", old))
                return patch;
        cJSON_Delete(old);
        cJSON_Delete(patch);
        return NULL;
}

static enum exit_status put_back(
        struct context *context, const char *name, const cJSON *patch, const char *etag)
{
        char query[WAIT_QUERY_SIZE];
        _cleanup_free_ char *path = NULL;
        _cleanup_answer_ struct answer answer = {};
        struct request request = {.method = "PATCH",
                .body = patch,
                .body_type = "application/merge-patch+json",
                .if_match = etag,
                .patience = context->settings->timeout};

        wait_query(context, true, "wait=ready", query);
        path = device_path(name, query);
        request.path = path;
        return path ? call(context, &request, name, &answer) : STATUS_FAILED;
}

bool growth_take_back(struct context *context, const char *name, const cJSON *before, const cJSON *patch)
{
        _cleanup_answer_ struct answer now = {};
        cJSON *back = NULL;

        if (!was_live(before) || !changes_only_the_size(patch) || call_get(context, name, &now) != STATUS_OK
                || !has_failed(before, now.json))
                return false;
        (void)print_why(name, now.json);
        back = patch_back(before);
        if (back && put_back(context, name, back, now.etag) == STATUS_OK)
                complain(name, "The old size was put back; the disk is unchanged.");
        else
                complain(
                        name, "Cannot put the old size back; the new one stays in force, and ublkd retries.");
        cJSON_Delete(back);
        return true;
}
