/* SPDX-License-Identifier: MIT */
/* For a worker that writes to its log, in service, when a test sends it one of these signals. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* tests/kernel/test_worker_log.py looks for each. */
static void forge(int number)
{
        static const char text[] = "<0>other: The worker died\r\nublkd: forged by newline\n"
                                   "\x1b[1A\x1b[2Kother: forged by escape\n\xc2\x9b\xff\xe2\x80\xae"
                                   "forged by bytes\n\0forged by zero\n";

        (void)number;
        (void)!write(STDERR_FILENO, text, sizeof(text) - 1);
        (void)!write(STDOUT_FILENO, "forged on stdout\n", 17);
}

/* Until it is killed. The queues serve on. */
static void flood(int number)
{
        struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

        (void)number;
        for (;;)
                if (write(STDERR_FILENO, "flood\n\n\n\n", 9) < 0 && errno == EAGAIN)
                        (void)poll(&room, 1, 100);
}

/* A mistake that the C library finds. */
static void release(int number)
{
        static char not_allocated[64] __attribute__((aligned(16)));
        void *volatile pointer = not_allocated + 8;

        (void)number;
        free(pointer);
}

__attribute__((constructor)) static void begin(void)
{
        (void)signal(SIGRTMAX - 1, forge);
        (void)signal(SIGRTMAX - 2, flood);
        (void)signal(SIGRTMAX - 3, release);
}
