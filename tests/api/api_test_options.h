/* SPDX-License-Identifier: MIT */
/* The options of api_test_server. */
#pragma once

#include "api/http/config.h"

enum { API_TEST_LISTEN_MAX = 8 };

/* What is not in the configuration of the API. */
struct api_test_options {
        const char *listen[API_TEST_LISTEN_MAX];
        const char *policy_dir; /* NULL: no policy */
        uint64_t patience;      /* of the search for users, microseconds; 0: the usual */
        bool sqlite;
};

/* Parse the options that api_test_server.c lists. Return false if one is wrong. */
bool api_test_parse(int argc, char *argv[], struct api_config *config, struct api_test_options *ret);
/* Read the policy in `directory` into the rights, which own it from then on. Return 0 or -errno. */
int api_test_load_policy(const char *directory, struct api_rights *rights);
