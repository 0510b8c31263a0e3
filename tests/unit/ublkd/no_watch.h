/* SPDX-License-Identifier: MIT */
/* For a test, linked with --wrap=sd_event_add_io and --wrap=send, of a process that gets no order because nothing could watch
 * it. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

/* What watches a process cannot be had; and what was sent. */
static bool out_of_memory;
static int sent;

int __real_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t callback, void *userdata);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t callback, void *userdata);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);

int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t callback, void *userdata)
{
        return out_of_memory ? -ENOMEM : __real_sd_event_add_io(event, ret, fd, events, callback, userdata);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
        sent++;
        return __real_send(fd, bytes, size, flags);
}
