/* SPDX-License-Identifier: MIT */
/* A log of small records in memory that outlives the process (struct target_kept of targets/target.h).
 *
 * The memory is a row of slots of the same size, each empty or with one record. Nothing of the log lies anywhere else in
 * it: zeroes are an empty log, and memory of another seed, record size or place in it holds no record of this one.
 *
 * A process may be killed at any instruction. A record that record_log_append() was adding is then whole or absent, one
 * that record_log_erase() was erasing is whole or gone, and no other record is touched. A target that replaces a record
 * appends the new one before it erases the old one, and expects to find both.
 *
 * One thread at a time may use a log. Nothing here waits or makes a system call; only record_log_open() allocates. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

enum { RECORD_LOG_SIZE_MAX = 65535 }; /* bytes of a record */

struct record_log;

/* Return the bytes of memory that a log for `records` records of `record_size` bytes each takes. */
size_t record_log_memory(uint32_t records, uint32_t record_size);

/* Open the log that lies in `size` bytes of memory, which is aligned to 8 bytes and outlives the log. seed: of the memory.
 * record_size: the largest record, 1 to RECORD_LOG_SIZE_MAX bytes. What is neither empty nor a record is emptied, and
 * record_log_rejected() counts it. Return 0; -EINVAL: no record fits; -ENOMEM. */
int record_log_open(void *memory, size_t size, uint64_t seed, uint32_t record_size, struct record_log **ret);
/* Free the handle; the records stay. NULL is fine. Return NULL. */
struct record_log *record_log_free(struct record_log *log);
DEFINE_CLEANUP(struct record_log, record_log_free);

/* Add a record of 1 to record_size bytes. When this returns, the record is found by any process that opens the log.
 * Return its slot, which no other record has until it is erased; -ENOSPC: every slot has a record; -EINVAL: the length. */
int record_log_append(struct record_log *log, const void *record, uint32_t length);
/* Erase the record in the slot, which has one. */
void record_log_erase(struct record_log *log, unsigned slot);
/* Return the record in the slot, which has one; *ret_length: its bytes. Valid until it is erased. */
const void *record_log_get(const struct record_log *log, unsigned slot, uint32_t *ret_length);

/* Called for a record, which it may erase, as those before it; a negative return ends the replay. */
typedef int (*record_log_each)(void *userdata, unsigned slot, const void *record, uint32_t length);
/* Call `each` for every record, in the order in which they were appended. Return 0, or what `each` returned; -ENOMEM. */
int record_log_replay(struct record_log *log, record_log_each each, void *userdata);

/* Return how many records there are, and for how many there is memory. */
unsigned record_log_count(const struct record_log *log);
unsigned record_log_slots(const struct record_log *log);
/* Return how many slots held neither nothing nor a record when the log was opened: the death of a worker leaves none, so
 * this memory is not what workers of this target left, and the caller takes its slow path. */
unsigned record_log_rejected(const struct record_log *log);
