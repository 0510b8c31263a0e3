/* SPDX-License-Identifier: MIT */
/* path_names: who depends on which name, and when a place is left. */
#include "ublkd/paths/path_names.h"

#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"

#include <stdlib.h>

enum { MANY = 5000 };

static unsigned left;
static int left_last;

static void leave(void *userdata _unused_, int place)
{
        left++;
        left_last = place;
}

static void count(void *userdata, struct path_dependent *dependent _unused_)
{
        ++*(unsigned *)userdata;
}

static unsigned dependents_of(const struct path_names *names, int place, const char *name)
{
        unsigned found = 0;

        path_names_each(names, place, name, count, &found);
        return found;
}

static unsigned dependents_in(const struct path_names *names, int place)
{
        unsigned found = 0;

        path_names_each_in(names, place, count, &found);
        return found;
}

static struct path_names *new_names(void)
{
        struct path_names *names = NULL;

        left = 0;
        CHECK_INT(path_names_new(leave, NULL, &names), 0);
        return names;
}

static void test_names_of_two_places(void)
{
        struct path_names *names = new_names();
        struct path_dependent one = {}, other = {};

        CHECK_INT(path_names_link(names, 3, "a", &one), 0);
        CHECK_INT(path_names_link(names, 3, "a", &other), 0);
        CHECK_INT(path_names_link(names, 3, "b", &other), 0);
        CHECK_INT(path_names_link(names, 1, "a", &other), 0);
        CHECK_INT(path_names_link(names, PATH_PLACE_MOUNTS, "/a", &other), 0);
        CHECK_INT(dependents_of(names, 3, "a"), 2);
        CHECK_INT(dependents_of(names, 3, "b"), 1);
        CHECK_INT(dependents_of(names, 1, "a"), 1);
        CHECK_INT(dependents_of(names, 1, "b"), 0);
        CHECK_INT(dependents_of(names, 2, "a"), 0);
        CHECK_INT(dependents_of(names, PATH_PLACE_MOUNTS, "/a"), 1);
        CHECK_INT(dependents_in(names, 3), 3);
        path_names_release(names, &other.links);
        CHECK_INT(left, 2); /* 1 and the mounts, not 3 */
        CHECK_INT(dependents_in(names, 3), 1);
        path_names_release(names, &one.links);
        CHECK_INT(left_last, 3);
        CHECK_INT(path_names_count(names), 0);
        CHECK_INT(path_names_places(names), 0);
        path_names_free(names);
}

static void test_a_place_is_not_left_between_two_looks(void)
{
        struct path_names *names = new_names();
        struct path_dependent one = {};
        struct path_links before;

        CHECK_INT(path_names_link(names, 3, "a", &one), 0);
        path_names_take(&one, &before);
        CHECK_INT(path_names_link(names, 3, "b", &one), 0);
        path_names_release(names, &before);
        CHECK_INT(left, 0);
        CHECK_INT(dependents_of(names, 3, "a"), 0);
        CHECK_INT(dependents_of(names, 3, "b"), 1);
        path_names_release(names, &one.links);
        CHECK_INT(left, 1);
        path_names_free(names);
}

static void test_a_lost_place_is_not_left_and_its_number_is_free(void)
{
        struct path_names *names = new_names();
        struct path_dependent one = {}, other = {};

        CHECK_INT(path_names_link(names, 3, "a", &one), 0);
        path_names_lose(names, 3);
        path_names_lose(names, 4);
        CHECK_INT(dependents_of(names, 3, "a"), 0);
        CHECK_INT(path_names_link(names, 3, "a", &other), 0);
        CHECK_INT(dependents_of(names, 3, "a"), 1);
        path_names_release(names, &one.links);
        CHECK_INT(left, 0);
        CHECK_INT(dependents_of(names, 3, "a"), 1);
        path_names_release(names, &other.links);
        CHECK_INT(left, 1);
        path_names_free(names);
}

/* As many as make the table grow, in one place and in many. */
static void test_many_names(void)
{
        struct path_names *names = new_names();
        struct path_dependent *many = calloc(MANY, sizeof(*many));
        char name[32];

        for (int i = 0; i < MANY; i++) {
                snprintf(name, sizeof(name), "%d.img", i);
                CHECK_INT(path_names_link(names, 1, "srv", &many[i]), 0);
                CHECK_INT(path_names_link(names, 2, name, &many[i]), 0);
                CHECK_INT(path_names_link(names, MANY + 10 - i, "x", &many[i]), 0);
        }
        CHECK_INT(path_names_count(names), 2 * MANY + 1);
        CHECK_INT(path_names_places(names), MANY + 2);
        CHECK_INT(dependents_of(names, 1, "srv"), MANY);
        CHECK_INT(dependents_of(names, 2, "4711.img"), 1);
        CHECK_INT(dependents_of(names, 11, "x"), 1);
        for (int i = 0; i < MANY; i++)
                path_names_release(names, &many[i].links);
        CHECK_INT(path_names_count(names), 0);
        CHECK_INT(left, MANY + 2);
        free(many);
        path_names_free(names);
}

int main(void)
{
        test_names_of_two_places();
        test_a_place_is_not_left_between_two_looks();
        test_a_lost_place_is_not_left_and_its_number_is_free();
        test_many_names();
        return check_report();
}
