/* SPDX-License-Identifier: MIT */
/* The path in a spec of a client in a container. */
#include "api/resources/client_path.h"

#include "api/held/path_check.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "api/http/view.h"
#include "ublkd/store/device_change.h"
#include "ublkd/model/device_spec_store.h"
#include "ublkd/values/path_text.h"

#include <string.h>

/* It was looked up when it was given. A disk that is to be written to now may be on a mount that is read-only for the client. */
static bool has_path_already(
        const struct request *request, const struct device_record *record, const struct device_spec *spec)
{
        const struct device_spec *before = record && view_has(request, record) ? record->spec : NULL;
        const char *path = before ? device_spec_path(before) : NULL;

        return path && strcmp(path, device_spec_path(spec)) == 0
               && (!before->options.read_only || spec->options.read_only);
}

/* Return 1 if the path has no ".", ".." and "//", 0 if it has, -ENOMEM. */
static int check_plain(const char *path)
{
        _cleanup_free_ char *plain = NULL;
        int r = path_make_absolute("/", path, &plain);

        return r < 0 ? r : strcmp(plain, path) == 0;
}

static bool set_path(struct request *request, struct device_spec **spec, const char *path)
{
        _cleanup_problems_ struct problem_list problems = {};
        int r = device_spec_set_path(spec, path, &problems);

        if (r < 0)
                reply_error(request, r, "Cannot use the path of the container");
        return r >= 0;
}

/* Return whether *spec has the path of the host; false: there is a reply, or the handler runs again. */
static bool translate(struct request *request, struct device_spec **spec)
{
        const char *path = device_spec_path(*spec), *found;
        char pointer[TARGET_POINTER_SIZE + 8];
        int r = check_plain(path);

        if (r < 0)
                reply_error(request, r, "Cannot read the path");
        if (r <= 0)
                return r == 0; /* the policy refuses it */
        device_spec_path_pointer(*spec, pointer);
        found = path_check(request, path, pointer, !(*spec)->options.read_only);
        return found && set_path(request, spec, found);
}

bool client_path_settle(
        struct request *request, const struct device_record *record, struct device_spec **spec)
{
        const char *path = device_spec_path(*spec);

        if (view_manages_all(request) || request->peer.home == PEER_AT_HOME || !path
                || device_spec_has_list(*spec) /* the policy refuses it, in its own words */
                || device_spec_pool(*spec) || has_path_already(request, record, *spec))
                return true;
        return translate(request, spec);
}
