/* SPDX-License-Identifier: MIT */
/* apply --prune: remove devices that are in no file. */
#include "ublkctl/verbs/change/prune.h"

#include "ublkctl/verbs/show/await.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/change/remove.h"
#include "ublkctl/verbs/show/removal.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/text/terminal.h"

#include <stdio.h>
#include <string.h>

enum { ETAG_SIZE = 64, UID_DIGITS = 8 };

struct prune {
        struct context *context;
        cJSON *devices;           /* that have the labels; owns the names of the removals */
        struct removal *removals; /* of the devices to remove */
        char (*etags)[ETAG_SIZE]; /* one for each removal */
        size_t count;
};

static bool may_go_in_use(const struct context *context, const char *name)
{
        const struct text_list *names = &context->settings->prune_in_use;

        for (size_t i = 0; i < names->count; i++)
                if (strcmp(names->items[i], name) == 0)
                        return true;
        return false;
}

/* Print the ETag of the listed device: a device that has changed since may have other labels, and must
 * stay. */
static void make_etag(const cJSON *device, char ret[static ETAG_SIZE])
{
        const char *uid = json_text(device, "uid");

        snprintf(ret, ETAG_SIZE, "\"%.0f.%.*s.0\"", json_number(device, "generation", 0), UID_DIGITS,
                uid ? uid : "");
}

static enum exit_status find_superfluous(struct prune *prune,
        bool (*is_described)(const void *userdata, const char *name), const void *userdata)
{
        size_t total = (size_t)cJSON_GetArraySize(prune->devices) + 1;
        const cJSON *device;

        prune->removals = calloc(total, sizeof(*prune->removals));
        prune->etags = calloc(total, sizeof(*prune->etags));
        if (!prune->removals || !prune->etags)
                return STATUS_FAILED;
        cJSON_ArrayForEach (device, prune->devices) {
                const char *name = json_text(device, "name");

                if (!name || is_described(userdata, name))
                        continue;
                make_etag(device, prune->etags[prune->count]);
                prune->removals[prune->count] = (struct removal){.name = name,
                        .etag = prune->etags[prune->count],
                        .force = may_go_in_use(prune->context, name)};
                prune->count++;
        }
        return STATUS_OK;
}

/* A name that matches no device may be a slip. */
static void report_unused_names(const struct prune *prune)
{
        const struct text_list *names = &prune->context->settings->prune_in_use;

        for (size_t i = 0; i < names->count; i++) {
                bool found = false;

                for (size_t k = 0; k < prune->count; k++)
                        found = found || strcmp(prune->removals[k].name, names->items[i]) == 0;
                if (!found)
                        complain(names->items[i],
                                "--prune-in-use names a device that would not be pruned; check the name.");
        }
}

static void print_outcome(const struct context *context, const char *name, const char *outcome)
{
        print_safely(stdout, name);
        printf(" %s%s%s", context->colours ? paint_begin(PAINT_BAD) : "", outcome,
                context->colours ? paint_end() : "");
}

/* Print what the removal would do, for a dry run. */
static void print_foreseen(const struct context *context, const struct removal *removal)
{
        const char *users = removal_users(removal->foreseen);

        print_outcome(context, removal->name, "would be removed");
        if (users) {
                fputs(" although it is in use: ", stdout);
                print_safely(stdout, users);
        }
        putchar('\n');
}

static enum exit_status finish_one(struct context *context, const struct removal *removal, uint64_t deadline)
{
        bool dry = context->settings->dry_run, wait = context->settings->wait;
        enum exit_status status = removal->status;

        if (status == STATUS_OK && wait && !dry && !removal->missing)
                status = await_device(context, removal->name, WAIT_FOR_GONE, deadline);
        if (status != STATUS_OK)
                return status;
        if (dry && !removal->missing) {
                print_foreseen(context, removal);
        } else if (!dry) {
                print_outcome(
                        context, removal->name, wait || removal->missing ? "removed" : "is being removed");
                putchar('\n');
        }
        return STATUS_OK;
}

static enum exit_status remove_superfluous(const struct prune *prune)
{
        const struct removal_mode mode = {.dry_run = prune->context->settings->dry_run,
                .quiet_missing = true,
                .force_sentence =
                        "Devices in use were not pruned. If a disk cannot be freed, '--prune-in-use NAME' "
                        "removes that device anyway: its users get I/O errors and lose unwritten data."};
        uint64_t deadline = monotonic_now() + prune->context->settings->timeout;
        enum exit_status status = request_removals(prune->context, prune->count, prune->removals, &mode);

        if (status != STATUS_OK)
                return status;
        for (size_t i = 0; i < prune->count; i++)
                status = exit_status_merge(status, finish_one(prune->context, &prune->removals[i], deadline));
        return status;
}

static void prune_clear(struct prune *prune)
{
        for (size_t i = 0; prune->removals && i < prune->count; i++)
                cJSON_Delete(prune->removals[i].foreseen);
        free(prune->removals);
        free(prune->etags);
        cJSON_Delete(prune->devices);
}

enum exit_status prune(struct context *context, bool (*is_described)(const void *userdata, const char *name),
        const void *userdata)
{
        struct prune work = {.context = context};
        enum exit_status status = fetch_devices(context, &context->settings->labels, &work.devices);

        if (status == STATUS_OK)
                status = find_superfluous(&work, is_described, userdata);
        if (status == STATUS_OK) {
                report_unused_names(&work);
                status = remove_superfluous(&work);
        }
        prune_clear(&work);
        return status;
}
