/* SPDX-License-Identifier: MIT */
/* Watches /etc/subuid: a new user has a range there, and no reload comes with it. Runs on the loop, and reads nothing. */
#pragma once

#include <systemd/sd-event.h>

struct subuid_watch;

/* Call changed() after each write of the file DIRECTORY/subuid, also where another file replaces it; not where it is removed, or
 * becomes a link, whose target is not watched. Return 0 or -errno. */
int subuid_watch_new(sd_event *event, const char *directory, void (*changed)(void *userdata), void *userdata,
        struct subuid_watch **ret);
/* End the watch. NULL is fine. Return NULL. */
struct subuid_watch *subuid_watch_free(struct subuid_watch *watch);
