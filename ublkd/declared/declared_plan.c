/* SPDX-License-Identifier: MIT */
/* What is to be done about a device that files describe: a table, the first row that matches wins.
 *
 * A device is removed in one case only: no file describes it, and it is known that its file does not. */
#include "ublkd/declared/declared_plan.h"

#include <assert.h>
#include <stddef.h>

enum { ANY = -1 };

static const struct row {
        int record, spec, owner, same; /* ANY: whatever it is */
        enum declared_step step;
} rows[] = {
        {DECLARED_NO_RECORD,  DECLARED_VALID, ANY,        ANY,   DECLARED_CREATE },
        {DECLARED_NO_RECORD,  ANY,            ANY,        ANY,   DECLARED_NOTHING},
        {DECLARED_OF_CLIENT,  DECLARED_NOT,   ANY,        ANY,   DECLARED_NOTHING},
        {DECLARED_OF_CLIENT,  ANY,            ANY,        ANY,   DECLARED_REFUSE },
        {DECLARED_DELETING,   DECLARED_VALID, ANY,        ANY,   DECLARED_AWAIT  },
        {DECLARED_DELETING,   ANY,            ANY,        ANY,   DECLARED_NOTHING},
        {DECLARED_NOT_RECENT, ANY,            ANY,        ANY,   DECLARED_NOTHING},
        {DECLARED_OF_FILE,    DECLARED_VALID, OWNER_SAME, true,  DECLARED_KEEP   },
        {DECLARED_OF_FILE,    DECLARED_VALID, OWNER_SAME, false, DECLARED_CHANGE },
        {DECLARED_OF_FILE,    DECLARED_VALID, OWNER_GONE, ANY,   DECLARED_CHANGE },
        {DECLARED_OF_FILE,    DECLARED_NOT,   OWNER_GONE, ANY,   DECLARED_REMOVE },
        {DECLARED_OF_FILE,    ANY,            ANY,        ANY,   DECLARED_HOLD   },
};

static bool matches(int wanted, int is)
{
        return wanted == ANY || wanted == is;
}

enum declared_step declared_plan(const struct declared_view *view)
{
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (matches(rows[i].record, (int)view->record) && matches(rows[i].spec, (int)view->spec)
                        && matches(rows[i].owner, (int)view->owner) && matches(rows[i].same, view->same))
                        return rows[i].step;
        assert(!"every view has a row");
        return DECLARED_NOTHING;
}
