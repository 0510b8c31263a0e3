/* SPDX-License-Identifier: MIT */
/* POST /devices/{name}/deliver: bring the private node of a device to a path of the client, which is in a container. */
#include "api/resources/handlers.h"
#include "api/held/delivery_check.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/tenant_check.h"

#include <string.h>

/* Return the path in the body, which the caller frees; NULL: there is a reply. */
static char *read_path(struct request *request)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *body = request_parse_body(request);
        const cJSON *path = body ? cJSON_GetObjectItemCaseSensitive(body, "path") : NULL;
        char *text = NULL;

        if (!body)
                return NULL;
        if (!cJSON_IsString(path) || cJSON_GetArraySize(body) != 1) {
                (void)problem_add(&problems, EINVAL, "", "BadValue",
                        "The body must be an object with \"path\", an absolute path, and nothing else.");
                reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        } else {
                text = strdup(path->valuestring);
                if (!text)
                        reply_error(request, -ENOMEM, "Cannot read the path");
        }
        cJSON_Delete(body);
        return text;
}

static void reply_delivered(struct request *request, const char *path)
{
        cJSON *object = cJSON_CreateObject();

        if (object && !cJSON_AddStringToObject(object, "path", path)) {
                cJSON_Delete(object);
                object = NULL;
        }
        reply_json(request, MHD_HTTP_OK, object);
}

/* What the client can do, for each outcome without an error of the system. */
static const char *const refusals[_DELIVERY_OUTCOME_MAX] = {
        [DELIVERY_AT_HOME] =
                "The client is on the host itself; the node is there: open status.node of the device.",
        [DELIVERY_WITHOUT_USERS] = "The container of the client has no user namespace of its own, so a node "
                                   "in there could not be "
                                   "taken back; give it one, as rootless Podman does.",
        [DELIVERY_ENDED] = "The client has ended; keep the process that asks until the answer comes.",
        [DELIVERY_SHARED] =
                "The mount at the path is shared with other mount namespaces; choose a path on a mount "
                "that is private to the container.",
        [DELIVERY_TAKEN_BACK] =
                "The disk was stopped or removed meanwhile, and its node is gone; wait until the "
                "disk is Live, and repeat the request.",
        [DELIVERY_LATE] =
                "The node was not delivered in time: a file system on the path does not answer; see whether "
                "the node is there, and repeat the request with another path.",
};

static void reply_failed(struct request *request, const struct delivery_report *report)
{
        static const char *const failures[_DELIVERY_OUTCOME_MAX] = {
                [DELIVERY_NOT_ENTERED] = "Entering the container failed",
                [DELIVERY_NO_FILE] = "Creating the file for the node failed",
                [DELIVERY_NOT_MOUNTED] = "Mounting the node on the file failed",
        };
        const char *failure = failures[report->outcome];

        if (failure)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "%s: %s; choose a path to which the client may write, without links, where nothing "
                        "is.",
                        failure, strerror(-report->error));
        else
                reply_problem(request,
                        report->outcome == DELIVERY_LATE ? PROBLEM_TIMEOUT : PROBLEM_NOT_POSSIBLE_NOW, "%s",
                        refusals[report->outcome]);
}

static bool may_deliver(struct request *request, const struct device_record *record)
{
        if (!record) {
                reply_problem(request, PROBLEM_NO_SUCH_DEVICE, "No device has this name.");
                return false;
        }
        if (!may_change(request, record) || !precondition_holds(request, record))
                return false;
        if (tenant_is_set(record->tenant))
                return true;
        reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                "The device belongs to the administrators, and has no private node that could be delivered.");
        return false;
}

void handle_device_deliver(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        const struct delivery_report *report;
        _cleanup_free_ char *path = NULL;

        /* After the delivery only its report counts, whatever has become of the device. */
        if (!delivery_is_over(request) && !may_deliver(request, record))
                return;
        path = read_path(request);
        report = path ? delivery_check(request, record, path) : NULL;
        if (!report)
                return;
        if (report->outcome == DELIVERY_DONE)
                reply_delivered(request, path);
        else
                reply_failed(request, report);
}
