/* SPDX-License-Identifier: MIT */
/* call_filter: what a worker needs goes on, in all threads, and nothing else does. */
#include "targets/worker/os/call_filter.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int made_before, child_result;
static pthread_barrier_t started; /* a thread that starts needs more calls than one that runs */

static void *wait_and_try(void *argument)
{
        int event = *(int *)argument;
        eventfd_t value;

        (void)pthread_barrier_wait(&started);
        (void)eventfd_read(event, &value); /* the filter is there */
        child_result = socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
        return NULL;
}

#define REFUSED(call)                                                                                        \
        do {                                                                                                 \
                CHECK((call) < 0);                                                                           \
                CHECK_INT(errno, EPERM);                                                                     \
        } while (0)

static void check_refused(void)
{
        REFUSED(syscall(SYS_clone, 0, NULL, NULL, NULL, NULL));
        REFUSED(syscall(SYS_clone3, NULL, 0));
        REFUSED(syscall(SYS_execve, "/bin/true", NULL, NULL));
        REFUSED(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY, 0));
        REFUSED(socket(AF_INET, SOCK_STREAM, 0));
        REFUSED(ioctl(made_before, FIONREAD, &(int){0}));
        REFUSED(syscall(SYS_kill, getpid(), 0));
        REFUSED(syscall(SYS_pidfd_open, getpid(), 0));
        REFUSED(syscall(SYS_keyctl, 0, -4, 0));
        REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
        REFUSED(syscall(SYS_io_uring_register, -1, 0, NULL, 0));
        REFUSED(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
        REFUSED(fcntl(made_before, F_SETOWN, getpid()));
        REFUSED(fcntl(made_before, F_SETFL, O_ASYNC));
        REFUSED(mprotect(&made_before, 1, PROT_READ | PROT_EXEC));
        REFUSED(getsockopt(made_before, SOL_SOCKET, SO_TYPE, &(int){0}, &(socklen_t){sizeof(int)}));
        CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0) == MAP_FAILED);
        CHECK_INT(errno, EPERM);
        CHECK(mmap(NULL, 2 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED);
        CHECK_INT(errno, EPERM);
        CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
        CHECK_INT(errno, EPERM);
}

static void check_allowed(int event)
{
        const struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
        struct flock asked = lock;
        void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        CHECK(memory != MAP_FAILED);
        CHECK_INT(mprotect(memory, 4096, PROT_READ), 0);
        CHECK_INT(munmap(memory, 4096), 0);
        CHECK_INT(fcntl(made_before, F_OFD_SETLK, &lock), 0);
        CHECK_INT(fcntl(made_before, F_OFD_GETLK, &asked), 0);
        CHECK(getsockopt(made_before, SOL_SOCKET, SO_PEERCRED, &(struct ucred){},
                      &(socklen_t){sizeof(struct ucred)})
                        < 0
                && errno == ENOTSOCK);
        CHECK_INT(pwrite(made_before, "x", 1, 0), 1);
        CHECK_INT(lseek(made_before, 0, SEEK_END), 1);
        CHECK_INT(eventfd_write(event, 1), 0);
        CHECK_INT(poll(&(struct pollfd){.fd = event, .events = POLLIN}, 1, 0) >= 0, 1);
}

static int behind_the_filter(void)
{
        _cleanup_close_ int event = eventfd(0, EFD_CLOEXEC);
        FILE *file = tmpfile();
        pthread_t thread;

        (void)pthread_barrier_init(&started, NULL, 2);
        if (!CHECK(file) || !CHECK(event >= 0)
                || !CHECK_INT(pthread_create(&thread, NULL, wait_and_try, &event), 0))
                return check_report();
        made_before = fileno(file);
        (void)pthread_barrier_wait(&started);
        CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_INT(call_filter_install(), 0);
        check_allowed(event);
        (void)pthread_join(thread, NULL);
        CHECK_INT(child_result, EPERM);
        check_refused();
        return check_report();
}

int main(void)
{
        pid_t child = fork();
        int status = 0;

        if (child == 0)
                _exit(behind_the_filter());
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK_INT(status, 0);
        return check_report();
}
