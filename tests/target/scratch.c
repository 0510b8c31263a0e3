/* SPDX-License-Identifier: MIT */
/* Files for a test, in folders that vanish with it. */
#include "tests/target/scratch.h"
#include "ublkd/base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int scratch_make(struct scratch *scratch, const char *parent)
{
        snprintf(scratch->path, sizeof(scratch->path), "%s/ublkd-test.XXXXXX", parent);
        return mkdtemp(scratch->path) ? 0 : -errno;
}

void scratch_remove(struct scratch *scratch)
{
        DIR *folder = opendir(scratch->path);
        struct dirent *entry;

        while (folder && (entry = readdir(folder)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        (void)unlinkat(dirfd(folder), entry->d_name, 0);
        if (folder)
                closedir(folder);
        (void)rmdir(scratch->path);
}

unsigned char scratch_pattern(uint64_t offset)
{
        uint64_t mixed = offset * UINT64_C(0x9e3779b97f4a7c15);

        return (unsigned char)(mixed >> 56 | 1); /* never zero */
}

int scratch_file(
        const struct scratch *scratch, const char *name, uint64_t size_of_file, char *ret, size_t size)
{
        _cleanup_free_ unsigned char *bytes = malloc(size_of_file + 1);
        _cleanup_close_ int fd = -1;

        if (!bytes)
                return -ENOMEM;
        for (uint64_t i = 0; i < size_of_file; i++)
                bytes[i] = scratch_pattern(i);
        snprintf(ret, size, "%s/%s", scratch->path, name);
        fd = open(ret, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        for (uint64_t done = 0; done < size_of_file;) {
                ssize_t n = write(fd, bytes + done, size_of_file - done);

                if (n < 0)
                        return -errno;
                done += (uint64_t)n;
        }
        return 0;
}
