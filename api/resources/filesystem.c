/* SPDX-License-Identifier: MIT */
/* POST /devices/{name}/filesystem: make a file system on the disk of a device, once. */
#include "api/resources/handlers.h"
#include "api/held/filesystem_check.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/tenant_check.h"

#include <string.h>

/* Return false: there is a reply. */
static bool read_kind(struct request *request, enum filesystem_kind *ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *body = request_parse_body(request);
        const cJSON *type = body ? cJSON_GetObjectItemCaseSensitive(body, "type") : NULL;
        bool good = cJSON_IsString(type) && cJSON_GetArraySize(body) == 1
                    && filesystem_kind_find(type->valuestring, ret);

        if (!body)
                return false;
        cJSON_Delete(body);
        if (good)
                return true;
        (void)problem_add(&problems, EINVAL, "", "BadValue",
                "The body must be an object with \"type\", which is \"ext4\" or \"xfs\", and nothing else.");
        reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        return false;
}

static bool may_make(struct request *request, const struct device_record *record)
{
        if (!record) {
                reply_problem(request, PROBLEM_NO_SUCH_DEVICE, "No device has this name.");
                return false;
        }
        if (!may_change(request, record) || !precondition_holds(request, record))
                return false;
        if (!record->deleting)
                return true;
        reply_problem(request, PROBLEM_BEING_REMOVED, "The device %s is being removed.", record->name);
        return false;
}

/* advice: it follows the cause; NULL: the sentence is whole. */
static const struct {
        enum problem_type type;
        const char *sentence, *advice;
} refusals[_FILESYSTEM_VERDICT_MAX] = {
        [FILESYSTEM_OTHER_KIND] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "The disk has a file system of another type; use that, or create another device."},
        [FILESYSTEM_NOT_BLANK] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "The disk is not blank, and ublkd makes a file system on a blank disk only: use what is "
                "there, or "
                "create another device."},
        [FILESYSTEM_UNFINISHED] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "An earlier try was cut off, and has left a part of a file system: look whether the disk has "
                "data "
                "of another program; if not, remove the device with its store, and create another one."},
        [FILESYSTEM_LOST] = {PROBLEM_NOT_POSSIBLE_NOW, "The file system that ublkd has made is not on the "
                                                       "disk: the backing store is another one, or was "
                                                       "overwritten; restore it."},
        [FILESYSTEM_NEWER] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "A newer version of ublkd has noted what is on the disk; use that version."},
        [FILESYSTEM_IN_USE] = {PROBLEM_IN_USE, "The disk is mounted, or another program has it for itself; "
                                               "end that, and repeat the request."},
        [FILESYSTEM_NO_DISK] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "The disk was removed meanwhile; wait until the device is Live, and repeat the request."},
        [FILESYSTEM_NOT_READ] = {PROBLEM_NOT_POSSIBLE_NOW, "Reading the disk failed",
                                   "see the events of the device, and repeat the request."},
        [FILESYSTEM_NOT_STORED] = {PROBLEM_INTERNAL, "Storing the state of the file system failed",
                                   "repeat the request."},
        [FILESYSTEM_NOT_INSTALLED] = {PROBLEM_NOT_POSSIBLE_NOW,
                                   "The program for this file system is not installed on the host: install e2fsprogs for ext4, "
                "xfsprogs for xfs."},
        [FILESYSTEM_NOT_CONFINED] = {PROBLEM_NOT_POSSIBLE_NOW, "Confining the program failed",
                                   "see which rights ublkd lacks."},
        [FILESYSTEM_PROGRAM_FAILED] = {PROBLEM_NOT_POSSIBLE_NOW, "The program failed",
                                   "correct that, and repeat the request."},
        [FILESYSTEM_TOOK_TOO_LONG] = {PROBLEM_TIMEOUT,
                                   "The program did not end in time; see whether the disk answers, and repeat the request."},
};

static void reply_refused(struct request *request, const struct filesystem_result *result)
{
        const char *cause = result->error < 0 ? strerror(-result->error)
                            : *result->words  ? result->words
                                              : "it gave no reason";
        enum problem_type type = refusals[result->verdict].type;

        if (refusals[result->verdict].advice)
                reply_problem(request, type, "%s: %s; %s", refusals[result->verdict].sentence, cause,
                        refusals[result->verdict].advice);
        else
                reply_problem(request, type, "%s", refusals[result->verdict].sentence);
}

void handle_device_filesystem(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        const struct filesystem_result *result;
        enum filesystem_kind kind;

        if ((!record || !filesystem_is_settled(request)) && !may_make(request, record))
                return;
        if (!read_kind(request, &kind))
                return;
        result = filesystem_check(request, record, kind);
        if (!result)
                return;
        if (result->verdict == FILESYSTEM_IS_MADE)
                reply_device(request, MHD_HTTP_OK, record);
        else
                reply_refused(request, result);
}
