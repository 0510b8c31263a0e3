/* SPDX-License-Identifier: MIT */
/* disk_search: the parent of a service keeps its descriptors. That of another process does not. */
#include "ublkd/disk_users/disk_search.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <systemd/sd-event.h>
#include <unistd.h>

static pid_t *seen; /* by the process that searches */
static bool answered;

static int note_keeper(
        const struct disk_users_roots *roots, struct disk_users *disks _unused_, size_t count _unused_)
{
        *seen = roots->keeper;
        return 0;
}

static void on_answer(void *userdata _unused_, const struct disk_answer *answer _unused_)
{
        answered = true;
}

static void check_keeper(pid_t keeper)
{
        const struct disk_search_options options = {
                .roots = {.proc = "/proc", .sys = "/sys"},
                  .find = note_keeper
        };
        struct disk_question *question = NULL;
        struct disk_search *search = NULL;
        sd_event *event = NULL;
        int r = sd_event_new(&event);

        *seen = -1;
        answered = false;
        if (r >= 0)
                r = disk_search_new(event, &options, &search);
        if (r >= 0)
                r = disk_search_ask(search, 1, DISK_NAMES, on_answer, NULL, &question);
        while (r >= 0 && !answered)
                r = sd_event_run(event, UINT64_MAX);
        CHECK(r >= 0);
        CHECK_INT(*seen, keeper);
        disk_question_free(question);
        disk_search_free(search);
        sd_event_unref(event);
}

int main(void)
{
        seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (seen == MAP_FAILED)
                return 1;
        (void)unsetenv("NOTIFY_SOCKET");
        check_keeper(0);
        (void)setenv("NOTIFY_SOCKET", "/nowhere", 1);
        check_keeper(getppid());
        return check_report();
}
