/* SPDX-License-Identifier: MIT */
/* Processes that have too much to be read at once, or that hang: they are read after all others, first those that could
 * open a disk by rights of their own.
 *
 * So no process keeps the search from the others. Of one without such rights only so much is read as there is time for,
 * and the search is complete without the rest: else every user could keep a disk from being removed. Their users take
 * turns. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* For a process without rights: its share of the time that is left, from this to look->share_most_usec. */
enum { SHARE_LEAST_USEC = 10 * 1000 };

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
        list->items[list->count] = (struct late){.place = list->count};
        list->items[list->count].has_rights = disk_rights_has(look, process, &list->items[list->count].uid);
        snprintf(list->items[list->count].pid, sizeof(list->items->pid), "%s", process->pid);
        snprintf(list->items[list->count].tid, sizeof(list->items->tid), "%s", process->tid);
        list->count++;
        return 0;
}

/* Return until when one of `left` processes may be read. */
static uint64_t end_of_share(const struct look *look, uint64_t until, size_t left)
{
        uint64_t now = monotonic_now(), share = now < until ? (until - now) / left : 0;

        if (share > look->share_most_usec)
                share = look->share_most_usec;
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

#define COMPARE(one, other) (((one) > (other)) - ((one) < (other)))

static int compare_by_user(const void *one, const void *other)
{
        const struct late *left = one, *right = other;
        int r = COMPARE(left->uid, right->uid);

        return r ? r : COMPARE(left->place, right->place);
}

static int compare_by_turn(const void *one, const void *other)
{
        const struct late *left = one, *right = other;
        int r = COMPARE(right->has_rights, left->has_rights);

        r = r ? r : COMPARE(left->turn, right->turn);
        return r ? r : COMPARE(left->place, right->place);
}

/* Put those with rights first, and the others in turns of their users, so that a crowd of one user takes time only from
 * that user. */
static void arrange(struct late_list *list)
{
        if (list->count == 0)
                return;
        qsort(list->items, list->count, sizeof(list->items[0]), compare_by_user);
        for (size_t i = 1; i < list->count; i++)
                if (list->items[i].uid == list->items[i - 1].uid)
                        list->items[i].turn = list->items[i - 1].turn + 1;
        qsort(list->items, list->count, sizeof(list->items[0]), compare_by_turn);
}

/* Return as late_finish(). */
static int read_all(struct look *look, int proc, const struct late_list *list, uint64_t until, late_read read,
        const char *what)
{
        int r = 0, left_out = 0;

        for (size_t i = 0; r >= 0 && i < list->count; i++) {
                bool rights = list->items[i].has_rights;

                if (rights || monotonic_now() < until)
                        r = read_one(look, proc, &list->items[i],
                                rights ? until : end_of_share(look, until, list->count - i), read, what);
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
        uint64_t least = monotonic_now() + look->reserve_usec;
        int r = list->count > 0 && proc < 0 ? -errno : 0;

        arrange(list);
        if (r >= 0)
                r = read_all(look, proc, list, until > least ? until : least, read, what);
        free(list->items);
        *list = (struct late_list){};
        return r;
}
