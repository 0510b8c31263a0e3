/* SPDX-License-Identifier: MIT */
/* action_outcome: what has become of an action, in each state of it, of the region and of the worker. */
#include "ublkd/reconcile/view/action_outcome.h"

#include "tests/unit/check.h"

#include <errno.h>

enum { ID = 7, WORKER = 70, OTHER = 71 };

#define END(to, why) {.step = ACTION_STEP_END, .state = DEVICE_ACTION_##to, .reason = REASON_ACTION_##why}
#define ASK {.step = ACTION_STEP_ASK}
#define FOLLOW {.step = ACTION_STEP_FOLLOW}
#define CLEAR {.step = ACTION_STEP_CLEAR}
#define NOTHING {.step = ACTION_STEP_NONE}

/* clang-format off */
static const struct {
        const char *what;
        enum device_action_state state;
        bool cancel, served, acts, refused, asked, overdue, unreadable, cancel_overdue;
        struct { uint64_t id, worker; enum region_action_state state; int error; } region;
        struct action_outcome outcome;
} rows[] = {
        {"new", DEVICE_ACTION_PENDING, .served = true, .acts = true, .outcome = ASK},
        {"new, and cancelled", DEVICE_ACTION_PENDING, .cancel = true, .served = true, .acts = true,
                .outcome = END(CANCELLED, CANCELLED)},
        {"an older worker", DEVICE_ACTION_PENDING, .served = true, .outcome = END(FAILED, UNSUPPORTED)},
        {"not allowed any more", DEVICE_ACTION_PENDING, .served = true, .acts = true, .refused = true,
                .outcome = {.step = ACTION_STEP_END, .state = DEVICE_ACTION_FAILED,
                        .reason = REASON_TEST_TARGET_NOT_ALLOWED}},
        {"begun while it was allowed", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .refused = true,
                .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = FOLLOW},
        {"a disk that recovers", DEVICE_ACTION_PENDING, .outcome = NOTHING},
        {"a disk without a worker", DEVICE_ACTION_PENDING, .overdue = true, .outcome = END(FAILED, NOT_TAKEN)},
        {"the worker goes on with one of another database", DEVICE_ACTION_PENDING, .served = true, .acts = true,
                .region = {ID - 1, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = CLEAR},
        {"and does not end it", DEVICE_ACTION_PENDING, .served = true, .acts = true, .overdue = true,
                .region = {ID - 1, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = END(FAILED, NOT_TAKEN)},
        {"its worker was another one", DEVICE_ACTION_PENDING, .served = true, .acts = true,
                .region = {ID - 1, OTHER, REGION_ACTION_RUNNING, 0}, .outcome = ASK},
        {"another database gave its id to another one", DEVICE_ACTION_PENDING, .served = true, .acts = true,
                .region = {ID, WORKER, REGION_ACTION_DONE, 0}, .outcome = END(FAILED, NOT_TAKEN)},
        {"the region cannot be read for a moment", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .overdue = true,
                .asked = true, .unreadable = true, .outcome = FOLLOW},
        {"the region cannot be read, and the client does not wait", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .asked = true, .unreadable = true, .cancel = true, .cancel_overdue = true,
                .outcome = END(CANCELLED, CANCELLED)},
        {"asked just now", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .asked = true, .outcome = FOLLOW},
        {"the worker ignores it", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .asked = true, .overdue = true,
                .outcome = END(FAILED, NOT_TAKEN)},
        {"the region has the action before", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .asked = true,
                .region = {ID - 1, WORKER, REGION_ACTION_DONE, 0}, .outcome = FOLLOW},
        {"ublkd died before it asked", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .outcome = END(FAILED, INTERRUPTED)},
        {"a boot later", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .overdue = true,
                .outcome = END(FAILED, INTERRUPTED)},
        {"goes on", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .overdue = true,
                .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = FOLLOW},
        {"goes on although it is to end", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .cancel = true,
                .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = FOLLOW},
        {"the worker does not end it", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .cancel = true,
                .cancel_overdue = true, .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = END(CANCELLED, CANCELLED)},
        {"another worker serves", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, OTHER, REGION_ACTION_RUNNING, 0}, .outcome = END(FAILED, INTERRUPTED)},
        {"its worker is dead, another one comes", DEVICE_ACTION_RUNNING,
                .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = NOTHING},
        {"its worker is dead, and none comes", DEVICE_ACTION_RUNNING, .overdue = true,
                .region = {ID, WORKER, REGION_ACTION_RUNNING, 0}, .outcome = END(FAILED, INTERRUPTED)},
        {"ended", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, WORKER, REGION_ACTION_DONE, 0}, .outcome = END(SUCCEEDED, SUCCEEDED)},
        {"ended before its worker died", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, OTHER, REGION_ACTION_DONE, 0}, .outcome = END(SUCCEEDED, SUCCEEDED)},
        {"ended before it could be cancelled", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .cancel = true,
                .region = {ID, WORKER, REGION_ACTION_DONE, 0}, .outcome = END(SUCCEEDED, SUCCEEDED)},
        {"failed", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, WORKER, REGION_ACTION_FAILED, 0}, .outcome = END(FAILED, FAILED)},
        {"the worker does not know it", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, WORKER, REGION_ACTION_FAILED, EOPNOTSUPP}, .outcome = END(FAILED, UNSUPPORTED)},
        {"cancelled", DEVICE_ACTION_RUNNING, .served = true, .acts = true, .cancel = true,
                .region = {ID, WORKER, REGION_ACTION_CANCELLED, 0}, .outcome = END(CANCELLED, CANCELLED)},
        {"no client has cancelled it", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, WORKER, REGION_ACTION_CANCELLED, 0}, .outcome = END(FAILED, FAILED)},
        {"the worker was replaced", DEVICE_ACTION_RUNNING, .served = true, .acts = true,
                .region = {ID, OTHER, REGION_ACTION_LEFT, 0}, .outcome = END(FAILED, INTERRUPTED)},
};
/* clang-format on */

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct device_action action = {
                        .id = ID, .state = rows[i].state, .cancel_requested = rows[i].cancel};
                const struct action_report report = {.id = rows[i].region.id,
                        .worker = rows[i].region.worker,
                        .state = rows[i].region.state,
                        .error = rows[i].region.error};
                struct action_outcome outcome = action_outcome(&(const struct action_view){
                        .action = &action,
                        .report = rows[i].region.id > 0 ? &report : NULL,
                        .served = rows[i].served,
                        .acts = rows[i].acts,
                        .refused = rows[i].refused,
                        .worker = rows[i].served ? WORKER : 0,
                        .asked = rows[i].asked,
                        .overdue = rows[i].overdue,
                        .unreadable = rows[i].unreadable,
                        .cancel_overdue = rows[i].cancel_overdue,
                });
                bool same = CHECK_INT(outcome.step, rows[i].outcome.step);

                same = CHECK_INT(outcome.state, rows[i].outcome.state) && same;
                same = CHECK_INT(outcome.reason, rows[i].outcome.reason) && same;
                if (!same)
                        fprintf(stderr, "in: %s\n", rows[i].what);
        }
        return check_report();
}
