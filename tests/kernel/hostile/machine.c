/* SPDX-License-Identifier: MIT */
/* What a process could reach of the machine: paths, networks, shared memory, and the kernel itself. */
#include "tests/kernel/hostile/hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

static int open_root(const struct victims *victims)
{
        (void)victims;
        return opened(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int open_proc(const struct victims *victims)
{
        (void)victims;
        return opened(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
}

static int open_control(const struct victims *victims)
{
        (void)victims;
        return opened(open("/dev/ublk-control", O_RDWR | O_CLOEXEC));
}

static int make_file(const struct victims *victims)
{
        (void)victims;
        return opened(open("/hostile", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

static int unnamed_file(const struct victims *victims)
{
        (void)victims;
        return opened(syscall(SYS_memfd_create, "hostile", 0));
}

/* A directory that is open leads out of an empty root. */
static int leave_by_a_descriptor(const struct victims *victims)
{
        int r = -ENOENT;

        (void)victims;
        for (int fd = 0; fd < HOSTILE_FDS && r != 0; fd++) {
                int out = openat(fd, "../etc/passwd", O_RDONLY | O_CLOEXEC);

                if (out >= 0 || errno != ENOTDIR)
                        r = errno == EBADF && out < 0 ? r : opened(out);
        }
        return r;
}

static int mount_something(const struct victims *victims)
{
        int r = outcome(mount("none", "/", "tmpfs", 0, NULL));

        (void)victims;
        if (r == 0)
                (void)umount2("/", MNT_DETACH);
        return r;
}

static int mount_context(const struct victims *victims)
{
        (void)victims;
        return opened(syscall(SYS_fsopen, "tmpfs", 0));
}

static int change_root(const struct victims *victims)
{
        (void)victims;
        return outcome(chroot("/"));
}

static int internet_socket(const struct victims *victims)
{
        (void)victims;
        return opened(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int connect_to(int family, int type, const void *address, socklen_t size)
{
        int fd = socket(family, type | SOCK_CLOEXEC, 0);
        int r = fd < 0 ? -errno : outcome(connect(fd, address, size));

        if (fd >= 0)
                close(fd);
        return r;
}

static int connect_by_tcp(const struct victims *victims)
{
        const struct sockaddr_in address = {.sin_family = AF_INET,
                .sin_port = htons((uint16_t)victims->tcp_port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        return connect_to(AF_INET, SOCK_STREAM, &address, sizeof(address));
}

static int connect_to_abstract_socket(const struct victims *victims)
{
        static const char name[] = "ublkd-victim";
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        (void)victims;
        memcpy(address.sun_path + 1, name, sizeof(name) - 1);
        return connect_to(AF_UNIX, SOCK_STREAM, &address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name)));
}

static int connect_to_path(int type, const char *path)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        memcpy(address.sun_path, path, sizeof(address.sun_path));
        return connect_to(AF_UNIX, type, &address, sizeof(address));
}

static int socket_of_worker(const struct victims *victims)
{
        return connect_to_path(SOCK_SEQPACKET, victims->socket);
}

static int socket_of_supervisor(const struct victims *victims)
{
        return connect_to_path(SOCK_STREAM, victims->api);
}

static int region_of_worker(const struct victims *victims)
{
        return opened(open(victims->region, O_RDWR | O_CLOEXEC));
}

/* Nothing answers: what counts is whether the kernel sends it. */
static int send_by_udp(const struct victims *victims)
{
        const struct sockaddr_in address = {.sin_family = AF_INET,
                .sin_port = htons((uint16_t)victims->tcp_port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), r;

        if (fd < 0)
                return -errno;
        r = outcome(sendto(fd, "x", 1, 0, (const struct sockaddr *)&address, sizeof(address)));
        close(fd);
        return r;
}

static int netlink(const struct victims *victims)
{
        (void)victims;
        return opened(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

static int kernel_crypto(const struct victims *victims)
{
        (void)victims;
        return opened(socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

static int socket_pair(const struct victims *victims)
{
        int pair[2];
        int r = outcome(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));

        (void)victims;
        if (r == 0) {
                close(pair[0]);
                close(pair[1]);
        }
        return r;
}

static int shared_memory(const struct victims *victims)
{
        return outcome(shmget(victims->shm_key, 0, 0));
}

static int new_shared_memory(const struct victims *victims)
{
        int id = shmget(IPC_PRIVATE, 4096, 0600);
        int r = outcome(id);

        (void)victims;
        if (r == 0)
                (void)shmctl(id, IPC_RMID, NULL);
        return r;
}

static int host_name(const struct victims *victims)
{
        static const char name[] = "hostile";

        (void)victims;
        return outcome(sethostname(name, sizeof(name) - 1));
}

static int new_ring(const struct victims *victims)
{
        struct io_uring_params params = {};

        (void)victims;
        return opened(syscall(SYS_io_uring_setup, 4, &params));
}

static int register_with_a_ring(const struct victims *victims)
{
        (void)victims;
        for (int fd = 3; fd < HOSTILE_FDS; fd++) {
                int r = outcome(syscall(SYS_io_uring_register, fd, IORING_REGISTER_PROBE, NULL, 0));

                if (r == -EPERM || r == -EACCES || r == -EEXIST) /* EEXIST: of the queue's thread alone */
                        return r;
                if (r == -EINVAL || r == 0) /* it is a ring, and looked at the arguments */
                        return 0;
        }
        return -ENOENT;
}

static int load_bpf(const struct victims *victims)
{
        union bpf_attr attr = {
                .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

        (void)victims;
        return opened(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static int count_events(const struct victims *victims)
{
        struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                .size = sizeof(attr),
                .config = PERF_COUNT_SW_TASK_CLOCK,
                .exclude_kernel = 1};

        (void)victims;
        return opened(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0UL));
}

static int handle_page_faults(const struct victims *victims)
{
        (void)victims;
        return opened(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */));
}

static int kernel_log(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(SYS_syslog, 10 /* its size */, NULL, 0));
}

static int load_module(const struct victims *victims)
{
        static const char nothing[1];
        int r = outcome(syscall(SYS_init_module, nothing, 1UL, ""));

        (void)victims;
        return r == -ENOEXEC ? 0 : r; /* allowed, it is not a module */
}

static int restart_machine(const struct victims *victims)
{
        int r = outcome(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x12345678, NULL));

        (void)victims;
        return r == -EINVAL ? 0 : r; /* allowed, there is no such command */
}

const struct named_attack machine_attacks[] = {
        {"the root directory", open_root},
        {"/proc", open_proc},
        {"the control device of the driver", open_control},
        {"a new file", make_file},
        {"a file in memory", unnamed_file},
        {"a path from an open directory", leave_by_a_descriptor},
        {"mount", mount_something},
        {"a mount context", mount_context},
        {"another root directory", change_root},
        {"a socket of the internet", internet_socket},
        {"TCP to a service of the machine", connect_by_tcp},
        {"an abstract socket of root's", connect_to_abstract_socket},
        {"the socket of another worker", socket_of_worker},
        {"the socket of the supervisor", socket_of_supervisor},
        {"the region of another disk", region_of_worker},
        {"UDP to the machine", send_by_udp},
        {"netlink", netlink},
        {"the kernel's cryptography", kernel_crypto},
        {"a pair of sockets", socket_pair},
        {"shared memory of root's", shared_memory},
        {"new shared memory", new_shared_memory},
        {"the host name", host_name},
        {"a new ring", new_ring},
        {"register something with a ring", register_with_a_ring},
        {"bpf", load_bpf},
        {"performance events", count_events},
        {"userfaultfd", handle_page_faults},
        {"the kernel's log", kernel_log},
        {"a kernel module", load_module},
        {"restart the machine", restart_machine},
        {},
};
