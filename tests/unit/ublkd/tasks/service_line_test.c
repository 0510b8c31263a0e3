/* SPDX-License-Identifier: MIT */
/* service_line: what a service manager receives, and how often. */
#include "ublkd/tasks/service_line.h"

#include "tests/unit/check.h"
#include "tests/unit/put_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int open_manager(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "ublkd-test-%d", getpid());
        char name[64];

        CHECK_INT(
                bind(fd, (struct sockaddr *)&address, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)length)),
                0);
        snprintf(name, sizeof(name), "@ublkd-test-%d", getpid());
        CHECK_INT(setenv("NOTIFY_SOCKET", name, true), 0);
        return fd;
}

/* Wait until the manager has got a line. */
static void check_received(sd_event *event, int manager, const char *wanted)
{
        char text[1024] = "";
        ssize_t n = -1;

        for (int i = 0; i < 200 && n < 0; i++) {
                CHECK(sd_event_run(event, 50 * 1000) >= 0);
                n = recv(manager, text, sizeof(text) - 1, 0);
        }
        CHECK_STR(text, wanted);
}

static bool has_received(int manager)
{
        char text[1024];

        return recv(manager, text, sizeof(text), 0) >= 0;
}

/* Run what is due now. */
static void run_now(sd_event *event)
{
        while (sd_event_run(event, 0) > 0)
                ;
}

int main(void)
{
        static const struct device_status live = {.phase = PHASE_LIVE, .reason = REASON_LIVE, .number = -1};
        const struct device_backend *backend;
        struct service_line *line = NULL;
        struct device_store *store = NULL;
        struct problem problem = {};
        struct host host = {};
        sd_event *event = NULL;
        int manager = open_manager();
        void *context;

        CHECK(sd_event_new(&event) >= 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &store), 0);
        CHECK_INT(service_line_new(event, store, &host, &line), 0);
        check_received(event, manager, "STATUS=0 devices, 0 Live");
        CHECK_INT(put_null_disk(store, "a", ""), 0);
        run_now(event);
        CHECK(!has_received(manager)); /* once a second */
        CHECK_INT(device_store_set_status(store, "a", &live), 0);
        check_received(event, manager, "STATUS=1 device, 1 Live");
        service_line_changed(line);
        host.state = (struct problem_list){.items = &problem, .count = 1};
        check_received(event, manager, "STATUS=1 device, 1 Live; 1 problem of the host, see 'ublkctl host'");
        service_line_free(line);
        CHECK_INT(put_null_disk(store, "b", ""), 0); /* after the free, no call reaches it */
        CHECK(!service_line_free(NULL));
        device_store_free(store);
        sd_event_unref(event);
        close(manager);
        return check_report();
}
