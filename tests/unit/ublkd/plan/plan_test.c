/* SPDX-License-Identifier: MIT */
/* plan(): the rules over every combination, and the ways that a user sees. plan_want(): from wish to want. */
#include "tests/unit/check.h"
#include "ublkd/plan/plan.h"
#include "walk.h"

static enum plan_action decide(
        enum plan_want want, enum plan_kernel kernel, enum plan_worker worker, enum plan_trouble trouble)
{
        return plan(
                &(struct plan_facts){.want = want, .kernel = kernel, .worker = worker, .trouble = trouble});
}

static void test_every_combination(void)
{
        struct plan_facts facts = {};
        const char *rule = walk_all_facts(plan, &facts);

        if (!CHECK(!rule))
                fprintf(stderr, "want %s, kernel %s, worker %s, trouble %d → %s: %s\n",
                        plan_want_to_string(facts.want), plan_kernel_to_string(facts.kernel),
                        plan_worker_to_string(facts.worker), (int)facts.trouble,
                        plan_action_to_string(plan(&facts)), rule);
}

/* Each list is a life as it goes when nothing goes wrong. */
struct step {
        enum plan_want want;
        enum plan_kernel kernel;
        enum plan_worker worker;
        enum plan_action action;
};

static void check_steps(const struct step *steps, size_t count)
{
        for (size_t i = 0; i < count; i++)
                CHECK_STR(plan_action_to_string(
                                  decide(steps[i].want, steps[i].kernel, steps[i].worker, TROUBLE_NONE)),
                        plan_action_to_string(steps[i].action));
}
#define CHECK_STEPS(...)                                                                                     \
        check_steps((const struct step[]){__VA_ARGS__},                                                      \
                sizeof((struct step[]){__VA_ARGS__}) / sizeof(struct step))

static void test_lives(void)
{
        CHECK_STEPS({WANT_PRESENT, KERNEL_ABSENT, PLAN_WORKER_NONE, ACTION_SPAWN},
                {WANT_PRESENT, KERNEL_ABSENT, PLAN_WORKER_STARTING, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_ABSENT, PLAN_WORKER_PARAMS, ACTION_ADD_DEV},
                {WANT_PRESENT, KERNEL_ADDED, PLAN_WORKER_PARAMS, ACTION_SET_PARAMS},
                {WANT_PRESENT, KERNEL_ADDED, PLAN_WORKER_FETCHING, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_ADDED, PLAN_WORKER_READY, ACTION_START_DEV},
                {WANT_PRESENT, KERNEL_LIVE, PLAN_WORKER_READY, ACTION_MARK_SERVING},
                {WANT_PRESENT, KERNEL_LIVE, PLAN_WORKER_SERVING, ACTION_NOTHING},
                /* the worker dies */
                {WANT_PRESENT, KERNEL_LIVE, PLAN_WORKER_NONE, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_NONE, ACTION_SPAWN},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_STARTING, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_PARAMS, ACTION_BEGIN_RECOVERY},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_FETCHING, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_READY, ACTION_END_RECOVERY},
                /* it is deleted */
                {WANT_ABSENT, KERNEL_LIVE, PLAN_WORKER_SERVING, ACTION_STOP_DEV},
                {WANT_ABSENT, KERNEL_ADDED, PLAN_WORKER_SERVING, ACTION_STOP_WORKER},
                {WANT_ABSENT, KERNEL_ADDED, PLAN_WORKER_LEAVING, ACTION_WAIT},
                {WANT_ABSENT, KERNEL_ADDED, PLAN_WORKER_NONE, ACTION_DEL_DEV},
                {WANT_ABSENT, KERNEL_ABSENT, PLAN_WORKER_NONE, ACTION_NOTHING});
        /* a manual device: with a disk to recover, and without (onCrash none) */
        CHECK_STEPS({WANT_HELD, KERNEL_LIVE, PLAN_WORKER_NONE, ACTION_WAIT},
                {WANT_HELD, KERNEL_DOWN, PLAN_WORKER_NONE, ACTION_NOTHING},
                {WANT_HELD, KERNEL_ADDED, PLAN_WORKER_NONE, ACTION_DEL_DEV},
                {WANT_HELD, KERNEL_ABSENT, PLAN_WORKER_NONE, ACTION_NOTHING});
        /* a restart: once its worker is gone, it proceeds like a crash */
        CHECK_STEPS({WANT_RENEWED, KERNEL_LIVE, PLAN_WORKER_SERVING, ACTION_RETIRE_WORKER},
                {WANT_PRESENT, KERNEL_LIVE, PLAN_WORKER_LEAVING, ACTION_WAIT},
                {WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_NONE, ACTION_SPAWN});
        /* waiting I/O fails */
        CHECK_STEPS({WANT_GIVEN_UP, KERNEL_DOWN, PLAN_WORKER_NONE, ACTION_STOP_DEV},
                {WANT_PRESENT, KERNEL_ADDED, PLAN_WORKER_NONE, ACTION_DEL_DEV},
                {WANT_PRESENT, KERNEL_ABSENT, PLAN_WORKER_NONE, ACTION_SPAWN});
}

static void test_troubles(void)
{
        CHECK_INT(decide(WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_NONE, TROUBLE_HOPELESS), ACTION_STOP_DEV);
        CHECK_INT(decide(WANT_HELD, KERNEL_DOWN, PLAN_WORKER_NONE, TROUBLE_HOPELESS), ACTION_NOTHING);
        CHECK_INT(decide(WANT_PRESENT, KERNEL_DOWN, PLAN_WORKER_READY, TROUBLE_STUCK), ACTION_STOP_WORKER);
        CHECK_INT(decide(WANT_PRESENT, KERNEL_LIVE, PLAN_WORKER_NONE, TROUBLE_STUCK), ACTION_STOP_DEV);
        CHECK_INT(decide(WANT_ABSENT, KERNEL_LIVE, PLAN_WORKER_SERVING, TROUBLE_STUCK), ACTION_STOP_WORKER);
        CHECK_INT(decide(WANT_RENEWED, KERNEL_LIVE, PLAN_WORKER_SERVING, TROUBLE_STUCK), ACTION_STOP_WORKER);
}

static const struct plan_wish plain = {
        .enabled = true, .kernel = KERNEL_LIVE, .worker = PLAN_WORKER_SERVING, .now = 1000};

static void test_want_absent(void)
{
        struct plan_wish wish = plain;

        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.enabled = false;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
        wish = plain;
        wish.deleting = true;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
        wish = plain;
        wish.kernel_is_old = true;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
        wish = plain;
        wish.worker_is_old = true;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
}

static void test_want_held(void)
{
        struct plan_wish wish = plain;

        wish.manual = true;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.held = true; /* it was Live, and it is */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.worker = PLAN_WORKER_STARTING; /* adopted, has not spoken yet */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.worker = PLAN_WORKER_NONE;
        CHECK_INT(plan_want(&wish), WANT_HELD);
        wish.kernel = KERNEL_ABSENT;
        CHECK_INT(plan_want(&wish), WANT_HELD);
        wish.recover_requested = true;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.recover_requested = wish.held = false; /* its first start */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.kernel = KERNEL_DOWN; /* died before it could be noted that it was Live */
        CHECK_INT(plan_want(&wish), WANT_HELD);
        wish.manual = false;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
}

static void test_want_renewed(void)
{
        struct plan_wish wish = plain;

        wish.worker_is_outdated = true;
        CHECK_INT(plan_want(&wish), WANT_RENEWED);
        wish.manual = wish.held = true;
        CHECK_INT(plan_want(&wish), WANT_RENEWED);
        wish.worker = PLAN_WORKER_READY; /* it is about to serve: it may do so first */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.worker = PLAN_WORKER_NONE;
        CHECK_INT(plan_want(&wish), WANT_HELD);
        wish.recover_requested = true; /* which every restart implies */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.worker = PLAN_WORKER_SERVING;
        wish.enabled = false;
        CHECK_INT(plan_want(&wish), WANT_ABSENT);
}

static void test_want_grown(void)
{
        struct plan_wish wish = plain;

        wish.size_wanted = 20;
        wish.size_of_worker = wish.size_of_disk = 10;
        CHECK_INT(plan_want(&wish), WANT_EXTENDED);
        wish.size_of_worker = 20;
        CHECK_INT(plan_want(&wish), WANT_GROWN);
        wish.size_of_disk = 20;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.size_wanted = 10; /* no spec asks to shrink here */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.size_of_worker = 10; /* the disk grew late */
        CHECK_INT(plan_want(&wish), WANT_EXTENDED);
        wish.size_of_disk = 0; /* cannot be changed */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.size_of_disk = 5;
        wish.worker = PLAN_WORKER_READY;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
}

static void test_want_given_up(void)
{
        struct plan_wish wish = plain;

        wish.kernel = KERNEL_DOWN;
        wish.worker = PLAN_WORKER_PARAMS;
        wish.give_up_after = 500;
        wish.lost_since = 600;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        CHECK_INT(plan_want_until(&wish), 1100);
        wish.now = 1099;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.now = 1100;
        CHECK_INT(plan_want(&wish), WANT_GIVEN_UP);
        CHECK(plan_want_until(&wish) == UINT64_MAX);
        wish.manual = true; /* holding ends there as well */
        CHECK_INT(plan_want(&wish), WANT_GIVEN_UP);
        wish.manual = false;
        wish.kernel = KERNEL_ADDED; /* stopped: nothing waits any more */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.kernel = KERNEL_LIVE; /* the worker that serves it has not reported so yet */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.worker = PLAN_WORKER_NONE; /* the kernel notices its death next: DOWN, or the disk goes */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.kernel = KERNEL_DOWN;
        CHECK_INT(plan_want(&wish), WANT_GIVEN_UP);
        wish.lost_since = 0; /* FAIL_IO: no I/O waits */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        wish.lost_since = 600;
        wish.give_up_after = UINT64_MAX;
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
        CHECK(plan_want_until(&wish) == UINT64_MAX);
        wish.give_up_after = 0; /* never */
        CHECK_INT(plan_want(&wish), WANT_PRESENT);
}

static void test_names(void)
{
        for (unsigned i = 0; i < _ACTION_MAX; i++)
                CHECK(plan_action_to_string(i) != NULL);
        for (unsigned i = 0; i < _WANT_MAX; i++)
                CHECK(plan_want_to_string(i) != NULL);
        for (unsigned i = 0; i < _KERNEL_MAX; i++)
                CHECK(plan_kernel_to_string(i) != NULL);
        for (unsigned i = 0; i < _PLAN_WORKER_MAX; i++)
                CHECK(plan_worker_to_string(i) != NULL);
        CHECK_STR(plan_action_to_string(_ACTION_MAX), "unknown");
}

int main(void)
{
        test_every_combination();
        test_lives();
        test_troubles();
        test_want_absent();
        test_want_held();
        test_want_renewed();
        test_want_grown();
        test_want_given_up();
        test_names();
        return check_report();
}
