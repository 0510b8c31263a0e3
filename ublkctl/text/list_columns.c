/* SPDX-License-Identifier: MIT */
/* The names of the columns of 'ublkctl list'. */
#include "ublkctl/text/list_columns.h"

#include "ublkd/base/cleanup.h"

#include <assert.h>

const char *const list_column_names[] = {
        [LIST_NAME] = "NAME",
        [LIST_PHASE] = "PHASE",
        [LIST_DEVICE] = "DEVICE",
        [LIST_SIZE] = "SIZE",
        [LIST_TARGET] = "TARGET",
        [LIST_BACKING] = "BACKING",
        [LIST_AGE] = "AGE",
        [LIST_DATAPATH] = "DATAPATH",
        [LIST_WORKER] = "WORKER",
        [LIST_REPLACED] = "REPLACED",
        [LIST_RECOVERIES] = "RECOVERIES",
        [LIST_LABELS] = "LABELS",
        [LIST_SOURCE] = "SOURCE",
        [LIST_REASON] = "REASON",
        [LIST_UID] = "UID",
        [LIST_GENERATION] = "GENERATION",
        NULL,
};
static_assert(ARRAY_SIZE(list_column_names) == _LIST_COLUMN_MAX + 1, "every column has a name");
