/* SPDX-License-Identifier: MIT */
/* Landlock: no path, no network, no signal to others. */
#pragma once

#include <stdbool.h>

/* For this thread and all that it makes from then on, for good: nothing can be opened, changed, bound or
 * connected that this version knows of, and signals and abstract sockets stay within the process. What is open
 * stays open. Needs no_new_privs. connects: it may connect by TCP. 0, also where there is no Landlock; -errno, also
 * where that is unknown. */
int landlock_close(bool connects);
