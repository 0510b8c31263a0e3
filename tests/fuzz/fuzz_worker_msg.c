/* SPDX-License-Identifier: MIT */
/* Messages between the programs: what is understood can be sent again, and means the same. */
#include "tests/fuzz/fuzz.h"
#include "ublkd/proto/worker_msg.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ char *text = fuzz_text(data, size), *once = NULL, *twice = NULL;
        _cleanup_worker_msg_ struct worker_msg msg = {}, again = {};

        if (worker_msg_decode(text, size, &msg) < 0)
                return 0;
        if (worker_msg_encode(&msg, &once) < 0)
                return 0; /* longer than a message may be: it came without the spaces that JSON wants */
        FUZZ_CHECK(worker_msg_decode(once, strlen(once), &again) == 0);
        FUZZ_CHECK(again.type == msg.type);
        FUZZ_CHECK(worker_msg_encode(&again, &twice) == 0 && strcmp(once, twice) == 0);
        return 0;
}
