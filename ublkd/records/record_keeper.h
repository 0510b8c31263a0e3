/* SPDX-License-Identifier: MIT */
/* Keeps a copy of every record in the runtime directory, and knows from it what a database has lost. Runs on
 * the supervisor's loop; subscribes to the store, before the reconciler does. */
#pragma once

#include "ublkd/host/adoptable.h"
#include "ublkd/store/device_store.h"
#include "ublkd/runtime/runtime_dir.h"

struct record_keeper;

/* Compares every record with its copy: sets the age of those that are not current, and writes the others
 * down. Both outlive the keeper. 0 or -errno. */
int record_keeper_new(
        struct device_store *store, struct runtime_dir *runtime_dir, struct record_keeper **ret);
/* NULL is fine. */
struct record_keeper *record_keeper_free(struct record_keeper *keeper);

/* Makes sure that the record of the device is in the runtime directory as it is in the store. To be called
 * before the kernel hears of its disk. 0 or -errno. */
int record_keeper_ensure(struct record_keeper *keeper, const char *name);

/* The runtime directory was made again: writes everything into it once more. What cannot be written now is tried again
 * as in record_keeper_ensure(). 0 or -errno. */
int record_keeper_rewrite(struct record_keeper *keeper);

/* Replaces `ret` by what can be adopted, `most` of them: the copies that no current record stands for. 0 or
 * -errno. */
int record_keeper_list(struct record_keeper *keeper, size_t most, struct adoptables *ret);

/* Writes into the status of each device whose record is older than its copy what was found of its disk: number,
 * and who serves it. 0 or -errno. */
int record_keeper_show_disks(struct record_keeper *keeper, const struct foreign_disks *found);

/* Takes the record of `uid` into the store, under `name` (NULL: its own). */
struct adoption record_keeper_adopt(struct record_keeper *keeper, const char *uid, const char *name);
