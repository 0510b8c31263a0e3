/* SPDX-License-Identifier: MIT */
/* NEWS for a supervisor that does not read: it must not lose the connection for that, nor hold up the worker. */
#include "targets/worker/news.h"
#include "tests/unit/check.h"
#include "ublkd/base/clock.h"
#include "ublkd/proto/device_region.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 100000 };

static struct shared make_shared(void)
{
        struct shared shared = {.pagemap = -1, .news = -1};
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(device_region_format(fd, &(struct device_region_key){.queues = 1}), 0);
        CHECK_INT(device_region_map(fd, 1, &shared.region), 0);
        (void)close(fd);
        return shared;
}

static unsigned receive_all(int fd)
{
        struct worker_msg msg = {};
        unsigned count = 0;

        for (; worker_msg_receive(fd, &msg) == 1; count++)
                CHECK_INT(msg.type, WORKER_MSG_NEWS);
        return count;
}

int main(void)
{
        struct shared shared = make_shared();
        struct region_control *control = device_region_control(shared.region);
        struct chan chan = {.listener = -1};
        struct news news = {};
        unsigned sent = 0;
        uint64_t began;
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        chan.connection = pair[0];
        news_send(&news, &shared, &chan); /* there are none */
        CHECK_INT(receive_all(pair[1]), 0);
        for (; sent < MANY && news.reported == sent; sent++) {
                control->space.changes++;
                news_send(&news, &shared, &chan);
        }
        CHECK(sent > 1 && sent < MANY); /* the last was not sent: the socket is full */
        began = monotonic_now();
        control->space.changes++;
        news_send(&news, &shared, &chan);
        CHECK(monotonic_now() - began < 500 * 1000);
        CHECK_INT(chan.connection, pair[0]);
        CHECK_INT(receive_all(pair[1]), sent - 1);
        news_send(&news, &shared, &chan); /* there is room again */
        CHECK_INT(receive_all(pair[1]), 1);
        news_send(&news, &shared, &chan);
        CHECK_INT(receive_all(pair[1]), 0);
        control->errors.changes++; /* a request failed */
        news_send(&news, &shared, &chan);
        CHECK_INT(receive_all(pair[1]), 1);
        close(pair[1]);
        control->space.changes++;
        news_send(&news, &shared, &chan);
        CHECK_INT(chan.connection, -1); /* the supervisor is gone */
        return check_report();
}
