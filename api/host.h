/* GET /host: what this machine can do, and what is wrong with it. */
#pragma once

#include "api/request.h"

/* Sets the reply. */
void reply_host(struct request *request);
