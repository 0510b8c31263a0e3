/* SPDX-License-Identifier: MIT */
/* The Unix sockets of the API and the group that may connect to them, for GET /host. */
#include "api/resources/host.h"

#include "api/http/server.h"
#include "ublkd/values/json_print.h"

#include <stdio.h>

static bool add_file(cJSON *item, const struct socket_file *file)
{
        char mode[8];

        if (!file->exists)
                return json_add_text(item, "group", NULL) && json_add_text(item, "gid", NULL)
                       && json_add_text(item, "mode", NULL);
        snprintf(mode, sizeof(mode), "%04o", (unsigned)file->mode);
        return json_add_text(item, "group", file->group) && cJSON_AddNumberToObject(item, "gid", file->gid)
               && json_add_text(item, "mode", mode);
}

bool host_add_sockets(cJSON *object, const struct api *api)
{
        cJSON *sockets = cJSON_AddArrayToObject(object, "sockets");

        for (size_t i = 0; sockets && i < api->listener_count; i++) {
                const struct listener *listener = &api->listeners[i];
                struct socket_file file = {};
                cJSON *item;

                if (!listener_look(listener, &api->config.socket_group, &file))
                        continue;
                item = cJSON_CreateObject();
                if (!item || !cJSON_AddItemToArray(sockets, item)) {
                        cJSON_Delete(item);
                        return false;
                }
                if (!json_add_text(item, "path", file.path)
                        || !json_add_text(item, "openedBy", listener->passed ? "systemd" : "ublkd")
                        || !add_file(item, &file))
                        return false;
        }
        return sockets != NULL;
}

bool host_add_socket_group(cJSON *policy, const struct api *api)
{
        const struct api_group *group = &api->config.socket_group;
        cJSON *object;

        if (!group->name)
                return json_add_text(policy, "socketGroup", NULL);
        object = cJSON_AddObjectToObject(policy, "socketGroup");
        return object && json_add_text(object, "name", group->name)
               && cJSON_AddBoolToObject(object, "effective", server_is_of_group(api));
}
