/* SPDX-License-Identifier: MIT */
/* What a client sees of the devices. */
#include "api/http/view.h"

#include "api/http/server.h"

#include <string.h>

bool view_manages_all(const struct request *request)
{
        return peer_may_change(&request->peer) || request->permission == PERMISSION_USED;
}

const char *view_of(const struct request *request)
{
        const struct peer *peer = &request->peer;

        if (view_manages_all(request) || peer_may_read(peer, &request->api->config.rights))
                return "";
        return tenant_is_set(peer->tenant) ? peer->tenant : "nothing"; /* no device has that tenant */
}

static bool is_in(const char *view, const char *tenant)
{
        return *view == '\0' || strcmp(tenant, view) == 0;
}

bool view_has(const struct request *request, const struct device_record *record)
{
        return is_in(view_of(request), record->tenant);
}

bool view_has_event(const struct request *request, const struct device_event *event)
{
        return is_in(view_of(request), event->tenant);
}

const struct device_record *view_find(const struct request *request, const char *name)
{
        const struct device_record *record = device_store_get(request->api->config.store, name);

        return record && view_has(request, record) ? record : NULL;
}

bool view_may_change(const struct request *request, const struct device_record *record)
{
        return view_manages_all(request) || tenant_is(record->tenant, request->peer.tenant);
}
