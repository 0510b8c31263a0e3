/* SPDX-License-Identifier: MIT */
/* device_openers: when ublkd searches the openers, and how it reports them. The search is a fake. */
#include "ublkd/reconcile/parts/device_openers.h"

#include "ublkd/base/clock.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static struct {
        disk_answered answered;
        void *userdata;
        int asked;
} search;

static int found;

int __wrap_disk_search_ask(struct disk_search *disk_search, int number, enum disk_depth depth,
        disk_answered answered, void *userdata, struct disk_question **ret);
int __wrap_disk_search_ask(struct disk_search *disk_search, int number, enum disk_depth depth,
        disk_answered answered, void *userdata, struct disk_question **ret)
{
        CHECK(disk_search == (struct disk_search *)&search);
        CHECK_INT(number, 3);
        CHECK_INT(depth, DISK_NAMES);
        search.asked++;
        search.answered = answered;
        search.userdata = userdata;
        *ret = (struct disk_question *)&search;
        return 0;
}

struct disk_question *__wrap_disk_question_free(struct disk_question *question);
struct disk_question *__wrap_disk_question_free(struct disk_question *question)
{
        CHECK(!question || question == (struct disk_question *)&search);
        return NULL;
}

static void on_found(void *userdata)
{
        CHECK(userdata == &found);
        found++;
}

static bool holds(struct device_openers *openers, bool can_search, enum device_hold hold, uint64_t since)
{
        return device_openers_wait(
                openers, can_search ? (struct disk_search *)&search : NULL, 3, hold, since, on_found, &found);
}

static void check_sentence_without(
        const struct device_openers *openers, const char *words, const char *unwanted)
{
        char *sentence = NULL;

        if (CHECK_INT(device_openers_explain(openers, &sentence), 0)
                && !CHECK(strstr(sentence, words) && !(unwanted && strstr(sentence, unwanted))))
                fprintf(stderr, "it says: %s\n", sentence);
        free(sentence);
}

static void check_sentence(const struct device_openers *openers, const char *words)
{
        check_sentence_without(openers, words, NULL);
}

static void test_names_are_awaited_and_reported(void)
{
        struct device_openers openers = {};
        const struct disk_answer answer = {.number = 3, .use = DISK_USED, .text = "process 47 (cat)"};

        search.asked = found = 0;
        CHECK(!holds(&openers, true, HOLD_BEFORE_STOP, 1000));
        CHECK_INT(search.asked, 1);
        CHECK(!holds(&openers, true, HOLD_BEFORE_STOP, 1000)); /* one question at a time */
        CHECK_INT(search.asked, 1);
        search.answered(search.userdata, &answer);
        CHECK_INT(found, 1);
        CHECK(device_openers_are_of(&openers, 1000) && !device_openers_are_of(&openers, 2000));
        CHECK_INT(device_openers_reason(&openers), REASON_IN_USE);
        check_sentence(&openers, "process 47 (cat)");
        CHECK(holds(&openers, true, HOLD_BEFORE_STOP, 1000)); /* known: not searched again so soon */
        CHECK_INT(search.asked, 1);
        CHECK(!holds(&openers, true, HOLD_BEFORE_STOP, 2000)); /* another wait: other openers */
        CHECK_INT(search.asked, 2);
        device_openers_drop(&openers);
        CHECK(!device_openers_are_of(&openers, 0));
}

/* Advice to end the worker of another device, or ublkd, would cost that device its disk. */
static void test_the_advice_is_never_to_end_a_worker(void)
{
        static const struct {
                unsigned kinds;
                const char *words;
        } rows[] = {
                {DISK_USER_PROCESS,                    ": all. Unmount it, end those processes or remove those devices, and"},
                {DISK_USER_DEVICE,                     ": all. Unmount it or remove those devices, and ublkd"               },
                {DISK_USER_DEVICE | DISK_USER_PROCESS,
                 ": all. Unmount it, end the other processes or remove those devices, and"                                  },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct device_openers openers = {};
                const struct disk_answer answer = {
                        .number = 3, .use = DISK_USED, .text = "all", .kinds = rows[i].kinds};

                CHECK(!holds(&openers, true, HOLD_BEFORE_STOP, 1000));
                search.answered(search.userdata, &answer);
                check_sentence(&openers, rows[i].words);
                device_openers_drop(&openers);
        }
}

static void test_without_a_search_there_are_no_names(void)
{
        static const struct {
                enum device_hold hold;
                enum condition_reason reason;
                const char *words;
        } rows[] = {
                {HOLD_BEFORE_STOP,  REASON_IN_USE,     "close or unmount it ('lsof /dev/ublkb3')"},
                {HOLD_UNKNOWN,      REASON_IN_USE,     "close or unmount it ('lsof /dev/ublkb3')"},
                {HOLD_AFTER_DELETE, REASON_STILL_HELD, "Deletion of /dev/ublkb3"                 }
        };
        struct device_openers openers = {};

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CHECK(holds(&openers, false, rows[i].hold, 1000));
                CHECK_INT(device_openers_reason(&openers), rows[i].reason);
                check_sentence_without(&openers, rows[i].words, "forced"); /* which destroys */
        }
        device_openers_drop(&openers);
}

static void test_a_deletion_may_take_a_moment(void)
{
        struct device_openers openers = {};

        CHECK(!holds(&openers, false, HOLD_AFTER_DELETE, clock_usec(CLOCK_MONOTONIC)));
        CHECK(holds(&openers, false, HOLD_BEFORE_STOP, clock_usec(CLOCK_MONOTONIC)));
        device_openers_drop(&openers);
}

int main(void)
{
        test_names_are_awaited_and_reported();
        test_the_advice_is_never_to_end_a_worker();
        test_without_a_search_there_are_no_names();
        test_a_deletion_may_take_a_moment();
        return check_report();
}
