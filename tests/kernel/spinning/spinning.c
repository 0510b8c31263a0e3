/* SPDX-License-Identifier: MIT */
/* For a worker with a fault: after SIGRTMAX the thread of its queue spins as soon as it has something to do. The linker
 * puts this in the place of the real call (--wrap). */
#include <liburing.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_bool spins;

static void on_signal(int number)
{
        (void)number;
        atomic_store(&spins, true);
}

__attribute__((constructor)) static void begin(void)
{
        (void)signal(SIGRTMAX, on_signal);
}

int __real_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);
int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size);

int __wrap_io_uring_enter2(
        unsigned fd, unsigned submit, unsigned complete, unsigned flags, sigset_t *signals, size_t size)
{
        int r = __real_io_uring_enter2(fd, submit, complete, flags, signals, size);

        while (r >= 0 && complete > 0 && atomic_load(&spins))
                continue;
        return r;
}
