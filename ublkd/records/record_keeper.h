/* SPDX-License-Identifier: MIT */
/* Keeps a copy of every record in the runtime directory, and finds with it what a database has lost. Runs on
 * the supervisor's loop; subscribes to the store, before the reconciler does. */
#pragma once

#include "ublkd/host/adoptable.h"
#include "ublkd/store/device_store.h"
#include "ublkd/runtime/runtime_dir.h"

struct record_keeper;

/* Create a keeper, and compare every record with its copy: set the age of a record that is not current, write
 * the copy of a current one. Store and runtime directory outlive the keeper. Return 0 or -errno. */
int record_keeper_new(
        struct device_store *store, struct runtime_dir *runtime_dir, struct record_keeper **ret);
/* Free the keeper; the copies stay. NULL is fine. Return NULL. */
struct record_keeper *record_keeper_free(struct record_keeper *keeper);

/* Ensure that the copy of the device equals its record. Call it before the first command to the driver about
 * its disk. Return 0 or -errno. */
int record_keeper_ensure(struct record_keeper *keeper, const char *name);

/* Return whether the last try to write the copy of the device `uid` failed. */
bool record_keeper_is_missing(const struct record_keeper *keeper, const char *uid);

/* Write mark and copies again into a runtime directory that was recreated. record_keeper_ensure() tries again
 * what cannot be written now. Return 0 or -errno. */
int record_keeper_rewrite(struct record_keeper *keeper);

/* Replace `ret` by a list of up to `most` copies that can be adopted: copies without a current record. Return
 * 0 or -errno. */
int record_keeper_list(struct record_keeper *keeper, size_t most, struct adoptables *ret);

/* Write the disk that a scan found (number, worker) into the status of each device whose record is older than
 * its copy. Return 0 or -errno. */
int record_keeper_show_disks(struct record_keeper *keeper, const struct foreign_disks *found);

/* Adopt the record of `uid` into the store, under `name` (NULL: its own). Return the result, whose texts the
 * caller frees. */
struct adoption record_keeper_adopt(struct record_keeper *keeper, const char *uid, const char *name);
