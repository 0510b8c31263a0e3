/* SPDX-License-Identifier: MIT */
/* POST /devices/{name}/filesystem, …/mount and …/unmount: make a file system on the disk of a device, once; mount it, and
 * end the mount. */
#include "api/resources/handlers.h"
#include "api/held/filesystem_check.h"
#include "api/http/named_device.h"
#include "api/http/precondition.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "api/resources/filesystem_reply.h"
#include "api/resources/tenant_check.h"

#include "ublkd/base/utf8.h"

#include <string.h>
#include <systemd/sd-id128.h>

/* Return false: the text is not a UUID as `status.filesystem` has it. */
static bool read_uuid(const char *text, char ret[static FILESYSTEM_UUID_SIZE])
{
        sd_id128_t id;

        if (!text || strlen(text) != FILESYSTEM_UUID_SIZE - 1 || sd_id128_from_string(text, &id) < 0)
                return false;
        sd_id128_to_uuid_string(id, ret);
        return strcmp(ret, text) == 0;
}

/* Return false: there is a reply. */
static bool read_making(struct request *request, struct filesystem_wish *ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        cJSON *body = request_parse_body(request);
        const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(body, "type"));
        const cJSON *remake = cJSON_GetObjectItemCaseSensitive(body, "remake");
        bool good = type && filesystem_kind_find(type, &ret->kind)
                    && (!remake || read_uuid(cJSON_GetStringValue(remake), ret->remake))
                    && cJSON_GetArraySize(body) == (remake ? 2 : 1);

        if (!body)
                return false;
        cJSON_Delete(body);
        if (good)
                return true;
        (void)problem_add(&problems, EINVAL, "", "BadValue",
                "The body must be an object with \"type\", which is \"ext4\" or \"xfs\"; it may have "
                "\"remake\", a UUID, and nothing else.");
        reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        return false;
}

/* What the bodies of a mount and of an unmount have. */
struct mount_body {
        cJSON *document;
        const char *holder; /* in the document; NULL: none */
        bool no_exec, all_holders;
};

static void mount_body_clear(struct mount_body *body)
{
        cJSON_Delete(body->document);
}

static bool take_member(const cJSON *item, enum filesystem_aim aim, struct mount_body *body)
{
        bool unmounts = aim == FILESYSTEM_AIM_UNMOUNTED;

        if (strcmp(item->string, "holder") == 0) {
                body->holder = cJSON_GetStringValue(item);
                return body->holder && *body->holder && utf8_count(body->holder) <= MOUNT_HOLDER_LENGTH_MAX;
        }
        if (strcmp(item->string, unmounts ? "allHolders" : "noExec") != 0 || !cJSON_IsBool(item))
                return false;
        *(unmounts ? &body->all_holders : &body->no_exec) = cJSON_IsTrue(item);
        return true;
}

/* Return false: there is a reply. */
static bool read_mount_body(struct request *request, enum filesystem_aim aim, struct mount_body *ret)
{
        _cleanup_problems_ struct problem_list problems = {};
        const cJSON *item;
        bool good;

        ret->document = request_parse_body(request);
        if (!ret->document)
                return false;
        good = cJSON_IsObject(ret->document);
        cJSON_ArrayForEach (item, ret->document)
                good = good && take_member(item, aim, ret);
        if (good)
                return true;
        (void)problem_add(&problems, EINVAL, "", "BadValue",
                "The body must be an object; it may have \"holder\", a text of 1 to %d characters, and "
                "\"%s\", true or false, and nothing else.",
                MOUNT_HOLDER_LENGTH_MAX, aim == FILESYSTEM_AIM_UNMOUNTED ? "allHolders" : "noExec");
        reply_problems(request, PROBLEM_INVALID_REQUEST, &problems);
        return false;
}

/* A file system of a tenant is one that only the kernel and mkfs write to. An administrator has one made on each disk. */
static bool may_have(
        const struct request *request, const struct device_record *record, enum filesystem_aim aim)
{
        bool asks =
                aim == FILESYSTEM_AIM_MOUNTED || (aim == FILESYSTEM_AIM_MADE && !view_manages_all(request));

        return !asks || !tenant_is_set(record->tenant)
               || (record->spec && device_spec_is_volume(record->spec));
}

static bool may_ask(struct request *request, const struct device_record *record, enum filesystem_aim aim)
{
        if (!named_device_exists(request, record))
                return false;
        if (!may_change(request, record) || !precondition_holds(request, record))
                return false;
        if (record->age
                != RECORD_CURRENT) { /* also no holder: with enough writes an old record looks like the newest */
                reply_device_problem(request, PROBLEM_RECORD_OUTDATED, record, "%s",
                        device_status_message(&record->status, view_reader(request)));
                return false;
        }
        if (!may_have(request, record, aim)) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The device belongs to a tenant, who may write to the disk past the file system; "
                        "create a "
                        "device with \"privateNode\": false and a target with a pool.");
                return false;
        }
        if (aim == FILESYSTEM_AIM_MOUNTED && record->spec && device_spec_lets_users_write(record->spec)) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The owner or the mode of the device lets users write to the disk past the file "
                        "system; change `owner` so that root has the disk, and repeat the request.");
                return false;
        }
        if (aim == FILESYSTEM_AIM_MOUNTED && record->spec && device_spec_has_list(record->spec)) {
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "The disk lies in several backing stores, and before it mounts a disk ublkd looks at "
                        "one alone, whether users may write to it. Let no user write to any of them, and use "
                        "mount(8).");
                return false;
        }
        if (!record->deleting || aim == FILESYSTEM_AIM_UNMOUNTED)
                return true;
        reply_problem(request, PROBLEM_BEING_REMOVED, "The device %s is being removed.", record->name);
        return false;
}

void handle_device_filesystem(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        struct filesystem_wish wish = {.aim = FILESYSTEM_AIM_MADE};
        const struct filesystem_result *result;

        if (!read_making(request, &wish))
                return;
        if ((!record || !filesystem_is_settled(request))
                && (!may_ask(request, record, wish.aim) || !may_have_mounts(request, &wish.account)))
                return;
        result = filesystem_check(request, record, &wish, false);
        if (result)
                filesystem_reply(request, record, result);
}

/* Return false: there is a reply. *ret_new: the holder was not noted before. */
static bool hold_mount(
        struct request *request, const struct device_record *record, const char *holder, bool *ret_new)
{
        int r = holder ? device_store_hold_mount(request->api->config.store, record->name, holder) : 0;

        if (r == -ENOSPC)
                reply_problem(request, PROBLEM_NOT_POSSIBLE_NOW,
                        "%d holders have the file system mounted, and no more can; end one of these mounts.",
                        MOUNT_HOLDERS_MAX);
        else if (r < 0)
                reply_error(request, r, "Cannot store the holder of the mount");
        *ret_new = r > 0;
        return r >= 0;
}

/* The mount has failed, or did not begin: the holder that was noted for it does not count. That of an earlier mount does.
 * If this fails, there is one holder too many, which an unmount ends. */
static void take_back(
        struct request *request, const struct device_record *record, const char *holder, bool is_new)
{
        if (is_new)
                (void)device_store_release_mount(request->api->config.store, record->name, holder);
}

void handle_device_mount(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        _cleanup_(mount_body_clear) struct mount_body body = {};
        struct filesystem_wish wish = {.aim = FILESYSTEM_AIM_MOUNTED};
        const struct filesystem_result *result;
        bool is_new = false;

        if (!read_mount_body(request, wish.aim, &body))
                return;
        if ((!record || !filesystem_is_settled(request))
                && (!may_ask(request, record, wish.aim) || !may_have_mounts(request, &wish.account)
                        || !hold_mount(request, record, body.holder, &is_new)))
                return;
        wish.flags = body.no_exec ? FILESYSTEM_NO_EXEC : 0;
        result = filesystem_check(request, record, &wish, is_new);
        if (!result) {
                if (!request->suspended)
                        take_back(request, record, body.holder, is_new);
                return;
        }
        if (!filesystem_is_as_wanted(result))
                take_back(request, record, body.holder, result->holder_is_new);
        filesystem_reply(request, record, result);
}

/* Return whether the mount is to end now; false: there is a reply. */
static bool release_mount(
        struct request *request, const struct device_record *record, const struct mount_body *body)
{
        int r = (int)device_record_mount_holders(record);

        if (body->holder || body->all_holders)
                r = device_store_release_mount(
                        request->api->config.store, record->name, body->all_holders ? NULL : body->holder);
        if (r < 0)
                reply_error(request, r, "Cannot store the end of the mount");
        else if (r > 0 && body->holder)
                reply_device(request, MHD_HTTP_OK, record); /* others have it mounted */
        else if (r > 0)
                reply_problem(request, PROBLEM_IN_USE,
                        "%d holders want the mount to stay; have them end it, or end it with \"allHolders\".",
                        r);
        return r == 0;
}

/* A copy that an unmount has left may be there without a disk: that is for the unmount to find out. */
static bool has_nothing_to_unmount(const struct device_record *record)
{
        return !record->status.disk && !*record->mount && record->mount_change == MOUNT_STAYS;
}

void handle_device_unmount(struct request *request)
{
        const struct device_record *record = view_find(request, request->name);
        _cleanup_(mount_body_clear) struct mount_body body = {};
        struct filesystem_wish wish = {.aim = FILESYSTEM_AIM_UNMOUNTED};
        const struct filesystem_result *result;

        if (!read_mount_body(request, wish.aim, &body))
                return;
        if ((!record || !filesystem_is_settled(request))
                && (!may_ask(request, record, wish.aim) || !release_mount(request, record, &body)))
                return;
        if (!filesystem_is_settled(request) && has_nothing_to_unmount(record)) {
                reply_device(request, MHD_HTTP_OK, record);
                return;
        }
        wish.flags = body.all_holders ? FILESYSTEM_COPIES_TOO : 0;
        result = filesystem_check(request, record, &wish, false);
        if (result)
                filesystem_reply(request, record, result);
}
