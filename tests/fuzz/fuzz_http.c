/* SPDX-License-Identifier: MIT */
/* The HTTP server: whatever bytes a connection brings, in however many pieces (a 0xff byte ends one), it goes
 * on and still answers the next client. */
#include "api/api.h"
#include "api/http/server.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PIECE_END = 0xff, ROUNDS_MAX = 2000, QUIET = 3 };

struct world {
        sd_event *event;
        const struct device_backend *backend;
        void *context;
        struct device_store *store;
        struct host host;
        struct api *api;
        char path[64];
};

static void world_open(struct world *world)
{
        _cleanup_problems_ struct problem_list problems = {};
        const char *listen[] = {world->path};
        struct api_config config = {.host = &world->host, .listen = listen, .listen_count = 1};

        snprintf(world->path, sizeof(world->path), "/tmp/ublkd-fuzz-%d.sock", getpid());
        FUZZ_CHECK(sd_event_new(&world->event) >= 0);
        FUZZ_CHECK(store_memory_open(&world->backend, &world->context) == 0);
        FUZZ_CHECK(device_store_new(world->backend, world->context, &world->store) == 0);
        FUZZ_CHECK(host_read(&world->host) == 0);
        config.store = world->store;
        FUZZ_CHECK(api_new(world->event, &config, &world->api, &problems) == 0);
}

static void world_close(struct world *world)
{
        api_free(world->api);
        device_store_free(world->store);
        host_clear(&world->host);
        sd_event_unref(world->event);
}

static int dial(const struct world *world)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", world->path);
        FUZZ_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
        return fd;
}

/* Lets the server do what it can, and takes what it says. False: it has closed the connection. */
static bool serve(struct world *world, int fd, char *answer, size_t size)
{
        char buffer[4096];
        size_t length = 0;
        bool open = true;

        for (int round = 0, quiet = 0; round < ROUNDS_MAX && quiet < QUIET; round++) {
                int r = sd_event_run(world->event, 0);
                ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

                FUZZ_CHECK(r >= 0);
                quiet = r == 0 && n <= 0 ? quiet + 1 : 0;
                if (n == 0)
                        open = false;
                for (ssize_t i = 0; i < n && length + 1 < size; i++)
                        answer[length++] = buffer[i];
        }
        if (size > 0)
                answer[length] = '\0';
        return open;
}

static void talk(struct world *world, const uint8_t *data, size_t size)
{
        int fd = dial(world);

        for (const uint8_t *end = data + size, *piece; data < end; data = piece + 1) {
                piece = memchr(data, PIECE_END, (size_t)(end - data));
                if (!piece)
                        piece = end;
                if (send(fd, data, (size_t)(piece - data), MSG_NOSIGNAL) < 0)
                        break;
                if (!serve(world, fd, NULL, 0))
                        break;
        }
        (void)shutdown(fd, SHUT_WR);
        (void)serve(world, fd, NULL, 0);
        (void)close(fd);
}

static void check_that_it_answers(struct world *world)
{
        static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        char answer[512];
        int fd = dial(world);

        FUZZ_CHECK(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
        (void)serve(world, fd, answer, sizeof(answer));
        FUZZ_CHECK(strncmp(answer, "HTTP/1.1 200 ", 13) == 0);
        (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct world world = {};

        world_open(&world);
        talk(&world, data, size);
        check_that_it_answers(&world);
        world_close(&world);
        return 0;
}
