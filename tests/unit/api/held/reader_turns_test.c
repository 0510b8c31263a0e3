/* SPDX-License-Identifier: MIT */
/* reader_turns: who gets a turn while the loop is never idle. */
#include "api/held/reader_turns.h"
#include "api/http/server.h"

#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

enum { PAUSE_USEC = 10 * 1000 * 1000, SOON_USEC = 2 * 1000 * 1000 };

static struct api api;
static struct request requests[3];
static struct reader_turn turns[3];
static unsigned ran;

static void run(struct reader_turn *turn)
{
        ran |= 1U << (turn - turns);
}

/* There is always something else to do, and a request that comes and goes. */
static int on_busy(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events, (void)userdata;
        reader_turn_leave(&turns[2]);
        CHECK_INT(reader_turn_wait(&turns[2]), 0);
        return 0;
}

/* Before, it was looked at when that pause was over. */
static void test_an_account_does_not_wait_for_the_pause_of_another(void)
{
        sd_event_source *busy = NULL;
        int fd = eventfd(1, EFD_CLOEXEC); /* never read */
        uint64_t until;

        CHECK_INT(sd_event_new(&api.event), 0);
        readers_rest_open(&api.readers_rest);
        for (uint32_t i = 0; i < ARRAY_SIZE(turns); i++) {
                requests[i] = (struct request){.api = &api, .peer.account = i + 1};
                turns[i] = (struct reader_turn){.request = &requests[i], .run = run};
        }
        readers_rest_add_to(&api.readers_rest, 1, PAUSE_USEC, monotonic_now());
        readers_rest_add_to(&api.readers_rest, 3, PAUSE_USEC, monotonic_now());
        CHECK_INT(reader_turn_wait(&turns[0]), 0);
        CHECK(sd_event_add_io(api.event, &busy, fd, EPOLLIN, on_busy, NULL) >= 0);
        CHECK_INT(reader_turn_wait(&turns[1]), 0);
        until = monotonic_now() + SOON_USEC;
        while (ran == 0 && monotonic_now() < until)
                CHECK(sd_event_run(api.event, UINT64_MAX) >= 0);
        CHECK_INT(ran, 2);
        for (size_t i = 0; i < ARRAY_SIZE(turns); i++)
                reader_turn_leave(&turns[i]);
        sd_event_source_disable_unref(busy);
        close_fd(fd);
        reader_turns_stop(&api);
        readers_rest_close(&api.readers_rest);
        sd_event_unref(api.event);
}

int main(void)
{
        test_an_account_does_not_wait_for_the_pause_of_another();
        return check_report();
}
