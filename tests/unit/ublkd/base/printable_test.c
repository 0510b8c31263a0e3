/* SPDX-License-Identifier: MIT */
/* printable: nothing of a text moves the cursor, begins a line or rings a bell. */
#include "ublkd/base/printable.h"

#include "tests/unit/check.h"

static void check_printable(const char *text, const char *wanted)
{
        char copy[64];

        snprintf(copy, sizeof(copy), "%s", text);
        make_printable(copy);
        CHECK_STR(copy, wanted);
}

int main(void)
{
        check_printable("", "");
        check_printable("fio (pid 7), mounted at /mnt", "fio (pid 7), mounted at /mnt");
        check_printable("Grüße, 世界 🙂", "Grüße, 世界 🙂");
        check_printable("a\nb\r\tc\x7f\x1b[2J", "a?b??c??[2J");
        check_printable("\xc2\x9b"
                        "2J\xc2\xa0",
                "??2J\xc2\xa0"); /* CSI in one character */
        check_printable("\x9b"
                        "2J",
                "?2J");
        /* What comes after it is shown before it; a line break that is not one of ASCII. */
        check_printable("\xe2\x80\xae"
                        "dab\xe2\x80\xa8\xe2\x81\xa6",
                "???dab??????");
        check_printable("\xe2\x80\x94\xe2\x81\xba", "\xe2\x80\x94\xe2\x81\xba");
        check_printable("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xd8\x9d", "????????\xd8\x9d");
        check_printable("cut off \xe4\xb8", "cut off ??");
        check_printable("\xc0\x8a\xff", "???");
        CHECK_INT(printable_length("é", 2), 2);
        CHECK_INT(printable_length("é", 1), 0);
        CHECK_INT(printable_length("\x7f", 1), 0);
        CHECK_INT(printable_length("\xe2\x80\xae", 3), 0);
        return check_report();
}
