/* SPDX-License-Identifier: MIT */
/* What a worker can do to its supervisor with the socket that it must have. The main thread does it, and comes back
 * only if that ends; the threads of the queues serve on. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 128 * 1024, PATIENCE = 100 /* milliseconds */ };

static int channel = -1;

/* The one socket that is connected: a worker may not ask what its descriptors are. */
static void send_text(const char *text, size_t size)
{
        for (int fd = channel < 0 ? 3 : channel; fd < HOSTILE_FDS; fd++) {
                struct iovec bytes = {.iov_base = (void *)(uintptr_t)text, .iov_len = size};
                struct msghdr header = {.msg_iov = &bytes, .msg_iovlen = 1};

                if (sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno == EAGAIN) {
                        channel = fd;
                        return;
                }
        }
}

/* Until it is killed. */
static void flood(const char *text, size_t size)
{
        for (;;) {
                struct pollfd room;

                errno = 0;
                send_text(text, size);
                room = (struct pollfd){.fd = channel, .events = POLLOUT};
                if (errno == EAGAIN)
                        (void)__real_poll(&room, 1, PATIENCE);
        }
}

static void flood_with(const char *text)
{
        flood(text, strlen(text));
}

static void flood_with_ready(void)
{
        flood_with("{\"type\":\"ready\"}");
}

static void flood_with_news(void)
{
        flood_with("{\"type\":\"news\"}");
}

/* Each is one that it may send. */
static void flood_with_notices(void)
{
        flood_with("{\"type\":\"notice\",\"problems\":[{\"error\":16,\"pointer\":\"/target\","
                   "\"reason\":\"BackingRead\",\"detail\":\"Look here\"}]}");
}

/* So many pass at once. No other worker has sent these reasons. Then it serves on for as long as makes its successor start at
 * once, and exits. */
static void notice_and_exit(void)
{
        enum { NOTICES = 16, SERVED_LONG = 1200 /* milliseconds */ };
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        for (unsigned i = 0; i < NOTICES; i++) {
                char text[256];
                int size = snprintf(text, sizeof(text),
                        "{\"type\":\"notice\",\"problems\":[{\"error\":16,\"pointer\":\"/target\","
                        "\"reason\":\"Hostile%lldX%ldX%u\",\"detail\":\"Look here\"}]}",
                        (long long)now.tv_sec, now.tv_nsec, i);

                send_text(text, (size_t)size);
        }
        (void)__real_poll(NULL, 0, SERVED_LONG);
        _exit(1);
}

/* Beyond what a worker may send, and within what its socket takes. */
static void flood_with_the_largest(void)
{
        static char text[LARGEST];
        static const char head[] = "{\"type\":\"news\",\"x\":\"";

        memset(text, 'x', sizeof(text));
        memcpy(text, head, sizeof(head) - 1);
        memcpy(text + sizeof(text) - 2, "\"}", 2);
        flood(text, sizeof(text));
}

static void grow_unasked(void)
{
        flood_with("{\"type\":\"grown\",\"size\":\"1099511627776\",\"sizeMax\":\"1099511627776\","
                   "\"problems\":[]}");
}

/* The socket on which it waits for the next supervisor. */
static void close_listener(void)
{
        for (int fd = 3; fd < HOSTILE_FDS; fd++) {
                int connection = accept4(fd, NULL, NULL, SOCK_NONBLOCK);

                if (connection >= 0)
                        (void)close(connection);
                if (connection >= 0 || errno == EAGAIN)
                        (void)close(fd);
        }
}

static void close_channel(void)
{
        send_text("{\"type\":\"news\"}", sizeof("{\"type\":\"news\"}") - 1); /* finds it */
        (void)close(channel);
}

/* Its queues serve on. The channel and the socket are closed: only the table of the main thread has them. */
static void end_main(void)
{
        (void)syscall(SYS_exit, 0);
}

/* open("/") by the numbers that calls have in programs of 32 bits: 5 is a harmless call in those of 64. */
static void call_as_32_bits(void)
{
#ifdef __x86_64__
        long result = 5;
        static const char root[] __attribute__((aligned(16))) = "/";

        __asm__ volatile("int $0x80" : "+a"(result) : "b"(root), "c"(0L), "d"(0L) : "memory");
#endif
}

/* Until it is killed, or there is none. */
static void eat_memory(void)
{
        enum { BITE = 1 << 20 };
        char *bite;

        while ((bite = mmap(NULL, BITE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
                != MAP_FAILED)
                memset(bite, 'x', BITE);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *header, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *header, int flags);

/* PARAMS of a disk without a store, with claims that the test gives. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *header, int flags)
{
        static const char begin[] = "{\"type\":\"params\"";
        const struct iovec *bytes = header->msg_iov;
        const char *claims = hostile_claims();
        char forged[4096];
        struct iovec forgery = {.iov_base = forged};
        int size;

        if (!*claims || bytes->iov_len < sizeof(begin)
                || memcmp(bytes->iov_base, begin, sizeof(begin) - 1) != 0)
                return __real_sendmsg(fd, header, flags);
        size = snprintf(forged, sizeof(forged), "%s,%s%.*s", begin, claims,
                (int)(bytes->iov_len - sizeof(begin) + 1), (const char *)bytes->iov_base + sizeof(begin) - 1);
        forgery.iov_len = (size_t)size;
        return __real_sendmsg(fd, &(const struct msghdr){.msg_iov = &forgery, .msg_iovlen = 1}, flags);
}

void hostile_deed_do(uint32_t deed)
{
        static void (*const deeds[])(void) = {
                [DEED_READY] = flood_with_ready,
                [DEED_NEWS] = flood_with_news,
                [DEED_LARGEST] = flood_with_the_largest,
                [DEED_GROWN] = grow_unasked,
                [DEED_CLOSE_LISTENER] = close_listener,
                [DEED_CLOSE_CHANNEL] = close_channel,
                [DEED_NOTICE] = flood_with_notices,
                [DEED_SPIN] = hostile_spin_one,
                [DEED_END_MAIN] = end_main,
                [DEED_CALL_32] = call_as_32_bits,
                [DEED_STAY] = hostile_stay,
                [DEED_EAT] = eat_memory,
                [DEED_NOTICE_AND_EXIT] = notice_and_exit,
                [DEED_SPIN_ALL] = hostile_spin_all,
        };

        if (deed < _DEED_MAX && deeds[deed])
                deeds[deed]();
}
