/* SPDX-License-Identifier: MIT */
/* How often and how fast one device's steps are tried. */
#include "ublkd/plan/attempt.h"

#include "ublkd/plan/backoff.h"

#include <errno.h>

#define SECONDS UINT64_C(1000000)

/* How long to wait for a worker before it counts as trouble. 0: for ever. */
static const uint64_t worker_limit[_PLAN_WORKER_MAX] = {
        [PLAN_WORKER_STARTING] = 30 * SECONDS, /* opening a backend over a network */
        [PLAN_WORKER_FETCHING] = 30 * SECONDS, /* udev may hold /dev/ublkcN for a moment */
        [PLAN_WORKER_LEAVING] = 10 * SECONDS,
};

enum {
        /* A dead worker's last I/O may be stuck in a slow backend, and STOP_DEV would fail what waits. */
        UNNOTICED_LIMIT = 120 * 1000 * 1000,
        /* A worker that was asked to finish its requests and exit: its backend may be slow. */
        RETIRE_LIMIT = 30 * 1000 * 1000,
        /* The time to leave, and for the next worker to open the store and to fetch. */
        HANDOVER_LIMIT = 60 * 1000 * 1000,
        /* A worker that served for as long shows that the device works: its successor starts at once. One
         * that a replayed request kills again dies within milliseconds of Live. */
        SERVED_LONG = 1000 * 1000,
        /* But a worker that was taken over can serve for as long and exit, again and again. So each death that is
         * forgiven is paid for with this service, before it or after it ... */
        SERVICE_PER_DEATH = 60 * 1000 * 1000,
        /* ... and so many may be owed for. Those who kill workers on purpose, for a test or to replace them, stay below. */
        DEATHS_OWED_MAX = 60,
        /* A worker that was killed for what it sent may have been taken over by what it reads. Its successor
         * serves the same store and reads the same requests: it is trusted again after a longer time. */
        TRUSTED = 10 * 60 * 1000 * 1000,
        /* How long a command that was given up may still take effect. */
        UNSURE_LIMIT = 60 * 1000 * 1000,
        /* A command cannot be sent before an earlier one is out of the way: each time that this passes counts
         * as a try, so that the ways out (STOP_WORKER) are taken as if it had been sent and hung. */
        HELD_DELAY = 10 * 1000 * 1000,
        /* Between two tries while an event will show when the driver releases the disk: it may be lost. */
        WATCHED_DELAY = 8 * 1000,
        /* Tries before that: ublkd itself waits for a driver that cancels late (ATTEMPT_SETTLES). */
        WATCHED_TRIES = 2,
        /* What is as wanted is looked at again all the same: others may stop or delete a disk, and not every
         * change is reported (a worker that hangs does not leave). */
        RESYNC = 60 * 1000 * 1000,
};

/* The kernel will notice that a worker is dead, without an event. */
static bool waits_for_kernel(const struct plan_facts *facts)
{
        return facts->kernel == KERNEL_LIVE
               && (facts->worker == PLAN_WORKER_NONE || facts->worker == PLAN_WORKER_PARAMS);
}

/* A worker that is sent away is expected to go. */
static bool is_retiring(const struct plan_facts *facts)
{
        return facts->want == WANT_RENEWED && facts->kernel == KERNEL_LIVE
               && facts->worker == PLAN_WORKER_SERVING;
}

static uint64_t wait_limit(const struct attempt *attempt, const struct plan_facts *facts)
{
        if (is_retiring(facts) || (attempt->retired && facts->worker == PLAN_WORKER_LEAVING))
                return RETIRE_LIMIT;
        return waits_for_kernel(facts) ? UNNOTICED_LIMIT : worker_limit[facts->worker];
}

/* Count how long the worker has served since it was last counted. */
static void count_service(struct attempt *attempt, uint64_t now)
{
        bool serves = attempt->seen_since > 0 && attempt->seen.kernel == KERNEL_LIVE
                      && attempt->seen.worker == PLAN_WORKER_SERVING;
        uint64_t service = serves && now > attempt->counted ? now - attempt->counted : 0;

        if (service == 0)
                return;
        attempt->counted = now;
        attempt->served += service;
        attempt->owed -= service < attempt->owed ? service : attempt->owed;
}

static bool is_forgiven(const struct attempt *attempt)
{
        return attempt->served >= SERVED_LONG
               && attempt->owed <= (uint64_t)(DEATHS_OWED_MAX - 1) * SERVICE_PER_DEATH;
}

static bool is_same_situation(const struct plan_facts *one, const struct plan_facts *other)
{
        return one->want == other->want && one->kernel == other->kernel && one->worker == other->worker;
}

static void enter_situation(struct attempt *attempt, const struct plan_facts *facts, uint64_t now)
{
        attempt->seen = *facts;
        attempt->seen_since = attempt->wait_since = attempt->counted = now;
        attempt->retry_at = 0;
        attempt->tries = attempt->tried_out = attempt->busy = 0;
}

/* Another worker serves, or there is nothing to serve. */
static bool is_handed_over(const struct plan_facts *facts)
{
        if (facts->kernel == KERNEL_LIVE)
                return facts->worker == PLAN_WORKER_SERVING && facts->want != WANT_RENEWED;
        return facts->kernel != KERNEL_DOWN;
}

static void drop_refusals(struct attempt *attempt)
{
        attempt->refusals = 0;
        attempt->refused = false;
}

enum plan_trouble attempt_observe(struct attempt *attempt, const struct plan_facts *facts, uint64_t now)
{
        uint64_t limit = wait_limit(attempt, facts);

        attempt->blind = 0;
        if (attempt->seen_since == 0 || !is_same_situation(&attempt->seen, facts)) {
                count_service(attempt, now);
                enter_situation(attempt, facts, now);
        }
        if (facts->kernel != KERNEL_DOWN) {
                drop_refusals(attempt);
                attempt_held(attempt);
        }
        if (facts->kernel == KERNEL_LIVE && facts->worker == PLAN_WORKER_SERVING)
                attempt->error = 0;
        if (is_handed_over(facts))
                attempt->handover_since = 0;

        if (attempt->unnoticed)
                return TROUBLE_HOPELESS;
        /* A worker that is there may yet be the one with which the recovery works. */
        if (facts->worker == PLAN_WORKER_NONE && attempt->refusals >= ATTEMPT_REFUSALS)
                return TROUBLE_HOPELESS;
        if (attempt->tries - attempt->tried_out >= ATTEMPT_TRIES)
                return TROUBLE_STUCK;
        if (limit > 0 && now - attempt->wait_since >= limit)
                return TROUBLE_STUCK;
        return TROUBLE_NONE;
}

uint64_t attempt_blind(struct attempt *attempt, uint64_t now)
{
        return now + backoff_delay(++attempt->blind);
}

static uint64_t due_wait(const struct attempt *attempt, uint64_t now)
{
        uint64_t limit = wait_limit(attempt, &attempt->seen), due = UINT64_MAX, poll;

        if (limit > 0 && now < attempt->wait_since + limit)
                due = attempt->wait_since + limit;
        if (waits_for_kernel(&attempt->seen)) {
                uint64_t since =
                        attempt->closed_at > attempt->seen_since ? attempt->closed_at : attempt->seen_since;

                poll = now + backoff_poll(now - since);
                due = poll < due ? poll : due;
        }
        return due;
}

bool attempt_is_unsure(const struct attempt *attempt, uint64_t now)
{
        return now < attempt->unsure_until;
}

static uint64_t due_nothing(const struct attempt *attempt, uint64_t now)
{
        if (attempt_is_unsure(attempt, now))
                return now + backoff_poll(now - attempt->seen_since);
        return attempt->seen.want == WANT_ABSENT ? UINT64_MAX : now + RESYNC;
}

uint64_t attempt_due(const struct attempt *attempt, enum plan_action action, uint64_t now)
{
        switch (action) {
        case ACTION_NOTHING:
                return due_nothing(attempt, now);
        case ACTION_WAIT:
                return due_wait(attempt, now);
        case ACTION_SPAWN:
                return attempt->spawn_at > attempt->retry_at ? attempt->spawn_at : attempt->retry_at;
        case ACTION_GROW_DISK: /* of two under way the smaller one may win */
                return attempt->grow_at > attempt->retry_at ? attempt->grow_at : attempt->retry_at;
        default:
                return attempt->retry_at;
        }
}

int attempt_add_result(int result, bool foreign)
{
        return result == -EEXIST && !foreign ? -EINPROGRESS : result;
}

static bool is_release(enum plan_action action, int error)
{
        return action == ACTION_BEGIN_RECOVERY ? error == -EBUSY
                                               : action == ACTION_ADD_DEV && error == -EINPROGRESS;
}

bool attempt_waits_for_release(const struct attempt *attempt)
{
        return attempt->busy > 0 && attempt->blind == 0 && is_release(attempt->failed, attempt->error)
               && (attempt->failed == ACTION_BEGIN_RECOVERY || attempt->busy <= ATTEMPT_RELEASES);
}

bool attempt_is_overdue(const struct attempt *attempt, bool full, uint64_t now)
{
        return attempt->busy > 0 && attempt->failed == ACTION_BEGIN_RECOVERY
               && now - attempt->busy_since >= (full ? ATTEMPT_OVERDUE_FULL : ATTEMPT_OVERDUE);
}

void attempt_unheld(struct attempt *attempt, uint64_t now)
{
        if (attempt->unheld_since == 0)
                attempt->unheld_since = now;
        attempt->unnoticed = now - attempt->unheld_since >= ATTEMPT_LOOKS_APART;
}

void attempt_held(struct attempt *attempt)
{
        attempt->unheld_since = 0;
        attempt->unnoticed = false;
}

bool attempt_may_begin(bool cancels_late, uint64_t down_since, uint64_t now)
{
        return !cancels_late || (down_since > 0 && now - down_since >= ATTEMPT_SETTLES);
}

bool attempt_may_go(int result)
{
        return result >= 0 || result == -EINVAL;
}

void attempt_retired(struct attempt *attempt)
{
        attempt->retired = true;
}

void attempt_handover(struct attempt *attempt, uint64_t now)
{
        attempt->handover_since = now;
        attempt->handover_deaths = 0;
}

uint64_t attempt_handover_until(const struct attempt *attempt)
{
        return attempt->handover_since > 0 ? attempt->handover_since + HANDOVER_LIMIT : 0;
}

static void note_success(struct attempt *attempt, enum plan_action action, uint64_t now)
{
        /* What it brought about will be seen, and is then a new situation. If not, look again, ever slower.
         */
        if (action == ACTION_RETIRE_WORKER)
                attempt_retired(attempt); /* its last request may take long: being there is not a failure */
        else
                attempt->tries++;
        attempt->retry_at = now + backoff_poll(now - attempt->seen_since);
        if (action == ACTION_STOP_WORKER) {
                attempt->tried_out = attempt->tries;
                attempt->wait_since = now;
        }
        if (action == attempt->failed)
                attempt->error = 0;
}

static void note_refusal(struct attempt *attempt)
{
        if (!attempt->refused)
                attempt->refusals++;
        attempt->refused = true;
}

static void note_failure(struct attempt *attempt, enum plan_action action, int error, uint64_t now)
{
        uint64_t delay;

        if (error == -EALREADY) { /* what it waits for stays the error */
                attempt->blocked = true;
                attempt->tries++;
                attempt->retry_at = now + HELD_DELAY;
                return;
        }
        attempt->error = error;
        attempt->failed = action;
        if (is_release(action, error)) {
                if (attempt->busy == 0)
                        attempt->busy_since = now;
                delay = backoff_busy(++attempt->busy);
                if (attempt->watched && attempt->busy > WATCHED_TRIES && delay < WATCHED_DELAY)
                        delay = WATCHED_DELAY;
                attempt->retry_at = now + delay;
                return;
        }
        /* Its users decide when that ends; and whether there are any (-ETIME) is asked again, for a stop that
         * was not even tried does not justify a harder one. */
        if (action == ACTION_STOP_DEV && (error == -EBUSY || error == -ETIME)) {
                attempt->retry_at = now + backoff_poll(now - attempt->seen_since);
                return;
        }
        attempt->tries++;
        if (action == ACTION_ADD_DEV && error == -ETIMEDOUT)
                attempt->unsure_until = now + UNSURE_LIMIT;
        if (action == ACTION_GROW_DISK && error == -ETIMEDOUT)
                attempt->grow_at = now + UNSURE_LIMIT;
        if (action == ACTION_SET_PARAMS && error == -EACCES) { /* it was started before: never again */
                attempt->tries += ATTEMPT_TRIES;
                attempt->retry_at = now; /* of the way out */
                return;
        }
        if ((action == ACTION_BEGIN_RECOVERY || action == ACTION_END_RECOVERY) && error == -EINVAL)
                note_refusal(attempt);
        attempt->retry_at = now + backoff_delay(attempt->tries);
}

void attempt_released(struct attempt *attempt, uint64_t now)
{
        if (attempt->blocked)
                attempt->retry_at = now;
        attempt->blocked = false;
}

void attempt_done(struct attempt *attempt, enum plan_action action, int result, uint64_t now)
{
        attempt->blocked = false;
        /* It was not refused: every queue had fetched, so that this disk can be recovered. It may even have
         * been live, and down again before ublkd looked. */
        if (action == ACTION_END_RECOVERY && result != -EINVAL && result != -EALREADY)
                drop_refusals(attempt);
        if (result < 0)
                note_failure(attempt, action, result, now);
        else
                note_success(attempt, action, now);
}

void attempt_watch(struct attempt *attempt, bool watched)
{
        attempt->watched = watched;
}

void attempt_closed(struct attempt *attempt, uint64_t now)
{
        attempt->watched = false;
        attempt->closed_at = now;
        if (attempt_waits_for_release(attempt))
                attempt->retry_at = now;
}

bool attempt_succeeded(const struct attempt *attempt)
{
        return attempt->error == 0 && !attempt->blocked;
}

bool attempt_may_grow(const struct attempt *attempt)
{
        return attempt->grow_at > 0;
}

void attempt_worker_lost(struct attempt *attempt)
{
        if (attempt->handover_deaths++ > 0) /* not the first one of them */
                attempt->handover_since = 0;
}

void attempt_worker_died(struct attempt *attempt, uint64_t now)
{
        bool forgiven;

        count_service(attempt, now);
        forgiven = is_forgiven(attempt);
        if (forgiven)
                attempt->deaths = 0;
        if (attempt->served >= TRUSTED)
                attempt->breaches = 0;
        attempt->served = 0;
        attempt->counted = UINT64_MAX; /* until another situation is seen */
        attempt->refused = false;
        attempt_worker_lost(attempt);
        if (attempt->retired || (attempt->seen_since > 0 && attempt->seen.want == WANT_ABSENT)) {
                attempt->retired = false;
                return; /* it was sent away */
        }
        if (forgiven)
                attempt->owed += SERVICE_PER_DEATH;
        else
                attempt->deaths++;
        attempt->spawn_at = now + backoff_delay(attempt->deaths);
        attempt->retry_at = 0; /* what its start has come to is known: no need to look later */
}

void attempt_worker_broke(struct attempt *attempt, uint64_t now)
{
        uint64_t spawn_at;

        attempt_worker_died(attempt, now);
        spawn_at = now + backoff_delay(++attempt->breaches + 1); /* never at once */
        if (spawn_at > attempt->spawn_at)
                attempt->spawn_at = spawn_at;
}

void attempt_reset(struct attempt *attempt)
{
        attempt->retry_at = attempt->spawn_at = 0;
        attempt->tries = attempt->tried_out = attempt->busy = attempt->blind = attempt->deaths = 0;
        attempt->breaches = 0;
}
