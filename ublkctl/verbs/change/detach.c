/* SPDX-License-Identifier: MIT */
/* detach: remove a disk as losetup does, by node, by file or by name. */
#include "ublkctl/spec/file_fault.h"
#include "ublkctl/spec/place.h"
#include "ublkctl/text/json_path.h"
#include "ublkctl/verbs/change/remove.h"
#include "ublkctl/verbs/show/show.h"
#include "ublkctl/verbs.h"

#include <string.h>

enum meaning { MEANING_NONE, MEANING_FILE, MEANING_NODE, MEANING_NAME };

static enum meaning meaning_of(const cJSON *device, const struct place *place)
{
        const char *name = json_text(device, "name"), *node = json_text(device, "status.device");

        if (name && strcmp(name, place->word) == 0)
                return MEANING_NAME;
        if (node && place_is(place, node))
                return MEANING_NODE;
        /* a missing file may still have its disk */
        return place_backs(place, device) ? MEANING_FILE : MEANING_NONE;
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
