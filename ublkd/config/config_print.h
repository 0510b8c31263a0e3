/* SPDX-License-Identifier: MIT */
/* What `ublkd --check-config` prints. */
#pragma once

#include "ublkd/config/config.h"

/* Print the values as a file of ublkd.conf(5), with a comment above each that says where it was set. */
void config_print_values(const struct config *config, FILE *file);
/* Print each problem on a line. */
void config_print_problems(const struct config *config, FILE *file);
