/* SPDX-License-Identifier: MIT */
/* --help, of the program and of one verb. */
#pragma once

#include "ublkctl/verbs.h"

#include <stdio.h>

/* Print the help of the program. */
void help_program(FILE *file);
/* Print the help of one verb, with its options. */
void help_verb(const struct verb *verb, FILE *file);
/* Print "NAME [OPTION]... ARGUMENTS". */
void help_synopsis(const struct verb *verb, FILE *file);
