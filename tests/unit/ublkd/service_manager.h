/* SPDX-License-Identifier: MIT */
/* A socket in the place of the service manager's, and the messages that it got. */
#pragma once

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Return a socket that gets the messages to the service manager. The caller closes it. */
static inline int fake_service_manager(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size;
        char name[sizeof(address.sun_path) + 1];

        size = snprintf(
                address.sun_path + 1, sizeof(address.sun_path) - 1, "ublkd-fd-store-test-%d", getpid());
        CHECK_INT(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)),
                0);
        snprintf(name, sizeof(name), "@%s", address.sun_path + 1);
        CHECK_INT(setenv("NOTIFY_SOCKET", name, 1), 0);
        return fd;
}

/* The next message, or "". */
static inline const char *fake_service_manager_take(int fd)
{
        static char text[256];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        return text;
}

/* Reads all messages. Whether one that contains `first` comes before one that contains `then`. */
static inline bool fake_service_manager_received_in_order(int fd, const char *first, const char *then)
{
        bool has_first = false, in_order = false;

        for (const char *text = fake_service_manager_take(fd); *text; text = fake_service_manager_take(fd)) {
                has_first = has_first || strstr(text, first);
                in_order = in_order || (has_first && strstr(text, then));
        }
        return in_order;
}

/* Reads all messages. Returns how many of them contain both texts. */
static inline int fake_service_manager_received(int fd, const char *one, const char *other)
{
        int count = 0;

        for (const char *text = fake_service_manager_take(fd); *text; text = fake_service_manager_take(fd))
                count += strstr(text, one) && strstr(text, other);
        return count;
}
