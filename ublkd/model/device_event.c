/* SPDX-License-Identifier: MIT */
/* An event of a device: copies, and the JSON that the API shows. */
#include "ublkd/model/device_event.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/values/json_print.h"
#include "ublkd/values/json_time.h"

#include <assert.h>
#include <string.h>

static const char *const type_names[] = {
        [EVENT_NORMAL] = "Normal",
        [EVENT_WARNING] = "Warning",
};
static_assert(ARRAY_SIZE(type_names) == _EVENT_TYPE_MAX, "every type has a name");

const char *event_type_to_string(enum event_type type)
{
        assert(type < _EVENT_TYPE_MAX);
        return type_names[type];
}

enum event_type event_type_from_string(const char *text)
{
        return strcmp(text, type_names[EVENT_WARNING]) == 0 ? EVENT_WARNING : EVENT_NORMAL;
}

struct device_event *device_event_free(struct device_event *event)
{
        if (!event)
                return NULL;
        free(event->device);
        free(event->uid);
        free(event->message);
        free(event->labels);
        free(event);
        return NULL;
}

struct device_event *device_event_copy(const struct device_event *event)
{
        struct device_event *copy = malloc(sizeof(*copy));

        if (!copy)
                return NULL;
        *copy = *event;
        copy->device = strdup(event->device);
        copy->uid = strdup(event->uid);
        copy->message = strndup(event->message, EVENT_MESSAGE_MAX - 1);
        copy->labels = event->labels ? strdup(event->labels) : NULL;
        if (copy->device && copy->uid && copy->message && (copy->labels || !event->labels))
                return copy;
        return device_event_free(copy);
}

static bool add_device(cJSON *object, const struct device_event *event)
{
        cJSON *device = cJSON_AddObjectToObject(object, "device"), *labels;

        if (!device || !cJSON_AddStringToObject(device, "name", event->device)
                || !cJSON_AddStringToObject(device, "uid", event->uid))
                return false;
        if (!event->labels)
                return true;
        labels = cJSON_Parse(event->labels);
        if (!labels || cJSON_AddItemToObject(device, "labels", labels))
                return true; /* invalid labels must not hide the event */
        cJSON_Delete(labels);
        return false;
}

cJSON *device_event_to_json(const struct device_event *event, enum reader reader)
{
        cJSON *object = cJSON_CreateObject();

        if (object && json_add_integer(object, "revision", event->revision)
                && json_add_integer(object, "firstRevision", event->first_revision)
                && cJSON_AddStringToObject(object, "type", event_type_to_string(event->type))
                && cJSON_AddStringToObject(object, "reason", reason_to_string(event->reason))
                && cJSON_AddStringToObject(
                        object, "message", tenant_text(reader, event->reason, event->message))
                && add_device(object, event) && json_add_integer(object, "count", event->count)
                && json_add_time(object, "firstTime", event->first_at)
                && json_add_time(object, "lastTime", event->last_at))
                return object;
        cJSON_Delete(object);
        return NULL;
}
