/* SPDX-License-Identifier: MIT */
/* Suspend a request until the file system of its device is made, mounted or unmounted, or is not. Then its handler runs again from its
 * beginning. */
#pragma once

#include "api/http/request.h"

#include "ublkd/filesystems/filesystem_maker.h"

enum { FILESYSTEM_WORDS_SIZE = 256 };

/* What came of it; the request owns it. */
struct filesystem_result {
        enum filesystem_verdict verdict;
        int error;                         /* -errno; 0: none */
        struct filesystem filesystem;      /* as the record notes it */
        bool holder_is_new;                /* as the caller has given it */
        char words[FILESYSTEM_WORDS_SIZE]; /* of the program, one line of printable text; or "" */
};

/* Return the result; NULL: the handler returns without a reply, because it will run again, or there is a reply: it did
 * not begin. */
const struct filesystem_result *filesystem_check(struct request *request, const struct device_record *record,
        const struct filesystem_wish *wish, bool holder_is_new);
/* Return whether the request has a result. */
bool filesystem_is_settled(const struct request *request);
