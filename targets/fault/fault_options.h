/* SPDX-License-Identifier: MIT */
/* The options of the fault target, as its generated tables fill them. */
#pragma once

#include "targets/scrub/scrub_desc.h"
#include "ublkd/values/dispatch.h"

struct fault_options {
        int64_t seed; /* 0: the target chooses one */
        bool volatile_cache;
        cJSON *rules; /* list of struct fault_rule_options; or NULL */
};

/* In the order of the schema. */
enum fault_op_name { FAULT_OP_ANY, FAULT_OP_FIRST }; /* from there on: enum io_op */

struct fault_rule_options {
        int action; /* enum fault_action */
        int op;     /* enum fault_op_name */
        uint64_t from, to;
        int64_t nth, per_million, times;
        int error;      /* an index of fault_errors[] in fault_parse.c */
        uint64_t delay; /* microseconds */
        uint64_t bytes;
        int moment; /* enum fault_moment */
        int64_t await;
};

enum fault_verb { FAULT_VERB_POWERCUT, FAULT_VERB_SCRUB };

/* Of the action "powercut". */
struct fault_powercut_arguments {
        int64_t seed; /* 0: that of the target decides */
};

extern const struct option_table fault_options_table, fault_rule_options_table;
extern const struct option_table fault_powercut_arguments_table, fault_scrub_arguments_table;
