/* SPDX-License-Identifier: MIT */
/* Fakes of what the API asks the supervisor for: preflights of specs, on the default event loop; the reach of
 * stores; counters; the delivery of nodes. */
#pragma once

#include "ublkd/model/backing_reach.h"
#include "ublkd/model/daemon_counters.h"
#include "ublkd/nodes/delivery_wire.h"
#include "ublkd/store/device_store.h"

struct node_delivery;
struct spec_preflight;

/* Make preflights fail with this refusal from now on; "": let them succeed. */
void api_test_refuse(const char *refusal);
/* Return how many preflights have begun. */
int api_test_preflights(void);

/* Set the reach of every store. A path that leads elsewhere counts while the spec leaves it as it is. */
void api_test_reach(enum backing_reach reach);

/* Callbacks for api_config. */
enum backing_reach api_test_read_reach(
        void *userdata, const struct device_record *record, const struct device_spec *next);
void api_test_counters(void *userdata, struct daemon_counters *ret);
int api_test_try(void *userdata, const struct device_record *record, const struct device_spec *spec,
        void (*then)(void *userdata, bool tried, enum condition_reason reason, const char *refusal),
        void *then_userdata, struct spec_preflight **ret);
struct spec_preflight *api_test_end_preflight(struct spec_preflight *preflight);
/* Deliver nothing: the path "/begin/ERRNO" does not begin, "/end/OUTCOME/ERRNO" ends like that, "/never" does not end, and
 * any other path is done. The process with the greatest number that may be asked for is not there. */
int api_test_deliver(void *userdata, int client, const struct device_record *record,
        const struct delivery_wish *wish, void (*then)(void *userdata, const struct delivery_report *report),
        void *then_userdata, struct node_delivery **ret);
void api_test_cancel_delivery(struct node_delivery *delivery);
