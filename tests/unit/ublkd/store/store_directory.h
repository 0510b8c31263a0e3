/* SPDX-License-Identifier: MIT */
/* A store in a directory of a test, and its database between two starts of ublkd. Each checks that it works. */
#pragma once

#include "ublkd/store/device_store.h"

/* Run a test in a new directory, which holds nothing but the database in the end. */
void in_a_new_directory(void (*test)(const char *directory));
/* Open the store in the directory. */
struct device_store *open_store(const char *directory);
/* Run statements of SQL on the database, of which no store is open. */
void execute(const char *directory, const char *text);
