/* SPDX-License-Identifier: MIT */
/* Reports a worker of another version than ublkd would start now. Neither version is called the older one: after a
 * downgrade it is the newer one. */
#include "ublkd/reconcile/view/program_condition.h"

#include "ublkd/store/restart_harm.h"

#include <string.h>

int program_condition(const struct device_record *record, const char *worker, const char *program,
        uint64_t features, struct device_condition *ret)
{
        const char *harm;

        if (!*worker || !*program || strcmp(worker, program) == 0 || !record->spec || record->deleting)
                return 0;
        harm = restart_harm(record, features);
        if (harm)
                return device_condition_set(ret, CONDITION_TRUE, REASON_OTHER_VERSION,
                        "The worker has version %s, and ublkd starts version %s now. %s, so ublkd does not "
                        "replace it; run "
                        "'ublkctl restart %s' when the disk is not in use.",
                        worker, program, harm, record->name);
        return device_condition_set(ret, CONDITION_TRUE, REASON_OTHER_VERSION,
                "The worker has version %s, and ublkd starts version %s now. 'ublkctl restart %s' replaces "
                "the worker "
                "without an I/O error.",
                worker, program, record->name);
}
