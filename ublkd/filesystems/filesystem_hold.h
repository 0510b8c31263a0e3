/* SPDX-License-Identifier: MIT */
/* Keeps the number of a disk whose file system is unmounted: the kernel gives a number to another disk as soon as nothing has the
 * disk open. What is found by that number afterwards could belong to another user. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct filesystem_hold {
        dev_t disk;         /* 0: it is not known */
        int error;          /* of reading its number: -errno; -ENOENT: there is no such disk; 0: none */
        int fd;             /* keeps its number; -1: nothing does, and ... */
        const char *number; /* ... the file with it is compared instead, and ... */
        uint64_t sequence;  /* ... the sequence number of the disk (diskseq); 0: it has none */
        bool is_late;       /* the node was opened too late: it is not tried again */
        bool claims;        /* fd is a copy of the mount, which claims the disk as every other one */
};

/* Open the node of a disk: the data of the disk are not read. An open that waits for a worker is given up. number: the path of
 * the file with its number (/sys/block/DISK/dev), which outlives the hold. Either may be "", and the disk may have gone: then nothing is
 * kept. The caller ends it. */
struct filesystem_hold filesystem_hold_begin(const char *node, const char *number);
/* Keep the number of the disk whose file system is mounted at `point`, a descriptor that keeps that mount meanwhile: by its
 * node, or by a copy of the mount that is nowhere. Such a copy claims the disk. Return 0, or -errno and an unchanged hold. */
int filesystem_hold_mounted(struct filesystem_hold *hold, int point, dev_t disk);
/* Return 1: the number is still that of the disk; 0: there is no disk; -ESTALE: another disk is there, or the disk has another
 * number; other -errno: it is not known. */
int filesystem_hold_check(const struct filesystem_hold *hold);
/* Return whether this -errno of a read of the number says that there is no such disk: the file is not there, or was
 * removed while it was open. */
bool filesystem_hold_is_gone(int error);
/* A copy of a mount that was kept ends here: the kernel may write for that. */
void filesystem_hold_end(struct filesystem_hold *hold);
