/* SPDX-License-Identifier: MIT */
/* A set of numbers, as bits in three levels. */
#include "ublkd/base/number_set.h"

enum { WORD_BITS = 64, BLOCKS = NUMBER_SET_WORDS / WORD_BITS };

static bool is_in_range(int64_t number)
{
        return number >= 0 && number <= NUMBER_SET_MAX;
}

static uint64_t bit_of(size_t position)
{
        return UINT64_C(1) << position % WORD_BITS;
}

/* Find the first bit that is 0 from `from` on, in the word that `from` is in. */
static bool find_zero(const uint64_t *words, size_t from, size_t *ret)
{
        uint64_t zeros = ~words[from / WORD_BITS] & UINT64_MAX << from % WORD_BITS;

        if (zeros)
                *ret = from / WORD_BITS * WORD_BITS + (size_t)__builtin_ctzll(zeros);
        return zeros;
}

void number_set_add(struct number_set *set, int64_t number)
{
        size_t word, block;

        if (!is_in_range(number))
                return;
        word = (size_t)number / WORD_BITS;
        block = word / WORD_BITS;
        set->numbers[word] |= bit_of((size_t)number);
        if (set->numbers[word] == UINT64_MAX)
                set->full_words[block] |= bit_of(word);
        if (set->full_words[block] == UINT64_MAX)
                set->full_blocks[block / WORD_BITS] |= bit_of(block);
}

void number_set_remove(struct number_set *set, int64_t number)
{
        size_t word, block;

        if (!is_in_range(number))
                return;
        word = (size_t)number / WORD_BITS;
        block = word / WORD_BITS;
        set->numbers[word] &= ~bit_of((size_t)number);
        set->full_words[block] &= ~bit_of(word);
        set->full_blocks[block / WORD_BITS] &= ~bit_of(block);
}

bool number_set_has(const struct number_set *set, int64_t number)
{
        return is_in_range(number) && (set->numbers[number / WORD_BITS] & bit_of((size_t)number));
}

/* The first block from `from` on that is not full. */
static bool find_block(const struct number_set *set, size_t from, size_t *ret)
{
        for (; from < BLOCKS; from = (from / WORD_BITS + 1) * WORD_BITS)
                if (find_zero(set->full_blocks, from, ret))
                        return true;
        return false;
}

/* The first word from `from` on that is not full. */
static bool find_word(const struct number_set *set, size_t from, size_t *ret)
{
        size_t block;

        if (from >= NUMBER_SET_WORDS)
                return false;
        if (find_zero(set->full_words, from, ret))
                return true;
        return find_block(set, from / WORD_BITS + 1, &block)
               && find_zero(set->full_words, block * WORD_BITS, ret);
}

int number_set_first_missing(const struct number_set *set, int64_t from)
{
        size_t word, number;

        if (!is_in_range(from))
                return -1;
        if (find_zero(set->numbers, (size_t)from, &number))
                return (int)number;
        if (!find_word(set, (size_t)from / WORD_BITS + 1, &word)
                || !find_zero(set->numbers, word * WORD_BITS, &number))
                return -1;
        return (int)number;
}
