/* SPDX-License-Identifier: MIT */
/* proc_status: fields of /proc/PID/status, and numbers in them. */
#include "ublkd/kernel/proc_status.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char status[] = "Name:\tUid:\\nUid:\n"
                             "State:\tS (sleeping)\n"
                             "Pid:\t41\n"
                             "PPid:\t7\n"
                             "Uid:\t1000\t1001\t1002\t1003\n"
                             "Groups:\t \n"
                             "CapPrm:\t000001ffffffffff\n"
                             "Seccomp:\t2";

static void test_fields(void)
{
        CHECK(strncmp(proc_status_field(status, "State"), "\tS (sleeping)\n", 14) == 0);
        CHECK(strncmp(proc_status_field(status, "Pid"), "\t41\n", 4) == 0); /* and not PPid */
        CHECK(strncmp(proc_status_field(status, "CapPrm"), "\t000001ff", 9) == 0);
        CHECK(!proc_status_field(status, "Gid"));
        CHECK(!proc_status_field(status, "Stat"));
        CHECK(!proc_status_field("", "Uid"));
}

static void test_a_line_that_is_cut_off_is_left_out(void)
{
        CHECK(!proc_status_field(status, "Seccomp"));
        CHECK(!proc_status_field("Uid:\t100", "Uid"));
        CHECK(!proc_status_field("Uid", "Uid"));
        CHECK_INT(proc_status_number("Uid:\t100", "Uid", 0), -1);
}

static void test_a_name_is_not_a_field(void)
{
        CHECK_INT(proc_status_number(status, "Uid", 0), 1000);
}

static void test_numbers(void)
{
        static const struct {
                const char *field;
                unsigned index;
                int64_t number;
        } cases[] = {
                {"Uid",    0, 1000},
                {"Uid",    1, 1001},
                {"Uid",    3, 1003},
                {"Uid",    4, -1  }, /* the next line is another field */
                {"PPid",   0, 7   },
                {"PPid",   1, -1  },
                {"Groups", 0, -1  },
                {"State",  0, -1  },
                {"Gid",    0, -1  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                CHECK_INT(proc_status_number(status, cases[i].field, cases[i].index), cases[i].number);
        CHECK_INT(proc_status_number("Groups:\t\nSeccomp:\t2\n", "Groups", 0), -1);
}

static void test_what_the_kernel_writes(void)
{
        char text[1024];

        CHECK(read_text_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0);
        CHECK_INT(proc_status_number(text, "Pid", 0), getpid());
        CHECK_INT(proc_status_number(text, "PPid", 0), getppid());
        CHECK_INT(proc_status_number(text, "Uid", 1), geteuid());
        CHECK_INT(proc_status_number(text, "Gid", 1), getegid());
}

int main(void)
{
        test_fields();
        test_a_line_that_is_cut_off_is_left_out();
        test_a_name_is_not_a_field();
        test_numbers();
        test_what_the_kernel_writes();
        return check_report();
}
