/* SPDX-License-Identifier: MIT */
/* call_filter: what a worker needs goes on, in all threads, and nothing else does. */
#include "targets/worker/os/call_filter.h"
#include "tests/unit/check.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
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

static void check_connections(bool connects)
{
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

        REFUSED(socket(AF_INET, SOCK_DGRAM, 0));
        REFUSED(socket(AF_INET, SOCK_RAW, 0));
        REFUSED(socket(AF_INET, SOCK_SEQPACKET, 0));
        REFUSED(socket(AF_INET, SOCK_STREAM, 262 /* IPPROTO_MPTCP */));
        REFUSED(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
        REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
        REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
        REFUSED(bind(made_before, NULL, 0));
        REFUSED(listen(made_before, 1));
        REFUSED(setsockopt(made_before, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int)));
        REFUSED(syscall(SYS_io_uring_register, -1, 0, NULL, 0));
        if (!connects) {
                CHECK_INT(fd, -1);
                REFUSED(syscall(SYS_io_uring_register, -1, IORING_REGISTER_FILES_UPDATE, NULL, 0));
                REFUSED(socket(AF_INET, SOCK_STREAM, 0));
                REFUSED(connect(made_before, NULL, 0));
                REFUSED(getsockopt(made_before, SOL_SOCKET, SO_ERROR, &(int){0}, &(socklen_t){sizeof(int)}));
                return;
        }
        CHECK(fd >= 0 || errno == EAFNOSUPPORT);
        CHECK(syscall(SYS_io_uring_register, -1, IORING_REGISTER_FILES_UPDATE, NULL, 0) < 0
                && errno != EPERM);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        CHECK(fd >= 0);
        CHECK(connect(fd, NULL, 0) < 0 && errno != EPERM);
        CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &(int){0}, &(socklen_t){sizeof(int)}), 0);
}

/* Calls that a worker has, for some arguments at least. Not taken from the table of the filter: what is added there has
 * to be wanted here as well. */
static const int had[] = {
        SYS_io_uring_enter,
        SYS_pread64,
        SYS_pwrite64,
        SYS_lseek,
        SYS_ppoll,
        SYS_recvmsg,
        SYS_sendmsg,
        SYS_accept4,
        SYS_read,
        SYS_write,
        SYS_writev,
        SYS_close,
        SYS_brk,
        SYS_mmap,
        SYS_mprotect,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        SYS_futex,
        SYS_clock_gettime,
        SYS_clock_nanosleep,
        SYS_nanosleep,
        SYS_getpid,
        SYS_gettid,
        SYS_getrandom,
        SYS_restart_syscall,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_sched_yield,
        SYS_exit,
        SYS_exit_group,
        SYS_fcntl,
        SYS_getsockopt,
#ifdef SYS_sync_file_range
        SYS_sync_file_range,
#else
        SYS_sync_file_range2,
#endif
#ifdef SYS_poll
        SYS_poll,
#endif
};

/* The kernel asks no filter about these, and ends a process that makes them by itself (uretprobe, uprobe:
 * kernel/seccomp.c, Linux 6.14). */
static bool is_of_the_kernel(int call)
{
#ifdef __x86_64__
        return call == 335 || call == 336;
#else
        return call < 0;
#endif
}

static bool has_call(int call, bool connects)
{
        for (size_t i = 0; i < ARRAY_SIZE(had); i++)
                if (had[i] == call)
                        return true;
        return connects && (call == SYS_socket || call == SYS_connect);
}

/* Every call that the kernel has or may have one day. */
static void check_all_others(bool connects)
{
        for (int call = 0; call < 1000; call++) {
                if (has_call(call, connects) || is_of_the_kernel(call))
                        continue;
                errno = 0;
                if (!CHECK_INT(syscall(call, 0, 0, 0, 0, 0, 0), -1) || !CHECK_INT(errno, EPERM))
                        fprintf(stderr, "call %d\n", call);
        }
}

/* What comes before the filter refuses nothing, whether the filter lets it pass later or not. */
static void check_prepared(void)
{
        void *memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        _cleanup_close_ int file = open("/", O_RDONLY | O_CLOEXEC), plug = socket(AF_UNIX, SOCK_DGRAM, 0);

        CHECK(file >= 0);
        CHECK(plug >= 0);
        CHECK(memory != MAP_FAILED);
        CHECK_INT(munmap(memory, 4096), 0);
        CHECK(syscall(999) < 0 && errno == ENOSYS);
}

static int behind_the_filter(bool connects, bool prepared)
{
        _cleanup_close_ int event = eventfd(0, EFD_CLOEXEC);
        FILE *file = tmpfile();
        pthread_t thread;

        CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        if (prepared) {
                CHECK_INT(call_filter_prepare(), 0);
                check_prepared();
        }
        (void)pthread_barrier_init(&started, NULL, 2);
        if (!CHECK(file) || !CHECK(event >= 0)
                || !CHECK_INT(pthread_create(&thread, NULL, wait_and_try, &event), 0))
                return check_report();
        made_before = fileno(file);
        (void)pthread_barrier_wait(&started);
        CHECK_INT(call_filter_install(connects), 0);
        check_allowed(event);
        (void)pthread_join(thread, NULL);
        CHECK_INT(child_result, EPERM);
        check_refused();
        check_connections(connects);
        check_all_others(connects);
        return check_report();
}

int main(void)
{
        for (int kind = 0; kind < 4; kind++) {
                pid_t child = fork();
                int status = 0;

                if (child == 0)
                        _exit(behind_the_filter(kind & 1, kind & 2));
                CHECK_INT(waitpid(child, &status, 0), child);
                CHECK_INT(status, 0);
        }
        return check_report();
}
