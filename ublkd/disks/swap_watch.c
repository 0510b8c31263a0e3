/* SPDX-License-Identifier: MIT */
/* Polls the kernel's list of swap areas, which is ready whenever it has changed. */
#include "ublkd/disks/swap_watch.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/disks/swap_areas.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { DISKS_MAX = 64 }; /* the kernel has half as many swap areas at most; a stack can have more disks */

struct disk_set {
        int numbers[DISKS_MAX];
        size_t count;
};

struct swap_watch {
        FILE *swaps;
        char *sys;
        sd_event_source *source;
        swap_watch_handler handler;
        void *userdata;
        struct disk_set disks;
};

DEFINE_CLEANUP(struct swap_watch, swap_watch_free);

static bool has(const struct disk_set *set, int number)
{
        for (size_t i = 0; i < set->count; i++)
                if (set->numbers[i] == number)
                        return true;
        return false;
}

static void add(void *userdata, int number)
{
        struct disk_set *set = userdata;

        if (!has(set, number) && set->count < DISKS_MAX)
                set->numbers[set->count++] = number;
}

static int look(struct swap_watch *watch, struct disk_set *ret)
{
        *ret = (struct disk_set){};
        rewind(watch->swaps);
        return swap_areas_read(watch->swaps, watch->sys, add, ret);
}

static void call_for_others(
        const struct swap_watch *watch, const struct disk_set *all, const struct disk_set *but)
{
        for (size_t i = 0; i < all->count; i++)
                if (!has(but, all->numbers[i]))
                        watch->handler(watch->userdata, all->numbers[i]);
}

/* A list that cannot be read (ENOMEM) leaves what was known; the next change shows all. */
static int on_swaps(
        sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_, void *userdata)
{
        struct swap_watch *watch = userdata;
        struct disk_set before = watch->disks, now;

        if (look(watch, &now) < 0)
                return 0;
        watch->disks = now;
        call_for_others(watch, &now, &before);
        call_for_others(watch, &before, &now);
        return 0;
}

int swap_watch_new(sd_event *event, const char *proc, const char *sys, swap_watch_handler handler,
        void *userdata, struct swap_watch **ret)
{
        _cleanup_(swap_watch_free_pointer) struct swap_watch *watch = calloc(1, sizeof(*watch));
        char path[PATH_MAX];
        int r;

        if (!watch)
                return -ENOMEM;
        watch->handler = handler;
        watch->userdata = userdata;
        watch->sys = strdup(sys);
        if (!watch->sys)
                return -ENOMEM;
        if (snprintf(path, sizeof(path), "%s/swaps", proc) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        watch->swaps = fopen(path, "re");
        if (!watch->swaps)
                return -errno;
        r = sd_event_add_io(event, &watch->source, fileno(watch->swaps), EPOLLPRI, on_swaps, watch);
        if (r >= 0)
                r = look(watch, &watch->disks);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(watch);
        return 0;
}

bool swap_watch_has(const struct swap_watch *watch, int number)
{
        return watch && has(&watch->disks, number);
}

struct swap_watch *swap_watch_free(struct swap_watch *watch)
{
        if (!watch)
                return NULL;
        sd_event_source_disable_unref(watch->source);
        if (watch->swaps)
                (void)fclose(watch->swaps);
        free(watch->sys);
        free(watch);
        return NULL;
}
