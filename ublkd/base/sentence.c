/* SPDX-License-Identifier: MIT */
/* Texts that are meant for people. */
#include "ublkd/base/sentence.h"

#include <string.h>

bool sentence_equal(const char *one, const char *other)
{
        return one && other ? strcmp(one, other) == 0 : one == other;
}

const char *full_stop(const char *sentence)
{
        size_t length = strlen(sentence);

        return length > 0 && sentence[length - 1] == '.' ? "" : ".";
}
