/* SPDX-License-Identifier: MIT */
/* A disk over two files, and another server that has them open. */
#include "tests/target/two_files.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdlib.h>

bool two_files_make(struct two_files *files, uint64_t size)
{
        bool good;

        *files = (struct two_files){
                .others = {-1, -1}
        };
        good = CHECK_INT(scratch_make(&files->scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0);
        for (unsigned i = 0; good && i < TWO_FILES; i++) {
                const char name[] = {(char)('a' + i), '\0'};

                good = CHECK_INT(
                        scratch_file(&files->scratch, name, size, files->paths[i], sizeof(files->paths[i])),
                        0);
                files->others[i] = open(files->paths[i], O_RDWR | O_CLOEXEC);
                good = CHECK(files->others[i] >= 0) && good;
        }
        return good;
}

void two_files_close(struct two_files *files)
{
        for (unsigned i = 0; i < TWO_FILES; i++)
                close_fd(files->others[i]);
        target_host_close(&files->host);
        scratch_remove(&files->scratch);
}

bool two_files_is_free(const struct two_files *files, unsigned file, off_t byte)
{
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
        bool good = fcntl(files->others[file], F_OFD_SETLK, &lock) == 0;

        lock.l_type = F_UNLCK;
        CHECK_INT(fcntl(files->others[file], F_OFD_SETLK, &lock), 0);
        return good;
}
