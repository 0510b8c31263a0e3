/* SPDX-License-Identifier: MIT */
/* mkfs, mount and unmount: the file system of a disk; deliver: the way of a disk into a container. ublkd alone decides what may be
 * done. */
#include "ublkctl/client/call.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include <stdio.h>

/* ublkd ends such a request after 120 seconds, and a client that leaves earlier does not end it. */
#define PATIENCE (UINT64_C(130) * 1000 * 1000)

/* Send the request, which takes over `body`, as call() does. */
static enum exit_status ask(
        struct context *context, const char *name, const char *rest, cJSON *body, struct answer *ret)
{
        _cleanup_free_ char *path = device_path(name, rest);
        struct request request = {.method = "POST", .path = path, .body = body, .patience = PATIENCE};
        enum exit_status status = path && body ? call(context, &request, name, ret) : STATUS_FAILED;

        cJSON_Delete(body);
        return status;
}

static enum exit_status make_one(struct context *context, const char *name)
{
        const struct settings *settings = context->settings;
        const char *type = setting_get(SETTING_FILESYSTEM_TYPE)->choices[settings->filesystem_type], *uuid;
        _cleanup_answer_ struct answer answer = {};
        cJSON *body = cJSON_CreateObject();
        enum exit_status status;

        cJSON_AddStringToObject(body, "type", type);
        if (settings->remake)
                cJSON_AddStringToObject(body, "remake", settings->remake);
        status = ask(context, name, "/filesystem", body, &answer);
        if (status != STATUS_OK)
                return status;
        uuid = json_text(answer.json, "status.filesystem.uuid");
        print_safely(stdout, name);
        printf(" has %s ", type);
        print_safely(stdout, uuid ? uuid : "");
        putchar('\n');
        return STATUS_OK;
}

enum exit_status verb_mkfs(struct context *context, int argc, char *argv[])
{
        if (!(context->settings->given & SETTING_BIT(SETTING_FILESYSTEM_TYPE))) {
                complain(NULL, "mkfs: no file system is given; give --type ext4 or --type xfs.");
                return STATUS_USAGE;
        }
        return for_each_name(context, argc, argv, make_one);
}

static cJSON *body_with_holder(const struct settings *settings, bool flag, const char *flag_name)
{
        cJSON *body = cJSON_CreateObject();

        if (settings->holder)
                cJSON_AddStringToObject(body, "holder", settings->holder);
        if (flag)
                cJSON_AddTrueToObject(body, flag_name);
        return body;
}

static enum exit_status mount_one(struct context *context, const char *name)
{
        const struct settings *settings = context->settings;
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = ask(
                context, name, "/mount", body_with_holder(settings, settings->no_exec, "noExec"), &answer);
        const char *directory;

        if (status != STATUS_OK)
                return status;
        directory = json_text(answer.json, "status.mount");
        if (!directory) {
                complain(name, "The file system was unmounted meanwhile; repeat the command.");
                return STATUS_FAILED;
        }
        print_safely(stdout, directory);
        putchar('\n');
        return STATUS_OK;
}

static enum exit_status unmount_one(struct context *context, const char *name)
{
        const struct settings *settings = context->settings;
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status = ask(context, name, "/unmount",
                body_with_holder(settings, settings->all_holders, "allHolders"), &answer);

        if (status != STATUS_OK)
                return status;
        print_safely(stdout, name);
        if (json_text(answer.json, "status.mount"))
                printf(" stays mounted for %.0f other holders\n",
                        json_number(answer.json, "status.mountHolders", 0));
        else
                puts(" is not mounted");
        return STATUS_OK;
}

enum exit_status verb_mount(struct context *context, int argc, char *argv[])
{
        return for_each_name(context, argc, argv, mount_one);
}

enum exit_status verb_unmount(struct context *context, int argc, char *argv[])
{
        if (context->settings->holder && context->settings->all_holders) {
                complain(NULL, "unmount: --holder and --all-holders exclude each other; give one.");
                return STATUS_USAGE;
        }
        return for_each_name(context, argc, argv, unmount_one);
}

static cJSON *delivery_of(const struct settings *settings, const char *path)
{
        cJSON *body = cJSON_CreateObject();

        cJSON_AddStringToObject(body, "path", path);
        if (settings->mounted)
                cJSON_AddTrueToObject(body, "mount");
        if (settings->read_only)
                cJSON_AddTrueToObject(body, "readOnly");
        if (settings->no_exec)
                cJSON_AddTrueToObject(body, "noExec");
        if (settings->pid)
                cJSON_AddNumberToObject(body, "pid", (double)settings->pid);
        return body;
}

enum exit_status verb_deliver(struct context *context, int argc _unused_, char *argv[])
{
        const struct settings *settings = context->settings;
        _cleanup_answer_ struct answer answer = {};
        const char *path;
        enum exit_status status;

        if (!settings->mounted && (settings->read_only || settings->no_exec)) {
                complain(NULL, "deliver: --read-only and --no-exec are for a file system; add --mount.");
                return STATUS_USAGE;
        }
        status = ask(context, argv[0], "/deliver", delivery_of(settings, argv[1]), &answer);
        if (status != STATUS_OK)
                return status;
        path = json_text(answer.json, "path");
        print_safely(stdout, path ? path : argv[1]);
        putchar('\n');
        return STATUS_OK;
}
