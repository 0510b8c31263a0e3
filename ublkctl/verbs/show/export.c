/* SPDX-License-Identifier: MIT */
/* export: write the specs of devices, as a backup for 'ublkctl apply' by the same client. So a client that sees all devices gets
 * none of a tenant: they would be its own then, and ublkd refuses it their names. */
#include "ublkctl/spec/file_fault.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs.h"
#include "ublkd/base/file_io.h"
#include "ublkd/model/tenant.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return whether a name, which comes from a server, stays inside the folder. */
static bool is_file_name(const char *name)
{
        return *name && *name != '.' && !strchr(name, '/');
}

static int write_text(int dir, const char *fresh, void *text)
{
        _cleanup_close_ int fd =
                openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);

        if (fd < 0)
                return -errno;
        return dprintf(fd, "%s\n", (char *)text) < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Write the whole file or nothing, because it may replace an older one. */
static int write_whole(const char *folder, const char *name, char *text)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s.json", folder, name) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        return replace_at(AT_FDCWD, path, write_text, text);
}

static enum exit_status export_one(const char *folder, const char *name, const cJSON *spec)
{
        char *text = cJSON_Print(spec);
        int r = !text ? -ENOMEM : is_file_name(name) ? write_whole(folder, name, text) : -EINVAL;

        cJSON_free(text);
        return r < 0 ? print_file_fault(folder, -r) : STATUS_OK;
}

/* Warn of a spec that does not match the device. */
static enum exit_status check_device(const cJSON *device)
{
        const char *name = json_text(device, "name"), *message;
        const cJSON *condition = cJSON_GetArrayItem(json_find(device, "status.conditions"), 0);
        const char *reason = json_text(condition, "reason");

        if (!name)
                return STATUS_FAILED;
        if (!cJSON_IsObject(json_find(device, "spec"))) {
                complain(name, "The stored spec is invalid, and was left out.");
                return STATUS_FAILED;
        }
        if (!reason || strcmp(reason, "RecordOutdated") != 0)
                return STATUS_OK;
        message = json_text(condition, "message");
        complain(name, "The spec is an older one. %s", message ? message : "");
        return STATUS_FAILED;
}

static enum exit_status export_devices(const char *folder, cJSON *devices, cJSON *specs)
{
        enum exit_status status = STATUS_OK;
        cJSON *device;

        cJSON_ArrayForEach (device, devices) {
                cJSON *spec = cJSON_GetObjectItemCaseSensitive(device, "spec");
                const char *name = json_text(device, "name");

                status = exit_status_merge(status, check_device(device));
                if (!cJSON_IsObject(spec) || !name)
                        continue;
                if (folder)
                        status = exit_status_merge(status, export_one(folder, name, spec));
                else
                        cJSON_AddItemReferenceToArray(specs, spec);
        }
        return status;
}

/* *ret: whether the client sees the devices of others. A tenant does not, nor the host; in a container its uid is another one than on
 * the host. */
static enum exit_status find_view(struct context *context, bool *ret)
{
        struct request request = {.method = "GET", .path = "/host"};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = client_ask(context->client, &request, false, &answer);

        if (status != STATUS_OK)
                return status;
        *ret = !is_problem(&answer, "forbidden");
        return answer.status >= 400 && *ret ? report_problem(&request, NULL, &answer) : STATUS_OK;
}

/* A user may be a tenant and see all devices. On another machine a uid says nothing. */
static bool is_of_another(const struct context *context, const cJSON *device)
{
        const char *tenant = json_text(device, "tenant");
        char own[TENANT_SIZE];

        tenant_of_user(geteuid(), own);
        return tenant && (context->settings->url || !tenant_is(own, tenant));
}

/* Remove the devices of other tenants from the list, if the client sees those of all, and warn. */
static enum exit_status leave_out_tenants(struct context *context, cJSON *devices)
{
        bool sees_all = false, is_known = false;
        unsigned count = 0;
        cJSON *next;

        for (cJSON *device = devices->child; device; device = next) {
                enum exit_status status;

                next = device->next;
                if (!is_of_another(context, device))
                        continue;
                status = is_known ? STATUS_OK : find_view(context, &sees_all);
                if (status != STATUS_OK || !sees_all)
                        return status;
                is_known = true;
                cJSON_Delete(cJSON_DetachItemViaPointer(devices, device));
                count++;
        }
        if (count > 0)
                complain(NULL,
                        "Left out what tenants have, %u device%s: only they create devices with their names. "
                        "Have them export "
                        "their own, and keep a copy of the database.",
                        count, count == 1 ? "" : "s");
        return STATUS_OK;
}

enum exit_status verb_export(struct context *context, int argc _unused_, char *argv[] _unused_)
{
        const char *folder = context->settings->folder;
        cJSON *devices = NULL, *specs = NULL;
        enum exit_status status = fetch_devices(context, &context->settings->labels, &devices);

        if (status == STATUS_OK)
                status = leave_out_tenants(context, devices);
        if (status != STATUS_OK) {
                cJSON_Delete(devices);
                return status;
        }
        if (folder && mkdir(folder, 0777) < 0 && errno != EEXIST)
                status = print_file_fault(folder, errno);
        specs = cJSON_CreateArray();
        if (status == STATUS_OK)
                status = export_devices(folder, devices, specs);
        if (!folder)
                status = exit_status_merge(status, show_json(specs));
        cJSON_Delete(specs);
        cJSON_Delete(devices);
        return status;
}
