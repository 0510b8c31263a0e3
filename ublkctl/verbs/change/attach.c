/* SPDX-License-Identifier: MIT */
/* attach: create a disk from a file, as losetup does. */
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/spec/device_name.h"
#include "ublkctl/spec/file_fault.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/spec/place.h"
#include "ublkctl/verbs/change/attach_options.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
        NAMES_TRIED_MAX = 20,
        TAKE_BACK_PATIENCE = 2 * 1000 * 1000, /* of the request that takes the device back */
};

struct attach {
        struct context *context;
        struct place place;
        struct attach_options options;
        cJSON *devices; /* all devices */
        char name[DEVICE_NAME_SIZE];
};

/* Return whether the path of a disk leads to another file now: that file is not attached. */
static bool leads_elsewhere(const cJSON *device)
{
        const char *status = json_text(json_condition(device, "PathLeadsToStore"), "status");

        return status && strcmp(status, "False") == 0;
}

/* Below another target the file is not the disk as it is: attach creates none that is so. */
static bool is_loop(const cJSON *device)
{
        const char *type = json_text(device, "spec.target.type");

        return type && strcmp(type, "loop") == 0;
}

/* Return the device that equals the one that attach would create; NULL: none. */
static const cJSON *find_attached(const struct attach *attach)
{
        const cJSON *device;

        cJSON_ArrayForEach (device, attach->devices) {
                const char *name = json_text(device, "name");
                bool named = !attach->context->settings->name
                             || (name && strcmp(name, attach->context->settings->name) == 0);

                if (named && is_loop(device) && place_backs(&attach->place, device)
                        && !leads_elsewhere(device) && attach_options_match(&attach->options, device))
                        return device;
        }
        return NULL;
}

static bool is_taken(void *userdata, const char *name)
{
        const struct attach *attach = userdata;
        const cJSON *device;

        cJSON_ArrayForEach (device, attach->devices) {
                const char *other = json_text(device, "name");

                if (other && strcmp(other, name) == 0)
                        return true;
        }
        return false;
}

/* For a user of losetup: a disk outlives the boot, unless it is temporary. A file of the system decides over its own
 * devices. */
static void print_lifetime(const struct attach *attach, const cJSON *device)
{
        if (json_text(device, "source"))
                return;
        if (json_true(device, "spec.temporary"))
                complain(attach->name,
                        "The disk is temporary: it does not come back after the next boot; 'ublkctl set %s "
                        "temporary=false' keeps it.",
                        attach->name);
        else
                complain(attach->name,
                        "The disk comes back after each boot, until 'ublkctl detach %s'; --temporary "
                        "attaches "
                        "a file for this boot only.",
                        attach->name);
}

static enum exit_status print_node(const struct attach *attach, const cJSON *device)
{
        bool ends_unexpectedly = json_true(device, "spec.temporary") && !attach->context->settings->temporary;
        const char *node = device_node(device);

        if (!node) {
                complain(attach->name, "The device exists, but has no disk. %s", device_message(device));
                return STATUS_FAILED;
        }
        print_safely(stdout, node);
        putchar('\n');
        warn_of_path(attach->place.word, device);
        if (attach->context->progress || ends_unexpectedly)
                print_lifetime(attach, device);
        return STATUS_OK;
}

/* Remove the device, and print the result. */
static void take_back(const struct attach *attach)
{
        _cleanup_free_ char *path = device_path(attach->name, "?wait&timeout=2s");
        struct request removal = {.method = "DELETE", .path = path, .patience = TAKE_BACK_PATIENCE};
        _cleanup_answer_ struct answer removed = {};
        bool asked = path && client_ask(attach->context->client, &removal, false, &removed) == STATUS_OK;

        if (asked && is_problem(&removed, "timeout")) {
                complain(attach->place.path, "attach gave up; the device %s is being removed.", attach->name);
                return;
        }
        if (asked && removed.status >= 400)
                (void)report_problem(&removal, attach->name, &removed);
        if (!asked || removed.status >= 400)
                complain(attach->name, "The device stays; 'ublkctl describe %s' shows its state.",
                        attach->name);
        else
                complain(attach->place.path, "attach gave up; nothing is left behind.");
}

/* Remove the device again if it has no disk in time. */
static enum exit_status give_up(
        const struct attach *attach, const struct request *request, const struct answer *answer)
{
        bool ours = is_problem(answer, "cannot-start") || is_problem(answer, "timeout");

        if (!ours)
                return report_problem(request, attach->place.path, answer);
        if (!print_why(attach->place.path, json_find(answer->json, "device")))
                complain(attach->place.path, "Cannot create the disk; look into the log of ublkd.");
        take_back(attach);
        return answer->status == 504 ? STATUS_TIMED_OUT : STATUS_FAILED;
}

/* Make one attempt with attach->name. *ret_taken: another client has taken the name. */
static enum exit_status create(struct attach *attach, bool *ret_taken)
{
        struct watch watch = {
                .context = attach->context, .name = attach->name, .goal = "Live", .began = monotonic_now()};
        char path[sizeof("/devices") + WAIT_QUERY_SIZE], query[WAIT_QUERY_SIZE];
        cJSON *spec = attach_options_spec(&attach->options, attach->name, attach->place.path);
        struct request request = {.method = "POST",
                .path = path,
                .body = spec,
                .patience = attach->context->settings->timeout,
                .tick = watch_or_end,
                .userdata = &watch};
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        wait_query(attach->context, true, "wait=ready", query);
        snprintf(path, sizeof(path), "/devices%s", query);
        status = spec ? client_ask(attach->context->client, &request, false, &answer) : STATUS_FAILED;
        cJSON_Delete(spec);
        progress_end();
        if (watch.host_down) {
                *ret_taken = false;
                take_back(attach);
                return STATUS_FAILED;
        }
        *ret_taken = status == STATUS_OK && is_problem(&answer, "name-taken");
        if (status != STATUS_OK || (*ret_taken && !attach->context->settings->name))
                return status;
        *ret_taken = false;
        return answer.status < 400 ? print_node(attach, answer.json) : give_up(attach, &request, &answer);
}

static enum exit_status create_under_free_name(struct attach *attach)
{
        enum exit_status status;
        bool taken;

        for (int i = 0; i < NAMES_TRIED_MAX; i++) {
                if (attach->context->settings->name)
                        snprintf(attach->name, sizeof(attach->name), "%s", attach->context->settings->name);
                else
                        device_name(attach->place.path, attach->name);
                if (!attach->context->settings->name)
                        device_name_make_unique(attach->name, is_taken, attach);
                status = create(attach, &taken);
                if (status != STATUS_OK || !taken)
                        return status;
                cJSON_Delete(attach->devices);
                attach->devices = NULL;
                status = fetch_devices(attach->context, &(struct text_list){}, &attach->devices);
                if (status != STATUS_OK)
                        return status;
        }
        complain(attach->place.path, "Found no free name; give one with --name.");
        return STATUS_REFUSED;
}

/* Warn of the part of the file that is not on the disk. `device`: the disk exists; NULL: it is being
 * created. */
static void warn_of_what_is_missing(const struct attach *attach, const cJSON *device)
{
        enum { SECTOR = 512 };
        const cJSON *size = json_find(device, "spec.size");
        struct stat stat_of;

        if (attach->options.size > 0)
                return; /* as the user asked */
        if (size) {
                _cleanup_free_ char *text =
                        cJSON_IsString(size) ? strdup(size->valuestring) : json_print_indented(size);

                complain(attach->place.path,
                        "The disk of the device %s does not cover the whole file: its size is set to %s.",
                        attach->name, text ? text : "less");
        } else if (stat(attach->place.path, &stat_of) == 0 && S_ISREG(stat_of.st_mode)
                   && stat_of.st_size % SECTOR) {
                complain(attach->place.path,
                        "The last %d bytes are not on the disk, because its sectors have %d bytes; "
                        "lengthen the file, as with 'truncate -s %%%d FILE'.",
                        (int)(stat_of.st_size % SECTOR), SECTOR, SECTOR);
        }
}

/* Return the name of the device whose disk lies in the missing file; NULL: none. */
static const char *find_owner(const struct attach *attach)
{
        const cJSON *device;

        cJSON_ArrayForEach (device, attach->devices) {
                if (place_backs(&attach->place, device))
                        return json_text(device, "name");
        }
        return NULL;
}

/* Explain what to do about a missing file. Do not advise to create it where it belongs to a disk, whose data
 * would be lost, nor in /dev. */
static enum exit_status refuse_missing(struct attach *attach)
{
        const char *word = attach->place.word, *owner;
        enum exit_status status = fetch_devices(attach->context, &(struct text_list){}, &attach->devices);

        if (status != STATUS_OK)
                return status;
        owner = find_owner(attach);
        if (owner)
                complain(word,
                        "The file is missing, and the disk of the device %s lies in it; bring it back, by "
                        "mounting its file system, attaching its drive or renaming it, and put no other "
                        "file in its place.",
                        owner);
        else if (strncmp(attach->place.path, "/dev/", 5) == 0)
                complain(word, "The block device does not exist; check the path, and whether the drive is "
                               "attached ('lsblk' lists all).");
        else
                complain(word, "The file does not exist; check the path, and whether its file system is "
                               "mounted. A new disk needs a new file, as from 'truncate -s 10G FILE'.");
        return STATUS_FAILED;
}

static enum exit_status look(struct attach *attach, const char *word)
{
        int r = place_look(word, &attach->place);

        if (r < 0)
                return print_file_fault(word, -r);
        if (attach->place.exists)
                return STATUS_OK;
        return attach->place.error == ENOENT ? refuse_missing(attach)
                                             : print_file_fault(word, attach->place.error);
}

/* The disk exists: wait for it, and print its node. */
static enum exit_status show_attached(struct attach *attach, const cJSON *there)
{
        struct context *context = attach->context;
        const char *other = attach_options_difference(&attach->options, there);
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        snprintf(attach->name, sizeof(attach->name), "%s", json_text(there, "name"));
        if (other) {
                complain(attach->place.word,
                        "The file is attached already, as the device %s, which differs in --%s. Nothing was "
                        "done; change that device with 'ublkctl set %s ...', or detach it first.",
                        attach->name, other, attach->name);
                return STATUS_REFUSED;
        }
        status = await_live(context, attach->name, monotonic_now() + context->settings->timeout);
        if (status != STATUS_OK)
                return status;
        warn_of_what_is_missing(attach, there);
        status = call_get(context, attach->name, &answer);
        return status == STATUS_OK ? print_node(attach, answer.json) : status;
}

/* A device that serves the file that was at the path before, unless the user wants another disk beside it, under
 * a name of its own. NULL: there is none. */
static const cJSON *find_replaced(const struct attach *attach)
{
        const char *wanted = attach->context->settings->name;
        const cJSON *device;

        cJSON_ArrayForEach (device, attach->devices) {
                const char *name = json_text(device, "name");
                bool meant = name && (!wanted || strcmp(name, wanted) == 0);

                if (meant && place_backs(&attach->place, device) && leads_elsewhere(device))
                        return device;
        }
        return NULL;
}

/* A user who attaches a path again expects the existing disk; a new disk would have other data. */
static enum exit_status refuse_replaced(const struct attach *attach, const cJSON *device)
{
        const char *name = json_text(device, "name"), *node = json_text(device, "status.device"),
                   *message = json_text(json_condition(device, "PathLeadsToStore"), "message");

        complain(attach->place.word,
                "The path no longer leads to the file that the device %s%s%s%s serves. %s%sNothing was done. "
                "To create a second disk, from the file there now, name it: 'ublkctl attach --name NAME "
                "FILE'.",
                name, node ? " (" : "", node ? node : "", node ? ")" : "", message ? message : "",
                message ? " " : "");
        return STATUS_REFUSED;
}

/* Find the disk of the file, in *ret (NULL: none). Wait for one that is being removed, such as a temporary one after
 * a boot. */
static enum exit_status find_remaining(struct attach *attach, const cJSON **ret)
{
        uint64_t deadline = monotonic_now() + attach->context->settings->timeout;
        enum exit_status status;

        for (;;) {
                _cleanup_free_ char *name = NULL;

                cJSON_Delete(attach->devices);
                attach->devices = NULL;
                status = fetch_devices(attach->context, &(struct text_list){}, &attach->devices);
                *ret = status == STATUS_OK ? find_attached(attach) : NULL;
                if (!*ret || !device_has_reason(*ret, "Deleting"))
                        return status;
                name = strdup(json_text(*ret, "name"));
                status = name ? await_device(attach->context, name, WAIT_FOR_GONE, deadline) : STATUS_FAILED;
                if (status != STATUS_OK)
                        return status;
        }
}

static enum exit_status attach_place(struct attach *attach)
{
        const cJSON *there, *replaced;
        enum exit_status status = find_remaining(attach, &there);

        if (status != STATUS_OK)
                return status;
        if (there)
                return show_attached(attach, there);
        replaced = find_replaced(attach);
        if (replaced)
                return refuse_replaced(attach, replaced);
        status = create_under_free_name(attach);
        if (status == STATUS_OK)
                warn_of_what_is_missing(attach, NULL);
        return status;
}

enum exit_status verb_attach(struct context *context, int argc _unused_, char *argv[])
{
        struct attach attach = {.context = context};
        enum exit_status status = attach_options_read(context->settings, &attach.options);

        if (status == STATUS_OK)
                status = look(&attach, argv[0]);
        if (status == STATUS_OK)
                status = attach_place(&attach);
        place_clear(&attach.place);
        cJSON_Delete(attach.devices);
        return status;
}
