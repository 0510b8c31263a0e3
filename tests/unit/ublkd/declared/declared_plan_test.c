/* SPDX-License-Identifier: MIT */
/* declared_plan: a table of cases, and what no case may do. */
#include "ublkd/declared/declared_plan.h"

#include "tests/unit/check.h"

static void test_cases(void)
{
        static const struct {
                struct declared_view view;
                enum declared_step step;
        } cases[] = {
                {{.record = DECLARED_NO_RECORD, .spec = DECLARED_VALID},                                     DECLARED_CREATE },
                {{.record = DECLARED_NO_RECORD, .spec = DECLARED_INVALID},                                   DECLARED_NOTHING},
                {{.record = DECLARED_OF_CLIENT, .spec = DECLARED_VALID, .same = true},                       DECLARED_REFUSE },
                {{.record = DECLARED_OF_CLIENT, .spec = DECLARED_NOT},                                       DECLARED_NOTHING},
                {{.record = DECLARED_DELETING, .spec = DECLARED_VALID},                                      DECLARED_AWAIT  },
                {{.record = DECLARED_DELETING, .spec = DECLARED_NOT, .owner = OWNER_GONE},                   DECLARED_NOTHING},
                {{.record = DECLARED_NOT_RECENT, .spec = DECLARED_NOT, .owner = OWNER_GONE},
                 DECLARED_NOTHING                                                                                            },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_VALID, .owner = OWNER_SAME, .same = true},
                 DECLARED_KEEP                                                                                               },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_VALID, .owner = OWNER_SAME},                  DECLARED_CHANGE },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_VALID, .owner = OWNER_GONE, .same = true},
                 DECLARED_CHANGE                                                                                             }, /* the file was renamed */
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_VALID, .owner = OWNER_UNKNOWN, .same = true},
                 DECLARED_HOLD                                                                                               },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_INVALID, .owner = OWNER_SAME},                DECLARED_HOLD   },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_INVALID, .owner = OWNER_GONE},                DECLARED_HOLD   },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_NOT, .owner = OWNER_UNKNOWN},                 DECLARED_HOLD   },
                {{.record = DECLARED_OF_FILE, .spec = DECLARED_NOT, .owner = OWNER_GONE},                    DECLARED_REMOVE },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                if (!CHECK_INT(declared_plan(&cases[i].view), cases[i].step))
                        fprintf(stderr, "  in case %zu\n", i);
}

/* Every view has a step, and only a device that is known to have lost its file is removed. */
static void test_all_views(void)
{
        for (int record = 0; record < _DECLARED_RECORD_MAX; record++)
                for (int spec = 0; spec < _DECLARED_SPEC_MAX; spec++)
                        for (int owner = 0; owner < _DECLARED_OWNER_MAX; owner++)
                                for (int same = 0; same < 2; same++) {
                                        const struct declared_view view = {
                                                .record = (enum declared_record)record,
                                                .spec = (enum declared_spec)spec,
                                                .owner = (enum declared_owner)owner,
                                                .same = same};
                                        enum declared_step step = declared_plan(&view);

                                        if (step == DECLARED_REMOVE)
                                                CHECK(record == DECLARED_OF_FILE && spec == DECLARED_NOT
                                                        && owner == OWNER_GONE);
                                        if (step == DECLARED_CHANGE)
                                                CHECK(record == DECLARED_OF_FILE && spec == DECLARED_VALID
                                                        && owner != OWNER_UNKNOWN);
                                        if (step == DECLARED_CREATE)
                                                CHECK(record == DECLARED_NO_RECORD && spec == DECLARED_VALID);
                                }
}

int main(void)
{
        test_cases();
        test_all_views();
        return check_report();
}
