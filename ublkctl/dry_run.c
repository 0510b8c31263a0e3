/* What a change would come to, as far as can be told without making it. */
#include "ublkctl/dry_run.h"

#include "ublkctl/json_path.h"
#include "ublkctl/terminal.h"

#include "ublkd/device_spec.h"

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
                say(name, "The spec cannot be checked: %s.", strerror(-r));
        for (size_t i = 0; i < problems.count; i++) {
                const char *pointer = problems.items[i].pointer;

                say(name, "%s%s%s", pointer ? pointer : "", pointer && *pointer ? ": " : "",
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

void dry_run_tell_of_disk(const cJSON *device, const cJSON *spec)
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
                return;
        if (from->options.enabled && !to->options.enabled) {
                puts("  the disk would be removed; that is refused while it is in use");
        } else if (from->options.enabled && device_spec_needs_new_disk(from, to, &now, &change)) {
                printf("  the disk would be made anew, because of %s", change.field);
                if (change.why)
                        printf(" (%s)", change.why);
                puts("; that is refused while it is in use");
        }
}
