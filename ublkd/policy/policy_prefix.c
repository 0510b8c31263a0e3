/* SPDX-License-Identifier: MIT */
/* How the names of a tenant's devices begin. */
#include "ublkd/policy/policy_prefix.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UID_WORD "{uid}"
#define UID_WORD_LENGTH (sizeof(UID_WORD) - 1)

static bool is_digit(char letter)
{
        return letter >= '0' && letter <= '9';
}

bool policy_prefix_is_apart(const char *template)
{
        const char *word = strstr(template, UID_WORD);

        return word && word[UID_WORD_LENGTH] != '\0' && !is_digit(word[UID_WORD_LENGTH]);
}

void policy_prefix_print(const char *template, uid_t uid, char ret[static PREFIX_SIZE])
{
        const char *word = strstr(template, UID_WORD);

        if (word)
                snprintf(ret, PREFIX_SIZE, "%.*s%u%s", (int)(word - template), template, uid,
                        word + UID_WORD_LENGTH);
        else
                snprintf(ret, PREFIX_SIZE, "%s", template);
}

bool policy_prefix_match(const char *template, const char *name, uid_t *ret)
{
        const char *word = strstr(template, UID_WORD), *digits, *rest;
        unsigned long long uid;

        if (!word || strncmp(name, template, (size_t)(word - template)) != 0)
                return false;
        digits = name + (word - template);
        if (!is_digit(*digits) || *digits == '0') /* as it is printed; 0 is never a tenant */
                return false;
        uid = strtoull(digits, (char **)&rest, 10);
        if (uid >= UINT32_MAX || strncmp(rest, word + UID_WORD_LENGTH, strlen(word + UID_WORD_LENGTH)) != 0)
                return false;
        *ret = (uid_t)uid;
        return true;
}

/* Where a template is: what follows, and whether more digits of the uid may come before that. */
struct spot {
        const char *rest;
        bool in_uid;
};

/* A character that may come next, and where the template is after it. */
struct step {
        char letter; /* 0: any digit */
        struct spot next;
};

enum { STEPS_MAX = 2 };

static size_t steps_from(struct spot spot, struct step ret[static STEPS_MAX])
{
        size_t count = 0;

        if (spot.in_uid)
                ret[count++] = (struct step){.next = spot};
        if (strncmp(spot.rest, UID_WORD, UID_WORD_LENGTH) == 0)
                ret[count++] = (struct step){
                        .next = {.rest = spot.rest + UID_WORD_LENGTH, .in_uid = true}
                };
        else
                ret[count++] = (struct step){.letter = *spot.rest, .next = {.rest = spot.rest + 1}};
        return count;
}

static bool may_be_same(const struct step *one, const struct step *other)
{
        if (one->letter == 0 || other->letter == 0)
                return one->letter == other->letter || is_digit(one->letter) || is_digit(other->letter);
        return one->letter == other->letter;
}

static bool is_same_spot(struct spot one, struct spot other)
{
        return one.rest == other.rest && one.in_uid == other.in_uid;
}

/* Return whether both can go on with the same characters until one of them ends. Each template has one "{uid}", which it
 * leaves at one place, so the number of ways is the product of the lengths at most. */
static bool meet(struct spot one, struct spot other)
{
        struct step mine[STEPS_MAX], theirs[STEPS_MAX];
        size_t mine_count, their_count;

        if (*one.rest == '\0' || *other.rest == '\0')
                return true;
        mine_count = steps_from(one, mine);
        their_count = steps_from(other, theirs);
        for (size_t i = 0; i < mine_count; i++)
                for (size_t j = 0; j < their_count; j++) {
                        if (!may_be_same(&mine[i], &theirs[j])
                                || (is_same_spot(mine[i].next, one) && is_same_spot(theirs[j].next, other)))
                                continue;
                        if (meet(mine[i].next, theirs[j].next))
                                return true;
                }
        return false;
}

bool policy_prefixes_overlap(const char *one, const char *other)
{
        return meet((struct spot){.rest = one}, (struct spot){.rest = other});
}
