/* SPDX-License-Identifier: MIT */
/* disk_search: which of the users of a disk are of one user. */
#include "ublkd/disk_users/disk_search.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

static char own[DISK_ANSWER_TEXT_MAX], others[DISK_ANSWER_TEXT_MAX], all[DISK_ANSWER_TEXT_MAX];
static unsigned answers;

static void report(struct disk_users *disk, uid_t uid, const char *user)
{
        disk->uids[disk->count] = uid;
        disk->items[disk->count++] = strdup(user);
}

/* One user has a name that looks like what another one has. */
static int find(const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                if (disks[i].number != 1)
                        continue;
                report(&disks[i], DISK_USER_UNKNOWN, "process 1 (root)");
                report(&disks[i], 1000, "process 2 (a)");
                report(&disks[i], 1001, "process 3 (\n000003ea00000003bad)");
                report(&disks[i], 1000, "mounted at /home/%s");
        }
        return 0;
}

static void on_answer(void *userdata _unused_, const struct disk_answer *answer)
{
        disk_answer_of(answer, 1000, own);
        disk_answer_of(answer, 1002, others);
        snprintf(all, sizeof(all), "%s", answer->text);
        answers++;
}

static void look_at(struct disk_search *search, sd_event *event, int number)
{
        struct disk_question *question = NULL;

        answers = 0;
        CHECK_INT(disk_search_ask(search, number, DISK_NAMES, on_answer, NULL, &question), 0);
        while (answers == 0 && CHECK(sd_event_run(event, UINT64_MAX) >= 0))
                ;
        disk_question_free(question);
}

int main(void)
{
        const struct disk_search_options options = {
                .roots = {.proc = "/proc", .sys = "/sys"},
                  .find = find
        };
        struct disk_search *search = NULL;
        sd_event *event = NULL;

        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(disk_search_new(event, &options, &search), 0);
        look_at(search, event, 1);
        CHECK_STR(own, "process 2 (a), mounted at /home/%s");
        CHECK_STR(others, "");
        CHECK_STR(all,
                "process 1 (root), process 2 (a), process 3 (\n000003ea00000003bad), mounted at /home/%s");
        look_at(search, event, 2);
        CHECK_STR(own, "");
        CHECK_STR(all, "");
        disk_search_free(search);
        sd_event_unref(event);
        return check_report();
}
