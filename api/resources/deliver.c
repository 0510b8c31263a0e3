/* SPDX-License-Identifier: MIT */
/* POST /devices/{name}/deliver: bring the private node of a device, or its mounted file system, to a path in a container. */
#include "api/resources/handlers.h"
#include "api/held/delivery_check.h"
#include "api/http/named_device.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/delivery_refusal.h"
#include "api/resources/tenant_check.h"

#include "ublkd/base/cleanup.h"

#include <string.h>

enum { PID_NUMBER_MAX = 1 << 22 };

struct delivery_body {
        cJSON *document; /* the texts of the wish are in it */
        struct delivery_wish wish;
};

static void delivery_body_clear(struct delivery_body *body)
{
        cJSON_Delete(body->document);
}

static bool take_member(const cJSON *item, struct delivery_wish *wish)
{
        struct {
                const char *name;
                bool *flag;
        } flags[] = {
                {"mount",    &wish->mount    },
                {"readOnly", &wish->read_only},
                {"noExec",   &wish->no_exec  },
        };

        if (strcmp(item->string, "path") == 0) {
                wish->path = cJSON_GetStringValue(item);
                return wish->path != NULL;
        }
        if (strcmp(item->string, "pid") == 0) {
                wish->pid = cJSON_IsNumber(item) && item->valuedouble >= 1
                                            && item->valuedouble <= PID_NUMBER_MAX
                                            && item->valuedouble == (pid_t)item->valuedouble
                                    ? (pid_t)item->valuedouble
                                    : 0;
                return wish->pid > 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                if (strcmp(item->string, flags[i].name) == 0) {
                        *flags[i].flag = cJSON_IsTrue(item);
                        return cJSON_IsBool(item);
                }
        return false;
}

/* Return false: there is a reply. */
static bool read_body(struct request *request, struct delivery_body *ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        const cJSON *item;
        bool good;

        ret->document = request_parse_body(request);
        if (!ret->document)
                return false;
        good = cJSON_IsObject(ret->document);
        cJSON_ArrayForEach (item, ret->document)
                good = good && take_member(item, &ret->wish);
        if (good && ret->wish.path && (ret->wish.mount || (!ret->wish.read_only && !ret->wish.no_exec)))
                return true;
        (void)problem_add(&problems, EINVAL, "", "BadValue",
                "The body must be an object with \"path\", an absolute path; it may have \"pid\", the number "
                "of a process, \"mount\", and with that \"readOnly\" and \"noExec\", each true or false, "
                "and nothing else.");
        reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        return false;
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

/* A tenant who could name a process would act with the rights of its user. */
static bool may_name_process(struct request *request, const struct delivery_wish *wish)
{
        if (!wish->pid || view_manages_all(request))
                return true;
        reply_problem(request, PROBLEM_FORBIDDEN,
                "Only administrators may name a process with \"pid\"; leave it out, and ask from the "
                "container.");
        return false;
}

/* Return whether there is a mounted file system to deliver; else it has replied. */
static bool mount_is_there(struct request *request, const struct device_record *record)
{
        if (!*record->mount) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "ublkd has not mounted the file system of this device; ask for that first: POST "
                        "/devices/NAME/mount.");
                return false;
        }
        if (record->mount_change == MOUNT_GOES) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "An unmount of the file system is under way, or has not ended well; mount it again "
                        "after its end, and repeat the request.");
                return false;
        }
        return may_have_mounts(request, &(struct filesystem_account){});
}

/* Return whether there is a private node to deliver; else it has replied. */
static bool node_is_there(struct request *request, const struct device_record *record)
{
        if (!tenant_is_set(record->tenant)) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The device belongs to the administrators, and has no private node that could be "
                        "delivered; a mounted file system can be, with \"mount\".");
                return false;
        }
        if (record->spec && !record->spec->options.private_node) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The device has no private node, as its privateNode is false; ask for its file "
                        "system with \"mount\".");
                return false;
        }
        return true;
}

static bool may_deliver(
        struct request *request, const struct device_record *record, const struct delivery_wish *wish)
{
        if (!named_device_exists(request, record))
                return false;
        if (!may_change(request, record) || !precondition_holds(request, record)
                || !may_name_process(request, wish))
                return false;
        if (record->age != RECORD_CURRENT) { /* its disk may be that of a newer record */
                reply_device_problem(request, PROBLEM_RECORD_OUTDATED, record, "%s",
                        device_status_message(&record->status, view_reader(request)));
                return false;
        }
        if (record->deleting) { /* what is delivered would keep the disk in use */
                reply_problem(
                        request, PROBLEM_BEING_REMOVED, "The device %s is being removed.", record->name);
                return false;
        }
        return wish->mount ? mount_is_there(request, record) : node_is_there(request, record);
}

void handle_device_deliver(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        _cleanup_(delivery_body_clear) struct delivery_body body = {};
        const struct delivery_report *report;

        if (!read_body(request, &body))
                return;
        /* After the delivery only its report counts, whatever has become of the device. */
        if (!delivery_is_over(request) && !may_deliver(request, record, &body.wish))
                return;
        report = delivery_check(request, record, &body.wish);
        if (!report)
                return;
        if (report->outcome == DELIVERY_DONE)
                reply_delivered(request, body.wish.path);
        else
                reply_delivery_refused(request, report);
}
