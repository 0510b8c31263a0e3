/* SPDX-License-Identifier: MIT */
/* The process that delivers a node: ublkd, executed again with NODE_DELIVERY_OPTION, so that it has none of the memory of
 * the supervisor when it enters a container. */
#pragma once

/* Receive the order, carry it out, send the report (delivery_wire.h). Return the exit status. */
int delivery_process_main(void);
