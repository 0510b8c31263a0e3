/* SPDX-License-Identifier: MIT */
/* POST /devices/adopt: disks whose record a lost or older database does not have. */
#include "api/resources/handlers.h"
#include "api/http/respond.h"
#include "api/http/server.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>

enum {
        ADOPT_MAX = 256, /* in one request: each is a transaction, and the loop waits for it */
};

struct wish {
        const cJSON *uids; /* NULL: all */
        const char *name;  /* NULL: their own */
};

/* ---- the request ---- */

static int fault(struct problem_list *problems, const char *pointer, const char *reason, const char *detail)
{
        (void)problem_add(problems, EINVAL, pointer, reason, "%s", detail);
        return -EINVAL;
}

static bool is_uid(const cJSON *item)
{
        sd_id128_t id;

        return cJSON_IsString(item) && strlen(item->valuestring) == UID_TEXT_SIZE - 1
               && sd_id128_from_string(item->valuestring, &id) >= 0;
}

static int check_uids(const cJSON *uids, struct problem_list *problems)
{
        const cJSON *item;
        char pointer[32];
        int i = 0, r = 0, count = cJSON_GetArraySize(uids);

        if (!cJSON_IsArray(uids) || count < 1 || count > ADOPT_MAX)
                return fault(problems, "/uids", "BadLength", "uids is an array of 1 to 256 uids.");
        cJSON_ArrayForEach (item, uids) {
                snprintf(pointer, sizeof(pointer), "/uids/%d", i++);
                if (!is_uid(item))
                        r = fault(problems, pointer, "BadFormat",
                                "This is not a UUID in lower case with dashes.");
        }
        return r;
}

static int check_known(const cJSON *body, struct problem_list *problems)
{
        static const char *const known[] = {"uids", "all", "name"};
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach (item, body) {
                size_t i = 0;

                while (i < ARRAY_SIZE(known) && strcmp(item->string, known[i]) != 0)
                        i++;
                if (i < ARRAY_SIZE(known))
                        continue;
                (void)problem_add(problems, EINVAL, "", "UnknownField",
                        "The field \"%s\" is unknown; give uids or all, and name.", item->string);
                r = -EINVAL;
        }
        return r;
}

static int check_name(const cJSON *name, const cJSON *uids, struct problem_list *problems)
{
        if (!name)
                return 0;
        if (!cJSON_IsString(name) || !device_name_is_valid(name->valuestring))
                return fault(problems, "/name", "BadFormat", "This cannot be the name of a device.");
        if (cJSON_GetArraySize(uids) != 1)
                return fault(problems, "/name", "BadValue", "A name can be given with exactly one uid.");
        return 0;
}

static int read_wish(const cJSON *body, struct wish *ret, struct problem_list *problems)
{
        const cJSON *uids = cJSON_GetObjectItemCaseSensitive(body, "uids"),
                    *all = cJSON_GetObjectItemCaseSensitive(body, "all"),
                    *name = cJSON_GetObjectItemCaseSensitive(body, "name");
        int r = 0;

        if (!cJSON_IsObject(body))
                return fault(problems, "", "WrongType", "The body is an object with uids or all.");
        r = check_known(body, problems);
        if (all && !cJSON_IsTrue(all))
                r = fault(problems, "/all", "BadValue", "all can be true only; leave it out.");
        if (!uids == !all)
                r = fault(problems, "", "MissingField", "Give either uids, or all as true.");
        if (uids && check_uids(uids, problems) < 0)
                r = -EINVAL;
        if (check_name(name, uids, problems) < 0)
                r = -EINVAL;
        *ret = (struct wish){.uids = uids, .name = cJSON_IsString(name) ? name->valuestring : NULL};
        return r;
}

/* ---- the answer ---- */

/* 0 or -ENOMEM. */
static int add_item(cJSON *items, const char *uid, const struct adoption *adoption)
{
        cJSON *item = cJSON_CreateObject();

        if (!item || !cJSON_AddItemToArray(items, item)) {
                cJSON_Delete(item);
                return -ENOMEM;
        }
        if (!cJSON_AddStringToObject(item, "uid", uid)
                || !(adoption->name ? cJSON_AddStringToObject(item, "name", adoption->name)
                                    : cJSON_AddNullToObject(item, "name"))
                || !cJSON_AddBoolToObject(item, "adopted", adopt_verdict_is_good(adoption->verdict))
                || !cJSON_AddStringToObject(item, "reason", adopt_verdict_to_string(adoption->verdict))
                || !cJSON_AddStringToObject(item, "detail", adoption->detail ? adoption->detail : ""))
                return -ENOMEM;
        return 0;
}

static int adopt_one(const struct api_config *config, const char *uid, const char *name, cJSON *items)
{
        struct adoption adoption = {.verdict = ADOPT_FAILED};
        int r;

        if (device_store_count(config->store) < DEVICES_MAX)
                adoption = config->adopt(config->userdata, uid, name);
        else
                adoption.detail = strdup("There are as many devices as there can be; remove some first.");
        r = add_item(items, uid, &adoption);
        adoption_clear(&adoption);
        return r;
}

static int adopt_listed(const struct api_config *config, const struct wish *wish, cJSON *items)
{
        const cJSON *uid;
        int r = 0;

        cJSON_ArrayForEach (uid, wish->uids)
                if (r >= 0)
                        r = adopt_one(config, uid->valuestring, wish->name, items);
        return r;
}

/* What was removed comes back only when it is named, and what cannot be adopted is told as it is. */
static int adopt_all(const struct api_config *config, cJSON *items, size_t *ret_remaining)
{
        struct adoptables list = {};
        size_t tried = 0, remaining = 0;
        int r = config->list_adoptable(config->userdata, &list);

        for (size_t i = 0; r >= 0 && i < list.count; i++) {
                const struct adoptable *item = &list.items[i];
                const struct adoption refused = {item->verdict, item->name, item->detail};

                if (item->verdict == ADOPT_NOT_ASKED)
                        continue;
                if (tried == ADOPT_MAX)
                        remaining++;
                else if (item->verdict != ADOPT_POSSIBLE)
                        r = add_item(items, item->uid, &refused);
                else {
                        tried++;
                        r = adopt_one(config, item->uid, NULL, items);
                }
        }
        adoptables_clear(&list);
        *ret_remaining = remaining;
        return r;
}

static void adopt(struct request *request, const struct wish *wish)
{
        const struct api_config *config = &request->api->config;
        cJSON *answer = cJSON_CreateObject(), *items = cJSON_AddArrayToObject(answer, "items");
        size_t remaining = 0;
        int r = !items       ? -ENOMEM
                : wish->uids ? adopt_listed(config, wish, items)
                             : adopt_all(config, items, &remaining);

        if (r >= 0 && cJSON_AddNumberToObject(answer, "remaining", (double)remaining)) {
                reply_json(request, MHD_HTTP_OK, answer);
                return;
        }
        cJSON_Delete(answer);
        reply_error(request, r < 0 ? r : -ENOMEM,
                "The adoption was cut short, and some devices may have been adopted");
}

/* Before the first pass it is not known which numbers have disks. */
static bool is_possible(struct request *request)
{
        const struct api_config *config = &request->api->config;

        if (config->adopt && (!config->is_ready || config->is_ready(config->userdata)))
                return true;
        reply_problem(request, PROBLEM_NOT_READY,
                "ublkd has not looked at every device yet; try again in a moment.");
        return false;
}

void handle_device_adopt(struct request *request)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct wish wish;
        cJSON *body = request_parse_body(request);

        if (!body)
                return;
        if (read_wish(body, &wish, &problems) < 0)
                reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        else if (is_possible(request))
                adopt(request, &wish);
        cJSON_Delete(body);
}
