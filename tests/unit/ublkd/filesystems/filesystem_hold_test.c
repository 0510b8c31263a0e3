/* SPDX-License-Identifier: MIT */
/* filesystem_hold: when the number of a disk that cannot be opened is not that of the disk any more. */
#include "ublkd/filesystems/filesystem_hold.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char sys[] = "/tmp/ublkd-test-hold-XXXXXX";
static char number[64], sequence[64];

static void write_to(const char *path, const char *text)
{
        FILE *file = fopen(path, "we");

        CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static struct filesystem_hold begin(void)
{
        write_to(number, "4095:7\n");
        write_to(sequence, "12\n");
        return filesystem_hold_begin("/dev/of-no-disk", number);
}

static void test_the_number_is_that_of_the_disk(void)
{
        struct filesystem_hold hold = begin();

        CHECK_INT(hold.error, 0);
        CHECK_INT(hold.disk, makedev(4095, 7));
        CHECK_INT(hold.fd, -1);
        CHECK_INT(filesystem_hold_check(&hold), 1);
        filesystem_hold_end(&hold);
        CHECK_INT(filesystem_hold_check(&hold), 1);
}

static void test_another_disk_has_the_number(void)
{
        struct filesystem_hold hold = begin();

        write_to(sequence, "13\n");
        CHECK_INT(filesystem_hold_check(&hold), -ESTALE);
}

static void test_the_disk_has_another_number(void)
{
        struct filesystem_hold hold = begin();

        write_to(number, "4095:8\n");
        CHECK_INT(filesystem_hold_check(&hold), -ESTALE);
}

static void test_a_disk_that_has_gone_has_no_number(void)
{
        struct filesystem_hold hold = begin();

        CHECK_INT(unlink(sequence), 0);
        CHECK_INT(filesystem_hold_check(&hold), -ESTALE);
        CHECK_INT(unlink(number), 0);
        CHECK_INT(filesystem_hold_check(&hold), 0);
        hold = filesystem_hold_begin("/dev/of-no-disk", number);
        CHECK_INT(hold.error, -ENOENT);
        CHECK_INT(filesystem_hold_check(&hold), 0);
        hold = filesystem_hold_begin("", "");
        CHECK_INT(hold.error, -ENOENT);
        CHECK_INT(filesystem_hold_check(&hold), 0);
}

/* That says nothing of the disk. */
static void test_a_number_that_cannot_be_read_is_not_that_of_a_disk_that_has_gone(void)
{
        struct filesystem_hold hold = begin();

        write_to(number, "nonsense\n");
        CHECK(filesystem_hold_check(&hold) < 0);
        hold = filesystem_hold_begin("", number);
        CHECK(hold.error < 0 && hold.error != -ENOENT && filesystem_hold_check(&hold) == hold.error);
}

/* A node that stays behind somewhere leads to another disk. */
static void test_the_node_of_another_disk_keeps_nothing(void)
{
        struct filesystem_hold hold;

        write_to(number, "4095:7\n");
        hold = filesystem_hold_begin("/dev/null", number);
        CHECK_INT(hold.fd, -1);
        CHECK_INT(hold.error, 0);
        CHECK_INT(unlink(number), 0);
}

int main(void)
{
        if (!CHECK(mkdtemp(sys)))
                return check_report();
        snprintf(number, sizeof(number), "%s/dev", sys);
        snprintf(sequence, sizeof(sequence), "%s/diskseq", sys);
        test_the_number_is_that_of_the_disk();
        test_another_disk_has_the_number();
        test_the_disk_has_another_number();
        test_a_disk_that_has_gone_has_no_number();
        test_a_number_that_cannot_be_read_is_not_that_of_a_disk_that_has_gone();
        test_the_node_of_another_disk_keeps_nothing();
        (void)rmdir(sys);
        return check_report();
}
