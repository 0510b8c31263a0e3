/* SPDX-License-Identifier: MIT */
/* What a verb gets to work with. */
#pragma once

#include "ublkctl/text/exit_status.h"
#include "ublkctl/client/settings.h"

struct client;

struct context {
        const struct settings *settings;
        struct client *client;
        bool colours;  /* on standard output */
        bool progress; /* standard error is a terminal: show what is waited for */
};
