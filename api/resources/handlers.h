/* SPDX-License-Identifier: MIT */
/* The handlers of the route table, by operationId. Each sets a reply or suspends the request: see request.h.
 * Called from the loop. */
#pragma once

#include "api/http/request.h"

void handle_device_create(struct request *request);
void handle_device_get(struct request *request);
void handle_device_put(struct request *request);
void handle_device_patch(struct request *request);
void handle_device_delete(struct request *request);
void handle_device_recover(struct request *request);
void handle_device_restart(struct request *request);
void handle_device_start(struct request *request);
void handle_device_stop(struct request *request);
void handle_device_deliver(struct request *request);
void handle_device_filesystem(struct request *request);
void handle_device_mount(struct request *request);
void handle_device_unmount(struct request *request);
void handle_device_stats(struct request *request);
void handle_action_list(struct request *request);
void handle_action_start(struct request *request);
void handle_action_get(struct request *request);
void handle_action_cancel(struct request *request);
void handle_device_adopt(struct request *request);
void handle_device_list(struct request *request);
void handle_events(struct request *request);
void handle_host(struct request *request);
void handle_targets(struct request *request);
void handle_openapi(struct request *request);
void handle_schema(struct request *request);
void handle_schema_list(struct request *request);
void handle_health(struct request *request);
void handle_ready(struct request *request);
