/* SPDX-License-Identifier: MIT */
/* Each target of this build has what its description promises, and one that has not is found. */
#include "targets/known/known_targets.h"
#include "targets/worker/disk/registry.h"
#include "targets/worker/disk/target_check.h"
#include "tests/unit/check.h"

static void test_each_target_is_complete(void)
{
        size_t count = 0;
        const struct target_desc *const *all = known_targets_all(&count);

        for (size_t i = 0; i < count; i++) {
                const struct target *target = target_find(all[i]->name);
                const char *lack = target ? target_check(target) : "It is not in registry.c.";

                if (lack)
                        fprintf(stderr, "The target \"%s\": %s\n", all[i]->name, lack);
                CHECK(!lack);
                if (target)
                        CHECK(target->desc == all[i]);
        }
}

/* One of this build, without something. */
static struct target_verb verb;
static struct target_desc desc;
static struct target target;

static void take(const char *name)
{
        target = *target_find(name);
        desc = *target.desc;
        verb = desc.verb_count > 0 ? desc.verbs[0] : (struct target_verb){};
        target.desc = &desc;
        desc.verbs = &verb;
        desc.verb_count = desc.verb_count > 0;
}

static void check_fault(const char *name, int line, const char *what)
{
        bool found = target_check(&target) != NULL;

        if (!found)
                fprintf(stderr, "line %d: %s after \"%s\" passes\n", line, name, what);
        CHECK(found);
}

/* The target with that name, and with that change of `target`, `desc` or `verb`, must be found to be incomplete. */
#define FAULT(NAME, CHANGE)                                                                                  \
        do {                                                                                                 \
                take(NAME);                                                                                  \
                CHECK(!target_check(&target));                                                               \
                CHANGE;                                                                                      \
                check_fault(NAME, __LINE__, #CHANGE);                                                        \
        } while (0)

static void test_what_is_missing_is_found(void)
{
        FAULT("null", target.open = NULL);
        FAULT("null", target.read = NULL);
        FAULT("linear", target.size = NULL);
        FAULT("stripe", target.size = NULL);
        FAULT("fault", target.size = NULL);
        FAULT("linear", target.flush = NULL);
        FAULT("stripe", target.flush = NULL);
        FAULT("linear", target.is_part = NULL);
        FAULT("stripe", desc.flags |= TARGET_IS_PART); /* it has no "child" */
        FAULT("loop", target.scan = NULL);
        FAULT("null", desc.flags |= TARGET_SCANS);
        FAULT("linear", target.act = NULL);
        FAULT("loop", desc.verbs = NULL);
        FAULT("loop", desc.flags &= ~(unsigned)TARGET_SCANS); /* which its verb needs */
        FAULT("null", desc.waits.background = 1);
        FAULT("null", desc.waits.device_background = 1);
        FAULT("fault", desc.show_counts = NULL);
}

static void test_a_verb_that_is_not_whole_is_found(void)
{
        struct option_table arguments;

        FAULT("loop", verb.name = NULL);
        FAULT("loop", verb.summary = NULL);
        FAULT("loop", verb.arguments = NULL);
        FAULT("loop", verb.show_result = NULL);
        take("loop");
        arguments = *verb.arguments;
        arguments.struct_size = TARGET_ARGUMENTS_MAX;
        verb.arguments = &arguments;
        CHECK(!target_check(&target));
        arguments.struct_size++;
        CHECK(target_check(&target));
}

int main(void)
{
        test_each_target_is_complete();
        test_what_is_missing_is_found();
        test_a_verb_that_is_not_whole_is_found();
        return check_report();
}
