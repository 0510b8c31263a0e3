/* SPDX-License-Identifier: MIT */
/* The path on this host of a file that a process in a container names. */
#include "ublkd/peers/peer_path.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/reading.h"
#include "ublkd/offload/apart.h"
#include "ublkd/peers/mount_translation.h"
#include "ublkd/peers/peer_process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>

enum {
        PATIENCE_USEC = 2 * 1000 * 1000,
        THEIRS_MAX = 256 * 1024, /* bytes, about 2,000 mounts: a client could make them without an end */
        OURS_MAX = 8 << 20,
        LOOKS_OF_USER_MAX = 4,
};

struct peer_path_look {
        struct peer_paths *paths;
        struct peer_process peer;
        void (*done)(void *userdata, int error, const char *path); /* NULL: cancelled */
        void *userdata;
        bool writes;
        uint32_t account;
        TAILQ_ENTRY(peer_path_look) entry;
        char path[]; /* NUL-terminated */
};

struct peer_paths {
        struct apart *apart;
        TAILQ_HEAD(, peer_path_look) looks; /* the first is under way */
};

/* ---- in the process ---- */

static int read_mountinfo(const char *process, size_t size_max, char **ret)
{
        _cleanup_close_ int fd = -1;
        char path[48];
        size_t size;

        snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : read_to_end(fd, size_max, ret, &size);
}

static int translate(const struct peer_path_look *look, char **ret)
{
        _cleanup_free_ char *theirs = NULL, *ours = NULL;
        char process[16];
        int r;

        snprintf(process, sizeof(process), "%d", (int)look->peer.pid);
        r = read_mountinfo(process, THEIRS_MAX, &theirs);
        if (r >= 0)
                r = read_mountinfo("self", OURS_MAX, &ours);
        return r < 0 ? r : mount_translate(theirs, ours, look->path, look->writes, ret);
}

/* Answers an error, and the path with its NUL. */
static void look_apart(void *userdata, FILE *answer)
{
        const struct peer_paths *paths = userdata;
        _cleanup_free_ char *found = NULL;
        int error = translate(TAILQ_FIRST(&paths->looks), &found);

        (void)fwrite(&error, sizeof(error), 1, answer);
        if (error >= 0)
                (void)fwrite(found, strlen(found) + 1, 1, answer);
}

/* ---- on the loop ---- */

static void look_free(struct peer_path_look *look)
{
        TAILQ_REMOVE(&look->paths->looks, look, entry);
        peer_process_close(&look->peer);
        free(look);
}

static void finish(struct peer_path_look *look, int error, const char *path)
{
        void (*done)(void *userdata, int error, const char *path) = look->done;
        void *userdata = look->userdata;

        look_free(look);
        if (done)
                done(userdata, error, path);
}

static void begin_next(struct peer_paths *paths)
{
        struct peer_path_look *look;
        int r = -EAGAIN;

        while (r < 0 && (look = TAILQ_FIRST(&paths->looks))) {
                r = look->done ? apart_begin(paths->apart) : -ECANCELED;
                if (r == -EBUSY)
                        return;
                if (r < 0)
                        finish(look, r == -EDEADLK ? -ETIMEDOUT : r, NULL);
        }
}

static int read_answer(const struct peer_path_look *look, const char *answer, size_t size, const char **ret)
{
        int error;

        if (!peer_process_lives(&look->peer)) /* then that may be about another process */
                return -ESRCH;
        if (size < sizeof(error))
                return -EPIPE;
        memcpy(&error, answer, sizeof(error));
        if (error < 0)
                return error;
        if (size == sizeof(error) || answer[size - 1] != '\0')
                return -EPIPE;
        *ret = answer + sizeof(error);
        return 0;
}

static void on_looked(void *userdata, int error, const void *answer, size_t size)
{
        struct peer_paths *paths = userdata;
        struct peer_path_look *look = TAILQ_FIRST(&paths->looks);
        const char *path = NULL;

        if (error >= 0)
                error = read_answer(look, answer, size, &path);
        finish(look, error, path);
        begin_next(paths);
}

static unsigned count_of(const struct peer_paths *paths, uint32_t account)
{
        const struct peer_path_look *look;
        unsigned count = 0;

        TAILQ_FOREACH (look, &paths->looks, entry)
                count += look->account == account;
        return count;
}

int peer_path_begin(struct peer_paths *paths, int socket, const struct peer_path_wish *wish,
        void (*done)(void *userdata, int error, const char *path), void *userdata,
        struct peer_path_look **ret)
{
        struct peer_path_look *look;
        int r;

        if (count_of(paths, wish->account) >= LOOKS_OF_USER_MAX)
                return -EBUSY;
        look = calloc(1, sizeof(*look) + strlen(wish->path) + 1);
        if (!look)
                return -ENOMEM;
        r = peer_process_open(socket, &look->peer);
        if (r < 0) {
                free(look);
                return r;
        }
        look->paths = paths;
        look->done = done;
        look->userdata = userdata;
        look->writes = wish->writes;
        look->account = wish->account;
        strcpy(look->path, wish->path);
        TAILQ_INSERT_TAIL(&paths->looks, look, entry);
        if (look == TAILQ_FIRST(&paths->looks))
                r = apart_begin(paths->apart);
        if (r < 0) {
                look_free(look);
                return r == -EDEADLK ? -ETIMEDOUT : r;
        }
        *ret = look;
        return 0;
}

/* The process that is under way ends by itself. */
void peer_path_cancel(struct peer_path_look *look)
{
        if (look == TAILQ_FIRST(&look->paths->looks))
                look->done = NULL;
        else
                look_free(look);
}

int peer_paths_new(sd_event *event, struct peer_paths **ret)
{
        struct peer_paths *paths = calloc(1, sizeof(*paths));
        int r;

        if (!paths)
                return -ENOMEM;
        TAILQ_INIT(&paths->looks);
        r = apart_new(event,
                &(struct apart_options){
                        .process = "ublkd-look",
                        .patience_usec = PATIENCE_USEC,
                        .look = look_apart,
                        .done = on_looked,
                        .userdata = paths,
                },
                &paths->apart);
        if (r < 0) {
                free(paths);
                return r;
        }
        *ret = paths;
        return 0;
}

struct peer_paths *peer_paths_free(struct peer_paths *paths)
{
        struct peer_path_look *look;

        if (!paths)
                return NULL;
        apart_free(paths->apart);
        while ((look = TAILQ_FIRST(&paths->looks)))
                look_free(look);
        free(paths);
        return NULL;
}
