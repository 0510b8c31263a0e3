/* SPDX-License-Identifier: MIT */
/* The options of the loop target, as the generated table fills them (schemas/targets/loop.schema.json). */
#pragma once

#include "targets/scrub/scrub_desc.h"
#include "ublkd/values/dispatch.h"

/* In the order of the schema. */
enum direct_io { DIRECT_IO_AUTO, DIRECT_IO_ON, DIRECT_IO_OFF, _DIRECT_IO_MAX };

struct loop_options {
        char *path;      /* absolute; NULL: not chosen yet, so there is a pool */
        char *pool;      /* where ublkd makes the file; NULL: it is the client's */
        bool keep;       /* the file stays when the device is removed */
        uint64_t offset; /* bytes, where in the file or disk the device begins */
        int direct_io;   /* enum direct_io */
};

extern const struct option_table loop_options_table, loop_scrub_arguments_table;
