/* SPDX-License-Identifier: MIT */
/* Actions of a device, in memory and as JSON. The database has the JSON that clients get, with times as numbers beside
 * it. */
#include "ublkd/model/device_action.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <assert.h>
#include <string.h>

#define NUMBER_MAX (UINT64_C(1) << 53)

static const char *const states[] = {
        [DEVICE_ACTION_PENDING] = "Pending",
        [DEVICE_ACTION_RUNNING] = "Running",
        [DEVICE_ACTION_SUCCEEDED] = "Succeeded",
        [DEVICE_ACTION_FAILED] = "Failed",
        [DEVICE_ACTION_CANCELLED] = "Cancelled",
};
static_assert(ARRAY_SIZE(states) == _DEVICE_ACTION_STATE_MAX, "every state has a name");

const char *device_action_state_to_string(enum device_action_state state)
{
        assert((unsigned)state < ARRAY_SIZE(states));
        return states[state];
}

/* ---- one ---- */

struct device_action *device_action_free(struct device_action *action)
{
        if (!action)
                return NULL;
        free(action->verb);
        free(action->arguments);
        free(action->message);
        free(action->result);
        free(action);
        return NULL;
}

struct device_action *device_action_new(uint64_t id, const char *verb, const char *arguments, uint64_t now)
{
        struct device_action *action = calloc(1, sizeof(*action));

        if (!action)
                return NULL;
        *action = (struct device_action){
                .id = id, .verb = strdup(verb), .arguments = strdup(arguments), .created_at = now};
        return action->verb && action->arguments ? action : device_action_free(action);
}

/* Return false on ENOMEM. */
static bool copy_text(const char *text, char **ret)
{
        *ret = text ? strdup(text) : NULL;
        return !text || *ret;
}

static struct device_action *copy(const struct device_action *action)
{
        struct device_action *new =
                device_action_new(action->id, action->verb, action->arguments, action->created_at);
        char *verb, *arguments;

        if (!new)
                return NULL;
        verb = new->verb;
        arguments = new->arguments;
        *new = *action;
        new->verb = verb;
        new->arguments = arguments;
        new->message = new->result = NULL;
        return copy_text(action->message, &new->message) && copy_text(action->result, &new->result)
                       ? new
                       : device_action_free(new);
}

/* ---- the list ---- */

struct device_actions *device_actions_free(struct device_actions *actions)
{
        for (size_t i = 0; actions && i < actions->count; i++)
                device_action_free(actions->items[i]);
        free(actions);
        return NULL;
}

struct device_actions *device_actions_copy(const struct device_actions *actions)
{
        _cleanup_(device_actions_free_pointer) struct device_actions *new = calloc(1, sizeof(*new));

        for (size_t i = 0; new &&actions &&i < actions->count; i++) {
                new->items[i] = copy(actions->items[i]);
                if (!new->items[i])
                        return NULL;
                new->count++;
        }
        return TAKE_PTR(new);
}

static void drop_oldest(struct device_actions *actions)
{
        device_action_free(actions->items[0]);
        actions->count--;
        memmove(&actions->items[0], &actions->items[1], actions->count * sizeof(actions->items[0]));
}

void device_actions_add(struct device_actions *actions, struct device_action *action)
{
        if (actions->count == ARRAY_SIZE(actions->items))
                drop_oldest(actions);
        actions->items[actions->count++] = action;
}

void device_actions_trim(struct device_actions *actions)
{
        size_t current = device_actions_current(actions) ? 1 : 0;

        while (actions->count > DEVICE_ACTIONS_KEPT + current)
                drop_oldest(actions);
}

struct device_action *device_actions_current(const struct device_actions *actions)
{
        struct device_action *last =
                actions && actions->count > 0 ? actions->items[actions->count - 1] : NULL;

        return last && !device_action_has_ended(last) ? last : NULL;
}

struct device_action *device_actions_find(const struct device_actions *actions, uint64_t id)
{
        for (size_t i = 0; actions && i < actions->count; i++)
                if (actions->items[i]->id == id)
                        return actions->items[i];
        return NULL;
}

/* ---- as JSON ---- */

/* Add JSON text as the value that it is; NULL: null. Return false on ENOMEM. */
static bool add_document(cJSON *object, const char *name, const char *text)
{
        cJSON *value = text ? cJSON_Parse(text) : cJSON_CreateNull();

        if (value && cJSON_AddItemToObject(object, name, value))
                return true;
        cJSON_Delete(value);
        return false;
}

static bool fill(cJSON *object, const struct device_action *action)
{
        const char *reason = action->reason == REASON_NONE ? NULL : reason_to_string(action->reason);
        cJSON *progress;

        if (!json_add_integer(object, "id", action->id) || !json_add_text(object, "verb", action->verb)
                || !add_document(object, "arguments", action->arguments)
                || !json_add_text(object, "state", states[action->state])
                || !json_add_text(object, "reason", reason)
                || !json_add_text(object, "message", action->message)
                || !cJSON_AddBoolToObject(object, "cancelRequested", action->cancel_requested)
                || !add_document(object, "result", action->result))
                return false;
        progress = cJSON_AddObjectToObject(object, "progress");
        return progress && json_add_integer(progress, "done", action->done)
               && json_add_integer(progress, "total", action->total)
               && json_add_time(object, "createdAt", action->created_at)
               && json_add_time(object, "startedAt", action->started_at)
               && json_add_time(object, "endedAt", action->ended_at);
}

cJSON *device_action_to_json(const struct device_action *action)
{
        cJSON *object = cJSON_CreateObject();

        if (object && fill(object, action))
                return object;
        cJSON_Delete(object);
        return NULL;
}

static const char time_names[][12] = {"created", "started", "ended"};

static bool add_stored(cJSON *array, const struct device_action *action)
{
        const uint64_t times[] = {action->created_at, action->started_at, action->ended_at};
        cJSON *item = device_action_to_json(action);

        if (!item || !cJSON_AddItemToArray(array, item)) {
                cJSON_Delete(item);
                return false;
        }
        for (size_t i = 0; i < ARRAY_SIZE(times); i++)
                if (!json_add_integer(item, time_names[i], times[i]))
                        return false;
        return true;
}

char *device_actions_to_text(const struct device_actions *actions)
{
        _cleanup_json_ cJSON *array = cJSON_CreateArray();
        bool good = array;

        for (size_t i = 0; good && i < actions->count; i++)
                good = add_stored(array, actions->items[i]);
        return good ? json_print(array) : NULL;
}

static uint64_t number_of(const cJSON *object, const char *name)
{
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

        return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= (double)NUMBER_MAX
                       ? (uint64_t)item->valuedouble
                       : 0;
}

static const char *text_of(const cJSON *object, const char *name)
{
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static enum device_action_state state_of(const char *name)
{
        for (size_t i = 0; name && i < ARRAY_SIZE(states); i++)
                if (strcmp(states[i], name) == 0)
                        return (enum device_action_state)i;
        return DEVICE_ACTION_FAILED;
}

/* NULL: it is none, or ENOMEM. */
static struct device_action *read_stored(const cJSON *item)
{
        const cJSON *progress = cJSON_GetObjectItemCaseSensitive(item, "progress");
        const cJSON *result = cJSON_GetObjectItemCaseSensitive(item, "result");
        const char *verb = text_of(item, "verb"), *reason = text_of(item, "reason");
        _cleanup_free_ char *arguments = json_print(cJSON_GetObjectItemCaseSensitive(item, "arguments"));
        struct device_action *action;

        if (!verb || !arguments || number_of(item, "id") == 0)
                return NULL;
        action = device_action_new(number_of(item, "id"), verb, arguments, number_of(item, time_names[0]));
        if (!action)
                return NULL;
        action->state = state_of(text_of(item, "state"));
        action->reason = reason_from_string(reason ? reason : "");
        action->cancel_requested = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "cancelRequested"));
        action->done = number_of(progress, "done");
        action->total = number_of(progress, "total");
        action->started_at = number_of(item, time_names[1]);
        action->ended_at = number_of(item, time_names[2]);
        if (cJSON_IsObject(result))
                action->result = json_print(result);
        return copy_text(text_of(item, "message"), &action->message) ? action : device_action_free(action);
}

struct device_actions *device_actions_from_text(const char *text)
{
        _cleanup_json_ cJSON *array = *text ? cJSON_Parse(text) : NULL;
        struct device_actions *actions = cJSON_IsArray(array) ? calloc(1, sizeof(*actions)) : NULL;
        const cJSON *item;

        if (!actions)
                return NULL;
        cJSON_ArrayForEach (item, array) {
                struct device_action *action = read_stored(item);

                if (action)
                        device_actions_add(actions, action);
        }
        device_actions_trim(actions);
        return actions;
}
