/* SPDX-License-Identifier: MIT */
/* peer_path_on_host: a real process in a mount namespace of its own, in which a directory of the host is elsewhere. Needs root. */
#include "ublkd/peers/peer_path.h"

#include "tests/unit/check.h"

#include "ublkd/base/cleanup.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char root[] = "/tmp/peer-path-XXXXXX";

static void path_of(const char *name, char ret[static 128])
{
        snprintf(ret, 128, "%s/%s", root, name);
}

/* The directory "own" is at "there", and a tmpfs is at "own". */
static int enter(void)
{
        char own[128], there[128];

        path_of("own", own);
        path_of("there", there);
        return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
                               || mount(own, there, NULL, MS_BIND, NULL) < 0
                               || mount("none", own, "tmpfs", 0, NULL) < 0
                       ? -1
                       : 0;
}

static void serve_as_client(int listener)
{
        struct sockaddr_un address;
        socklen_t size = sizeof(address);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (enter() < 0)
                _exit(CHECK_SKIP);
        if (getsockname(listener, (struct sockaddr *)&address, &size) < 0
                || connect(fd, (struct sockaddr *)&address, size) < 0)
                _exit(91);
        for (;;)
                pause();
}

struct answer {
        unsigned count;
        int error;
        char path[128];
};

static void note_answer(void *userdata, int error, const char *path)
{
        struct answer *answer = userdata;

        answer->count++;
        answer->error = error;
        snprintf(answer->path, sizeof(answer->path), "%s", path ? path : "");
}

static void run_until(sd_event *event, const unsigned *count, unsigned wanted)
{
        while (*count < wanted)
                if (!CHECK(sd_event_run(event, 10 * 1000 * 1000) > 0))
                        return;
}

static int begin(struct peer_paths *paths, int client, const char *path, uid_t user, struct answer *answer,
        struct peer_path_look **ret)
{
        const struct peer_path_wish wish = {.path = path, .account = user};

        return peer_path_begin(paths, client, &wish, note_answer, answer, ret);
}

static void is_at(sd_event *event, struct peer_paths *paths, int client, const char *path, const char *wanted)
{
        struct answer answer = {};
        struct peer_path_look *look;

        CHECK_INT(begin(paths, client, path, 0, &answer, &look), 0);
        run_until(event, &answer.count, 1);
        CHECK_INT(answer.error, wanted ? 0 : -ENOENT);
        CHECK_STR(answer.path, wanted ? wanted : "");
}

/* One after the other; those that were cancelled do not answer. */
static void many_are_asked_at_once(sd_event *event, struct peer_paths *paths, int client, const char *path)
{
        struct answer answers[6] = {};
        struct peer_path_look *looks[ARRAY_SIZE(answers)], *look;
        struct answer more = {};

        for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
                CHECK_INT(begin(paths, client, path, (uid_t)i / 4, &answers[i], &looks[i]), 0);
        CHECK_INT(begin(paths, client, path, 0, &more, &look), -EBUSY); /* that user has four */
        peer_path_cancel(looks[0]);                                     /* it is under way */
        peer_path_cancel(looks[3]);
        run_until(event, &answers[5].count, 1);
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                CHECK_INT(answers[i].count, i != 0 && i != 3);
                CHECK_INT(answers[i].error, 0);
        }
}

static void check_client(sd_event *event, struct peer_paths *paths, int client, pid_t pid)
{
        char own[128], there[128], other[128];
        struct answer answer = {};
        struct peer_path_look *look;

        path_of("own/x", own);
        path_of("there/x", there);
        path_of("x", other);
        is_at(event, paths, client, there, own);
        is_at(event, paths, client, own, NULL); /* the tmpfs is in there only */
        is_at(event, paths, client, other, other);
        many_are_asked_at_once(event, paths, client, there);
        CHECK_INT(begin(paths, client, there, 0, &answer, &look), 0);
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, NULL, 0), pid);
        run_until(event, &answer.count, 1);
        CHECK_INT(answer.error, -ESRCH);
        CHECK_INT(begin(paths, client, there, 0, &answer, &look), -ESRCH);
        CHECK_INT(begin(paths, 0, there, 0, &answer, &look) < 0, true);
}

int main(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the kernel chooses an abstract name */
        _cleanup_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client = -1;
        char own[128], there[128];
        struct peer_paths *paths = NULL;
        sd_event *event = NULL;
        pid_t pid;

        if (geteuid() != 0)
                return CHECK_SKIP;
        CHECK(mkdtemp(root));
        path_of("own", own);
        path_of("there", there);
        CHECK(mkdir(own, 0755) == 0 && mkdir(there, 0755) == 0);
        CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
        CHECK_INT(listen(listener, 1), 0);
        pid = fork();
        if (pid == 0)
                serve_as_client(listener);
        client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK_INT(sd_event_new(&event), 0);
        CHECK_INT(peer_paths_new(event, &paths), 0);
        check_client(event, paths, client, pid);
        peer_paths_free(paths);
        sd_event_unref(event);
        CHECK(rmdir(own) == 0 && rmdir(there) == 0 && rmdir(root) == 0);
        return check_report();
}
