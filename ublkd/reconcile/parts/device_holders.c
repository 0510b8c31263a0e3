/* SPDX-License-Identifier: MIT */
/* The openers that keep a disk from being removed: searched, and named in the status. */
#include "ublkd/reconcile/parts/device_holders.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
        LOOK_AGAIN_FIRST = 2 * 1000 * 1000,
        LOOK_AGAIN_MAX = 60 * 1000 * 1000,
        /* The last references to an unused disk are dropped within milliseconds of DEL_DEV. */
        STILL_HELD_USEC = 1000 * 1000,
};

#define FORCED " A forced removal does so at once, and its users get I/O errors."
#define IN_USE "/dev/ublkb%d is in use: %s. %s, and it is taken away." FORCED
#define WAITS_FOR_LAST "The kernel has been told to delete /dev/ublkb%d, and waits for the last who use it: "

/* clang-format off */
static const struct {
        enum condition_reason reason;
        const char *known;   /* for the number, the openers, and what ends their use */
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

bool device_holders_are_of(const struct device_holders *holders, uint64_t since)
{
        return holders->since > 0 && holders->since == since;
}

enum condition_reason device_holders_reason(const struct device_holders *holders)
{
        return sentences[holders->hold].reason;
}

int device_holders_explain(const struct device_holders *holders, char **ret)
{
        int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (holders->text)
                n = asprintf(ret, sentences[holders->hold].known, holders->number, holders->text,
                        disk_users_advice(holders->kinds));
        else
                n = asprintf(ret, sentences[holders->hold].unknown, holders->number);
#pragma GCC diagnostic pop
        return n < 0 ? -ENOMEM : 0;
}

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct device_holders *holders = userdata;

        holders->question = disk_question_free(holders->question);
        free(holders->text);
        holders->text = answer->use == DISK_USED ? strdup(answer->text) : NULL;
        holders->kinds = answer->kinds;
        holders->answered = true;
        holders->found(holders->userdata);
}

static void ask(struct device_holders *holders, struct disk_search *search, uint64_t now)
{
        if (!search || holders->question || now < holders->ask_at)
                return;
        if (disk_search_ask(search, holders->number, DISK_NAMES, on_answer, holders, &holders->question) < 0)
                holders->question = NULL; /* without names, until the next search */
        holders->pause = holders->pause == 0 ? LOOK_AGAIN_FIRST : 2 * holders->pause;
        if (holders->pause > LOOK_AGAIN_MAX)
                holders->pause = LOOK_AGAIN_MAX;
        holders->ask_at = now + holders->pause;
}

bool device_holders_wait(struct device_holders *holders, struct disk_search *search, int number,
        enum device_hold hold, uint64_t since, void (*found)(void *userdata), void *userdata)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (hold == HOLD_AFTER_DELETE && now - since < STILL_HELD_USEC)
                return false;
        if (!device_holders_are_of(holders, since) || holders->hold != hold) {
                device_holders_forget(holders);
                holders->hold = hold;
                holders->since = since;
        }
        holders->number = number;
        holders->found = found;
        holders->userdata = userdata;
        ask(holders, search, now);
        return holders->answered || !holders->question;
}

void device_holders_forget(struct device_holders *holders)
{
        disk_question_free(holders->question);
        free(holders->text);
        *holders = (struct device_holders){};
}
