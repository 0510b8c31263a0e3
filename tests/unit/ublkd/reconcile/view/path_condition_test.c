/* SPDX-License-Identifier: MIT */
/* path_condition: the report of a path is true, whichever process has the store open. */
#include "ublkd/reconcile/view/path_condition.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <string.h>

static const struct path_store file = {.device = 0x801, .inode = 12},
                               disk = {.is_disk = true, .device = 0x810};
static const struct path_view same =
                                      {
                                              .state = PATH_SAME
},
                              gone = {.state = PATH_GONE, .error = ENOENT},
                              unseen = {.state = PATH_UNKNOWN, .error = EIO},
                              other = {.state = PATH_OTHER,
                                      .is_store = true,
                                      .found = {.device = 0x801, .inode = 13}};

static const struct row {
        const char *what;
        struct path_facts facts;
        enum path_state state;
        enum condition_status status;
        const char *words[2]; /* in the message */
        const char *lie;      /* not in the message; NULL: none */
} rows[] = {
        /* the file system reuses an inode number once the old file is closed */
        {"the same number, and no process has it open",           {.view = &same, .store = &file},                                PATH_UNKNOWN,
         CONDITION_UNKNOWN,                                                                                                                                      {"unknown until its next worker", "has no worker"},               "continues"                       },
        {"the same number, and a worker has found another store",
         {.view = &same, .store = &file, .refused = true},                                                                        PATH_OTHER,   CONDITION_FALSE,
         {"leads to another file than the one", "I/O waits"},                                                                                                                                                                      "leads to the file that is served"},
        {"the same number, and a worker serves",
         {.view = &same, .store = &file, .serving = true, .refused = true},                                                       PATH_SAME,    CONDITION_TRUE,
         {"/srv/i.img leads to the file that is served"},                                                                                                                                                                          NULL                              },
        {"the same number, and it is held",                       {.view = &same, .store = &file, .held = true},                  PATH_SAME,
         CONDITION_TRUE,                                                                                                                                         {"leads to the file"},                                            NULL                              },
        {"gone, and no process has it open",                      {.view = &gone, .store = &file},                                PATH_GONE,    CONDITION_FALSE,
         {"/dev/ublkb3 has no worker, and its I/O waits", "its data is gone, unless there is a copy"},
         "continues with"                                                                                                                                                                                                                                            },
        {"gone, and a worker serves",                             {.view = &gone, .store = &file, .serving = true},               PATH_GONE,
         CONDITION_FALSE,                                                                                                                                        {"continues with the file", "If it was deleted, only this disk"},
         "data is gone"                                                                                                                                                                                                                                              },
        {"deleted, and held",                                     {.view = &gone, .store = &file, .held = true, .unnamed = true}, PATH_GONE,
         CONDITION_FALSE,                                                                                                                                        {"only this disk has its data", "copy its data to another file"},
         "Move that file"                                                                                                                                                                                                                                            },
        {"renamed, and held",                                     {.view = &other, .store = &file, .held = true},                 PATH_OTHER,   CONDITION_FALSE,
         {"inode 13 of device 8:1", "Move that file back"},                                                                                                                                                                        "deleted"                         },
        {"a block device",                                        {.view = &other, .store = &disk, .held = true},                 PATH_OTHER,   CONDITION_FALSE,
         {"block device 8:16", "Make this path lead to that block device again"},                                                                                                                                                  "file back"                       },
        {"a look that failed",                                    {.view = &unseen, .store = &file, .held = true},                PATH_UNKNOWN,
         CONDITION_UNKNOWN,                                                                                                                                      {"failed: Input/output error", "ublkd tries again"},              NULL                              },
};

static void check_row(const struct row *row)
{
        struct path_facts facts = row->facts;
        _cleanup_free_ char *sentence = NULL;
        unsigned before = check_failures;

        facts.number = 3;
        facts.path = "/srv/i.img";
        CHECK_INT(path_condition_state(&facts), row->state);
        CHECK_INT(path_condition_kind(row->state)->status, row->status);
        if (!CHECK_INT(path_condition_explain(&facts, &sentence), 0))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(row->words) && row->words[i]; i++)
                CHECK(strstr(sentence, row->words[i]));
        CHECK(!row->lie || !strstr(sentence, row->lie));
        if (check_failures > before)
                fprintf(stderr, "%s: %s\n", row->what, sentence);
}

int main(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i]);
        return check_report();
}
