/* SPDX-License-Identifier: MIT */
/* Opens the store of the supervisor: the state directory, and the database in it. */
#include "ublkd/store/device_store.h"

#include "ublkd/base/file_io.h"

#include <string.h>

int device_store_open(const char *state_dir, struct device_store **ret, struct problem_list *problems)
{
        const struct device_backend *backend;
        void *context;
        int r = make_dirs(state_dir, 0700);

        if (r < 0) {
                (void)problem_add(problems, -r, "", "StateDirectory",
                        "The state directory %s cannot be created: %s; start ublkd as root, or name another "
                        "with --state-dir",
                        state_dir, strerror(-r));
                return r;
        }
        r = store_sqlite_open(state_dir, &backend, &context, problems);
        return r < 0 ? r : device_store_new(backend, context, ret);
}
