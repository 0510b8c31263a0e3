/* SPDX-License-Identifier: MIT */
/* filesystem_rule: each note and each sight; and notes as text. */
#include "ublkd/filesystems/filesystem_rule.h"

#include "tests/unit/check.h"

static const char uuid[] = "11111111-2222-4333-8444-555555555555";

static struct filesystem noted(enum filesystem_stage stage, enum filesystem_kind kind)
{
        struct filesystem filesystem = {.stage = stage, .kind = kind};

        strcpy(filesystem.uuid, uuid);
        return filesystem;
}

static void test_a_file_system_is_made_on_a_blank_disk_only(void)
{
        for (int stage = 0; stage < _FILESYSTEM_STAGE_MAX; stage++)
                for (int sight = 0; sight < _FILESYSTEM_SIGHT_MAX; sight++)
                        for (int kind = 0; kind < _FILESYSTEM_KIND_MAX; kind++) {
                                struct filesystem note = noted((enum filesystem_stage)stage, FILESYSTEM_EXT4);
                                struct filesystem_wish wish = {.kind = (enum filesystem_kind)kind};
                                struct filesystem_step step =
                                        filesystem_next(&note, &wish, (enum filesystem_sight)sight);

                                CHECK(step.task != FILESYSTEM_REMAKES);
                                if (step.task == FILESYSTEM_MAKES)
                                        CHECK_INT(sight, FILESYSTEM_SEES_BLANK);
                        }
}

/* By a client that names its UUID; and not while another program has the disk, nor what is made, nor of another kind. */
static void test_only_what_was_begun_is_made_again(void)
{
        static const char other[] = "99999999-2222-4333-8444-555555555555";
        static const char *const uuids[] = {uuid, other};

        for (int stage = 0; stage < _FILESYSTEM_STAGE_MAX; stage++)
                for (int sight = 0; sight < _FILESYSTEM_SIGHT_MAX; sight++)
                        for (size_t i = 0; i < 2 * sizeof(uuids) / sizeof(uuids[0]); i++) {
                                struct filesystem note = noted((enum filesystem_stage)stage, FILESYSTEM_EXT4);
                                struct filesystem_wish wish = {.kind = (enum filesystem_kind)(i / 2)};
                                struct filesystem_step step;
                                bool remakes =
                                        i == 0 && stage == FILESYSTEM_BEGUN && sight < FILESYSTEM_SEES_USE;

                                strcpy(wish.remake, uuids[i % 2]);
                                step = filesystem_next(&note, &wish, (enum filesystem_sight)sight);
                                CHECK_INT(step.task, remakes ? FILESYSTEM_REMAKES : FILESYSTEM_LEAVES);
                                if (stage == FILESYSTEM_MADE && sight == FILESYSTEM_SEES_IT)
                                        CHECK_INT(step.verdict, i == 0   ? FILESYSTEM_IS_MADE
                                                                : i == 2 ? FILESYSTEM_OTHER_KIND
                                                                         : FILESYSTEM_NOT_BEGUN);
                        }
}

static void test_each_case(void)
{
        static const struct {
                enum filesystem_stage stage;
                enum filesystem_sight sight;
                enum filesystem_kind wanted;
                enum filesystem_task task;
                enum filesystem_verdict verdict;
        } cases[] = {
                {FILESYSTEM_NONE,    FILESYSTEM_SEES_BLANK, FILESYSTEM_EXT4, FILESYSTEM_MAKES,  0                 },
                {FILESYSTEM_NONE,    FILESYSTEM_SEES_OTHER, FILESYSTEM_EXT4, FILESYSTEM_LEAVES,
                 FILESYSTEM_NOT_BLANK                                                                             },
                {FILESYSTEM_NONE,    FILESYSTEM_SEES_USE,   FILESYSTEM_EXT4, FILESYSTEM_LEAVES, FILESYSTEM_IN_USE },
                {FILESYSTEM_NONE,    FILESYSTEM_SEES_ERROR, FILESYSTEM_EXT4, FILESYSTEM_LEAVES,
                 FILESYSTEM_NOT_READ                                                                              },
                {FILESYSTEM_BEGUN,   FILESYSTEM_SEES_BLANK, FILESYSTEM_EXT4, FILESYSTEM_MAKES,  0                 },
                {FILESYSTEM_BEGUN,   FILESYSTEM_SEES_BLANK, FILESYSTEM_XFS,  FILESYSTEM_MAKES,  0                 },
                {FILESYSTEM_BEGUN,   FILESYSTEM_SEES_IT,    FILESYSTEM_EXT4, FILESYSTEM_CHECKS, 0                 },
                {FILESYSTEM_BEGUN,   FILESYSTEM_SEES_IT,    FILESYSTEM_XFS,  FILESYSTEM_LEAVES,
                 FILESYSTEM_UNFINISHED                                                                            },
                {FILESYSTEM_BEGUN,   FILESYSTEM_SEES_OTHER, FILESYSTEM_EXT4, FILESYSTEM_LEAVES,
                 FILESYSTEM_UNFINISHED                                                                            },
                {FILESYSTEM_MADE,    FILESYSTEM_SEES_IT,    FILESYSTEM_EXT4, FILESYSTEM_LEAVES, FILESYSTEM_IS_MADE},
                {FILESYSTEM_MADE,    FILESYSTEM_SEES_IT,    FILESYSTEM_XFS,  FILESYSTEM_LEAVES,
                 FILESYSTEM_OTHER_KIND                                                                            },
                {FILESYSTEM_MADE,    FILESYSTEM_SEES_BLANK, FILESYSTEM_EXT4, FILESYSTEM_LEAVES, FILESYSTEM_LOST   },
                {FILESYSTEM_MADE,    FILESYSTEM_SEES_OTHER, FILESYSTEM_EXT4, FILESYSTEM_LEAVES, FILESYSTEM_LOST   },
                {FILESYSTEM_UNKNOWN, FILESYSTEM_SEES_BLANK, FILESYSTEM_EXT4, FILESYSTEM_LEAVES,
                 FILESYSTEM_NEWER                                                                                 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct filesystem note = noted(cases[i].stage, FILESYSTEM_EXT4);
                struct filesystem_wish wish = {.kind = cases[i].wanted};
                struct filesystem_step step = filesystem_next(&note, &wish, cases[i].sight);

                if (!CHECK_INT(step.task, cases[i].task) || !CHECK_INT(step.verdict, cases[i].verdict))
                        fprintf(stderr, "in case %zu\n", i);
        }
}

static void test_only_what_ublkd_has_made_is_mounted(void)
{
        static const enum filesystem_verdict unmade[_FILESYSTEM_STAGE_MAX] = {
                [FILESYSTEM_NONE] = FILESYSTEM_NOT_MADE,
                [FILESYSTEM_BEGUN] = FILESYSTEM_NOT_MADE,
                [FILESYSTEM_MADE] = FILESYSTEM_LOST,
                [FILESYSTEM_UNKNOWN] = FILESYSTEM_NEWER,
        };

        for (int stage = 0; stage < _FILESYSTEM_STAGE_MAX; stage++)
                for (int sight = 0; sight < _FILESYSTEM_SIGHT_MAX; sight++) {
                        struct filesystem note = noted((enum filesystem_stage)stage, FILESYSTEM_EXT4);
                        struct filesystem_step step =
                                filesystem_next_mount(&note, (enum filesystem_sight)sight);
                        bool mounts = stage == FILESYSTEM_MADE && sight == FILESYSTEM_SEES_IT;

                        CHECK_INT(step.task, mounts ? FILESYSTEM_MOUNTS : FILESYSTEM_LEAVES);
                        if (!mounts)
                                CHECK_INT(step.verdict,
                                        sight == FILESYSTEM_SEES_ERROR ? FILESYSTEM_NOT_READ : unmade[stage]);
                }
}

static void test_a_note_is_read_as_it_was_written(void)
{
        char text[FILESYSTEM_NOTE_SIZE];

        for (int kind = 0; kind < _FILESYSTEM_KIND_MAX; kind++)
                for (int stage = 0; stage <= FILESYSTEM_MADE; stage++) {
                        struct filesystem before =
                                noted((enum filesystem_stage)stage, (enum filesystem_kind)kind);
                        struct filesystem after;

                        filesystem_to_note(&before, text);
                        after = filesystem_of_note(text);
                        CHECK_INT(after.stage, stage);
                        if (stage != FILESYSTEM_NONE) {
                                CHECK_INT(after.kind, kind);
                                CHECK_STR(after.uuid, uuid);
                        }
                }
}

static void test_other_text_is_unknown(void)
{
        static const char *const texts[] = {
                "ext4",
                "ext4 made",
                "ext4 made 1111",
                "btrfs made 11111111-2222-4333-8444-555555555555",
                "ext4 grown 11111111-2222-4333-8444-555555555555",
                "ext4 made 11111111-2222-4333-8444-555555555555 more",
        };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                if (!CHECK_INT(filesystem_of_note(texts[i]).stage, FILESYSTEM_UNKNOWN))
                        fprintf(stderr, "in \"%s\"\n", texts[i]);
}

int main(void)
{
        test_a_file_system_is_made_on_a_blank_disk_only();
        test_only_what_was_begun_is_made_again();
        test_each_case();
        test_only_what_ublkd_has_made_is_mounted();
        test_a_note_is_read_as_it_was_written();
        test_other_text_is_unknown();
        return check_report();
}
