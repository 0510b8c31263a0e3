/* SPDX-License-Identifier: MIT */
/* One device with a disk, which is a file, and the maker of its file system: the real process and the real programs. */
#pragma once

#include "ublkd/filesystems/filesystem_job.h"
#include "ublkd/filesystems/filesystem_maker.h"

#include <sys/types.h>

enum { NUMBER = 7, DEADLINE_USEC = 60 * 1000 * 1000 };

#define DISK_SIZE ((off_t)400 << 20) /* xfs wants 300 MiB */

extern char dev[], disk[64], mounts[64];
extern sd_event *event;
extern struct device_store *store;
extern struct filesystem_maker *maker;

struct outcome {
        bool answered;
        enum filesystem_verdict verdict;
        int error;
        struct filesystem filesystem;
        char text[FILESYSTEM_TEXT_SIZE];
};

/* Return false: the host lacks root, Landlock, or the programs of ext4 and xfs. */
bool world_opens(void);
void world_close(void);
/* A store with the device `data`, which is Live, and a maker. */
void set_up(const struct filesystem_limits *limits);
void tear_down(void);

const struct device_record *record(void);
struct filesystem noted(void);
void note(enum filesystem_stage stage, enum filesystem_kind kind, const char *uuid);
/* number: of the disk; -1: there is none. */
void set_live(int number);
/* Make the disk, or make it blank. */
void make_disk(void);
/* Write data of a client. */
void put_byte(off_t at);
int sight(enum filesystem_kind kind, const char *uuid);

/* userdata: a struct outcome. */
void on_answer(void *userdata, const struct filesystem_answer *answer);
/* Return as filesystem_request(). */
int begin_wish(struct filesystem_wish wish, struct outcome *outcome);
int begin(enum filesystem_kind kind, struct outcome *outcome);
void wait_for(const struct outcome *outcome);
struct outcome make(enum filesystem_kind kind);
