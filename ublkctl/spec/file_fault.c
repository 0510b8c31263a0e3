/* SPDX-License-Identifier: MIT */
/* Explain why a file of the user cannot be read. */
#include "ublkctl/spec/file_fault.h"

#include "ublkctl/client/call.h"

#include <string.h>

static const struct {
        int error;
        enum exit_status status;
        const char *sentence;
} faults[] = {
        {ENOENT,       STATUS_FAILED,      "The file does not exist; check the path."                   },
        {EACCES,       STATUS_NOT_ALLOWED, "Permission denied; ask the owner of the file, or use sudo." },
        {EPERM,        STATUS_NOT_ALLOWED, "Permission denied; ask the owner of the file, or use sudo." },
        {EISDIR,       STATUS_FAILED,      "The path is a folder; name a file in it."                   },
        {ENOTDIR,      STATUS_FAILED,      "A part of the path is a file, not a folder; check the path."},
        {ELOOP,        STATUS_FAILED,      "The symbolic links of the path form a loop; name the file." },
        {ENAMETOOLONG, STATUS_FAILED,      "The path is too long; use a shorter one."                   },
        {ENOMEM,       STATUS_FAILED,      "Out of memory for the file."                                },
};

enum exit_status print_file_fault(const char *path, int error)
{
        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                if (faults[i].error == error) {
                        complain(path, "%s", faults[i].sentence);
                        return faults[i].status;
                }
        complain(path, "Cannot read the file: %s. Look into the kernel's log, or use a copy.",
                strerror(error));
        return STATUS_FAILED;
}
