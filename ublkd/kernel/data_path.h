/* SPDX-License-Identifier: MIT */
/* How the bytes of a request get between the kernel and a worker: what both programs call it. */
#pragma once

#include <stdbool.h>

/* The order is that of the schema (schemas/device.schema.json); a test compares them. */
enum data_path {
        DATA_PATH_AUTO,      /* only as a wish */
        DATA_PATH_COPY,      /* the driver copies them into and out of the worker's memory */
        DATA_PATH_USER_COPY, /* the worker asks for that copy when it needs it: UBLK_F_USER_COPY */
        DATA_PATH_ZERO_COPY, /* they stay where they are, and the worker's ring works on them there */
        _DATA_PATH_MAX
};

/* What a disk was made with: it never changes, whichever worker serves it. */
struct data_route {
        enum data_path path; /* not DATA_PATH_AUTO */
        bool auto_buffers;   /* zero copy: the driver registers a request's pages by itself (AUTO_BUF_REG) */
        bool batch;          /* requests come and are answered many at a time (BATCH_IO) */
};

/* Return the name in a spec: "zero-copy". */
const char *data_path_to_string(enum data_path path);
