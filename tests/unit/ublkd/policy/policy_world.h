/* SPDX-License-Identifier: MIT */
/* A directory with the files of a policy, and the users and groups of a host, for tests. */
#pragma once

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"
#include "ublkd/policy/policy_check.h"
#include "ublkd/policy/policy_load.h"

struct world {
        char root[64];
        char directory[128]; /* of the policy: exists once a file is written */
        char passwd[128], group[128], subuid[128];
        struct policy_accounts accounts;
        struct problem_list problems; /* of the last load */
        struct policy *policy;        /* the same; NULL: it is of no use */
};

/* Users alice (1000), bob (1001) and root; groups developers (2000) and staff (50); alice has the subordinate uids 100000 to
 * 165535, carol 200000 to 265535, and root 1000000 to 1001999. */
void world_open(struct world *world);
void world_close(struct world *world);

/* Write `name` in the directory of the policy. */
void world_write(struct world *world, const char *name, const char *text);
/* Load the policy again, and check the result. */
void world_load(struct world *world, int result);
/* Write one file, and load it. */
void world_use(struct world *world, const char *text, int result);
/* Write one file with one rule, {"name": "r", "who": {"users": [1000]}, ...}, and load it. rest: its further members. */
void world_use_rule(struct world *world, const char *rest, int result);

/* Check that the problem at `index` of the last load has this reason and pointer, and begins with FILE:LINE: of the file. */
void world_check_fault(
        struct world *world, size_t index, const char *pointer, const char *file, unsigned line);

/* Return a client of the host. */
struct policy_client client_of(uid_t uid, gid_t gid);
/* Check that the list has exactly one problem, with this reason and pointer, and empty the list. */
void check_one_problem(struct problem_list *problems, const char *reason, const char *pointer);
