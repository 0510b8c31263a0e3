/* SPDX-License-Identifier: MIT */
/* /devices/{name}/actions: what takes its time, and a client starts, follows and cancels. */
#include "api/http/named_device.h"
#include "api/http/precondition.h"
#include "api/http/query.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/handlers.h"
#include "api/resources/tenant_check.h"
#include "ublkd/store/store_actions.h"

#include "ublkd/values/json_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS_TEXT_MAX = 1024 };

/* Return the device if the client may change it, and its record is current; NULL: there is a reply. */
static const struct device_record *find_to_change(struct request *request)
{
        const struct device_record *record = named_device_find(request);

        if (!record || !may_change(request, record) || !precondition_holds(request, record))
                return NULL;
        if (record->age == RECORD_CURRENT)
                return record;
        reply_device_problem(request, PROBLEM_RECORD_OUTDATED, record, "%s",
                device_status_message(&record->status, view_reader(request)));
        return NULL;
}

/* Return the action of the request; NULL: there is a reply. */
static const struct device_action *find_action(struct request *request, const struct device_record *record)
{
        const struct device_action *action = NULL;
        uint64_t id;

        if (query_parse_revision(request->item, &id) >= 0)
                action = device_actions_find(record->actions, id);
        if (!action)
                reply_problem(request, PROBLEM_NO_SUCH_ACTION,
                        "The device has no such action (any more); GET /devices/%s/actions lists those it "
                        "has.",
                        record->name);
        return action;
}

/* ---- to look ---- */

void handle_action_list(struct request *request)
{
        const struct device_record *record = named_device_find(request);
        cJSON *object, *items;
        bool good;

        if (!record)
                return;
        object = cJSON_CreateObject();
        items = object ? cJSON_AddArrayToObject(object, "items") : NULL;
        good = items;
        for (size_t i = 0; good && record->actions && i < record->actions->count; i++) {
                cJSON *item = device_action_to_json(record->actions->items[i]);

                good = item && cJSON_AddItemToArray(items, item);
                if (!good)
                        cJSON_Delete(item);
        }
        if (!good) {
                cJSON_Delete(object);
                object = NULL;
        }
        reply_json(request, MHD_HTTP_OK, object);
}

void handle_action_get(struct request *request)
{
        const struct device_record *record = named_device_find(request);
        const struct device_action *action = record ? find_action(request, record) : NULL;

        if (action)
                reply_json(request, MHD_HTTP_OK, device_action_to_json(action));
}

/* ---- to start ---- */

/* The name is one of a target of the tree, and this disk cannot do it. */
static void reply_not_of_disk(
        struct request *request, const struct target_tree *tree, const struct target_tree_verb *verb)
{
        char pointer[TARGET_POINTER_SIZE];

        if (verb->refusal) {
                reply_problem(request, PROBLEM_NO_SUCH_ACTION, "The device has no action %s: %s.",
                        verb->verb->name, verb->refusal);
                return;
        }
        target_tree_pointer(tree, verb->lacking, pointer);
        reply_problem(request, PROBLEM_NO_SUCH_ACTION,
                "The device has no action %s: the target %s at %s of its spec does not have it.",
                verb->verb->name, tree->nodes[verb->lacking].desc->name, pointer);
}

/* Return true if the verb is not for tests, or a setting allows those; else it has replied. */
static bool verb_is_allowed(
        struct request *request, const struct target_tree *tree, const struct target_tree_verb *verb)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct target_desc *target = tree->nodes[verb->node].desc;
        int r;

        if (!verb->verb->for_tests || request->api->config.allow_fault_target)
                return true;
        r = problem_add(&problems, EINVAL, "", reason_to_string(REASON_TEST_TARGET_NOT_ALLOWED),
                "The action %s of the target %s is for tests, and this ublkd refuses it "
                "(--allow-fault-target no).",
                verb->verb->name, target->name);
        if (r < 0)
                reply_error(request, r, "Cannot start the action");
        else
                reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        return false;
}

/* Return the verb of the request; NULL: there is a reply. */
static const struct target_verb *find_verb(struct request *request, const struct device_record *record)
{
        const struct target_tree *tree = record->spec ? record->spec->tree : NULL;
        struct target_tree_verb verb;
        int r = tree ? target_tree_verb(tree, request->item, &verb) : -ENOENT;

        if (r == -EOPNOTSUPP)
                reply_not_of_disk(request, tree, &verb);
        else if (r < 0)
                reply_problem(request, PROBLEM_NO_SUCH_ACTION,
                        "The target of the device has no such action; GET /targets lists the actions of each "
                        "target.");
        else if (verb_is_allowed(request, tree, &verb))
                return verb.verb;
        return NULL;
}

/* Return the arguments as JSON text, which the caller frees; NULL: there is a reply. */
static char *read_arguments(struct request *request, const struct target_verb *verb)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_json_ cJSON *document =
                request_has_body(request) ? request_parse_body(request) : cJSON_CreateObject();
        _Alignas(uint64_t) unsigned char arguments[TARGET_ARGUMENTS_MAX];
        char *text = NULL;
        int r;

        if (!document) {
                if (!request_has_body(request))
                        reply_error(request, -ENOMEM, "Cannot start the action");
                return NULL;
        }
        r = dispatch(document, verb->arguments, "", arguments, &problems);
        if (r >= 0)
                text = json_print(document);
        if (text && strlen(text) > ARGUMENTS_TEXT_MAX) { /* of known fields with spaces around their values */
                free(text);
                text = NULL;
                r = problem_add(&problems, E2BIG, "", "BadLength", "The arguments are too long.");
                r = r < 0 ? r : -EINVAL;
        }
        if (r == -EINVAL)
                reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        else if (!text)
                reply_error(request, -ENOMEM, "Cannot start the action");
        return text;
}

/* Return true if the device can have an action now; else it has replied. */
static bool check_free(struct request *request, const struct device_record *record)
{
        const struct device_action *current = device_actions_current(record->actions);

        if (record->deleting)
                reply_problem(
                        request, PROBLEM_BEING_REMOVED, "The device %s is being removed.", record->name);
        else if (current)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The action %s of the device is under way, and one is at a time; wait for its end, "
                        "or "
                        "cancel it (DELETE /devices/%s/actions/%" PRIu64 ").",
                        current->verb, record->name, current->id);
        else if (record->status.phase != PHASE_LIVE)
                reply_device_problem(request, PROBLEM_NOT_POSSIBLE_NOW, record,
                        "The device is not Live, so no worker can carry out an action; repeat the request "
                        "when "
                        "it is.");
        else
                return true;
        return false;
}

static void reply_started(struct request *request, uint64_t id)
{
        const struct device_record *record = device_store_get(request->api->config.store, request->name);

        reply_json(
                request, MHD_HTTP_ACCEPTED, device_action_to_json(device_actions_find(record->actions, id)));
        (void)snprintf(request->reply.location, sizeof(request->reply.location),
                "/devices/%s/actions/%" PRIu64, record->name, id);
}

void handle_action_start(struct request *request)
{
        const struct device_record *record = find_to_change(request);
        const struct target_verb *verb = record ? find_verb(request, record) : NULL;
        _cleanup_free_ char *arguments = verb ? read_arguments(request, verb) : NULL;
        uint64_t id;
        int r;

        if (!arguments || !check_free(request, record))
                return;
        r = device_store_begin_action(request->api->config.store, request->name, verb->name, arguments, &id);
        if (r < 0)
                reply_error(request, r, "Cannot store the action");
        else
                reply_started(request, id);
}

void handle_action_cancel(struct request *request)
{
        const struct device_record *record = find_to_change(request);
        const struct device_action *action = record ? find_action(request, record) : NULL;
        uint64_t id;
        int r;

        if (!action)
                return;
        if (device_action_has_ended(action)) {
                reply_json(request, MHD_HTTP_OK, device_action_to_json(action));
                return;
        }
        id = action->id;
        r = device_store_cancel_action(request->api->config.store, request->name, id);
        if (r < 0)
                reply_error(request, r, "Cannot store the cancellation");
        else
                reply_json(request, MHD_HTTP_ACCEPTED,
                        device_action_to_json(device_actions_find(record->actions, id)));
}
