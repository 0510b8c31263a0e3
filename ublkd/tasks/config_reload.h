/* SPDX-License-Identifier: MIT */
/* Reads the configuration and the policy again while ublkd runs. What can change takes effect at once; for the rest, and for what is
 * wrong with the files, the host has problems. The files are read in a thread: their file system may be on a disk of
 * ublkd, which waits for ublkd. Runs on the loop. */
#pragma once

#include "api/api.h"
#include "ublkd/config/config.h"
#include "ublkd/tasks/tenant_policy.h"

/* All pointers outlive the reload. */
struct config_reload_config {
        sd_event *event;
        const struct config_request *request;
        const struct config *started;       /* ublkd was started with it */
        const struct tenant_policy *policy; /* the same */
        struct host *host;                  /* the reload sets its problems of the configuration */
        /* From the loop: these count from now on. They are valid until the next call. */
        void (*apply)(void *userdata, const struct setting_values *values, const struct api_rights *rights);
        /* From the loop: this policy is in force from now on. It is valid until the next call. */
        void (*apply_policy)(void *userdata, const struct policy *policy);
        /* From the loop, after config_reload_begin(), once for all that were begun before. */
        void (*done)(void *userdata);
        void *userdata;
};

struct config_reload;

/* Create a reload; the host gets the problems of the configuration and of the policy that ublkd was started with, and
 * those of the policy are logged. Return 0 or -errno. */
int config_reload_new(const struct config_reload_config *config, struct config_reload **ret);
/* Free the reload; a file that is being read is not waited for. NULL is fine. Return NULL. */
struct config_reload *config_reload_free(struct config_reload *reload);

/* Read the subordinate uids of the host again, for the policy that is in force; no rule is read. Nothing happens if no rule
 * needs them. If they cannot be read, those from before stay, and that is logged; they stay also where there are none. */
void config_reload_subuids(struct config_reload *reload);
/* Read the configuration again. If that is under way, do it once more after it. */
void config_reload_begin(struct config_reload *reload);
