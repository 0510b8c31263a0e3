/* SPDX-License-Identifier: MIT */
/* attach and detach: handle disks like losetup does, by file and by node. */
#include "ublkctl/text/amounts.h"
#include "ublkctl/verbs/show/await.h"
#include "ublkctl/spec/device_name.h"
#include "ublkctl/spec/file_fault.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/spec/place.h"
#include "ublkctl/verbs/change/remove.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/text/terminal.h"
#include "ublkctl/verbs.h"

#include "ublkd/values/json_print.h"
#include "ublkd/values/quantity.h"

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
        bool read_only;
        uint64_t offset;
        cJSON *devices; /* all devices */
        char name[DEVICE_NAME_SIZE];
};

static uint64_t offset_of(const cJSON *device)
{
        const cJSON *offset = json_find(device, "spec.target.offset");
        uint64_t bytes = 0;

        if (cJSON_IsNumber(offset))
                return (uint64_t)offset->valuedouble;
        if (cJSON_IsString(offset))
                (void)parse_bytes(offset->valuestring, &bytes);
        return bytes;
}

static bool has_backing(const cJSON *device, const struct place *place)
{
        const char *backing = json_text(device, "spec.target.path");

        return backing && place_is(place, backing);
}

/* Return whether the path of a disk leads to another file now: that file is not attached. */
static bool leads_elsewhere(const cJSON *device)
{
        const char *status = json_text(json_condition(device, "PathLeadsToStore"), "status");

        return status && strcmp(status, "False") == 0;
}

/* Return the device that equals the one that attach would create; NULL: none. */
static const cJSON *find_attached(const struct attach *attach)
{
        const cJSON *device;

        cJSON_ArrayForEach (device, attach->devices) {
                const char *name = json_text(device, "name");
                bool named = !attach->context->settings->name
                             || (name && strcmp(name, attach->context->settings->name) == 0);

                if (named && has_backing(device, &attach->place) && !leads_elsewhere(device)
                        && json_true(device, "spec.readOnly") == attach->read_only
                        && offset_of(device) == attach->offset)
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

static cJSON *make_spec(const struct attach *attach)
{
        cJSON *spec = cJSON_CreateObject();
        cJSON *target = spec ? cJSON_AddObjectToObject(spec, "target") : NULL;

        if (target && cJSON_AddStringToObject(spec, "name", attach->name)
                && cJSON_AddStringToObject(target, "type", "loop")
                && cJSON_AddStringToObject(target, "path", attach->place.path)
                && (!attach->offset || cJSON_AddNumberToObject(target, "offset", (double)attach->offset))
                && (!attach->read_only || cJSON_AddTrueToObject(spec, "readOnly")))
                return spec;
        cJSON_Delete(spec);
        return NULL;
}

static enum exit_status print_node(const struct attach *attach, const cJSON *device)
{
        const char *node = json_text(device, "status.device");

        if (!node) {
                complain(attach->name, "The device exists, but has no disk. %s", device_message(device));
                return STATUS_FAILED;
        }
        print_safely(stdout, node);
        putchar('\n');
        warn_of_path(attach->place.word, device);
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
        cJSON *spec = make_spec(attach);
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

static enum exit_status check_settings(const struct settings *settings, uint64_t *ret_offset)
{
        char offset[SIZE_ARGUMENT_SIZE];

        if (settings->name && strlen(settings->name) >= DEVICE_NAME_SIZE) {
                complain(NULL, "The name is too long; give one of 63 bytes at most.");
                return STATUS_USAGE;
        }
        *ret_offset = 0;
        if (settings->offset)
                size_argument(settings->offset, offset);
        if (!settings->offset || parse_bytes(offset, ret_offset) >= 0)
                return STATUS_OK;
        complain(NULL, "'%s' is not a valid offset; give bytes, or a number with KiB, MiB, GiB or TiB.",
                settings->offset);
        return STATUS_USAGE;
}

/* Warn of the part of the file that is not on the disk. `device`: the disk exists; NULL: it is being
 * created. */
static void warn_of_what_is_missing(const struct attach *attach, const cJSON *device)
{
        enum { SECTOR = 512 };
        const cJSON *size = json_find(device, "spec.size");
        struct stat stat_of;

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
                if (has_backing(device, &attach->place))
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
        _cleanup_answer_ struct answer answer = {};
        enum exit_status status;

        snprintf(attach->name, sizeof(attach->name), "%s", json_text(there, "name"));
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

                if (meant && has_backing(device, &attach->place) && leads_elsewhere(device))
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

static enum exit_status attach_place(struct attach *attach)
{
        enum exit_status status = fetch_devices(attach->context, &(struct text_list){}, &attach->devices);
        const cJSON *there, *replaced;

        if (status != STATUS_OK)
                return status;
        there = find_attached(attach);
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
        struct attach attach = {.context = context, .read_only = context->settings->read_only};
        enum exit_status status = check_settings(context->settings, &attach.offset);

        if (status == STATUS_OK)
                status = look(&attach, argv[0]);
        if (status == STATUS_OK)
                status = attach_place(&attach);
        place_clear(&attach.place);
        cJSON_Delete(attach.devices);
        return status;
}

/* ---- detach ---- */

enum meaning { MEANING_NONE, MEANING_FILE, MEANING_NODE, MEANING_NAME };

static enum meaning meaning_of(const cJSON *device, const struct place *place)
{
        const char *name = json_text(device, "name"), *node = json_text(device, "status.device");

        if (name && strcmp(name, place->word) == 0)
                return MEANING_NAME;
        if (node && place_is(place, node))
                return MEANING_NODE;
        /* a missing file may still have its disk */
        return has_backing(device, place) ? MEANING_FILE : MEANING_NONE;
}

/* Resolve `word` to one device, in *ret: by name, then by node, then by backing file. */
static enum exit_status find_meant(const cJSON *devices, const struct place *place, const char **ret)
{
        const char *word = place->word, *found = NULL, *second = NULL;
        enum meaning best = MEANING_NONE;
        const cJSON *device;

        cJSON_ArrayForEach (device, devices) {
                const char *name = json_text(device, "name");
                enum meaning meaning = name ? meaning_of(device, place) : MEANING_NONE;

                if (meaning == MEANING_NONE || meaning < best)
                        continue;
                second = meaning == best ? name : NULL;
                if (!second)
                        found = name;
                best = meaning;
        }
        if (second) {
                complain(word,
                        "The word is ambiguous: it stands for several disks, %s and %s among them; use "
                        "the name of the device.",
                        found, second);
                return STATUS_REFUSED;
        }
        if (!found) {
                complain(word, "No disk has this node, file or name; 'ublkctl list -o wide' shows all.");
                return STATUS_NOT_FOUND;
        }
        *ret = found;
        return STATUS_OK;
}

static enum exit_status find_word(const cJSON *devices, const char *word, const char **ret)
{
        struct place place;
        int r = place_look(word, &place);
        enum exit_status status;

        if (r < 0)
                return print_file_fault(word, -r);
        status = find_meant(devices, &place, ret);
        place_clear(&place);
        return status;
}

enum exit_status verb_detach(struct context *context, int argc, char *argv[])
{
        _cleanup_free_ const char **names = calloc((size_t)argc, sizeof(*names));
        cJSON *devices = NULL;
        enum exit_status status =
                names ? fetch_devices(context, &(struct text_list){}, &devices) : STATUS_FAILED;
        size_t count = 0;

        if (!devices)
                return status;
        for (int i = 0; i < argc; i++) {
                enum exit_status one = find_word(devices, argv[i], &names[count]);

                count += one == STATUS_OK;
                status = exit_status_merge(status, one);
        }
        if (count > 0)
                status = exit_status_merge(status, remove_devices(context, count, names));
        cJSON_Delete(devices);
        return status;
}
