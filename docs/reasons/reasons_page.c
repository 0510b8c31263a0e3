/* SPDX-License-Identifier: MIT */
/* Prints docs/reasons.md from the table of reasons. */
#include "ublkd/base/cleanup.h"
#include "ublkd/model/reason_table.h"

#include <stdio.h>
#include <string.h>

static int by_name(const void *one, const void *other)
{
        return strcmp((*(const struct reason_info *const *)one)->name,
                (*(const struct reason_info *const *)other)->name);
}

int main(void)
{
        const struct reason_info *rows[_REASON_MAX - 1];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                rows[i] = &reason_table[i + 1]; /* without REASON_NONE */
        qsort(rows, ARRAY_SIZE(rows), sizeof(*rows), by_name);
        puts("<!-- SPDX-License-Identifier: MIT -->\n"
             "# Reasons\n\n"
             "<!-- Made from ublkd/model/reason_table.c by the target update_reasons; not to be edited here. "
             "-->\n\n"
             "Each condition of a device, and each event, has a `reason`: one word, which stays the same "
             "from\n"
             "version to version, so a program may compare it. The `message` beside it says the same for "
             "people,\n"
             "with names and times, and may change. `ublkctl describe NAME` shows both. Nothing in the last\n"
             "column destroys data.\n\n"
             "| reason | what it means | what to do |\n"
             "|---|---|---|");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                printf("| `%s` | %s | %s |\n", rows[i]->name, rows[i]->meaning, rows[i]->advice);
        return fflush(stdout) == 0 ? 0 : 1;
}
