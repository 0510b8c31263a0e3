/* SPDX-License-Identifier: MIT */
/* number_set: against a plain array of what is in it. */
#include "ublkd/base/number_set.h"

#include "tests/unit/check.h"

#include <stdlib.h>

enum { SEED = 20260101, ROUNDS = 20000, LOOKS = 64 };

static struct number_set set;
static bool model[NUMBER_SET_MAX + 1];

static int model_first_missing(int from)
{
        while (from <= NUMBER_SET_MAX && model[from])
                from++;
        return from <= NUMBER_SET_MAX ? from : -1;
}

static void change(int number, bool add)
{
        model[number] = add;
        if (add)
                number_set_add(&set, number);
        else
                number_set_remove(&set, number);
}

static void test_limits(void)
{
        number_set_add(&set, -1);
        number_set_add(&set, (int64_t)NUMBER_SET_MAX + 1);
        CHECK(!number_set_has(&set, -1));
        CHECK(!number_set_has(&set, (int64_t)NUMBER_SET_MAX + 1));
        CHECK_INT(number_set_first_missing(&set, 0), 0);
        CHECK_INT(number_set_first_missing(&set, NUMBER_SET_MAX), NUMBER_SET_MAX);
        CHECK_INT(number_set_first_missing(&set, (int64_t)NUMBER_SET_MAX + 1), -1);
}

static void test_full(void)
{
        for (int i = 0; i <= NUMBER_SET_MAX; i++)
                change(i, true);
        CHECK_INT(number_set_first_missing(&set, 0), -1);
        CHECK_INT(number_set_first_missing(&set, NUMBER_SET_MAX), -1);
        change(777777, false);
        CHECK_INT(number_set_first_missing(&set, 0), 777777);
        CHECK_INT(number_set_first_missing(&set, 777778), -1);
        for (int i = 0; i <= NUMBER_SET_MAX; i++)
                change(i, false);
}

/* Runs of numbers, as long as a word, a block or several, come and go anywhere. */
static void test_random_runs(void)
{
        srand(SEED);
        for (unsigned round = 0; round < ROUNDS; round++) {
                int length = 1 << rand() % 14, from = rand() % (NUMBER_SET_MAX + 1 - length);
                bool add = rand() % 3 != 0;

                if (rand() % 4 == 0)
                        from = from / 64 * 64;
                for (int i = from; i < from + length; i++)
                        change(i, add);
                CHECK_INT(number_set_first_missing(&set, from), model_first_missing(from));
                if (round % LOOKS == 0) {
                        int number = rand() % (NUMBER_SET_MAX + 1);

                        CHECK(number_set_has(&set, number) == model[number]);
                        CHECK_INT(number_set_first_missing(&set, number), model_first_missing(number));
                }
        }
}

int main(void)
{
        test_limits();
        test_full();
        test_random_runs();
        return check_report();
}
