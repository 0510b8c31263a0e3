/* SPDX-License-Identifier: MIT */
/* POST /devices/adopt: adopt disks whose record the database does not have, because it was lost or is
 * older. */
#include "api/resources/handlers.h"
#include "api/held/turns.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/store/device_change.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>

enum {
        ADOPT_MAX = 256, /* in one request */
        ADOPT_PIECE = 4, /* in one turn of the loop; each is a transaction that blocks the loop */
};

struct wish {
        const cJSON *uids; /* NULL: all */
        const char *name;  /* NULL: the names in the records */
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
                return fault(problems, "/uids", "BadLength", "uids must be an array of 1 to 256 uids.");
        cJSON_ArrayForEach (item, uids) {
                snprintf(pointer, sizeof(pointer), "/uids/%d", i++);
                if (!is_uid(item))
                        r = fault(problems, pointer, "BadFormat",
                                "The uid is invalid; give a UUID in lower case with dashes.");
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
                return fault(problems, "/name", "BadFormat", "The name is not valid for a device.");
        if (cJSON_GetArraySize(uids) != 1)
                return fault(problems, "/name", "BadValue",
                        "A name needs exactly one uid; give one uid, or leave out name.");
        return 0;
}

static int read_wish(const cJSON *body, struct wish *ret, struct problem_list *problems)
{
        const cJSON *uids = cJSON_GetObjectItemCaseSensitive(body, "uids"),
                    *all = cJSON_GetObjectItemCaseSensitive(body, "all"),
                    *name = cJSON_GetObjectItemCaseSensitive(body, "name");
        int r = 0;

        if (!cJSON_IsObject(body))
                return fault(problems, "", "WrongType", "The body must be an object with uids or all.");
        r = check_known(body, problems);
        if (all && !cJSON_IsTrue(all))
                r = fault(problems, "/all", "BadValue", "all can only be true; leave it out otherwise.");
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
                adoption.detail = strdup("ublkd has as many devices as it can have; remove some first.");
        r = add_item(items, uid, &adoption);
        adoption_clear(&adoption);
        return r;
}

/* ---- a few in each turn ---- */

struct adopting {
        cJSON *body; /* owned; `wish` points into it */
        struct wish wish;
        const cJSON *next_uid;  /* the next of wish.uids */
        struct adoptables list; /* with `all` */
        size_t next, tried;     /* in `list` */
        cJSON *answer, *items;
};

static void adopting_free(void *work)
{
        struct adopting *adopting = work;

        adoptables_clear(&adopting->list);
        cJSON_Delete(adopting->answer);
        cJSON_Delete(adopting->body);
        free(adopting);
}

/* Adopt the next disks of the list. 1: there are more; 0: these were all; -errno. */
static int adopt_listed(const struct api_config *config, struct adopting *adopting)
{
        for (unsigned i = 0; i < ADOPT_PIECE && adopting->next_uid; i++) {
                int r = adopt_one(
                        config, adopting->next_uid->valuestring, adopting->wish.name, adopting->items);

                if (r < 0)
                        return r;
                adopting->next_uid = adopting->next_uid->next;
        }
        return adopting->next_uid != NULL;
}

static int adopt_next(const struct api_config *config, struct adopting *adopting)
{
        const struct adoptable *item = &adopting->list.items[adopting->next++];
        const struct adoption refused = {item->verdict, item->name, item->detail};

        if (item->verdict != ADOPT_POSSIBLE)
                return add_item(adopting->items, item->uid, &refused);
        adopting->tried++;
        return adopt_one(config, item->uid, NULL, adopting->items);
}

/* Adopt the next disks of all. A removed device comes back only if the client names it. A disk that cannot be
 * adopted keeps its result. Same return values. */
static int adopt_some_of_all(const struct api_config *config, struct adopting *adopting)
{
        size_t end = adopting->tried + ADOPT_PIECE;

        while (adopting->next < adopting->list.count && adopting->tried < ADOPT_MAX) {
                int r;

                if (adopting->tried == end)
                        return 1;
                if (adopting->list.items[adopting->next].verdict == ADOPT_NOT_ASKED) {
                        adopting->next++;
                        continue;
                }
                r = adopt_next(config, adopting);
                if (r < 0)
                        return r;
        }
        return 0;
}

static size_t count_remaining(const struct adopting *adopting)
{
        size_t count = 0;

        for (size_t i = adopting->next; i < adopting->list.count; i++)
                count += adopting->list.items[i].verdict != ADOPT_NOT_ASKED;
        return count;
}

static bool adopt_piece(struct request *request, void *work)
{
        const struct api_config *config = &request->api->config;
        struct adopting *adopting = work;
        int r = adopting->wish.uids ? adopt_listed(config, adopting) : adopt_some_of_all(config, adopting);

        if (r > 0)
                return true;
        if (r >= 0
                && cJSON_AddNumberToObject(adopting->answer, "remaining", (double)count_remaining(adopting)))
                reply_json(request, MHD_HTTP_OK, TAKE_PTR(adopting->answer));
        else
                reply_error(request, r < 0 ? r : -ENOMEM,
                        "The adoption was interrupted, and some devices may have been adopted");
        return false;
}

static const struct turns_kind adopt_turns = {.piece = adopt_piece, .free = adopting_free};

static int prepare(const struct api_config *config, struct adopting *adopting)
{
        adopting->answer = cJSON_CreateObject();
        adopting->items = cJSON_AddArrayToObject(adopting->answer, "items");
        if (!adopting->items)
                return -ENOMEM;
        if (!adopting->wish.uids)
                return config->list_adoptable(config->userdata, &adopting->list);
        adopting->next_uid = adopting->wish.uids->child;
        return 0;
}

/* Takes over `body`. */
static void adopt(struct request *request, cJSON *body, const struct wish *wish)
{
        struct adopting *adopting = calloc(1, sizeof(*adopting));
        int r = -ENOMEM;

        if (!adopting)
                cJSON_Delete(body);
        else {
                *adopting = (struct adopting){.body = body, .wish = *wish};
                r = prepare(&request->api->config, adopting);
        }
        if (r >= 0) {
                turns_begin(request, &adopt_turns, adopting);
                return;
        }
        if (adopting)
                adopting_free(adopting);
        reply_error(request, r, "Cannot begin the adoption");
}

/* Before the first pass, ublkd does not know which numbers have disks. */
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
                adopt(request, TAKE_PTR(body), &wish);
        cJSON_Delete(body);
}
