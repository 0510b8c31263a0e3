/* SPDX-License-Identifier: MIT */
/* HTTP on the socket of the plug-in. */
#include "volumes/plugin_server.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/peers/peer_home.h"

#include <limits.h>
#include <microhttpd.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

enum { BODY_MAX = 64 * 1024, CONNECTIONS_MAX = 64, IDLE_SECONDS = 60, BACKLOG = 64, END_SECONDS = 20 };

struct plugin_server {
        const struct plugin *plugin;
        struct MHD_Daemon *daemon;
        char path[PATH_MAX];
        pthread_mutex_t lock;
        pthread_cond_t answered;
        unsigned requests; /* that have begun, and are not answered; the lock protects it */
};

struct body {
        char *text;
        size_t size;
        bool too_large;
};

/* ---- the socket ---- */

/* Return 0: the path is free; -EADDRINUSE, -EEXIST, other -errno. */
static int remove_stale(const struct sockaddr_un *address)
{
        _cleanup_close_ int fd = -1;
        struct stat info;

        if (lstat(address->sun_path, &info) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(info.st_mode))
                return -EEXIST;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) >= 0 || errno != ECONNREFUSED)
                return -EADDRINUSE;
        return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_directory(const char *path)
{
        const char *slash = strrchr(path, '/');
        char directory[PATH_MAX];

        if (!slash || slash == path)
                return 0;
        snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
        return make_dirs(directory, 0700); /* what is there keeps its mode */
}

/* Return a descriptor or -errno. */
static int listen_at(const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = -1;
        mode_t before;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        r = make_directory(path);
        if (r >= 0)
                r = remove_stale(&address);
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        before = umask(0177);
        r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
        (void)umask(before);
        if (r < 0)
                return r;
        return listen(fd, BACKLOG) < 0 ? -errno : TAKE_FD(fd);
}

/* ---- requests ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, cJSON *object)
{
        char *text = object ? cJSON_PrintUnformatted(object) : NULL;
        struct MHD_Response *response;
        enum MHD_Result result = MHD_NO;

        cJSON_Delete(object);
        if (!text)
                return MHD_NO;
        response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
        if (!response) {
                free(text);
                return MHD_NO;
        }
        if (MHD_add_response_header(
                    response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/vnd.docker.plugins.v1.1+json")
                == MHD_YES)
                result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *sentence)
{
        cJSON *object = cJSON_CreateObject();

        if (object && !cJSON_AddStringToObject(object, "Err", sentence)) {
                cJSON_Delete(object);
                object = NULL;
        }
        return reply(connection, status, object);
}

/* The mode of the socket says the same; this holds wherever it is moved. Root of a container that has the socket, and no
 * users of its own, has the same number. A user that runs the plug-in for a test has no right to look that up. */
static bool is_root(struct MHD_Connection *connection)
{
        enum peer_home home;
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct ucred peer;
        socklen_t size = sizeof(peer);

        if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0
                || peer.uid != geteuid())
                return false;
        return geteuid() != 0 || (peer_home_of(info->connect_fd, &home) >= 0 && home == PEER_AT_HOME);
}

static void take_body(struct body *body, const char *data, size_t size)
{
        char *more = size <= BODY_MAX - body->size ? realloc(body->text, body->size + size + 1) : NULL;

        if (!more) {
                body->too_large = true;
                return;
        }
        body->text = more;
        memcpy(body->text + body->size, data, size);
        body->size += size;
        body->text[body->size] = '\0';
}

static enum MHD_Result answer(const struct plugin_server *server, struct MHD_Connection *connection,
        const char *path, const char *method, const struct body *body)
{
        cJSON *request = NULL, *object;
        bool failed;

        if (!is_root(connection))
                return refuse(connection, MHD_HTTP_FORBIDDEN,
                        "Only root of the host may use the plug-in, and not from a container.");
        if (!plugin_has_call(path))
                return refuse(connection, MHD_HTTP_NOT_FOUND, "The plug-in does not know this call.");
        if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
                return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Calls of the plug-in are POST.");
        if (body->too_large)
                return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "The body is too large.");
        if (body->size > 0) {
                request = cJSON_Parse(body->text);
                if (!cJSON_IsObject(request)) {
                        cJSON_Delete(request);
                        return refuse(connection, MHD_HTTP_BAD_REQUEST, "The body is not a JSON object.");
                }
        }
        object = plugin_call(server->plugin, path, request, &failed);
        cJSON_Delete(request);
        return reply(connection, failed ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_OK, object);
}

static void count_request(struct plugin_server *server, int change)
{
        (void)pthread_mutex_lock(&server->lock);
        server->requests += (unsigned)change;
        (void)pthread_cond_broadcast(&server->answered);
        (void)pthread_mutex_unlock(&server->lock);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *path,
        const char *method, const char *version _unused_, const char *data, size_t *size, void **context)
{
        struct body *body = *context;

        if (!body) {
                *context = calloc(1, sizeof(*body));
                if (*context)
                        count_request(userdata, 1);
                return *context ? MHD_YES : MHD_NO;
        }
        if (*size > 0) {
                take_body(body, data, *size);
                *size = 0;
                return MHD_YES;
        }
        return answer(userdata, connection, path, method, body);
}

static void on_completed(void *userdata, struct MHD_Connection *connection _unused_, void **context,
        enum MHD_RequestTerminationCode code _unused_)
{
        struct body *body = *context;

        if (!body)
                return;
        free(body->text);
        free(body);
        *context = NULL;
        count_request(userdata, -1);
}

/* ---- the server ---- */

int plugin_server_open(const struct plugin *plugin, const char *path, struct plugin_server **ret)
{
        struct plugin_server *server = calloc(1, sizeof(*server));
        int fd = server ? listen_at(path) : -ENOMEM;

        if (fd < 0) {
                free(server);
                return fd;
        }
        server->plugin = plugin;
        (void)pthread_mutex_init(&server->lock, NULL);
        (void)pthread_cond_init(&server->answered, NULL);
        snprintf(server->path, sizeof(server->path), "%s", path);
        server->daemon = MHD_start_daemon(
                MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL, NULL,
                on_request, server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_END);
        if (!server->daemon) {
                close_fd(fd);
                (void)unlink(path);
                free(server);
                return -ENOMEM;
        }
        *ret = server;
        return 0;
}

/* MHD would close their connections before they are answered. */
static void await_answers(struct plugin_server *server)
{
        struct timespec deadline;
        int r = 0;

        (void)clock_gettime(CLOCK_MONOTONIC, &deadline);
        deadline.tv_sec += END_SECONDS;
        (void)pthread_mutex_lock(&server->lock);
        while (r == 0 && server->requests > 0)
                r = pthread_cond_clockwait(&server->answered, &server->lock, CLOCK_MONOTONIC, &deadline);
        (void)pthread_mutex_unlock(&server->lock);
}

struct plugin_server *plugin_server_close(struct plugin_server *server)
{
        if (!server)
                return NULL;
        (void)unlink(server->path);
        plugin_end_calls();
        await_answers(server);
        MHD_stop_daemon(server->daemon); /* closes the socket */
        free(server);
        return NULL;
}
