/* SPDX-License-Identifier: MIT */
/* The token of a loss changes with each fault, and with the disk that has it. */
#include "tests/unit/check.h"
#include "ublkd/model/write_errors.h"

static const char *token_of(struct device_faults faults)
{
        static char text[WRITE_ERRORS_TOKEN_SIZE];

        write_errors_token(&faults, text);
        return text;
}

static void names_each_fault(void)
{
        CHECK_STR(token_of((struct device_faults){}), "");
        CHECK_STR(token_of((struct device_faults){.flush = 1, .flush_at = 0x2a}), "flush-1-2a");
        CHECK_STR(token_of((struct device_faults){.cut = 2}), "cut-2-0");
        CHECK_STR(token_of((struct device_faults){.flush = 1, .cut = 2, .flush_at = 0x2a, .cut_at = 0x2b}),
                "flush-1-2a.cut-2-2b");
}

static void the_longest_fits(void)
{
        CHECK_STR(token_of((struct device_faults){.flush = UINT32_MAX,
                          .cut = UINT32_MAX,
                          .flush_at = UINT64_MAX,
                          .cut_at = UINT64_MAX}),
                "flush-4294967295-ffffffffffffffff.cut-4294967295-ffffffffffffffff");
}

int main(void)
{
        names_each_fault();
        the_longest_fits();
        return check_report();
}
