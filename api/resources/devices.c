/* SPDX-License-Identifier: MIT */
/* /devices/{name}: create, read, replace, patch, remove, recover, restart, stop, start. */
#include "api/resources/handlers.h"
#include "api/resources/client_path.h"
#include "api/held/disk_check.h"
#include "api/held/spec_check.h"
#include "api/resources/last_copy.h"
#include "api/resources/loss_consent.h"
#include "api/resources/merge_patch.h"
#include "api/resources/path_policy.h"
#include "api/resources/target_policy.h"
#include "api/resources/pool_path.h"
#include "api/resources/tenant_check.h"
#include "api/http/named_device.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/held/wait.h"
#include "ublkd/store/device_change.h"
#include "ublkd/store/restart_harm.h"
#include "ublkd/model/device_spec_store.h"
#include "ublkd/base/utf8.h"

#include <stdio.h>
#include <string.h>

static struct device_store *store_of(const struct request *request)
{
        return request->api->config.store;
}

/* Return the device of the request, if the client may change it; else NULL, and there is a reply. */
static const struct device_record *find_to_change(struct request *request)
{
        const struct device_record *record = named_device_find(request);

        return record && may_change(request, record) ? record : NULL;
}

/* Check If-Match and If-None-Match. Return true if the request may change the device; else it has replied.
 * `record` may be freed after its removal. */
static bool check_current(struct request *request, const struct device_record *record)
{
        bool may_go = record->age == RECORD_REMOVED && request->method == METHOD_DELETE;

        if (record->age != RECORD_CURRENT && !may_go)
                reply_device_problem(request, PROBLEM_RECORD_OUTDATED, record, "%s",
                        device_status_message(&record->status, view_reader(request)));
        return record->age == RECORD_CURRENT || may_go;
}

static void reply_owned(struct request *request, const struct device_record *record)
{
        _cleanup_problems_ struct problem_list problems = {};

        (void)device_record_refuse_owned(record, &problems);
        reply_problems(request, PROBLEM_OWNED_BY_FILE, &problems);
}

/* Return true if the request may remove the device, or replace its spec by `spec` (NULL: remove). Else a file owns it,
 * and there is a reply. A repetition of the same spec changes nothing. `record` may be NULL: a new device. */
static bool check_owner(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        if (!record || !device_record_is_owned(record)
                || (spec && record->spec && device_spec_equal(record->spec, spec)))
                return true;
        reply_owned(request, record);
        return false;
}

/* Parse `document` (taken over) as a spec. 0; -errno with a reply. */
static int read_spec(struct request *request, cJSON *document, const char *name, struct device_spec **ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = device_spec_parse(document, name, ret, &problems);

        cJSON_Delete(document);
        if (r == -EINVAL)
                reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        else if (r < 0)
                reply_error(request, r, "Cannot read the spec");
        return r;
}

/* Parse the body as a spec. 0; -errno with a reply. */
static int parse_spec(struct request *request, const char *name, struct device_spec **ret)
{
        cJSON *document = request_parse_body(request);

        return document ? read_spec(request, document, name, ret) : -EINVAL;
}

/* Merge the body into the device's spec. If the patch removes the name (null), the name of the path does not
 * replace it. 0; -errno with a reply. */
static int parse_patch(struct request *request, const struct device_record *record, struct device_spec **ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *patch = request_parse_body(request), *document;
        int r;

        if (!patch)
                return -EINVAL;
        r = merge_patch(record->spec->document, patch, &document, &problems);
        cJSON_Delete(patch);
        if (r >= 0) {
                bool named = cJSON_GetObjectItemCaseSensitive(document, "name");

                return read_spec(request, document, named ? record->name : NULL, ret);
        }
        if (r == -EINVAL)
                reply_problems(request, PROBLEM_INVALID_SPEC, &problems);
        else
                reply_error(request, r, "Cannot apply the patch");
        return r;
}

/* The sentence does not advise `force`, which destroys: the documents explain it. */
static void reply_in_use(struct request *request, const struct disk_answer *answer, const char *what)
{
        if (answer->use == DISK_USED)
                reply_problem(request, PROBLEM_IN_USE,
                        "%s: /dev/ublkb%d is in use: %s. %s, and repeat the request.", what, answer->number,
                        answer->text, disk_users_advice(answer->kinds));
        else
                reply_problem(request, PROBLEM_IN_USE,
                        "%s, and ublkd cannot find out who uses /dev/ublkb%d: %s. Nothing was changed; "
                        "repeat the request. If that does not help, look for the users yourself ('lsof "
                        "/dev/ublkb%d').",
                        what, answer->number, answer->text, answer->number);
}

/* Return true if the device's disk has no openers. Else there is a reply, or the handler runs again. */
static bool check_unused(struct request *request, const struct device_record *record, const char *what)
{
        const struct disk_answer *answer = disk_check_device(request, record);

        if (answer && answer->use != DISK_UNUSED)
                reply_in_use(request, answer, what);
        return answer && answer->use == DISK_UNUSED;
}

static const char disabling[] = "Disabling the device would remove its disk",
                  removing[] = "Removing the device would remove its disk";

/* Return true if no other worker takes over the disk that the new spec replaces; else there is a reply. */
static bool check_settled(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        if (!device_change_must_wait(record, spec))
                return true;
        reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                "The new spec needs a new disk, and another worker takes over /dev/ublkb%d just now. Nothing "
                "was "
                "changed; repeat the request when the device is Live again.",
                record->status.number);
        return false;
}

/* Return true if the new spec may replace the disk; else like check_unused(). */
static bool check_replaceable(
        struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        struct disk_change change;
        char what[160];

        if (record->deleting) /* the store refuses it */
                return true;
        if (!check_settled(request, record, spec))
                return false;
        switch (device_change_of(record, spec, &change)) {
        case CHANGE_DISABLES:
                return last_copy_may_go(request, record, disabling)
                       && check_unused(request, record, disabling);
        case CHANGE_IN_PLACE:
                return true;
        case CHANGE_REPLACES_DISK:
                break;
        }
        snprintf(what, sizeof(what), "Changing '%s' needs a new disk%s%s%s", change.field,
                change.why ? " (" : "", change.why ? change.why : "", change.why ? ")" : "");
        return new_disk_keeps_store(request, record, spec, what) && spec_check(request, record, spec)
               && check_unused(request, record, what);
}

static void reply_put_failure(struct request *request, int error, const struct problem_list *problems)
{
        static const struct {
                int error;
                enum problem_type type;
        } table[] = {
                {EEXIST,     PROBLEM_NAME_TAKEN         },
                {ESTALE,     PROBLEM_PRECONDITION_FAILED},
                {EBUSY,      PROBLEM_BEING_REMOVED      },
                {ETXTBSY,    PROBLEM_IN_USE             },
                {EUCLEAN,    PROBLEM_RECORD_OUTDATED    },
                {EPERM,      PROBLEM_OWNED_BY_FILE      },
                {EADDRINUSE, PROBLEM_NUMBER_TAKEN       },
                {ENOSPC,     PROBLEM_STORE_FULL         },
                {ENOLINK,    PROBLEM_DATABASE_GONE      },
        };

        if (error == -EADDRINUSE && !view_sees_all(request)) { /* the problem names the device of others */
                reply_problem(request, PROBLEM_NUMBER_TAKEN,
                        "The kernel number is not free; choose another, or leave out the id.");
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].error == -error && problems->count > 0) {
                        reply_problems(request, table[i].type, problems);
                        return;
                }
        reply_error(request, error, "Cannot store the device");
}

/* Store `spec` (taken over) and reply, at once or when the device is ready. */
static void put_spec(struct request *request, struct device_spec *spec, const struct put_condition *condition)
{
        _cleanup_device_spec_ struct device_spec *owned = spec;
        _cleanup_problems_ struct problem_list problems = {};
        const struct device_record *record;
        enum put_outcome outcome;
        unsigned status;
        int r = device_store_put(store_of(request), owned, condition, &record, &outcome, &problems);

        if (r < 0) {
                reply_put_failure(request, r, &problems);
                return;
        }
        (void)TAKE_PTR(owned);
        status = outcome == PUT_CREATED ? MHD_HTTP_CREATED : MHD_HTTP_OK;
        if (request->query.wait) {
                if (outcome == PUT_UNCHANGED
                        && !wait_is_ready(record)) /* the next attempt decides, not the last one */
                        (void)device_store_try_again(store_of(request), record->name);
                wait_begin(request, WAIT_READY, record, status);
                return;
        }
        reply_device(request, status, record);
        if (outcome == PUT_CREATED)
                snprintf(request->reply.location, sizeof(request->reply.location), "/devices/%s",
                        record->name);
}

static bool check_room(struct request *request)
{
        if (device_store_count(store_of(request)) < DEVICES_MAX)
                return true;
        reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                "ublkd has %d devices, which is the limit; remove some first.", DEVICES_MAX);
        return false;
}

void handle_device_create(struct request *request)
{
        struct put_condition condition = {.mode = PUT_CREATE};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        const struct device_record *record;

        if (parse_spec(request, NULL, &spec) < 0)
                return;
        record = device_store_get(store_of(request), spec->options.name);
        if (client_path_settle(request, record, &spec) && may_put(request, record, spec, &condition)
                && precondition_read(request, record, &condition) >= 0
                && spares_tenants(request, record, spec) && (record || check_room(request))
                && pool_path_settle(request, record, &spec) && check_owner(request, record, spec)
                && targets_are_allowed(request, record, spec) && path_is_allowed(request, record, spec))
                put_spec(request, TAKE_PTR(spec), &condition);
}

void handle_device_get(struct request *request)
{
        const struct device_record *record = named_device_find(request);

        if (record)
                reply_device(request, MHD_HTTP_OK, record);
}

void handle_device_put(struct request *request)
{
        struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        const struct device_record *record;

        if (parse_spec(request, request->name, &spec) < 0)
                return;
        record = device_store_get(store_of(request), request->name);
        if (!client_path_settle(request, record, &spec) || !may_put(request, record, spec, &condition)
                || precondition_read(request, record, &condition) < 0
                || !spares_tenants(request, record, spec) || !pool_path_settle(request, record, &spec)
                || !check_owner(request, record, spec) || !targets_are_allowed(request, record, spec)
                || !path_is_allowed(request, record, spec) || (record && !check_current(request, record)))
                return;
        if (record ? check_replaceable(request, record, spec) : check_room(request))
                put_spec(request, TAKE_PTR(spec), &condition);
}

void handle_device_patch(struct request *request)
{
        struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        const struct device_record *record = find_to_change(request);
        _cleanup_device_spec_ struct device_spec *spec = NULL;

        if (!record || precondition_read(request, record, &condition) < 0 || !check_current(request, record))
                return;
        if (!record->spec) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The stored spec of the device cannot be used, so the patch has nothing to apply to; "
                        "%s.",
                        record_stores_are_unreadable(record->stores)
                                ? "nor can what is stored of its backing stores: delete the device, and "
                                  "create it again"
                                : "replace the spec with 'ublkctl apply' (PUT)");
                return;
        }
        if (parse_patch(request, record, &spec) >= 0 && client_path_settle(request, record, &spec)
                && may_put(request, record, spec, &condition) && spares_tenants(request, record, spec)
                && pool_path_settle(request, record, &spec) && check_owner(request, record, spec)
                && targets_are_allowed(request, record, spec) && path_is_allowed(request, record, spec)
                && check_replaceable(request, record, spec))
                put_spec(request, TAKE_PTR(spec), &condition);
}

static cJSON *removal_to_json(
        const struct device_record *record, const struct disk_answer *answer, bool is_last_copy)
{
        static const char *const uses[] = {
                [DISK_UNUSED] = "unused", [DISK_USED] = "used", [DISK_USE_UNKNOWN] = "unknown"};
        _cleanup_free_ char *users = strdup(answer->text);
        cJSON *object = users ? cJSON_CreateObject() : NULL;
        char node[32];

        if (users)
                utf8_repair(users);
        snprintf(node, sizeof(node), "/dev/ublkb%d", answer->number);
        if (object && cJSON_AddStringToObject(object, "name", record->name)
                && cJSON_AddStringToObject(object, "uid", record->uid)
                && (answer->number >= 0 ? cJSON_AddStringToObject(object, "disk", node)
                                        : cJSON_AddNullToObject(object, "disk"))
                && cJSON_AddStringToObject(object, "use", uses[answer->use])
                && cJSON_AddStringToObject(object, "users", users)
                && cJSON_AddBoolToObject(object, "lastCopy", is_last_copy))
                return object;
        cJSON_Delete(object);
        return NULL;
}

/* Without drop-last-copy=false, a removal may lose data that only the disk holds, because the client asked
 * for it. False: there is a reply. */
static bool removal_keeps_last_copy(struct request *request, const struct device_record *record)
{
        return record->deleting || request->query.last_copy != LAST_COPY_KEEP
               || last_copy_may_go(request, record, removing);
}

/* Return true if no holder of a mount is noted: it may be under way, and the disk not in use yet. Else there is a reply. */
static bool check_unheld(struct request *request, const struct device_record *record)
{
        size_t holders = device_record_mount_holders(record);

        if (record->deleting || request->query.force || holders == 0)
                return true;
        reply_problem(request, PROBLEM_IN_USE,
                "%s: %zu holders want the mount of its file system to stay (status.mountHolders); have them "
                "end it, or end it with \"allHolders\" (POST /devices/%s/unmount), and repeat the request.",
                removing, holders, record->name);
        return false;
}

/* Reply with what the removal would do, and change nothing. */
static void rehearse_delete(struct request *request, const struct device_record *record)
{
        const struct disk_answer *answer;

        if (!removal_keeps_last_copy(request, record) || !check_unheld(request, record))
                return;
        answer = disk_check_device(request, record);
        if (!answer)
                return;
        if (answer->use != DISK_UNUSED && !record->deleting && !request->query.force)
                reply_in_use(request, answer, removing);
        else
                reply_json(
                        request, MHD_HTTP_OK, removal_to_json(record, answer, is_last_copy(request, record)));
}

void handle_device_delete(struct request *request)
{
        const struct device_record *record = find_to_change(request);
        int r;

        if (!record || !precondition_holds(request, record) || !check_current(request, record)
                || !check_owner(request, record, NULL))
                return;
        if (request->query.dry_run) {
                rehearse_delete(request, record);
                return;
        }
        if (!removal_keeps_last_copy(request, record) || !check_unheld(request, record))
                return;
        if (!record->deleting && !request->query.force && !check_unused(request, record, removing))
                return;
        r = device_store_request_delete(store_of(request), request->name, request->query.force);
        if (r < 0) {
                reply_error(request, r, "Cannot store the removal");
                return;
        }
        if (request->query.wait)
                wait_begin(request, WAIT_GONE, record, 0);
        else
                reply_device(request, MHD_HTTP_ACCEPTED, record);
}

/* Return true if the device has a disk, or will have one; else it has replied. */
static bool check_usable(struct request *request, const struct device_record *record, const char *what)
{
        char advice[DEVICE_NAME_MAX + 64] = "";

        if (!record->deleting && device_record_enabled(record))
                return true;
        if (!record->deleting && record->spec)
                snprintf(advice, sizeof(advice), "; 'ublkctl %s %s' creates its disk",
                        record->spec->options.enabled ? "start" : "enable", record->name);
        reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW, "The device %s, so it has no disk to %s%s.",
                record->deleting                ? "is being removed"
                : !record->spec                 ? "has an invalid spec"
                : record->spec->options.enabled ? "is stopped"
                                                : "is disabled",
                what, advice);
        return false;
}

/* Return what was found in place of the store that the consent is for; NULL: it is for none of the device. */
static const struct backing_identity *found_store(
        const struct request *request, const struct device_record *record)
{
        const char *pointer = request->query.store;
        bool is_list = record->spec && device_spec_has_list(record->spec);

        if (!pointer)
                return is_list ? NULL : &record->status.backing.found;
        for (unsigned i = 0; is_list && i < record->status.store_count; i++)
                if (strcmp(record->status.stores[i].pointer, pointer) == 0)
                        return &record->status.stores[i].found;
        return NULL;
}

static int accept_backing(const struct request *request)
{
        const char *identity = request->query.accept_backing;

        return request->query.store ? device_store_accept_listed(store_of(request), request->name,
                                              request->query.store, identity)
                                    : device_store_accept_backing(store_of(request), request->name, identity);
}

/* Return true if the client accepts the identity of the store that was found, and the disk has no openers. An
 * opener would see the bytes of the disk change, and write what it has cached into the other store. Else like
 * check_unused(). */
static bool check_consent(struct request *request, const struct device_record *record)
{
        const struct backing_identity *found = found_store(request, record);
        const char *accepted = request->query.accept_backing;

        if (!accepted) {
                reply_problem(request, PROBLEM_BAD_REQUEST,
                        "The query parameter 'store' is without 'accept-backing'; give the identity of that "
                        "store, or leave out both.");
                return false;
        }
        if (!found) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "%s; give the `target` of one of status.backing.stores in `store`, if the device has "
                        "any, else leave it out.",
                        request->query.store ? "The device has no such store in a list"
                                             : "The disk lies in several stores, and a consent is for one");
                return false;
        }
        if (backing_identity_is_empty(found) || strcmp(backing_identity_text(found), accepted) != 0) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "accept-backing does not match the store at the path; give the identity in "
                        "`found` that status.backing shows now.");
                return false;
        }
        return request->query.force
               || check_unused(request, record, "Accepting another store would change the bytes of the disk");
}

/* Reply to a request that was stored (error: 0) or could not be, and wait for its end if the client wants that. */
static void reply_stored(
        struct request *request, const struct device_record *record, int error, enum wait_kind kind)
{
        if (error == -EXDEV)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "What was found there is the store of another place of the same disk, so the disk "
                        "would be destroyed; put each store back at its path, or set the paths in the spec "
                        "to where the stores are now.");
        else if (error < 0)
                reply_error(request, error, "Cannot store the request");
        else if (request->query.wait)
                wait_begin(request, kind, record, MHD_HTTP_OK);
        else
                reply_device(request, MHD_HTTP_ACCEPTED, record);
}

void handle_device_recover(struct request *request)
{
        const struct device_record *record = find_to_change(request);
        int r;

        if (!record || !precondition_holds(request, record) || !check_current(request, record))
                return;
        if (!check_usable(request, record, "recover")
                || ((request->query.accept_backing || request->query.store)
                        && !check_consent(request, record)))
                return;
        r = request->query.accept_backing ? accept_backing(request)
                                          : device_store_request_recover(store_of(request), request->name);
        reply_stored(request, record, r, WAIT_RECOVERED);
}

/* Return true unless there is a reply that the device has no disk to begin or to end. */
static bool check_startable(struct request *request, const struct device_record *record, const char *what)
{
        if (!record->deleting && record->spec && record->spec->options.enabled)
                return true;
        return check_usable(request, record, what);
}

void handle_device_stop(struct request *request)
{
        static const char stopping[] = "Stopping the device would remove its disk";
        const struct device_record *record = find_to_change(request);

        if (!record || !precondition_holds(request, record) || !check_current(request, record)
                || !check_startable(request, record, "stop"))
                return;
        if (!record->stopped
                && (!last_copy_may_go(request, record, stopping) || !check_unused(request, record, stopping)))
                return;
        reply_stored(
                request, record, device_store_request_stop(store_of(request), request->name), WAIT_READY);
}

void handle_device_start(struct request *request)
{
        const struct device_record *record = find_to_change(request);

        if (!record || !precondition_holds(request, record) || !check_current(request, record)
                || !check_startable(request, record, "start"))
                return;
        reply_stored(
                request, record, device_store_request_start(store_of(request), request->name), WAIT_READY);
}

void handle_device_restart(struct request *request)
{
        const struct device_record *record = find_to_change(request);
        const char *harm;
        bool accept;
        int r;

        if (!record || !precondition_holds(request, record) || !check_current(request, record)
                || !check_usable(request, record, "restart") || !loss_consent_holds(request, record, &accept))
                return;
        harm = restart_harm(record, request->api->config.host->features);
        if (device_spec_on_crash(record->spec) == ON_CRASH_NONE
                && !new_disk_keeps_store(request, record, record->spec, harm))
                return;
        if (harm && !check_unused(request, record, harm))
                return;
        r = device_store_request_restart(store_of(request), request->name, accept);
        reply_stored(request, record, r, WAIT_READY);
}
