/* SPDX-License-Identifier: MIT */
/* A device gets the path of its image once, and keeps it. */
#include "ublkd/pools/pool_spec.h"

#include "tests/unit/check.h"
#include "tests/unit/spec_of.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <errno.h>
#include <string.h>

#define POOL(more)                                                                                           \
        "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"fast\"" more "},\"size\":\"1MiB\"}"
#define FILE_OF_CLIENT "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"path\":\"/srv/f\"}}"

static struct policy_pool pools[] = {
        {(char *)"fast", (char *)"/srv/fast"  },
        {(char *)"slow", (char *)"/srv/slow//"},
        {(char *)"root", (char *)"/"          },
};
static struct policy policy = {.pools = pools, .pool_count = ARRAY_SIZE(pools)};

/* Resolve `text` for a device with the spec `stored` (NULL: a new device). Return the path, or NULL: the spec has none
 * or there is the fault `pointer`. */
static char *resolve(const struct device_spec *stored, const char *text, int result, const char *pointer)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = spec_of(text);
        const struct device_record record = {.spec = (struct device_spec *)stored};
        const char *path;
        int r = pool_spec_resolve(&policy, stored ? &record : NULL, &spec, &problems);

        CHECK_INT(r, result);
        if (pointer && CHECK_INT(problems.count, 1))
                CHECK_STR(problems.items[0].pointer, pointer);
        if (!pointer)
                CHECK_INT(problems.count, 0);
        path = device_spec_path(spec);
        if (r >= 0 && spec->tree && path) { /* the options say the same as the document */
                _cleanup_device_spec_ struct device_spec *again = NULL;

                CHECK_INT(device_spec_parse(spec->document, NULL, &again, &problems), 0);
                CHECK(again && device_spec_equal(spec, again));
        }
        return r >= 0 && path ? strdup(path) : NULL;
}

static struct device_spec *store(const char *text)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct device_spec *spec = spec_of(text);

        CHECK_INT(pool_spec_resolve(&policy, NULL, &spec, &problems), 0);
        return spec;
}

static void a_new_device_gets_a_path_of_its_own(void)
{
        _cleanup_free_ char *one = resolve(NULL, POOL(""), 0, NULL),
                            *other = resolve(NULL, POOL(""), 0, NULL);
        unsigned long long number;
        int length = 0;

        if (!CHECK(one && other))
                return;
        CHECK(strcmp(one, other) != 0);
        CHECK_INT(sscanf(one, "/srv/fast/data-%16llx.img%n", &number, &length), 1);
        CHECK_INT(length, (int)strlen("/srv/fast/data-0123456789abcdef.img"));
        CHECK_INT(strlen(one), length);
}

static void a_spec_without_a_pool_stays(void)
{
        _cleanup_free_ char *path = resolve(NULL, FILE_OF_CLIENT, 0, NULL);

        CHECK_STR(path, "/srv/f");
}

static void a_device_keeps_its_path(void)
{
        _cleanup_device_spec_ struct device_spec *stored = store(POOL(""));
        _cleanup_free_ char *left_out = resolve(stored, POOL(",\"keep\":true"), 0, NULL), *repeated, *text;
        const char *path = device_spec_path(stored);

        CHECK_STR(left_out, path);
        CHECK(asprintf(&text,
                      "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"fast\",\"path\":\"%s\"},"
                      "\"size\":\"2MiB\"}",
                      path)
                > 0);
        repeated = resolve(stored, text, 0, NULL);
        CHECK_STR(repeated, path);
        free(resolve(stored, POOL(",\"path\":\"/srv/fast/other.img\""), -EINVAL, "/target/path"));
        free(resolve(NULL, text, -EINVAL, "/target/path")); /* the device was removed, and its image */
}

/* It has been renamed, or is not for these clients any more. */
static void devices_outlive_the_name_of_their_pool(void)
{
        _cleanup_device_spec_ struct device_spec *stored = store(POOL(""));
        struct policy before = policy;
        _cleanup_free_ char *path = NULL;

        policy = (struct policy){};
        path = resolve(stored, POOL(""), 0, NULL);
        CHECK_STR(path, device_spec_path(stored));
        free(resolve(NULL, POOL(""), -EINVAL, "/target/pool"));
        policy = before;
}

/* Its files have a fault, so none is in force. */
static void without_a_policy_there_is_no_pool(void)
{
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_device_spec_ struct device_spec *spec = spec_of(POOL(""));

        CHECK_INT(pool_spec_resolve(NULL, NULL, &spec, &problems), -EINVAL);
        if (CHECK_INT(problems.count, 1))
                CHECK_STR(problems.items[0].reason, "UnknownPool");
}

static void no_change_leaves_an_image_behind(void)
{
        _cleanup_device_spec_ struct device_spec *stored = store(POOL(""));

        free(resolve(stored, FILE_OF_CLIENT, -EEXIST, "/target/pool"));
        free(resolve(stored, "{\"name\":\"data\",\"target\":{\"type\":\"null\"},\"size\":512}", -EEXIST,
                "/target/pool"));
        free(resolve(stored,
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"slow\"},\"size\":512}", -EEXIST,
                "/target/pool"));
}

static void an_image_does_not_shrink(void)
{
        _cleanup_device_spec_ struct device_spec *stored = store(POOL(""));

        free(resolve(stored,
                "{\"name\":\"data\",\"target\":{\"type\":\"loop\",\"pool\":\"fast\"},\"size\":512}", -EEXIST,
                "/size"));
}

/* ublkd would delete it with the device. */
static void the_file_of_a_client_does_not_become_an_image(void)
{
        _cleanup_device_spec_ struct device_spec *stored = store(FILE_OF_CLIENT);

        free(resolve(stored, POOL(",\"path\":\"/srv/f\""), -EEXIST, "/target/pool"));
        free(resolve(stored, POOL(""), -EEXIST, "/target/pool"));
}

static void a_directory_may_end_in_a_slash(void)
{
        _cleanup_free_ char *path = resolve(NULL,
                "{\"name\":\"a\",\"target\":{\"type\":\"loop\",\"pool\":\"slow\"},\"size\":512}", 0, NULL);

        CHECK(path && strncmp(path, "/srv/slow/a-", strlen("/srv/slow/a-")) == 0);
        path = (free(path),
                resolve(NULL,
                        "{\"name\":\"a\",\"target\":{\"type\":\"loop\",\"pool\":\"root\"},\"size\":512}", 0,
                        NULL));
        CHECK(path && strncmp(path, "/a-", strlen("/a-")) == 0);
}

int main(void)
{
        a_new_device_gets_a_path_of_its_own();
        a_spec_without_a_pool_stays();
        a_device_keeps_its_path();
        devices_outlive_the_name_of_their_pool();
        without_a_policy_there_is_no_pool();
        no_change_leaves_an_image_behind();
        an_image_does_not_shrink();
        the_file_of_a_client_does_not_become_an_image();
        a_directory_may_end_in_a_slash();
        return check_report();
}
