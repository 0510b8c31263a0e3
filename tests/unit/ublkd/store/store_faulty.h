/* SPDX-License-Identifier: MIT */
/* A backend of the store in front of a real one, whose writes fail when a test says so. */
#pragma once

#include "ublkd/store/device_store.h"

/* The test's own; to be passed to device_store_new() with store_faulty_backend. `real` and `real_context` are
 * filled by whichever store_*_open(), and closed with the store. */
struct store_faulty {
        const struct device_backend *real;
        void *real_context;
        int write_error; /* -errno of every write; 0: the real one's answer */
        int erase_error; /* the same, of erasing alone */
        int check_error; /* of the look whether the database is there; 0: the real one's answer */
        unsigned checks; /* how often it was looked whether the database is there */
};

extern const struct device_backend store_faulty_backend;
