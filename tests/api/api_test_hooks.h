/* SPDX-License-Identifier: MIT */
/* What the API asks the supervisor for, pretended: trials of specs, on the default event loop;
 * where stores are; counters. */
#pragma once

#include "ublkd/model/backing_reach.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/store/device_store.h"

struct spec_trial;

/* From now on they fail for that; "": they do not. */
void api_test_refuse(const char *refusal);
/* How many were begun. */
int api_test_trials(void);

/* That of every store from now on. */
void api_test_reach(enum backing_reach reach);

/* As api_config has them. */
enum backing_reach api_test_read_reach(void *userdata, const struct device_record *record);
void api_test_counters(void *userdata, struct daemon_counters *ret);
int api_test_try(void *userdata, const struct device_record *record, const struct device_spec *spec,
        void (*then)(void *userdata, bool tried, const char *refusal), void *then_userdata,
        struct spec_trial **ret);
struct spec_trial *api_test_end_trial(struct spec_trial *trial);
