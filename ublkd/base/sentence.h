/* SPDX-License-Identifier: MIT */
/* Texts that are meant for people. No decision may read what one says: that is what enum condition_reason,
 * errno values and fields are for. All that may be asked is whether two of them are the same. */
#pragma once

#include "ublkd/base/cleanup.h"

#include <stdbool.h>

/* Return whether both are the same; NULL equals NULL alone. */
bool sentence_equal(const char *one, const char *other);

/* Return the text, which the caller frees; NULL on ENOMEM. */
char *sentence_print(const char *format, ...) _printf_(1, 2);

/* Return what the sentence lacks if another one follows: "." or "". */
const char *full_stop(const char *sentence);
