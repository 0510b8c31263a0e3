/* SPDX-License-Identifier: MIT */
/* The API, and what it asks of the other modules. */
#pragma once

#include "ublkd/model/backing_reach.h"
#include "ublkd/model/reason.h"

#include <stdbool.h>

struct manager;
struct manager_options;
struct problem_list;
struct device_record;
struct device_spec;
struct spec_preflight;

/* Open the API at the addresses of the options, at the sockets that were passed to ublkd, or else at the socket in the
 * runtime directory. All that it asks exists, except for the reconciler, which comes later. Return 0 or -errno; then
 * `problems` has the addresses that cannot be listened on. */
int manager_open_api(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems);

/* For the API and for devices from files, as api_config has them; userdata: the manager. */
enum backing_reach manager_read_reach(
        void *userdata, const struct device_record *record, const struct device_spec *next);
int manager_try_spec(void *userdata, const struct device_record *record, const struct device_spec *spec,
        void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
        void *then_userdata, struct spec_preflight **ret);
