/* SPDX-License-Identifier: MIT */
/* The path of an image. */
#include "ublkd/pools/pool_spec.h"

#include "ublkd/base/sentence.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

static int new_path(const struct policy_pool *pool, const char *name, char **ret)
{
        size_t length = strlen(pool->directory);
        uint64_t number;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                return -EIO;
        while (length > 1 && pool->directory[length - 1] == '/')
                length--;
        *ret = sentence_print("%.*s%s%s-%016" PRIx64 ".img", (int)length, pool->directory,
                pool->directory[length - 1] == '/' ? "" : "/", name, number);
        return *ret ? 0 : -ENOMEM;
}

static int refuse(
        struct problem_list *problems, int error, const char *pointer, const char *reason, const char *why)
{
        int r = problem_add(problems, error, pointer, reason, "%s", why);

        return r < 0 ? r : -error;
}

/* The image keeps its size, and a quota that counts the size of the spec would not count all of it. */
static int refuse_to_shrink(struct problem_list *problems)
{
        return refuse(problems, EEXIST, "/size", "ImageShrinks",
                "the image of the device does not shrink; give its size or a larger one, or remove the "
                "device and "
                "create another one");
}

/* Return the size that the image has, or will have. A growth that the file system of the pool refuses can be taken back. */
static uint64_t least_size(const struct device_record *record)
{
        uint64_t wanted = record->spec->options.size, shown = record->status.size;

        return record->status.disk && shown > 0 && shown < wanted ? shown : wanted;
}

/* The pool is that of the record. */
static int keep_path(
        const struct device_record *record, struct device_spec **spec, struct problem_list *problems)
{
        const char *given = device_spec_path(*spec), *path = device_spec_path(record->spec);

        if ((*spec)->options.size < least_size(record))
                return refuse_to_shrink(problems);
        if (!given && path)
                return device_spec_set_path(spec, path, problems);
        if (given && path && strcmp(given, path) == 0)
                return 0;
        return refuse(problems, EINVAL, "/target/path", "PathOfPool",
                "path is not that of the image of the device, which keeps it; leave it out");
}

/* Names no pool that exists: which there are is not for each client. */
static int choose_path(const struct policy *policy, const char *pool_name, struct device_spec **spec,
        struct problem_list *problems)
{
        const struct policy_pool *pool = policy_pool(policy, pool_name);
        _cleanup_free_ char *path = NULL;
        int r;

        if (device_spec_path(*spec))
                return refuse(problems, EINVAL, "/target/path", "PathOfPool",
                        "path is given with a pool, and ublkd chooses the path of a new image; leave it out");
        if (!pool)
                return refuse(problems, EINVAL, "/target/pool", "UnknownPool",
                        "there is no such pool; give a pool of the policy of this host");
        r = new_path(pool, (*spec)->options.name, &path);
        return r < 0 ? r : device_spec_set_path(spec, path, problems);
}

/* A change of the pool would need a new disk, without the data of the old one. */
static int refuse_change(bool has_image, struct problem_list *problems)
{
        return refuse(problems, EEXIST, "/target/pool", has_image ? "ImageLeftBehind" : "NoImage",
                has_image
                        ? "the device has an image in its pool, which the change would leave behind; give "
                          "the "
                          "same pool, or remove the device (with target.keep, if the image shall stay) and "
                          "create another one"
                        : "the device has no image in a pool; give its old target, or remove the device and "
                          "create another one");
}

int pool_spec_resolve(const struct policy *policy, const struct device_record *record,
        struct device_spec **spec, struct problem_list *problems)
{
        const struct device_spec *stored = record ? record->spec : NULL;
        const char *pool = device_spec_pool(*spec), *before = device_spec_pool(stored);

        if (!pool && !before)
                return 0;
        if (record && !stored)
                return refuse(problems, EEXIST, "/target/pool", "ImageUnknown",
                        "the stored spec of the device cannot be read, so its image is not known; remove the "
                        "device, "
                        "and create it again under another name");
        if (!stored)
                return choose_path(policy, pool, spec, problems);
        if (pool && before && strcmp(pool, before) == 0)
                return keep_path(record, spec, problems);
        return refuse_change(before, problems);
}
