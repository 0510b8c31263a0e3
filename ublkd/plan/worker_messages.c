/* SPDX-License-Identifier: MIT */
/* One row for each type of message: what must have come before it, what must not, and how often it may come.
 *
 * A rate is a token bucket in one number: the time until which all messages that came are paid for. It lies above
 * what a worker can send that keeps the protocol:
 *  - NEWS: an episode without room lasts 20 ms at least (targets/worker/queue/room.c), and has a NEWS at each end.
 *    While the supervisor does not run, its socket keeps about 700 of them, or more on a machine whose sockets are
 *    larger by default.
 *  - NOTICE: a worker has two things to report, each once. */
#include "ublkd/plan/worker_messages.h"

#define SET(type) (1U << (type))
_Static_assert(_WORKER_MSG_MAX <= 32, "every type has a bit");

/* At most `burst` messages at once, and one each `interval` (microseconds). */
struct rate {
        uint64_t interval;
        unsigned burst;
};

struct rule {
        enum {
                NEVER, /* only ublkd sends it */
                ONCE,
                RATED,
                ANSWER, /* as often as the supervisor asked: worker_growth.h counts that */
        } often;
        unsigned after, before;    /* sets of types: all must have come, none may have */
        enum worker_stage stage;   /* the earliest */
        struct rate rate;          /* RATED */
        const char *early, *again; /* faults: at the wrong time, too often; NULL where that cannot be */
};

enum { SECOND = 1000 * 1000 };

/* clang-format off */
static const struct rule rules[_WORKER_MSG_MAX] = {
        [WORKER_MSG_HELLO] = {ONCE, .again = "it sent HELLO twice"},
        [WORKER_MSG_BACKING] = {ONCE, .before = SET(WORKER_MSG_PARAMS),
                .early = "it sent BACKING at the wrong time", .again = "it sent BACKING twice"},
        [WORKER_MSG_PARAMS] = {ONCE, .again = "it sent PARAMS twice"},
        [WORKER_MSG_READY] = {ONCE, .after = SET(WORKER_MSG_PARAMS), .stage = WORKER_STAGE_FETCHING,
                .early = "it sent READY before GO", .again = "it sent READY twice"},
        [WORKER_MSG_FAILED] = {.often = ONCE},
        [WORKER_MSG_GROWN] = {ANSWER, .after = SET(WORKER_MSG_PARAMS), .early = "it sent GROWN without a GROW"},
        [WORKER_MSG_NOTICE] = {RATED, .rate = {10 * SECOND, 16}, .again = "it sent NOTICE too often"},
        [WORKER_MSG_NEWS] = {RATED, .rate = {SECOND / 125, 750}, .after = SET(WORKER_MSG_PARAMS),
                .early = "it sent NEWS before PARAMS", .again = "it sent NEWS too often"},
};
/* clang-format on */

static bool is_paid(uint64_t *paid_until, const struct rate *rate, unsigned burst, uint64_t now)
{
        uint64_t from = *paid_until > now ? *paid_until : now;

        if (from - now + rate->interval > rate->interval * burst)
                return false;
        *paid_until = from + rate->interval;
        return true;
}

static unsigned burst_of(
        const struct worker_messages *messages, enum worker_msg_type type, const struct rate *rate)
{
        return type == WORKER_MSG_NEWS && messages->kept > rate->burst ? messages->kept : rate->burst;
}

static bool is_too_often(
        struct worker_messages *messages, enum worker_msg_type type, const struct rule *rule, uint64_t now)
{
        switch (rule->often) {
        case ONCE:
                return messages->seen & SET(type);
        case RATED:
                return !is_paid(
                        &messages->paid_until[type], &rule->rate, burst_of(messages, type, &rule->rate), now);
        default:
                return false;
        }
}

bool worker_messages_takes_notice(uint64_t *paid_until, uint64_t now)
{
        const struct rate *rate = &rules[WORKER_MSG_NOTICE].rate;

        return is_paid(paid_until, rate, rate->burst, now);
}

const char *worker_messages_fault(
        struct worker_messages *messages, enum worker_msg_type type, enum worker_stage stage, uint64_t now)
{
        const struct rule *rule = &rules[type];

        if (rule->often == NEVER)
                return "it sent a message that only ublkd may send";
        if (!(messages->seen & SET(WORKER_MSG_HELLO)) && type != WORKER_MSG_HELLO)
                return "it did not send HELLO first";
        if (messages->seen & SET(WORKER_MSG_FAILED))
                return "it sent a message after FAILED";
        if ((messages->seen & rule->after) != rule->after || (messages->seen & rule->before)
                || stage < rule->stage)
                return rule->early;
        if (is_too_often(messages, type, rule, now))
                return rule->again;
        messages->seen |= SET(type);
        return NULL;
}
