/* SPDX-License-Identifier: MIT */
/* Whether a store is the one that a disk was made on. */
#include "tests/unit/check.h"
#include "ublkd/backing/backing.h"
#include "ublkd/base/cleanup.h"

#define FILE_OF(now, later) {.basis = BACKING_FILE_HANDLE, .boot = now, .lasting = later}
#define DISK_OF(now, later) {.basis = BACKING_DISK_WWID, .is_disk = true, .boot = now, .lasting = later}

static const struct {
        struct backing_identity expected, found;
        bool same_boot;
        enum backing_match match;
} cases[] = {
        /* nothing is expected */
        {{}, FILE_OF("a", "a"), true, BACKING_UNKNOWN},
        {{}, {}, false, BACKING_UNKNOWN},
        /* a file, known by its handle */
        {FILE_OF("a", "a"), FILE_OF("a", "a"), true, BACKING_SAME},
        {FILE_OF("a", "a"), FILE_OF("a", "a"), false, BACKING_SAME},
        {FILE_OF("a", "a"), FILE_OF("b", "b"), true, BACKING_OTHER},
        {FILE_OF("a", "a"), FILE_OF("b", "b"), false, BACKING_OTHER},
        {FILE_OF("a", "a"), FILE_OF("b", ""), false, BACKING_OTHER},
        /* a file system without a UUID: within the boot alone */
        {FILE_OF("a", ""), FILE_OF("a", ""), true, BACKING_SAME},
        {FILE_OF("a", ""), FILE_OF("b", ""), true, BACKING_OTHER},
        {FILE_OF("a", ""), FILE_OF("b", ""), false, BACKING_UNKNOWN},
        {FILE_OF("a", ""), FILE_OF("a", ""), false, BACKING_UNKNOWN},
        /* a file in the place of a disk */
        {DISK_OF("1", ""), FILE_OF("a", "a"), false, BACKING_OTHER},
        {DISK_OF("1", "w"), FILE_OF("1", "w"), true, BACKING_OTHER},
        /* a drive: plugged in again, another one, another one with the number of this one in the last boot */
        {DISK_OF("1", "w"), DISK_OF("7", "w"), true, BACKING_SAME},
        {DISK_OF("1", "w"), DISK_OF("7", "v"), true, BACKING_OTHER},
        {DISK_OF("1", "w"), DISK_OF("1", "v"), false, BACKING_OTHER},
        {DISK_OF("1", "w"), DISK_OF("1", ""), false, BACKING_OTHER},
        /* a loop device: nothing lasts */
        {DISK_OF("1", ""), DISK_OF("1", ""), true, BACKING_SAME},
        {DISK_OF("1", ""), DISK_OF("2", ""), true, BACKING_OTHER},
        {DISK_OF("1", ""), DISK_OF("2", ""), false, BACKING_UNKNOWN},
        {DISK_OF("1", ""), {.is_disk = true}, true, BACKING_OTHER},
};

static void test_compare(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (!CHECK_INT(backing_compare(&cases[i].expected, &cases[i].found, cases[i].same_boot),
                            cases[i].match))
                        fprintf(stderr, "    in case %zu\n", i);
}

static void test_text(void)
{
        const struct backing_identity none = {}, now = FILE_OF("a", ""), later = DISK_OF("1", "w");

        CHECK(backing_identity_is_empty(&none) && !backing_identity_is_empty(&now));
        CHECK_STR(backing_identity_text(&none), "");
        CHECK_STR(backing_identity_text(&now), "a");
        CHECK_STR(backing_identity_text(&later), "w");
        CHECK(backing_identity_equal(&now, &now) && !backing_identity_equal(&now, &later));
        CHECK_STR(backing_basis_to_string(BACKING_NONE), "none");
        CHECK_STR(backing_basis_to_string(BACKING_LOOP_FILE), "loop-file");
        CHECK_STR(backing_basis_to_string((enum backing_basis)99), "none");
}

int main(void)
{
        test_compare();
        test_text();
        return check_report();
}
