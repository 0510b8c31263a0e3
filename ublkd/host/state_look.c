/* SPDX-License-Identifier: MIT */
/* A look at the file system of the state directory, and at the database, by a process apart. */
#include "ublkd/host/state_look.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/offload/apart.h"

#include <string.h>

enum {
        LOOK_USEC = 1000 * 1000, /* a client that asks for the host waits for two seconds */
        FRESH_USEC = 100 * 1000, /* clients that ask all the time cost ten processes a second */
};

struct state_look {
        struct state_look_config config;
        struct apart *apart;
        uint64_t seen_at; /* CLOCK_MONOTONIC; 0: nothing was seen yet */
};

DEFINE_CLEANUP(struct state_look, state_look_free);

/* In the process. */
static void look_apart(void *userdata, FILE *answer)
{
        const struct state_look *look = userdata;
        struct state_seen seen = {};
        int r;

        host_read_room(look->config.directory, &seen.room);
        r = device_store_check(look->config.store);
        seen.database = r == 0 ? DATABASE_THERE : r == -ENOLINK ? DATABASE_GONE : DATABASE_NOT_SEEN;
        host_read_sizes(look->config.directory, seen.sizes);
        (void)fwrite(&seen, sizeof(seen), 1, answer);
}

static void on_looked(void *userdata, int error, const void *answer, size_t size)
{
        struct state_look *look = userdata;
        struct state_seen seen = {};

        if (size == sizeof(seen))
                memcpy(&seen, answer, size);
        else if (error == -ETIMEDOUT)
                seen.room.answer = STATE_HANGS;
        look->seen_at = clock_usec(CLOCK_MONOTONIC);
        look->config.done(look->config.userdata, &seen);
}

int state_look_begin(struct state_look *look)
{
        int r;

        if (look->seen_at > 0 && clock_usec(CLOCK_MONOTONIC) - look->seen_at < FRESH_USEC)
                return 0;
        r = apart_begin(look->apart);
        if (r == -EDEADLK) /* several hang: so does the file system */
                return 0;
        return r >= 0 || r == -EBUSY ? 1 : r;
}

int state_look_new(const struct state_look_config *config, struct state_look **ret)
{
        _cleanup_(state_look_free_pointer) struct state_look *look = calloc(1, sizeof(*look));
        int r;

        if (!look)
                return -ENOMEM;
        look->config = *config;
        r = apart_new(config->event,
                &(struct apart_options){
                        .process = "ublkd-look",
                        .patience_usec = config->patience_usec ? config->patience_usec : LOOK_USEC,
                        .look = look_apart,
                        .done = on_looked,
                        .userdata = look,
                },
                &look->apart);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(look);
        return 0;
}

struct state_look *state_look_free(struct state_look *look)
{
        if (!look)
                return NULL;
        apart_free(look->apart);
        free(look);
        return NULL;
}
