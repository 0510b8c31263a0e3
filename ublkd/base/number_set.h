/* SPDX-License-Identifier: MIT */
/* A set of numbers from 0 to NUMBER_SET_MAX that knows the lowest one that is missing.
 *
 * A bit for each number, and above that a bit for each word that is full, in three levels: every operation
 * looks at a few words, however many numbers there are. A set is large (130 KiB); memory from calloc() that
 * no number has touched costs nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        NUMBER_SET_BITS = 20,
        NUMBER_SET_MAX = (1 << NUMBER_SET_BITS) - 1,
        NUMBER_SET_WORDS = 1 << (NUMBER_SET_BITS - 6),
};

/* Zero-initialise: empty. */
struct number_set {
        uint64_t numbers[NUMBER_SET_WORDS];
        uint64_t full_words[NUMBER_SET_WORDS >> 6];   /* of numbers */
        uint64_t full_blocks[NUMBER_SET_WORDS >> 12]; /* of full_words */
};

/* Add or remove `number`. Numbers that are out of range are ignored. */
void number_set_add(struct number_set *set, int64_t number);
void number_set_remove(struct number_set *set, int64_t number);
bool number_set_has(const struct number_set *set, int64_t number);
/* Return the lowest number from `from` (0 or more) on that is not in the set; -1: there is none. */
int number_set_first_missing(const struct number_set *set, int64_t from);
