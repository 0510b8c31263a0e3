/* SPDX-License-Identifier: MIT */
/* POST /devices/{name}/deliver: bring the private node of a device to a path of the client, which is in a container. */
#include "api/resources/handlers.h"
#include "api/held/delivery_check.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/delivery_refusal.h"
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
                reply_delivery_refused(request, report);
}
