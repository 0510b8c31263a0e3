/* SPDX-License-Identifier: MIT */
/* The names of the columns of 'ublkctl list', for --columns, --sort and their completion. */
#pragma once

enum list_column {
        LIST_NAME,
        LIST_PHASE,
        LIST_DEVICE,
        LIST_SIZE,
        LIST_TARGET,
        LIST_BACKING,
        LIST_AGE,
        LIST_DATAPATH,
        LIST_WORKER,
        LIST_REPLACED,
        LIST_RECOVERIES,
        LIST_LABELS,
        LIST_SOURCE,
        LIST_REASON,
        LIST_UID,
        LIST_GENERATION,
        _LIST_COLUMN_MAX
};

/* In the order of the enum; ends with NULL. */
extern const char *const list_column_names[];
