/* SPDX-License-Identifier: MIT */
/* The rules of a fault target, and what they decide about a request. Pure: the same seed and the same requests give the
 * same faults. What a rule has counted is the caller's, so that it can outlive a worker. */
#pragma once

#include "targets/target.h"

enum { FAULT_RULES_MAX = 16 };

enum fault_action {
        FAULT_ERROR,    /* the request fails and reaches nothing; `value`: the errno */
        FAULT_DELAY,    /* it waits; `value`: microseconds. The rules after this one are looked at, too */
        FAULT_SHORT,    /* only its first bytes are moved; `value`: how many */
        FAULT_HANG,     /* it waits until the rules change */
        FAULT_DIE,      /* the worker dies; `value`: enum fault_moment */
        FAULT_CORRUPT,  /* one bit of its data is inverted */
        FAULT_POWERCUT, /* the volatile cache loses a part, and the worker dies */
        _FAULT_ACTION_MAX
};

/* In microseconds, of each rule. */
#define FAULT_DELAY_MAX (UINT64_C(3600) * 1000000)

enum fault_moment {
        FAULT_BEFORE,    /* nothing of the request has reached the target below */
        FAULT_DURING,    /* its first operation is with the kernel */
        FAULT_AFTER,     /* it is done, and not answered */
        FAULT_SUSPENDED, /* below the target it waits for the n-th time: `await` */
        FAULT_RESUMED,   /* what it has waited for the n-th time is done, and it is about to continue */
        _FAULT_MOMENT_MAX
};

/* Without holes: rules are compared byte by byte. */
struct fault_rule {
        uint32_t action;      /* enum fault_action */
        uint32_t operations;  /* bit N: enum io_op N */
        uint32_t nth;         /* of the requests that match: each n-th; at least 1 */
        uint32_t per_million; /* of these, at random; 1000000: each */
        uint32_t times;       /* how often at most; 0: without end */
        uint32_t await;       /* of FAULT_DIE at SUSPENDED or RESUMED: n, at least 1; else 0 */
        uint64_t from, to;    /* bytes of the disk; `to` 0: up to its end */
        uint64_t value;       /* as the action says */
};

struct fault_rules {
        uint32_t version; /* FAULT_RULES_VERSION */
        uint32_t count;
        uint64_t seed; /* 0: the target chooses one */
        struct fault_rule rules[FAULT_RULES_MAX];
};

enum { FAULT_RULES_VERSION = 1 };

/* What a rule has counted. Zeroes at first. */
struct fault_tally {
        uint64_t rule;    /* which one: fault_tallies_begin() */
        uint64_t matched; /* requests of its operations and its range */
        uint64_t fired;   /* those that it has done something to */
};

/* What to do to a request. */
struct fault_decision {
        const struct fault_rule *rule; /* that ends it; NULL: none does */
        uint64_t delay;                /* microseconds, of all rules that delay it */
        uint64_t random;               /* a number of this request, for what the action chooses */
};

/* Return whether the rules are such as fault_parse() makes: for the worker, which finds them in memory that it does not
 * write alone. Others could divide by zero, or answer a request with 0. */
bool fault_rules_are_valid(const struct fault_rules *rules);
/* Return whether a rule kills at one of the awaits of a request. */
bool fault_rule_counts_awaits(const struct fault_rule *rule);
/* Return the name of a rule, by which its tally knows it; never 0. */
uint64_t fault_rule_name(const struct fault_rule *rule);
/* Prepare the tallies for rules, of which each has its own, in their order: one that was counted for another rule begins with
 * zeroes. */
void fault_tallies_begin(const struct fault_rules *rules, struct fault_tally tallies[static FAULT_RULES_MAX]);
/* Decide about a request, and count it. */
void fault_decide(const struct fault_rules *rules, uint64_t seed,
        struct fault_tally tallies[static FAULT_RULES_MAX], const struct target_io *io,
        struct fault_decision *ret);
/* Return a number that follows from both. */
uint64_t fault_random(uint64_t seed, uint64_t number);
