/* SPDX-License-Identifier: MIT */
/* Disks and records that the database lacks: lists of them, and the words for the result of an adoption. */
#include "ublkd/host/adoptable.h"

#include "ublkd/model/device_cookie.h"

#include <stdio.h>
#include <string.h>

const char *adopt_verdict_to_string(enum adopt_verdict verdict)
{
        static const char *const words[_ADOPT_VERDICT_MAX] = {
                [ADOPT_POSSIBLE] = "Adoptable",
                [ADOPT_DONE] = "Adopted",
                [ADOPT_UNCHANGED] = "Unchanged",
                [ADOPT_UNKNOWN] = "Unknown",
                [ADOPT_NO_RECORD] = "NoRecord",
                [ADOPT_ELSEWHERE] = "OtherUblkd",
                [ADOPT_BAD_RECORD] = "BadRecord",
                [ADOPT_NAME_TAKEN] = "NameTaken",
                [ADOPT_NOT_ASKED] = "RecordRemoved",
                [ADOPT_FAILED] = "Failed",
        };

        return words[verdict];
}

bool adopt_verdict_is_good(enum adopt_verdict verdict)
{
        return verdict == ADOPT_DONE || verdict == ADOPT_UNCHANGED;
}

void adoption_clear(struct adoption *adoption)
{
        free(adoption->name);
        free(adoption->detail);
        *adoption = (struct adoption){};
}

static void item_clear(const struct adoptable *item)
{
        free(item->name);
        free(item->detail);
}

int adoptables_add(struct adoptables *list, const struct adoptable *item)
{
        struct adoptable *items = reallocarray(list->items, list->count + 1, sizeof(*items));

        if (!items) {
                item_clear(item);
                return -ENOMEM;
        }
        items[list->count++] = *item;
        list->items = items;
        return 0;
}

void adoptables_clear(struct adoptables *list)
{
        for (size_t i = 0; i < list->count; i++)
                item_clear(&list->items[i]);
        free(list->items);
        *list = (struct adoptables){};
}

const struct adoptable *adoptables_find_cookie(const struct adoptables *list, uint64_t cookie)
{
        for (size_t i = 0; i < list->count; i++)
                if (*list->items[i].uid && device_cookie_matches(cookie, list->items[i].uid))
                        return &list->items[i];
        return NULL;
}

static bool has_disk(const struct adoptables *list, int number)
{
        for (size_t i = 0; i < list->count; i++)
                if (!*list->items[i].uid && list->items[i].number == number)
                        return true;
        return false;
}

static int add_disk(struct adoptables *list, const struct foreign_disk *disk)
{
        struct adoptable item = {
                .number = disk->number,
                .state = disk->state,
                .pid = foreign_disk_server(disk),
                .verdict = disk->server.managed ? ADOPT_ELSEWHERE : ADOPT_NO_RECORD,
                .detail = strdup(disk->detail),
        };

        return item.detail ? adoptables_add(list, &item) : -ENOMEM;
}

int adoptables_join(struct adoptables *list, const struct foreign_disks *disks)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < disks->count; i++) {
                const struct foreign_disk *disk = &disks->items[i];
                struct adoptable *item = (struct adoptable *)adoptables_find_cookie(list, disk->cookie);

                if (item) {
                        item->number = disk->number;
                        item->state = disk->state;
                        item->pid = foreign_disk_server(disk);
                } else if (disk->maker == FOREIGN_BY_UBLKD && !has_disk(list, disk->number))
                        r = add_disk(list, disk);
        }
        return r;
}
