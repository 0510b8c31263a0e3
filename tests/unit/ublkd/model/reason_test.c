/* SPDX-License-Identifier: MIT */
/* reason: names, the table, and names that are not in it. */
#include "ublkd/model/reason.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_sentence(const char *text)
{
        size_t length = strlen(text);

        return length > 5 && text[length - 1] == '.' && isupper((unsigned char)text[0]);
}

/* ublkd itself is written small, wherever it stands. */
static bool is_meaning(const char *text)
{
        return is_sentence(text) || strncmp(text, "ublkd", strlen("ublkd")) == 0;
}

static void test_every_row_is_complete(void)
{
        for (int i = REASON_NONE + 1; i < (int)_REASON_MAX; i++) {
                enum condition_reason reason = (enum condition_reason)i;
                const struct reason_info *info = reason_info(reason);

                if (!CHECK(info->name && isupper((unsigned char)*info->name)))
                        continue;
                CHECK(strlen(info->name) < REASON_NAME_MAX);
                if (!CHECK(is_meaning(info->meaning)) || !CHECK(is_sentence(info->advice)))
                        fprintf(stderr, "that is %s\n", info->name);
                CHECK_INT(reason_from_string(info->name), i); /* so no name is there twice */
                CHECK_STR(reason_to_string(reason), info->name);
        }
}

/* An administrator who follows it must not lose the data of a disk. */
static void test_advice_that_depends_on_a_disk(void)
{
        static const enum condition_reason reasons[] = {REASON_BACKING_FILE_MISSING,
                REASON_BACKING_FILE_EMPTY, REASON_BACKING_TOO_SMALL, REASON_OFFSET_BEYOND_END};

        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
                const char *advice = reason_info(reasons[i])->advice;

                CHECK(strstr(advice, "from a copy") && strstr(advice, "new disk"));
        }
}

static void test_none(void)
{
        CHECK_STR(reason_to_string(REASON_NONE), "");
        CHECK_INT(reason_from_string(""), REASON_NONE);
        CHECK(!reason_info(REASON_NONE)->handover);
        CHECK(!reason_info(REASON_NONE)->obstacle);
}

/* As a worker of another version may send them. */
static void test_unknown_names_stay(void)
{
        enum condition_reason first = reason_from_string("FirstOfNoTable"),
                              second = reason_from_string("SecondOfNoTable");

        CHECK(first >= _REASON_MAX && second >= _REASON_MAX && first != second);
        CHECK_INT(reason_from_string("FirstOfNoTable"), first);
        CHECK_STR(reason_to_string(first), "FirstOfNoTable");
        CHECK_STR(reason_to_string(second), "SecondOfNoTable");
        CHECK(!reason_info(first)->step && !reason_info(first)->transient);
        CHECK(is_sentence(reason_info(first)->advice));
}

static void test_names_that_are_too_long(void)
{
        char longest[REASON_NAME_MAX + 1];

        memset(longest, 'X', sizeof(longest));
        longest[REASON_NAME_MAX - 1] = '\0';
        CHECK_STR(reason_to_string(reason_from_string(longest)), longest);
        longest[REASON_NAME_MAX - 1] = 'X';
        longest[REASON_NAME_MAX] = '\0';
        CHECK_INT(reason_from_string(longest), REASON_OTHER);
        CHECK_INT(reason_from_string("Two Words"), REASON_OTHER);
        CHECK_INT(reason_from_string("Line\nBreak"), REASON_OTHER);
}

/* Before, the workers of one disk could fill the table, and those of other disks had only "Other" then. */
static void test_names_of_workers_are_bounded(void)
{
        char name[REASON_NAME_MAX];
        unsigned kept = 0, kept_of_others[REASONS_OF_WORKERS] = {};
        enum condition_reason first = reason_from_worker("OfWorker", &kept), last = REASON_NONE;

        CHECK_STR(reason_to_string(first), "OfWorker");
        for (int i = 0; i < REASONS_UNKNOWN_MAX; i++) {
                snprintf(name, sizeof(name), "OfWorker%d", i);
                last = reason_from_worker(name, &kept);
        }
        CHECK_INT(last, REASON_OTHER);
        CHECK_INT(kept, REASONS_OF_A_DISK);
        CHECK_INT(reason_from_worker("OfWorker", &kept), first);
        CHECK_INT(reason_from_worker("BackingRead", &kept), REASON_BACKING_READ);
        CHECK_INT(reason_from_worker("Other", &kept), REASON_OTHER);
        CHECK_INT(reason_from_worker("", &kept), REASON_NONE);
        CHECK_INT(reason_from_worker("OfNoDisk", NULL), REASON_OTHER);
        CHECK_STR(reason_to_string(reason_from_worker("OfAnother", &kept_of_others[0])), "OfAnother");
        CHECK_INT(reason_from_worker("OfAnother", &kept), reason_from_worker("OfAnother", NULL));

        for (int i = 0; i < REASONS_UNKNOWN_MAX; i++) { /* of many disks */
                snprintf(name, sizeof(name), "OfMany%d", i);
                last = reason_from_worker(name, &kept_of_others[i % REASONS_OF_WORKERS]);
        }
        CHECK_INT(last, REASON_OTHER);
        CHECK_STR(reason_to_string(reason_from_string("OfTheDatabase")), "OfTheDatabase");
}

static void test_unknown_names_are_bounded(void)
{
        char name[REASON_NAME_MAX];
        enum condition_reason last = REASON_NONE;

        for (int i = 0; i < REASONS_UNKNOWN_MAX + 10; i++) {
                snprintf(name, sizeof(name), "Unknown%d", i);
                last = reason_from_string(name);
        }
        CHECK_INT(last, REASON_OTHER);
        CHECK_STR(reason_to_string(reason_from_string("Unknown5")), "Unknown5");
}

/* What decides something: a change of a row is a change of behaviour. */
static void test_properties(void)
{
        CHECK(reason_info(REASON_STARTING)->step && !reason_info(REASON_LIVE)->step);
        CHECK(reason_info(REASON_WORKER_DIED)->transient
                && !reason_info(REASON_BACKING_FILE_MISSING)->transient);
        CHECK(reason_info(REASON_IN_USE)->obstacle && !reason_info(REASON_DELETING)->obstacle);
        CHECK(reason_info(REASON_WORKER_RETIRED)->handover && !reason_info(REASON_WORKER_DIED)->handover);
        CHECK(reason_info(REASON_HOST_NOT_READY)->of_host && !reason_info(REASON_PENDING)->of_host);
        CHECK_INT(reason_info(REASON_CANNOT_GROW)->weight, REASON_ALARMING);
        CHECK_INT(reason_info(REASON_RESTARTING)->weight, REASON_INTENDED);
        CHECK_INT(reason_info(REASON_RECOVERING)->weight, REASON_AS_PHASE);
}

int main(void)
{
        test_every_row_is_complete();
        test_advice_that_depends_on_a_disk();
        test_none();
        test_unknown_names_stay();
        test_names_that_are_too_long();
        test_properties();
        test_names_of_workers_are_bounded();
        test_unknown_names_are_bounded();
        return check_report();
}
