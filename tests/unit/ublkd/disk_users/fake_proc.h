/* SPDX-License-Identifier: MIT */
/* A made-up /proc and /sys for the tests of disk_users: in a directory of its own, where a link below "fd" or
 * "map_files" that leads below /dev is a block node. */
#pragma once

#include "ublkd/disk_users/disk_users.h"

enum { FAKE_SUPERVISOR = 4711 /* whose control helpers are known; process 1 keeps its descriptors */ };

/* What is seen in the mount namespace mnt:[1], and in any other. */
extern const char *const fake_mounts[2];

/* What an exclusive open of a disk comes to: -errno, or 0: it succeeds. */
extern int fake_hold;

/* The time for processes that are large or hang, in microseconds; 0: as usual. Nodes are below "nodes". */
extern uint64_t fake_time;

/* How many links a search has asked about; a test sets it to 0. */
extern size_t fake_asked;

/* Makes the directory, with process 1 and programs/{program,udevadm,ublkd}. */
void fake_make(void);
void fake_remove(void);

/* The full path of what is called `path` below the directory. Valid until it was called four times more. */
const char *fake_path(const char *path);
void fake_parents(const char *path);
void fake_file(const char *path, const char *text);
void fake_link(const char *path, const char *target);
/* In the place of what is there. */
void fake_change_file(const char *path, const char *text);
void fake_change_link(const char *path, const char *target);
/* One of an ordinary user. */
void fake_process(const char *pid, const char *comm, const char *namespace);

/* disk_users_find(). gap_text: what could not be read. */
int fake_look(struct disk_users *disks, size_t count, char gap_text[static 192]);
/* The same, and all can be read. */
void fake_find(struct disk_users *disks, size_t count);
/* The disk has those users, ended by NULL, and no others. Asks about all other disks as well: each gets its
 * own users. */
void fake_check_users(int number, ...);

/* Frees the users that were found; the number stays. */
void disk_users_clear(struct disk_users *users);
