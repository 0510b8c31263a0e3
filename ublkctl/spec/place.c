/* SPDX-License-Identifier: MIT */
/* Files and block devices, as the command line names them. */
#include "ublkctl/spec/place.h"

#include "ublkctl/text/json_path.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/model/tenant.h"
#include "ublkd/values/path_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool same(const struct stat *one, const struct stat *other)
{
        if (S_ISBLK(one->st_mode) && S_ISBLK(other->st_mode))
                return one->st_rdev == other->st_rdev;
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* "LINK/.." differs from the folder of LINK: then keep the word as it is. */
static bool leads_elsewhere(const struct place *place)
{
        struct stat stat_of_path;

        return stat(place->path, &stat_of_path) < 0 || !same(&place->stat, &stat_of_path);
}

static int keep_word(struct place *place, const char *directory)
{
        char *path;

        if (asprintf(&path, "%s/%s", *place->word == '/' ? "" : directory,
                    place->word + strspn(place->word, "/"))
                < 0)
                return -ENOMEM;
        free(place->path);
        place->path = path;
        return 0;
}

int place_look(const char *word, struct place *ret)
{
        _cleanup_free_ char *directory = getcwd(NULL, 0);
        struct place place = {.word = word};
        int r;

        if (directory)
                r = path_make_absolute(directory, word, &place.path);
        else /* the working directory was removed: only a whole path works */
                r = (place.path = strdup(word)) ? 0 : -ENOMEM;
        if (r < 0)
                return r;
        place.exists = stat(word, &place.stat) == 0;
        place.error = place.exists ? 0 : errno;
        if (place.exists && directory && leads_elsewhere(&place))
                r = keep_word(&place, directory);
        if (r < 0)
                place_clear(&place);
        else
                *ret = place;
        return r;
}

void place_clear(struct place *place)
{
        free(place->path);
        *place = (struct place){};
}

bool place_is(const struct place *place, const char *path)
{
        struct stat other;

        if (strcmp(place->path, path) == 0)
                return true;
        return place->exists && stat(path, &other) == 0 && same(&place->stat, &other);
}

/* What lies at a path that another user gave is the choice of that user, also after the disk was made, and a look at it may
 * wait for that user's file system. The path of an image in a pool is the choice of ublkd. */
static bool is_path_of_another(const cJSON *device)
{
        const char *tenant = json_text(device, "tenant");
        char own[TENANT_SIZE];

        tenant_of_user(geteuid(), own);
        return tenant && !tenant_is(own, tenant) && !json_text(device, "spec.target.pool");
}

bool place_backs(const struct place *place, const cJSON *device)
{
        const char *backing = json_store_path(device);

        return backing && !is_path_of_another(device) && place_is(place, backing);
}
