/* SPDX-License-Identifier: MIT */
/* Whether a request may read and change devices: by its token, by what its client may do, or by polkit. Private to
 * api/.
 *
 * polkit is asked for requests that change devices and nothing else, on Unix sockets only, and never for a client that
 * may change devices: so those of root need no bus. Its answer counts for one request, not for the connection. It is not
 * asked either for what tenants may send: the policy allows a tenant what it may have. */
#pragma once

#include "api/http/request.h"

/* Check the token of a request over TCP. Return false with a reply. A public path needs none; a wrong one is refused
 * nevertheless. */
bool permission_check_token(struct request *request);

/* Check that the client may read, or that polkit can allow the change. Return false with a reply: to a client that may
 * not read, every path looks alike, so it does not learn what exists. */
bool permission_check_reader(struct request *request);

/* Check that the client may change devices if the route does so, or note that polkit has to be asked. Return false with
 * a reply. */
bool permission_check_change(struct request *request);

/* Reply that the client may not do this, and whether polkit refused it or did not answer. */
void permission_refuse(struct request *request);
