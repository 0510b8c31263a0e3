/* SPDX-License-Identifier: MIT */
/* What the workers of a device report: reasons and notices. */
#include "ublkd/reconcile/parts/device_words.h"

#include "ublkd/plan/worker_messages.h"

enum condition_reason device_words_reason(struct device_words *words, const char *name)
{
        return reason_from_worker(name, &words->reasons);
}

bool device_words_takes_notice(struct device_words *words, uint64_t now)
{
        return worker_messages_takes_notice(&words->notices, now);
}
