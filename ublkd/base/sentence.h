/* SPDX-License-Identifier: MIT */
/* Texts that are meant for people. No decision may read what one says: that is what enum condition_reason,
 * errno values and fields are for. All that may be asked is whether two of them are the same. */
#pragma once

#include <stdbool.h>

/* Return whether both are the same; NULL equals NULL alone. */
bool sentence_equal(const char *one, const char *other);

/* Return what the sentence lacks if another one follows: "." or "". */
const char *full_stop(const char *sentence);
