/* SPDX-License-Identifier: MIT */
/* What a client sees of the devices. */
#include "api/http/view.h"

#include "api/http/server.h"

bool view_manages_all(const struct request *request)
{
        return peer_may_change(&request->peer) || request->permission == PERMISSION_USED;
}

bool view_sees_all(const struct request *request)
{
        return view_manages_all(request) || peer_may_read(&request->peer, &request->api->config.rights);
}

enum reader view_reader(const struct request *request)
{
        return view_sees_all(request) ? READER_OF_ALL : READER_TENANT;
}

/* A client that sees nothing at all is not a tenant. */
static bool is_in_view(const struct request *request, const char *tenant)
{
        return view_sees_all(request) || tenant_is(tenant, request->peer.tenant);
}

bool view_has(const struct request *request, const struct device_record *record)
{
        return is_in_view(request, record->tenant);
}

bool view_has_event(const struct request *request, const struct device_event *event)
{
        return is_in_view(request, event->tenant);
}

uint64_t view_compacted(const struct request *request)
{
        return event_log_compacted_of(device_store_events(request->api->config.store),
                view_sees_all(request) ? NULL : request->peer.tenant);
}

const struct device_record *view_next(const struct request *request, const char *name)
{
        const struct device_store *store = request->api->config.store;

        return view_sees_all(request) ? device_store_next(store, name)
                                      : device_store_next_of(store, request->peer.tenant, name);
}

const struct device_record *view_after(const struct request *request, const struct device_record *record)
{
        return view_sees_all(request) ? device_store_after(record) : device_store_after_of(record);
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
