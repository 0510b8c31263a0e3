/* SPDX-License-Identifier: MIT */
/* Why a database cannot be opened, and what to do. */
#include "ublkd/store/database_problem.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <string.h>

int database_problem_add(const char *path, int error, struct problem_list *problems)
{
        /* clang-format off */
        static const struct {
                int error;
                const char *reason, *sentence;
        } table[] = {
                {EPROTONOSUPPORT, "DatabaseNewer",
                 "was written by a newer ublkd, and was not changed; start that ublkd, or name another --state-dir"},
                {EMEDIUMTYPE, "NotOurDatabase",
                 "is a database of another program, and was not changed; name another --state-dir"},
                {EBADMSG, "DatabaseCorrupt",
                 "is damaged or is not a database; replace it by a backup, or move it away to start empty"},
                {EBUSY, "DatabaseInUse", "is in use by another ublkd; stop that one, or name another --state-dir"},
                {EACCES, "NotPermitted", "may not be opened; start ublkd as root, or name another --state-dir"},
                {EPERM, "NotPermitted", "may not be opened; start ublkd as root, or name another --state-dir"},
                {EROFS, "ReadOnly",
                 "cannot be written: the file or its file system is read-only; make it writable, or name another "
                 "--state-dir"},
                {ENOSPC, "DiskFull", "cannot be written: its disk is full; make room and start ublkd again"},
                {ENOENT, "NoDirectory",
                 "cannot be created: the directory does not exist; create it, or name another --state-dir"},
                {ENOTDIR, "NoDirectory",
                 "cannot be created: a part of the path is not a directory; name another --state-dir"},
        };
        /* clang-format on */

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].error == -error) {
                        (void)problem_add(problems, -error, "", table[i].reason, "The database %s %s.", path,
                                table[i].sentence);
                        return error;
                }
        (void)problem_add(problems, -error, "", "DatabaseFailed",
                "The database %s cannot be opened: %s; correct that, or name another --state-dir.", path,
                strerror(-error));
        return error;
}
