/* SPDX-License-Identifier: MIT */
/* A file keeps its identity under each of its names, and another file has another one. */
#include "ublkd/backing/file_identity.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdlib.h>

static struct backing_identity identity_of(const char *path)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct backing_identity identity = {};
        struct stat info;

        if (CHECK(fd >= 0) && CHECK_INT(fstat(fd, &info), 0))
                file_identify(fd, &info, &identity);
        return identity;
}

int main(void)
{
        char one[] = "/tmp/identity-XXXXXX", other[] = "/tmp/identity-XXXXXX", again[64];
        struct backing_identity first, second;

        close_fd(mkostemp(one, O_CLOEXEC));
        close_fd(mkostemp(other, O_CLOEXEC));
        first = identity_of(one);
        CHECK(!first.is_disk);
        CHECK(!backing_identity_is_empty(&first));
        second = identity_of(other);
        CHECK_INT(backing_compare(&first, &second, true), BACKING_OTHER);
        snprintf(again, sizeof(again), "%s.again", one);
        CHECK_INT(rename(one, again), 0);
        second = identity_of(again);
        CHECK(backing_identity_equal(&first, &second));
        CHECK_INT(backing_compare(&first, &second, true), BACKING_SAME);
        (void)unlink(again);
        (void)unlink(other);
        return check_report();
}
