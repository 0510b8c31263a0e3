/* SPDX-License-Identifier: MIT */
/* policy_prefix: what a prefix is, and which templates could give two users the same names. */
#include "ublkd/policy/policy_prefix.h"

#include "tests/unit/check.h"

static void test_print(void)
{
        char text[PREFIX_SIZE];

        policy_prefix_print("u{uid}-", 1000, text);
        CHECK_STR(text, "u1000-");
        policy_prefix_print("{uid}", 4294967294, text);
        CHECK_STR(text, "4294967294");
        policy_prefix_print("alice.", 1000, text);
        CHECK_STR(text, "alice.");
        policy_prefix_print("abcdefghijklmnopqrstuvwxyzabcdefghi{uid}", 4294967294, text);
        CHECK_STR(text, "abcdefghijklmnopqrstuvwxyzabcdefghi4294967294");
}

static void test_apart(void)
{
        CHECK(policy_prefix_is_apart("u{uid}-"));
        CHECK(policy_prefix_is_apart("{uid}.x"));
        CHECK(policy_prefix_is_apart("u1{uid}a0"));
        CHECK(!policy_prefix_is_apart("u{uid}"));
        CHECK(!policy_prefix_is_apart("u{uid}0-"));
        CHECK(!policy_prefix_is_apart("alice-"));
}

static const struct {
        const char *one, *other;
        bool overlap;
} pairs[] = {
        {"a-",                                       "b-",                                       false},
        {"a-",                                       "a-",                                       true },
        {"a",                                        "ab-",                                      true },
        {"alice-",                                   "u{uid}-",                                  false},
        {"u5-",                                      "u{uid}-",                                  true },
        {"u5",                                       "u{uid}-",                                  true },
        {"u",                                        "u{uid}-",                                  true },
        {"ux-",                                      "u{uid}-",                                  false},
        {"u5-x",                                     "u{uid}-",                                  true },
        {"u5x",                                      "u{uid}-",                                  false},
        {"u{uid}-",                                  "u{uid}.",                                  false},
        {"u{uid}-",                                  "u{uid}-b-",                                true },
        {"u1{uid}-",                                 "u{uid}-",                                  true }, /* u15- is that of 5 and that of 15 */
        {"u{uid}-",                                  "v{uid}-",                                  false},
        {"u{uid}a-",                                 "u{uid}b-",                                 false},
        {"{uid}-",                                   "u{uid}-",                                  false},
        {"{uid}0-",                                  "{uid}-",                                   true },
        {"{uid}0x",                                  "{uid}1x",                                  false}, /* a digit differs before the x */
        {"{uid}00x",                                 "{uid}0y",                                  false},
        {"u{uid}",                                   "u{uid}-",                                  true },
        {"9{uid}-",                                  "8{uid}-",                                  false},
        {"{uid}1111111111111111111111111111111111a", "{uid}1111111111111111111111111111111111b", false},
};

static void test_overlap(void)
{
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                bool good =
                        CHECK_INT(policy_prefixes_overlap(pairs[i].one, pairs[i].other), pairs[i].overlap);

                if (!(CHECK_INT(policy_prefixes_overlap(pairs[i].other, pairs[i].one), pairs[i].overlap)
                            && good))
                        fprintf(stderr, "    %s, %s\n", pairs[i].one, pairs[i].other);
        }
}

/* The argument of the header, tried: of all templates and small uids, two prefixes that overlap were found. */
static void test_no_overlap_is_missed(void)
{
        static const char *const templates[] = {"u{uid}-", "u1{uid}-", "{uid}-", "u{uid}-1", "{uid}1-", "u1-",
                "u{uid}", "12", "u{uid}.", "1{uid}.", "u12{uid}a"};
        const size_t count = sizeof(templates) / sizeof(templates[0]);
        char one[PREFIX_SIZE], other[PREFIX_SIZE];

        for (size_t i = 0; i < count * count; i++)
                for (uid_t uid = 1; uid < 130; uid++)
                        for (uid_t rival = 1; rival < 130; rival++) {
                                const char *mine = templates[i / count], *theirs = templates[i % count];

                                policy_prefix_print(mine, uid, one);
                                policy_prefix_print(theirs, rival, other);
                                if (strncmp(one, other, strlen(one)) != 0 || uid == rival)
                                        continue;
                                if (!CHECK(i / count == i % count ? !policy_prefix_is_apart(mine)
                                                                  : policy_prefixes_overlap(mine, theirs)))
                                        fprintf(stderr, "    %s, %s\n", one, other);
                        }
}

int main(void)
{
        test_print();
        test_apart();
        test_overlap();
        test_no_overlap_is_missed();
        return check_report();
}
