/* SPDX-License-Identifier: MIT */
/* sentence: equality, and the full stop before another sentence. */
#include "ublkd/base/sentence.h"

#include "tests/unit/check.h"

static void test_equal(void)
{
        char same[] = "The worker died.";

        CHECK(sentence_equal("The worker died.", same));
        CHECK(!sentence_equal("The worker died.", "The worker left."));
        CHECK(!sentence_equal(NULL, same));
        CHECK(!sentence_equal(same, NULL));
        CHECK(sentence_equal(NULL, NULL));
}

static void test_full_stop(void)
{
        CHECK_STR(full_stop("It died"), ".");
        CHECK_STR(full_stop("It died."), "");
        CHECK_STR(full_stop(""), ".");
}

int main(void)
{
        test_equal();
        test_full_stop();
        return check_report();
}
