/* SPDX-License-Identifier: MIT */
/* What can be done with calls that few programs make. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { CHANNEL = 3, X32_BIT = 0x40000000, INODE_OF_A_ROOT_DIRECTORY = 2 };

/* The longest of its files: the backing file, if its disk has one. -1: none. */
static int backing_file(void)
{
        for (int fd = CHANNEL; fd < HOSTILE_FDS; fd++)
                if (lseek(fd, 0, SEEK_END) > 0)
                        return fd;
        return -1;
}

/* ---- other processes ---- */

static int newer_child(const struct victims *victims)
{
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        long pid = syscall(SYS_clone3, &arguments, sizeof(arguments));

        (void)victims;
        if (pid == 0)
                _exit(0);
        if (pid > 0)
                (void)waitpid((pid_t)pid, NULL, 0);
        return outcome(pid);
}

static int signal_thread(const struct victims *victims)
{
        return outcome(syscall(SYS_tgkill, victims->worker, victims->worker, 0));
}

/* With a descriptor of the process of `pid`, if it gets one. */
static int with_pidfd(pid_t pid, long (*act)(int pidfd))
{
        int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), r;

        if (pidfd < 0)
                return -errno;
        r = outcome(act(pidfd));
        close(pidfd);
        return r;
}

static long send_signal(int pidfd)
{
        return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0);
}

static int signal_by_pidfd(const struct victims *victims)
{
        return with_pidfd(victims->supervisor, send_signal);
}

static long advise_memory(int pidfd)
{
        static char page[4096] __attribute__((aligned(4096)));
        struct iovec range = {.iov_base = page, .iov_len = sizeof(page)};

        return syscall(SYS_process_madvise, pidfd, &range, 1UL, MADV_COLD, 0U);
}

static int advise_another(const struct victims *victims)
{
        return with_pidfd(victims->worker, advise_memory);
}

static long enter_namespaces(int pidfd)
{
        return setns(pidfd, CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS);
}

static int enter_supervisor(const struct victims *victims)
{
        return with_pidfd(victims->supervisor, enter_namespaces);
}

static int peer_of_channel(const struct victims *victims)
{
        int pidfd = -1;
        int r = getsockopt(CHANNEL, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &(socklen_t){sizeof(pidfd)});

        (void)victims;
        return r < 0 ? -errno : opened(pidfd);
}

static int move_pages_of_another(const struct victims *victims)
{
        void *page = NULL;
        int node = 0, status = 0;

        return outcome(syscall(SYS_move_pages, victims->worker, 1UL, &page, &node, &status, 0));
}

static int io_priority_of_another(const struct victims *victims)
{
        enum { OF_PROCESS = 1, IDLE = 3 << 13 };

        return outcome(syscall(SYS_ioprio_set, OF_PROCESS, victims->worker, IDLE));
}

static int robust_list_of_another(const struct victims *victims)
{
        void *head;
        size_t size;

        return outcome(syscall(SYS_get_robust_list, victims->worker, &head, &size));
}

static int compare_with_another(const struct victims *victims)
{
        return outcome(syscall(SYS_kcmp, getpid(), victims->worker, 2 /* KCMP_FILES */, 0UL, 0UL));
}

/* By a lock that the process seems to hold: a thread that waits for it must wait for a process that is there. */
static int existence_of_process(const struct victims *victims)
{
        static const struct timespec past;
        static uint32_t lock;
        int r;

        lock = (uint32_t)victims->supervisor;
        r = outcome(syscall(SYS_futex, &lock, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, &past, NULL, 0));
        return r == -ETIMEDOUT ? 0 : r;
}

/* As whom it sends: a supervisor would take its word for it. */
static int lie_about_credentials(const struct victims *victims)
{
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(struct ucred))];
        } control = {
                .header = {.cmsg_len = CMSG_LEN(sizeof(struct ucred)),
                           .cmsg_level = SOL_SOCKET,
                           .cmsg_type = SCM_CREDENTIALS}
        };
        const struct ucred victim = {.pid = victims->worker};
        struct iovec bytes = {.iov_base = (char[]){"{\"type\":\"news\"}"}, .iov_len = 15};
        const struct msghdr header = {.msg_iov = &bytes,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control.space)};

        memcpy(CMSG_DATA(&control.header), &victim, sizeof(victim));
        return outcome(sendmsg(CHANNEL, &header, MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* ---- what it holds with others ---- */

static int flags_of_a_file(const struct victims *victims)
{
        int fd = backing_file(), flags;

        (void)victims;
        if (fd < 0)
                return -ENOENT;
        flags = fcntl(fd, F_GETFL);
        return flags < 0 ? -errno : outcome(fcntl(fd, F_SETFL, flags));
}

/* Who opens the file waits until it is given up. */
static int lease(const struct victims *victims)
{
        int fd = backing_file();
        int r = fd < 0 ? -ENOENT : outcome(fcntl(fd, F_SETLEASE, F_WRLCK));

        (void)victims;
        if (r == 0)
                (void)fcntl(fd, F_SETLEASE, F_UNLCK);
        return r == -EAGAIN ? 0 : r; /* allowed, and others have the file open */
}

static int owner_of_the_file(const struct victims *victims)
{
        int fd = backing_file();

        (void)victims;
        return fd < 0 ? -ENOENT : outcome(fchown(fd, getuid(), getgid()));
}

static int attribute_of_the_file(const struct victims *victims)
{
        int fd = backing_file();

        (void)victims;
        return fd < 0 ? -ENOENT : outcome(fsetxattr(fd, "user.hostile", "x", 1, 0));
}

/* Any file of the file system that has the backing file, without a path. */
static int file_by_handle(const struct victims *victims)
{
        struct {
                struct file_handle head;
                uint32_t inode, generation;
        } handle = {
                .head = {.handle_bytes = 8, .handle_type = 1},
                  .inode = INODE_OF_A_ROOT_DIRECTORY
        };
        int fd = backing_file();

        (void)victims;
        return fd < 0 ? -ENOENT : opened(open_by_handle_at(fd, &handle.head, O_RDONLY | O_CLOEXEC));
}

static int size_of_a_pipe(const struct victims *victims)
{
        (void)victims;
        return outcome(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 1 << 20));
}

static int options_of_its_socket(const struct victims *victims)
{
        static const int size = 1 << 20;

        (void)victims;
        return outcome(setsockopt(CHANNEL, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
}

static int message_queue(const struct victims *victims)
{
        return outcome(msgget(victims->shm_key, 0));
}

/* ---- the machine ---- */

static int real_time(const struct victims *victims)
{
        const struct sched_param param = {.sched_priority = 1};

        (void)victims;
        return outcome(sched_setscheduler(0, SCHED_FIFO, &param));
}

static int lock_memory(const struct victims *victims)
{
        (void)victims;
        return outcome(mlockall(MCL_CURRENT));
}

static int poison_memory(const struct victims *victims)
{
        static char page[4096] __attribute__((aligned(4096)));

        (void)victims;
        page[0] = 1;
        return outcome(madvise(page, sizeof(page), 101 /* MADV_SOFT_OFFLINE */));
}

static int interrupt_all_cpus(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(SYS_membarrier, 2 /* MEMBARRIER_CMD_GLOBAL_EXPEDITED */, 0, 0));
}

static int clock_of_the_machine(const struct victims *victims)
{
        struct timespec now;

        (void)victims;
        return clock_gettime(CLOCK_REALTIME, &now) < 0 ? -errno
                                                       : outcome(clock_settime(CLOCK_REALTIME, &now));
}

static int code_by_mmap(const struct victims *victims)
{
        void *memory =
                mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        (void)victims;
        if (memory == MAP_FAILED)
                return -errno;
        munmap(memory, 4096);
        return 0;
}

static int code_by_key(const struct victims *victims)
{
        void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int r;

        (void)victims;
        if (memory == MAP_FAILED)
                return -errno;
        r = outcome(syscall(SYS_pkey_mprotect, memory, 4096UL, PROT_READ | PROT_EXEC, -1));
        munmap(memory, 4096);
        return r;
}

/* Each readable page would be executable after this. */
static int code_by_personality(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(SYS_personality, 0xffffffffUL));
}

#ifdef __x86_64__
/* The same call under another number, for the same kind of program to a filter. */
static int call_of_x32(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(X32_BIT | SYS_getpid));
}

static int io_ports(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(SYS_ioperm, 0x80UL, 1UL, 1));
}
#endif

const struct named_attack rare_attacks[] = {
        {"a child process by clone3", newer_child},
        {"signal a thread of another worker", signal_thread},
        {"signal the supervisor by its pidfd", signal_by_pidfd},
        {"advise on memory of another worker", advise_another},
        {"enter the namespaces of the supervisor", enter_supervisor},
        {"pidfd of the supervisor by the channel", peer_of_channel},
        {"move memory of another worker", move_pages_of_another},
        {"I/O priority of another worker", io_priority_of_another},
        {"list of locks of another worker", robust_list_of_another},
        {"compare with another worker", compare_with_another},
        {"whether a process exists", existence_of_process},
        {"send as another process", lie_about_credentials},
        {"flags of the backing file", flags_of_a_file},
        {"a lease on the backing file", lease},
        {"owner of the backing file", owner_of_the_file},
        {"an attribute of the backing file", attribute_of_the_file},
        {"a file by its handle", file_by_handle},
        {"the size of its pipe", size_of_a_pipe},
        {"options of its socket", options_of_its_socket},
        {"a message queue of root's", message_queue},
        {"real-time priority", real_time},
        {"lock memory", lock_memory},
        {"poison memory", poison_memory},
        {"interrupt all CPUs", interrupt_all_cpus},
        {"the clock of the machine", clock_of_the_machine},
        {"executable memory by mmap", code_by_mmap},
        {"executable memory by a key", code_by_key},
        {"executable memory by personality", code_by_personality},
#ifdef __x86_64__
        {"a call of x32", call_of_x32},
        {"I/O ports", io_ports},
#endif
        {},
};
