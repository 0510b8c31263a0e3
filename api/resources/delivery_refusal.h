/* SPDX-License-Identifier: MIT */
/* The answer to a delivery that has failed: what hinders it, and what the client can do. */
#pragma once

#include "ublkd/nodes/delivery_wire.h"

struct request;

void reply_delivery_refused(struct request *request, const struct delivery_report *report);
