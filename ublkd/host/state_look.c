/* SPDX-License-Identifier: MIT */
/* How much room the file system of the state directory has, by a process apart. */
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
static void read_room(void *userdata, FILE *answer)
{
        const struct state_look *look = userdata;
        struct state_room room;

        host_read_room(look->config.directory, &room);
        (void)fwrite(&room, sizeof(room), 1, answer);
}

static void on_looked(void *userdata, int error _unused_, const void *answer, size_t size)
{
        struct state_look *look = userdata;
        struct state_room room = {};

        if (size == sizeof(room))
                memcpy(&room, answer, size);
        look->seen_at = clock_usec(CLOCK_MONOTONIC);
        look->config.done(look->config.userdata, &room);
}

bool state_look_begin(struct state_look *look)
{
        int r;

        if (look->seen_at > 0 && clock_usec(CLOCK_MONOTONIC) - look->seen_at < FRESH_USEC)
                return false;
        r = apart_begin(look->apart);
        return r >= 0 || r == -EBUSY;
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
                        .look = read_room,
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
