/* SPDX-License-Identifier: MIT */
/* The search for the users of a disk, with the real process and what it is to find. On the loop. */
#pragma once

#include "ublkd/disk_users/disk_search.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Begin to take searches. patience: microseconds. Return 0 or -errno. */
int api_test_search_new(sd_event *event, uint64_t patience, struct disk_search **ret);

/* What searches find that begin from now on: `text` uses the disk with that number. number: -1: nothing is found. */
void api_test_search_finds(int number, const char *text);
/* As well: a "process 1" of that user uses it. DISK_USER_UNKNOWN: none does. */
void api_test_search_finds_of(uid_t user);
/* Whether they stop at their start (SIGSTOP). */
void api_test_search_stops(bool stop);
/* Return how many have begun. */
int api_test_searches(void);
