/* SPDX-License-Identifier: MIT */
/* What the verbs work with. main() owns all of it. */
#pragma once

#include "ublkctl/text/exit_status.h"
#include "ublkctl/client/settings.h"

struct client;

struct context {
        const struct settings *settings;
        struct client *client;
        bool colours;  /* on standard output */
        bool terminal; /* standard output is a terminal: times are local */
        bool progress; /* standard error is a terminal: show progress */
};
