/* SPDX-License-Identifier: MIT */
/* A row for each promise. */
#include "targets/worker/disk/target_check.h"

static bool has_child(const struct target_desc *desc)
{
        return desc->options && desc->options->has_child;
}

static bool stands_on_others(const struct target_desc *desc)
{
        return has_child(desc) || (desc->options && desc->options->children_max > 0);
}

static const char *check_verbs(const struct target_desc *desc)
{
        for (unsigned i = 0; i < desc->verb_count; i++) {
                const struct target_verb *verb = &desc->verbs[i];

                if (!verb->name || !verb->summary || !verb->arguments || !verb->show_result)
                        return "Each of its verbs needs a name, a summary, arguments and show_result().";
                if (verb->arguments->struct_size > TARGET_ARGUMENTS_MAX)
                        return "The arguments of one of its verbs have more than TARGET_ARGUMENTS_MAX bytes.";
                if (verb->needs & ~desc->flags)
                        return "One of its verbs needs a flag that the target itself does not have.";
        }
        return NULL;
}

const char *target_check(const struct target *target)
{
        const struct target_desc *desc = target->desc;
        const struct {
                bool promised, is_there;
                const char *sentence;
        } rules[] = {
                {true,                              target->open,               "It needs open()."                        },
                {true,                              target->read,               "It needs read()."                        },
                {stands_on_others(desc),            target->size,               "It stands on others, so it needs size()."},
                {stands_on_others(desc),            target->flush,
                 "It stands on others, so it needs flush(), which reaches them."                                          },
                {desc->flags & TARGET_IS_PART,      has_child(desc),
                 "TARGET_IS_PART is for a target over a \"child\", which its schema does not have."                       },
                {desc->flags & TARGET_IS_PART,      target->is_part,            "TARGET_IS_PART needs is_part()."         },
                {desc->flags & TARGET_SCANS,        target->scan,               "TARGET_SCANS needs scan()."              },
                {desc->verb_count > 0,              desc->verbs && target->act,
                 "Its description has verbs, so it needs act(): of the scrub alone, scrub_act()."                         },
                {desc->waits.background > 0,        target->background,
                 "Its description has coroutines of the background, so it needs background()."                            },
                {desc->waits.device_background > 0, target->device_background,
                 "Its description has coroutines of the device, so it needs device_background()."                         },
                {desc->pack_live,                   desc->show_counts,
                 "Its description has pack_live(), so it needs show_counts()."                                            },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                if (rules[i].promised && !rules[i].is_there)
                        return rules[i].sentence;
        return check_verbs(desc);
}
