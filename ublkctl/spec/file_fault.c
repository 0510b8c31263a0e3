/* SPDX-License-Identifier: MIT */
/* A file of the user's that cannot be used: why, and what to do. */
#include "ublkctl/spec/file_fault.h"

#include "ublkctl/client/call.h"

#include <string.h>

static const struct {
        int error;
        enum exit_status status;
        const char *sentence;
} faults[] = {
        {ENOENT,       STATUS_FAILED,      "There is no such file; check the path."                                 },
        {EACCES,       STATUS_NOT_ALLOWED, "You may not read it; ask its owner, or use sudo."                       },
        {EPERM,        STATUS_NOT_ALLOWED, "You may not read it; ask its owner, or use sudo."                       },
        {EISDIR,       STATUS_FAILED,      "This is a folder; name a file in it."                                   },
        {ENOTDIR,      STATUS_FAILED,      "What this path takes for a folder is a file; check the path."           },
        {ELOOP,        STATUS_FAILED,      "Its symbolic links lead in a circle; name the file that they stand for."},
        {ENAMETOOLONG, STATUS_FAILED,      "This path is too long; use a shorter one."                              },
        {ENOMEM,       STATUS_FAILED,      "There is not enough memory to read it."                                 },
};

enum exit_status say_file_fault(const char *path, int error)
{
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                if (faults[i].error == error) {
                        say(path, "%s", faults[i].sentence);
                        return faults[i].status;
                }
        say(path, "It cannot be read: %s. Look into the kernel's log, or use a copy.", strerror(error));
        return STATUS_FAILED;
}
