/* SPDX-License-Identifier: MIT */
/* Statuses of the fake reconciler of the API tests. */
#pragma once

#include "ublkd/store/device_store.h"

/* Set a status of this phase, with a disk and a worker if the phase has them. 0, -ENOENT or -ENOMEM. */
int api_test_set_status(struct device_store *store, uint64_t restarts, const struct device_record *record,
        enum device_phase phase, enum condition_reason reason, const char *text);

/* Set the newest failed request of a device: the arguments of the command "failed" of api_test_server. 0 or -errno. */
int api_test_set_error(struct device_store *store, char *arguments);

/* Do what the reconciler does with the action of a device: "NAME run", "NAME succeed" or "NAME fail". 0 or -errno. */
int api_test_act(struct device_store *store, char *rest);
