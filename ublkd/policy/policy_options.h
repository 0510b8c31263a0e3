/* SPDX-License-Identifier: MIT */
/* What a file of a policy says, as schemas/policy.schema.json has it: structs that dispatch() fills from the generated
 * tables. Field names are the schema's in snake case. No I/O. */
#pragma once

#include "ublkd/model/device_spec.h"

#include <cjson/cJSON.h>

struct policy_options {
        cJSON *pools; /* name → struct policy_pool_options; or NULL */
        cJSON *rules; /* list of struct policy_rule_options; or NULL */
};

struct policy_pool_options {
        char *directory;
};

struct policy_rule_options {
        char *name;
        struct {
                cJSON *users, *groups; /* names and numbers, or NULL */
                cJSON *subuids_of;     /* names, or NULL */
                cJSON *units;          /* of systemd: names, or NULL */
                cJSON *cgroups;        /* absolute paths, or NULL */
        } who;
        cJSON *targets, *pools; /* names, or NULL */
        cJSON *directories;     /* absolute paths, or NULL */
        bool mount;             /* whether the kernel of the host mounts file systems for the users */
        bool waiting;           /* whether I/O may wait until a person acts */
        int64_t devices;
        uint64_t size; /* bytes, of all devices together */
        char *name_prefix;
        int64_t queues, queue_depth;
        uint64_t max_io_size; /* bytes */
        int64_t busy_poll_us;
        char *cpus; /* "0-3,8"; NULL: none */
        int64_t changes_per_minute;
        struct {
                struct io_limits read, write; /* 0: no ceiling */
        } limits;
        struct {
                int64_t cpu_weight;  /* 0: no ceiling */
                uint64_t memory_max; /* bytes; 0: no ceiling */
                struct {
                        struct io_max read, write;
                } io_max;
                int64_t pids_max; /* 0: no ceiling */
        } resources;
        char *ids; /* "100-199"; NULL: none */
};

extern const struct option_table policy_options_table, policy_pool_options_table, policy_rule_options_table;
