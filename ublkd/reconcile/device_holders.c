/* SPDX-License-Identifier: MIT */
/* A removal that waits for those who still have the disk: says who they are. They are looked for while the
 * device goes on with its turns, at once and then ever less often: a disk may be held for days. */
#include "ublkd/reconcile/managed_device.h"

#include <string.h>

enum {
        LOOK_AGAIN_FIRST = 2 * 1000 * 1000,
        LOOK_AGAIN_MAX = 60 * 1000 * 1000,
        /* The last references of an ordinary disk go within milliseconds of DEL_DEV. */
        STILL_HELD_USEC = 1000 * 1000,
};

#define FORCED " A forced removal does so at once, and its users get I/O errors."
#define IN_USE "/dev/ublkb%d is in use: %s. Unmount it or end those processes, and it is taken away." FORCED
#define WAITS_FOR_LAST "The kernel has been told to delete /dev/ublkb%d, and waits for the last who use it: "

/* clang-format off */
static const struct {
        enum condition_reason reason;
        const char *known;   /* for the number and who they are */
        const char *unknown; /* for the number */
} sentences[_HOLD_MAX] = {
        [HOLD_BEFORE_STOP] = {
                .reason = REASON_IN_USE,
                .known = IN_USE,
                .unknown = "Somebody has /dev/ublkb%d open, or a file system on it mounted; it is taken away once "
                           "nobody has." FORCED },
        [HOLD_UNKNOWN] = {
                .reason = REASON_IN_USE,
                .known = IN_USE,
                .unknown = "/dev/ublkb%d cannot be opened, so that it is not known whether it is in use; it is tried "
                           "again, and the disk is taken away once nobody uses it." FORCED },
        [HOLD_AFTER_DELETE] = {
                .reason = REASON_STILL_HELD,
                .known = WAITS_FOR_LAST "%s.",
                .unknown = WAITS_FOR_LAST "an opener, or requests under way in the backing store." },
};
/* clang-format on */

/* What is wrong with the kernel's answers is not to be covered by it. */
static bool may_note(const struct managed_device *device)
{
        return device->note.reason == REASON_NONE || device->note.reason == REASON_IN_USE
               || device->note.reason == REASON_STILL_HELD;
}

static bool is_same_wait(const struct managed_device *device, enum device_hold hold)
{
        return device->holders.since > 0 && device->holders.since == device->attempt.seen_since
               && device->holders.hold == hold;
}

static void note(struct managed_device *device, int number)
{
        const struct device_holders *holders = &device->holders;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (holders->text)
                device_note(device, sentences[holders->hold].reason, sentences[holders->hold].known, number,
                        holders->text);
        else
                device_note(
                        device, sentences[holders->hold].reason, sentences[holders->hold].unknown, number);
#pragma GCC diagnostic pop
}

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct managed_device *device = userdata;
        struct device_holders *holders = &device->holders;

        holders->question = disk_question_free(holders->question);
        free(holders->text);
        holders->text = answer->use == DISK_USED ? strdup(answer->text) : NULL;
        holders->answered = true;
        if (!is_same_wait(device, holders->hold) || !may_note(device))
                return;
        note(device, answer->number);
        device_wake(device);
}

static void ask(struct managed_device *device, int number)
{
        struct device_holders *holders = &device->holders;
        struct disk_search *search = device->reconciler->config.disk_search;
        uint64_t now = monotonic_now();

        if (!search || holders->question || now < holders->ask_at)
                return;
        if (disk_search_ask(search, number, DISK_NAMES, on_answer, device, &holders->question) < 0)
                holders->question = NULL; /* then without their names, until the next time */
        holders->pause = holders->pause == 0 ? LOOK_AGAIN_FIRST : 2 * holders->pause;
        if (holders->pause > LOOK_AGAIN_MAX)
                holders->pause = LOOK_AGAIN_MAX;
        holders->ask_at = now + holders->pause;
}

void device_holders_note(struct managed_device *device, int number, enum device_hold hold)
{
        uint64_t since = device->attempt.seen_since;

        if (hold == HOLD_AFTER_DELETE && monotonic_now() - since < STILL_HELD_USEC)
                return;
        if (!is_same_wait(device, hold)) {
                device_holders_forget(device);
                device->holders.hold = hold;
                device->holders.since = since;
        }
        ask(device, number);
        if (device->holders.answered || !device->holders.question) /* else it is told with their names */
                note(device, number);
}

void device_holders_forget(struct managed_device *device)
{
        disk_question_free(device->holders.question);
        free(device->holders.text);
        device->holders = (struct device_holders){};
}
