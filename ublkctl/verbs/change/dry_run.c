/* SPDX-License-Identifier: MIT */
/* Show what a change would do, as far as that can be known without doing it. */
#include "ublkctl/verbs/change/dry_run.h"

#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/show/removal.h"
#include "ublkctl/text/terminal.h"

#include "ublkd/model/device_spec.h"

#include <stdio.h>
#include <string.h>

enum exit_status dry_run_check(const char *name, const cJSON *spec)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *parsed = NULL;
        int r = device_spec_parse(spec, name, &parsed, &problems);

        if (r >= 0)
                return STATUS_OK;
        if (problems.count == 0)
                complain(name, "Cannot check the spec: %s.", strerror(-r));
        for (size_t i = 0; i < problems.count; i++) {
                const char *pointer = problems.items[i].pointer;

                complain(name, "%s%s%s", pointer ? pointer : "", pointer && *pointer ? ": " : "",
                        problems.items[i].detail);
        }
        return STATUS_FAILED;
}

static bool has_feature(const cJSON *device, const char *name)
{
        const cJSON *feature;

        cJSON_ArrayForEach (feature, json_find(device, "status.kernelFeatures")) {
                if (cJSON_IsString(feature) && strcmp(feature->valuestring, name) == 0)
                        return true;
        }
        return false;
}

/* The change would remove the disk for a moment or for good: print what prevents that now. */
static enum exit_status report_obstacle(struct context *context, const char *name)
{
        cJSON *foreseen = NULL;
        const char *users;
        bool loses_data;

        if (!name || removal_foresee(context, name, true, &foreseen) != STATUS_OK) {
                puts("; ublkd refuses that while the disk is in use");
                return STATUS_OK;
        }
        users = removal_users(foreseen);
        loses_data = removal_loses_data(foreseen);
        if (loses_data)
                fputs("; ublkd refuses that, because the file was deleted and only this disk has the data",
                        stdout);
        else
                fputs(users ? "; ublkd refuses that, because the disk is in use: "
                            : "; the disk is not in use now",
                        stdout);
        if (users && !loses_data)
                print_safely(stdout, users);
        putchar('\n');
        cJSON_Delete(foreseen);
        return users || loses_data ? STATUS_REFUSED : STATUS_OK;
}

enum exit_status dry_run_report_disk(struct context *context, const cJSON *device, const cJSON *spec)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *from = NULL, *to = NULL;
        const char *name = json_text(device, "name");
        struct disk_now now = {.number = (int)json_number(device, "status.id", -1),
                .size = (uint64_t)json_number(device, "status.size", 0),
                .can_grow = has_feature(device, "UPDATE_SIZE")};
        struct disk_change change;

        if (device_spec_parse(json_find(device, "spec"), name, &from, &problems) < 0
                || device_spec_parse(spec, name, &to, &problems) < 0)
                return STATUS_OK;
        if (from->options.enabled && !to->options.enabled) {
                fputs("  the disk would be removed", stdout);
                return report_obstacle(context, name);
        }
        if (from->options.enabled && device_spec_needs_new_disk(from, to, &now, &change)) {
                printf("  the disk would be recreated, because of %s", change.field);
                if (change.why)
                        printf(" (%s)", change.why);
                return report_obstacle(context, name);
        }
        return STATUS_OK;
}
