/* SPDX-License-Identifier: MIT */
/* The witnesses of a disk with several backing stores: each is asked, and each error is latched. */
#include "targets/worker/queue/durability.h"
#include "tests/unit/check.h"
#include "tests/unit/shared_region.h"

#include <errno.h>

enum { WITNESSES = 3, FIRST_FD = 100 };

static int errors[WITNESSES]; /* of each, reported once; 0: none */
static unsigned asked[WITNESSES];

int __wrap_sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags);

int __wrap_sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags)
{
        int error = errors[fd - FIRST_FD];

        CHECK(offset > 0 && count == 1 && flags != 0);
        asked[fd - FIRST_FD]++;
        errors[fd - FIRST_FD] = 0;
        errno = error;
        return error == 0 ? 0 : -1;
}

static const int fds[WITNESSES] = {FIRST_FD, FIRST_FD + 1, FIRST_FD + 2};

/* An error of one of `count` witnesses, at the start and after a flush that has succeeded. */
static void check_witness(unsigned count, unsigned bad, int error, bool lost)
{
        for (int at_start = 0; at_start <= 1; at_start++) {
                struct shared shared = shared_region_new();
                const struct durability durability = {
                        .shared = &shared, .witnesses = fds, .witness_count = count};

                memset(asked, 0, sizeof(asked));
                memset(errors, 0, sizeof(errors));
                errors[bad] = error;
                if (at_start)
                        durability_ask(&durability);
                else
                        CHECK_INT(durability_answer(&durability, IO_FLUSH, 0, false), lost ? -EIO : 0);
                CHECK_INT(durability_is_lost(&durability), lost);
                for (unsigned i = 0; i < WITNESSES; i++)
                        CHECK_INT(asked[i], i < count);
                if (!at_start) /* it is not reported again, and stays latched */
                        CHECK_INT(durability_answer(&durability, IO_FLUSH, 0, false), lost ? -EIO : 0);
                shared_region_unmap(&shared);
        }
}

/* What they report is consumed: that of the second must not stay for a time after the loss was accepted. */
static void test_all_are_asked_after_an_error(void)
{
        struct shared shared = shared_region_new();
        const struct durability durability = {
                .shared = &shared, .witnesses = fds, .witness_count = WITNESSES};

        errors[0] = errors[2] = EIO;
        CHECK_INT(durability_answer(&durability, IO_FLUSH, -ENOSPC, true), -ENOSPC);
        CHECK_INT(errors[0] + errors[2], 0);
        shared_region_unmap(&shared);
}

int main(void)
{
        for (unsigned count = 0; count <= WITNESSES; count++)
                for (unsigned bad = 0; bad < WITNESSES; bad++) {
                        check_witness(count, bad, EIO, bad < count);
                        check_witness(count, bad, ENOSPC, bad < count);
                        check_witness(count, bad, ESPIPE, false); /* an error of the call */
                        check_witness(count, bad, 0, false);
                }
        test_all_are_asked_after_an_error();
        return check_report();
}
