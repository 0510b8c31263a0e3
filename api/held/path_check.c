/* SPDX-License-Identifier: MIT */
/* Suspend a request until it is known which path of the host a path of the client's container is. */
#include "api/held/path_check.h"

#include "api/http/hold.h"
#include "api/http/respond.h"
#include "api/http/server.h"
#include "ublkd/peers/peer_path.h"

#include <string.h>

struct path_check {
        struct hold hold;            /* first member */
        struct peer_path_look *look; /* NULL: it has ended, or did not begin */
        bool answered;
        int error; /* valid with `answered`; 0: the request has the path */
};

static struct hold *path_check_free(struct hold *hold)
{
        struct path_check *check = (struct path_check *)hold;

        if (!check)
                return NULL;
        if (check->look)
                peer_path_cancel(check->look);
        hold_release(hold);
        free(check);
        return NULL;
}

static const struct hold_kind path_check_kind = {.free = path_check_free};

static void on_found(void *userdata, int error, const char *path)
{
        struct path_check *check = userdata;
        struct request *request = check->hold.request;

        check->look = NULL;
        check->answered = true;
        check->error = error;
        if (error >= 0) {
                request->host_path = strdup(path);
                check->error = request->host_path ? 0 : -ENOMEM;
        }
        hold_end(&check->hold);
}

static void refuse(struct request *request, int error, const char *pointer)
{
        /* clang-format off */
        static const struct {
                int error;
                const char *why;
        } table[] = {
                {ENOENT, "is on no file system that the host has mounted, too; give a file on a volume of the host, or "
                         "target.pool"},
                {EROFS, "is on a mount that is read-only in the container; ask for readOnly, or mount it for writing there"},
                {EBUSY, "was not looked up, because four other requests of this user wait for that; repeat the request"},
                {ESRCH, "was not looked up, because the client has ended; keep the process that asks until the answer comes"},
                {EFBIG, "was not looked up, because the client has too many mounts; unmount some, or give target.pool"},
                {ETIMEDOUT, "was not looked up in time; repeat the request, or give target.pool"},
        };
        /* clang-format on */
        _cleanup_problems_ struct problem_list problems = {};
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(table); i++)
                if (table[i].error == -error)
                        r = problem_add(&problems, -error, pointer, "PathOfContainer",
                                "The path of the container %s.", table[i].why);
        if (r < 0 || problems.count == 0)
                reply_error(request, r < 0 ? r : error, "Cannot look up the path of the container");
        else
                reply_problems(request, PROBLEM_FORBIDDEN, &problems);
}

static int begin(struct request *request, const char *path, bool writes)
{
        const struct peer_path_wish wish = {.path = path, .writes = writes, .account = request->peer.account};
        struct peer_paths *paths = request->api->config.peer_paths;
        struct path_check *check;
        int r;

        if (!paths)
                return -ENOENT;
        check = calloc(1, sizeof(*check));
        if (!check)
                return -ENOMEM;
        check->hold.request = request;
        r = peer_path_begin(paths, request->client->fd, &wish, on_found, check, &check->look);
        if (r >= 0)
                r = hold_attach(&check->hold, &path_check_kind, request);
        if (r >= 0)
                hold_suspend(&check->hold);
        else
                (void)path_check_free(&check->hold);
        return r;
}

const char *path_check(struct request *request, const char *path, const char *pointer, bool writes)
{
        const struct path_check *check = (const struct path_check *)request->hold;
        int r;

        if (request->suspended)
                return NULL;
        if (request->host_path)
                return request->host_path;
        if (check && check->hold.kind == &path_check_kind && check->answered)
                r = check->error;
        else
                r = begin(request, path, writes);
        if (r < 0)
                refuse(request, r, pointer);
        return NULL;
}
