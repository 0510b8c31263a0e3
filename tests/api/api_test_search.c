/* SPDX-License-Identifier: MIT */
/* The search for the users of a disk, with what it is to find. */
#include "tests/api/api_test_search.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* What a search finds. It is a process of its own, and knows the values of its start. */
static struct {
        int number; /* of the disk in use, or -1 */
        char text[256];
        uid_t own; /* the user of another process that uses it */
        bool stop;
} busy = {.number = -1, .own = DISK_USER_UNKNOWN};
static int *searches; /* how many have begun; shared with their processes */

static int find_busy(const struct disk_users_roots *roots _unused_, struct disk_users *disks, size_t count)
{
        ++*searches;
        if (busy.stop)
                (void)raise(SIGSTOP);
        for (size_t i = 0; i < count; i++)
                if (disks[i].number == busy.number) {
                        disks[i].items[disks[i].count++] = strdup(busy.text);
                        disks[i].uids[disks[i].count] = busy.own;
                        if (busy.own != DISK_USER_UNKNOWN)
                                disks[i].items[disks[i].count++] = strdup("process 1 (own)");
                }
        return 0;
}

int api_test_search_new(sd_event *event, uint64_t patience, struct disk_search **ret)
{
        searches = mmap(NULL, sizeof(*searches), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        return searches == MAP_FAILED
                       ? -errno
                       : disk_search_new(event,
                                 &(struct disk_search_options){.find = find_busy, .patience_usec = patience},
                                 ret);
}

void api_test_search_finds(int number, const char *text)
{
        busy.number = number;
        snprintf(busy.text, sizeof(busy.text), "%s", text);
}

void api_test_search_finds_of(uid_t user)
{
        busy.own = user;
}

void api_test_search_stops(bool stop)
{
        busy.stop = stop;
}

int api_test_searches(void)
{
        return *searches;
}
