/* SPDX-License-Identifier: MIT */
/* A fake of what makes file systems. */
#include "tests/api/api_test_filesystem.h"

#include "ublkd/base/cleanup.h"

#include <stdlib.h>

struct filesystem_making {
        sd_event_source *end;
        char device[UID_TEXT_SIZE]; /* its uid */
        enum filesystem_kind kind;
        bool left; /* by an unmount: the mount has ended, and a copy has the disk */
        struct filesystem_answer answer;
        void (*then)(void *userdata, const struct filesystem_answer *answer);
        void *userdata;
};

#define THE_UUID "11111111-2222-4333-8444-555555555555"

static struct device_store *the_store;

void api_test_filesystem_use(struct device_store *store)
{
        the_store = store;
}

static void show(const struct filesystem_making *making)
{
        const struct device_record *record = device_store_find_uid(the_store, making->device);
        const struct filesystem made = {.stage = FILESYSTEM_MADE, .kind = making->kind, .uuid = THE_UUID};
        char path[MOUNT_PATH_SIZE], note[FILESYSTEM_NOTE_SIZE];

        if (!record)
                return;
        if (making->answer.verdict == FILESYSTEM_IS_MADE) {
                filesystem_to_note(&made, note);
                (void)device_store_set_filesystem(the_store, record->name, note);
        }
        if (!making->left)
                device_store_set_mount_change(the_store, record->name, MOUNT_STAYS);
        snprintf(path, sizeof(path), "/mounts/%s", making->device);
        if (making->answer.verdict == FILESYSTEM_IS_MOUNTED
                || making->answer.verdict == FILESYSTEM_IS_UNMOUNTED || making->left)
                (void)device_store_set_mount(
                        the_store, record->name, making->answer.verdict == FILESYSTEM_IS_MOUNTED ? path : "");
}

static int on_end(sd_event_source *source _unused_, void *userdata)
{
        struct filesystem_making making = *(struct filesystem_making *)userdata;

        sd_event_source_disable_unref(making.end);
        free(userdata);
        show(&making);
        if (making.then)
                making.then(making.userdata, &making.answer);
        return 0;
}

static const char *order_of(const struct device_record *record)
{
        const char *order = cJSON_GetStringValue(
                cJSON_GetObjectItemCaseSensitive(record->spec->options.labels, "filesystem"));

        return order ? order : "";
}

int api_test_make_filesystem(void *userdata _unused_, const struct device_record *record,
        const struct filesystem_wish *wish,
        void (*then)(void *userdata, const struct filesystem_answer *answer), void *then_userdata,
        struct filesystem_making **ret)
{
        static const enum filesystem_verdict good[] = {
                [FILESYSTEM_AIM_MADE] = FILESYSTEM_IS_MADE,
                [FILESYSTEM_AIM_MOUNTED] = FILESYSTEM_IS_MOUNTED,
                [FILESYSTEM_AIM_UNMOUNTED] = FILESYSTEM_IS_UNMOUNTED,
        };
        unsigned verdict = good[wish->aim];
        bool left = strcmp(order_of(record), "left") == 0 && wish->aim == FILESYSTEM_AIM_UNMOUNTED
                    && record->status.disk;
        struct filesystem_making *making;
        int error = 0, r;
        sd_event *event;

        if (sscanf(order_of(record), "begin %d", &error) == 1)
                return -error;
        (void)sscanf(order_of(record), "end %u %d", &verdict, &error);
        if (strcmp(order_of(record), "copies") == 0 && wish->aim == FILESYSTEM_AIM_UNMOUNTED
                && !(wish->flags & FILESYSTEM_COPIES_TOO)) {
                verdict = FILESYSTEM_NOT_UNMOUNTED;
                error = EEXIST;
        }
        if (left) {
                verdict = FILESYSTEM_NOT_UNMOUNTED;
                error = EBUSY;
        }
        making = calloc(1, sizeof(*making));
        r = making ? sd_event_default(&event) : -ENOMEM;
        if (r < 0)
                return r;
        if (*wish->remake && strcmp(wish->remake, THE_UUID) != 0)
                verdict = FILESYSTEM_NOT_BEGUN;
        *making = (struct filesystem_making){
                .answer = {.verdict = verdict,
                           .error = -error,
                           .text = "the first\tline\nand \x1b the second.\n"},
                .kind = wish->kind,
                .left = left,
                .then = then,
                .userdata = then_userdata,
        };
        memcpy(making->device, record->uid, sizeof(making->device));
        *ret = making;
        if (wish->aim == FILESYSTEM_AIM_UNMOUNTED)
                device_store_set_mount_change(the_store, record->name, MOUNT_GOES);
        r = sd_event_add_defer(event, &making->end, on_end, making);
        if (r >= 0
                && (strcmp(order_of(record), "never") == 0
                        || (wish->aim == FILESYSTEM_AIM_MOUNTED
                                && strcmp(order_of(record), "never mount") == 0)
                        || (wish->aim == FILESYSTEM_AIM_UNMOUNTED
                                && strcmp(order_of(record), "never unmount") == 0)))
                r = sd_event_source_set_enabled(making->end, SD_EVENT_OFF);
        sd_event_unref(event);
        return r;
}

/* Nothing ends it here. */
void api_test_abandon_filesystem(struct filesystem_making *making)
{
        sd_event_source_disable_unref(making->end);
        free(making);
}
