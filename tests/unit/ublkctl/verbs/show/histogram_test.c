/* SPDX-License-Identifier: MIT */
/* Tests of histograms of latencies. */
#include "tests/unit/check.h"
#include "ublkctl/verbs/show/histogram.h"

static void test_buckets_are_merged_into_powers_of_two(void)
{
        cJSON *after = cJSON_Parse("[[0,1,2],[1,2,3],[1024,1056,5],[2016,2048,1],[8192,8448,7]]");
        struct histogram histogram;

        histogram_merge(NULL, after, &histogram);
        if (CHECK_INT(histogram.count, 14)) { /* without gaps, from 0 to 16384 */
                CHECK(histogram.rows[0].from == 0 && histogram.rows[0].to == 2
                        && histogram.rows[0].requests == 5);
                CHECK(histogram.rows[10].from == 1024 && histogram.rows[10].requests == 6);
                CHECK(histogram.rows[11].requests == 0);
                CHECK(histogram.rows[13].from == 8192 && histogram.rows[13].to == 16384);
        }
        CHECK(histogram.requests == 18 && histogram.most == 7);
        cJSON_Delete(after);
}

static void test_what_was_before_is_left_out(void)
{
        cJSON *before = cJSON_Parse("[[1024,1056,5],[4096,4224,2]]");
        cJSON *after = cJSON_Parse("[[1024,1056,5],[2048,2112,4],[4096,4224,3]]"), *difference;
        struct histogram histogram;
        char *text;

        histogram_merge(before, after, &histogram);
        if (CHECK_INT(histogram.count, 2))
                CHECK(histogram.rows[0].from == 2048 && histogram.rows[0].requests == 4
                        && histogram.rows[1].requests == 1);
        difference = histogram_difference(before, after);
        text = cJSON_PrintUnformatted(difference);
        CHECK_STR(text, "[[2048,2112,4],[4096,4224,1]]");
        CHECK(histogram_continues(before, after) && histogram_continues(NULL, after));
        CHECK(!histogram_continues(after, before));
        cJSON_free(text);
        cJSON_Delete(difference);
        cJSON_Delete(before);
        cJSON_Delete(after);
}

static void test_no_requests(void)
{
        cJSON *empty = cJSON_Parse("[]"),
              *huge = cJSON_Parse("[[9007199254740992,9007199254740993,1],[\"x\"]]");
        struct histogram histogram;

        histogram_merge(NULL, empty, &histogram);
        CHECK(histogram.count == 0 && histogram.requests == 0);
        histogram_merge(NULL, NULL, &histogram);
        CHECK(histogram.count == 0);
        histogram_merge(NULL, huge, &histogram);
        CHECK(histogram.count == 1 && histogram.requests == 1); /* the last row has all beyond it */
        cJSON_Delete(empty);
        cJSON_Delete(huge);
}

int main(void)
{
        test_buckets_are_merged_into_powers_of_two();
        test_what_was_before_is_left_out();
        test_no_requests();
        return check_report();
}
