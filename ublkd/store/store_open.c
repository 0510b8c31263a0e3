/* SPDX-License-Identifier: MIT */
/* Opens the store of the supervisor: the state directory, and the database in it. */
#include "ublkd/store/device_store.h"

#include <string.h>
#include <sys/stat.h>

/* Do not create the directories above it: their names may have a typo, and the devices be elsewhere. Return 1: it was
 * created; 0: it was there; -errno with one problem. */
static int open_directory(const char *path, struct problem_list *problems)
{
        int error;

        if (mkdir(path, 0700) == 0)
                return 1;
        error = errno;
        if (error == EEXIST)
                return 0;
        if (error == ENOENT)
                (void)problem_add(problems, error, "", "StateDirectory",
                        "The state directory %s cannot be created: the directory above it does not exist; "
                        "correct --state-dir (StateDirectory=), or create that directory",
                        path);
        else
                (void)problem_add(problems, error, "", "StateDirectory",
                        "The state directory %s cannot be created: %s; start ublkd as root, or name another "
                        "with --state-dir",
                        path, strerror(error));
        return -error;
}

int device_store_open(const char *state_dir, struct device_store **ret, struct problem_list *problems)
{
        const struct device_backend *backend;
        void *context;
        int r, created = open_directory(state_dir, problems);

        if (created < 0)
                return created;
        r = store_sqlite_open(state_dir, &backend, &context, problems);
        if (r >= 0)
                r = device_store_new(backend, context, ret);
        return r < 0 ? r : created;
}
