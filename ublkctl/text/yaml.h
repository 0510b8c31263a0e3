/* SPDX-License-Identifier: MIT */
/* Print JSON as YAML 1.2, so that a reader of YAML 1.1 gets the same values. */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>

/* Print a value in block style. A string that a reader could take for another type, or that has other characters
 * than those of names and paths, is in double quotes. */
void yaml_print(FILE *file, const cJSON *value);
