/* SPDX-License-Identifier: MIT */
/* Processes that have too much to be read at once, or that hang: they are read after all others, first those that could
 * open a disk by rights of their own.
 *
 * So no process keeps the search from the others. Of one without such rights only so much is read as there is time for,
 * and the search is complete without the rest: else every user could keep a disk from being removed. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* For a process without rights: its share of the time that is left, within these. */
enum { SHARE_LEAST_USEC = 10 * 1000, SHARE_MOST_USEC = 500 * 1000 };

int late_add(struct look *look, struct late_list *list, const struct process *process)
{
        struct late *grown;

        if (list->count == list->allocated) {
                size_t allocated = list->allocated ? 2 * list->allocated : 64;

                grown = realloc(list->items, allocated * sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                list->items = grown;
                list->allocated = allocated;
        }
        list->items[list->count] = (struct late){.has_rights = disk_rights_has(look, process)};
        snprintf(list->items[list->count].pid, sizeof(list->items->pid), "%s", process->pid);
        snprintf(list->items[list->count].tid, sizeof(list->items->tid), "%s", process->tid);
        list->count++;
        return 0;
}

/* Return until when one of `left` processes may be read. */
static uint64_t end_of_share(uint64_t until, size_t left)
{
        uint64_t now = monotonic_now(), share = now < until ? (until - now) / left : 0;

        if (share > SHARE_MOST_USEC)
                share = SHARE_MOST_USEC;
        return now + (share > SHARE_LEAST_USEC ? share : SHARE_LEAST_USEC);
}

static int read_one(struct look *look, int proc, const struct late *late, uint64_t until, late_read read,
        const char *what)
{
        _cleanup_close_ int directory = openat(proc, late->tid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct process process = {.pid = late->pid, .tid = late->tid, .directory = directory};
        int r;

        if (directory < 0) {
                look_note_gap(look, NULL, "a process of /proc cannot be looked at", -errno);
                return 1;
        }
        look_read_comm(&process);
        r = read(look, &process, until);
        if (r == -ENOMEM)
                return r;
        if (r < 0 && (r != -ETIME || late->has_rights))
                look_note_gap(look, &process, what, r);
        return r < 0;
}

/* Read those with rights, or those without. Return as late_finish(). */
static int read_all(struct look *look, int proc, const struct late_list *list, bool rights, uint64_t until,
        late_read read, const char *what)
{
        int r = 0, left_out = 0;

        for (size_t i = 0; r >= 0 && i < list->count; i++) {
                if (list->items[i].has_rights != rights)
                        continue;
                if (rights || monotonic_now() < until)
                        r = read_one(look, proc, &list->items[i],
                                rights ? until : end_of_share(until, list->count - i), read, what);
                else
                        r = 1;
                left_out = left_out || r > 0;
        }
        return r < 0 ? r : left_out;
}

int late_finish(struct look *look, struct late_list *list, uint64_t until, late_read read, const char *what)
{
        _cleanup_close_ int proc =
                list->count > 0 ? open(look->roots->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        int first = list->count > 0 && proc < 0 ? -errno : 0, then = 0;

        if (first >= 0)
                first = read_all(look, proc, list, true, until, read, what);
        if (first >= 0)
                then = read_all(look, proc, list, false, until, read, what);
        free(list->items);
        *list = (struct late_list){};
        return first < 0 ? first : then < 0 ? then : first || then;
}
