/* SPDX-License-Identifier: MIT */
/* Values of the options of api_test_server. */
#pragma once

#include "api/http/config.h"

/* Parse IDLE,HEAD,BODY,REPLY[,TOKEN], in milliseconds. */
void api_test_parse_times(const char *text, struct api_times *ret);
/* Return the group with the number in `text`, under that name; with 0 it does not exist. */
struct api_group api_test_group(const char *text, const char *name);
/* Parse "everyone" or the number of a group. */
void api_test_parse_readers(const char *text, struct api_rights *ret);
