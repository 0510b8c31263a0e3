/* SPDX-License-Identifier: MIT */
/* The openers that keep a disk from being removed: searched, and named in the status. */
#include "ublkd/reconcile/parts/device_openers.h"

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

#define FORCED " A forced removal removes it at once, and its openers get I/O errors."
#define IN_USE "/dev/ublkb%d is in use: %s. %s, and ublkd removes the disk." FORCED
#define WAITS_FOR_LAST "Deletion of /dev/ublkb%d is pending; the kernel waits for its last users: "

/* clang-format off */
static const struct {
        enum condition_reason reason;
        const char *known;   /* for the number, the openers, and what ends their use */
        const char *unknown; /* for the number, twice; does not advise a forced removal: its openers are unknown */
} sentences[_HOLD_MAX] = {
        [HOLD_BEFORE_STOP] = {
                .reason = REASON_IN_USE,
                .known = IN_USE,
                .unknown = "/dev/ublkb%d is open or mounted; close or unmount it ('lsof /dev/ublkb%d'), and ublkd "
                           "removes the disk." },
        [HOLD_UNKNOWN] = {
                .reason = REASON_IN_USE,
                .known = IN_USE,
                .unknown = "/dev/ublkb%d cannot be opened, so ublkd does not know whether it is in use; close or "
                           "unmount it ('lsof /dev/ublkb%d'). ublkd tries again, and removes the disk when it is not "
                           "in use." },
        [HOLD_AFTER_DELETE] = {
                .reason = REASON_STILL_HELD,
                .known = WAITS_FOR_LAST "%s.",
                .unknown = WAITS_FOR_LAST "an opener, or requests in flight in the backing store." },
};
/* clang-format on */

bool device_openers_are_of(const struct device_openers *openers, uint64_t since)
{
        return openers->since > 0 && openers->since == since;
}

enum condition_reason device_openers_reason(const struct device_openers *openers)
{
        return sentences[openers->hold].reason;
}

int device_openers_explain(const struct device_openers *openers, char **ret)
{
        int n;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (openers->text)
                n = asprintf(ret, sentences[openers->hold].known, openers->number, openers->text,
                        disk_users_advice(openers->kinds));
        else
                n = asprintf(ret, sentences[openers->hold].unknown, openers->number, openers->number);
#pragma GCC diagnostic pop
        return n < 0 ? -ENOMEM : 0;
}

static void on_answer(void *userdata, const struct disk_answer *answer)
{
        struct device_openers *openers = userdata;

        openers->question = disk_question_free(openers->question);
        free(openers->text);
        openers->text = answer->use == DISK_USED ? strdup(answer->text) : NULL;
        openers->kinds = answer->kinds;
        openers->answered = true;
        openers->found(openers->userdata);
}

static void ask(struct device_openers *openers, struct disk_search *search, uint64_t now)
{
        if (!search || openers->question || now < openers->ask_at)
                return;
        if (disk_search_ask(search, openers->number, DISK_NAMES, on_answer, openers, &openers->question) < 0)
                openers->question = NULL; /* without names, until the next search */
        openers->pause = openers->pause == 0 ? LOOK_AGAIN_FIRST : 2 * openers->pause;
        if (openers->pause > LOOK_AGAIN_MAX)
                openers->pause = LOOK_AGAIN_MAX;
        openers->ask_at = now + openers->pause;
}

bool device_openers_wait(struct device_openers *openers, struct disk_search *search, int number,
        enum device_hold hold, uint64_t since, void (*found)(void *userdata), void *userdata)
{
        uint64_t now = clock_usec(CLOCK_MONOTONIC);

        if (hold == HOLD_AFTER_DELETE && now - since < STILL_HELD_USEC)
                return false;
        if (!device_openers_are_of(openers, since) || openers->hold != hold) {
                device_openers_drop(openers);
                openers->hold = hold;
                openers->since = since;
        }
        openers->number = number;
        openers->found = found;
        openers->userdata = userdata;
        ask(openers, search, now);
        return openers->answered || !openers->question;
}

void device_openers_drop(struct device_openers *openers)
{
        disk_question_free(openers->question);
        free(openers->text);
        *openers = (struct device_openers){};
}
