/* SPDX-License-Identifier: MIT */
/* The command line of ublkd. */
#pragma once

#include "ublkd/config/config.h"

/* What one of ublkd's own processes runs instead of the supervisor. */
struct command_role {
        const char *option; /* after "--"; ublkd alone gives it */
        int (*run)(void);   /* returns the exit status */
};

enum command_mode {
        COMMAND_RUN,
        COMMAND_ROLE,  /* command_line.role */
        COMMAND_CHECK, /* --check-config */
        COMMAND_DONE,  /* --help or --version: it was printed */
};

enum { COMMAND_ROLES_MAX = 8 };

struct command_line {
        enum command_mode mode;
        const struct command_role *role;
        struct config_request request; /* its texts belong to argv */
        struct config_option *options; /* owned: those of the request */
};

/* Parse argv. roles: `count` of them, COMMAND_ROLES_MAX at most; they outlive `ret`. Return 0; -EINVAL: the problem was
 * printed on stderr; -ENOMEM. Clear `ret` in any case. */
int command_line_parse(
        int argc, char *argv[], const struct command_role *roles, size_t count, struct command_line *ret);
void command_line_clear(struct command_line *line);
