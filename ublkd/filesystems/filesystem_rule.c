/* SPDX-License-Identifier: MIT */
/* What to do about the file system of a disk. */
#include "ublkd/filesystems/filesystem_rule.h"

#define LEAVE(why) {.task = FILESYSTEM_LEAVES, .verdict = (why)}

static struct filesystem_step next_make(
        const struct filesystem *noted, enum filesystem_kind wanted, enum filesystem_sight sight)
{
        static const struct filesystem_step make = {.task = FILESYSTEM_MAKES},
                                            check = {.task = FILESYSTEM_CHECKS};
        /* FILESYSTEM_SEES_IT without a note: there is nothing to look for. */
        static const struct filesystem_step steps[_FILESYSTEM_STAGE_MAX][FILESYSTEM_SEES_USE] = {
                [FILESYSTEM_NONE] = {[FILESYSTEM_SEES_IT] = LEAVE(FILESYSTEM_NOT_BLANK),
                                     [FILESYSTEM_SEES_OTHER] = LEAVE(FILESYSTEM_NOT_BLANK)},
                [FILESYSTEM_BEGUN] = {[FILESYSTEM_SEES_OTHER] = LEAVE(FILESYSTEM_UNFINISHED)},
                [FILESYSTEM_MADE] = {[FILESYSTEM_SEES_BLANK] = LEAVE(FILESYSTEM_LOST),
                                     [FILESYSTEM_SEES_IT] = LEAVE(FILESYSTEM_IS_MADE),
                                     [FILESYSTEM_SEES_OTHER] = LEAVE(FILESYSTEM_LOST)},
        };
        static const struct filesystem_step other_kind = LEAVE(FILESYSTEM_OTHER_KIND),
                                            unfinished = LEAVE(FILESYSTEM_UNFINISHED);

        if (noted->stage == FILESYSTEM_MADE && noted->kind != wanted)
                return other_kind;
        if (noted->stage != FILESYSTEM_MADE && sight == FILESYSTEM_SEES_BLANK)
                return make;
        if (noted->stage == FILESYSTEM_BEGUN && sight == FILESYSTEM_SEES_IT)
                return noted->kind == wanted ? check : unfinished;
        return steps[noted->stage][sight];
}

static struct filesystem_step next_remake(const struct filesystem *noted, const struct filesystem_wish *wish)
{
        static const struct filesystem_step remake = {.task = FILESYSTEM_REMAKES},
                                            not_begun = LEAVE(FILESYSTEM_NOT_BEGUN),
                                            other_kind = LEAVE(FILESYSTEM_OTHER_KIND);

        if (noted->stage != FILESYSTEM_BEGUN || strcmp(noted->uuid, wish->remake) != 0)
                return not_begun;
        return noted->kind == wish->kind ? remake : other_kind;
}

/* What was made again is as what was made: the request may be repeated. */
struct filesystem_step filesystem_next(
        const struct filesystem *noted, const struct filesystem_wish *wish, enum filesystem_sight sight)
{
        static const struct filesystem_step in_use = LEAVE(FILESYSTEM_IN_USE),
                                            not_read = LEAVE(FILESYSTEM_NOT_READ),
                                            newer = LEAVE(FILESYSTEM_NEWER);
        bool is_made = noted->stage == FILESYSTEM_MADE && strcmp(noted->uuid, wish->remake) == 0;

        if (sight == FILESYSTEM_SEES_USE)
                return in_use;
        if (sight >= FILESYSTEM_SEES_ERROR)
                return not_read;
        if (noted->stage == FILESYSTEM_UNKNOWN)
                return newer;
        return *wish->remake && !is_made ? next_remake(noted, wish) : next_make(noted, wish->kind, sight);
}

/* A disk that is in use may be mounted already, or have a program beside the mount: the kernel judges that. */
struct filesystem_step filesystem_next_mount(const struct filesystem *noted, enum filesystem_sight sight)
{
        struct filesystem_step step = {.task = FILESYSTEM_LEAVES};

        if (sight == FILESYSTEM_SEES_ERROR)
                step.verdict = FILESYSTEM_NOT_READ;
        else if (noted->stage == FILESYSTEM_UNKNOWN)
                step.verdict = FILESYSTEM_NEWER;
        else if (noted->stage != FILESYSTEM_MADE)
                step.verdict = FILESYSTEM_NOT_MADE;
        else if (sight != FILESYSTEM_SEES_IT)
                step.verdict = FILESYSTEM_LOST;
        else
                step.task = FILESYSTEM_MOUNTS;
        return step;
}
