/* SPDX-License-Identifier: MIT */
/* Suspend a request until polkit has answered whether it may change devices (api/http/permission.h). */
#pragma once

#include "api/http/request.h"

/* For api->ask_permission. */
void authority_check_begin(struct request *request);

/* polkit is not asked any more: refuse the requests that wait for it. */
void authority_check_end_all(struct api *api);
