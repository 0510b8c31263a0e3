/* SPDX-License-Identifier: MIT */
/* A target that tries what its worker can do while it serves. The linker takes it in the place of the null target, whose
 * name and options it has. A read of block N connects to port N of 127.0.0.1 by TCP; each block after the last port is
 * another thing to try. The data of a read begins with the result, 0 or -errno. */
#include "targets/null/null_desc.h"
#include "targets/null/null.h"
#include "targets/null/null_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UBLKD_TEST_NEEDS
#define UBLKD_TEST_NEEDS 0
#endif

enum { BLOCK = 4096, PORTS = 65536 };

const struct target_desc null_desc = {
        .name = "null",
        .summary = "Tries what its worker can do",
        .flags = TARGET_NEVER_WAITS | TARGET_NATIVE_FUA | TARGET_REISSUE_SAFE,
        .needs = UBLKD_TEST_NEEDS,
        .size_required = true,
        .options = &null_options_table,
};

static int outcome(int r)
{
        int result = r < 0 ? -errno : 0;

        if (r >= 0)
                (void)close(r);
        return result;
}

/* Sends a byte, and waits for one. */
static int connect_tcp(uint16_t port)
{
        const struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0, r = 0;
        char byte = '!';

        if (fd < 0)
                return -errno;
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0
                || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)}) < 0
                || write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
                r = errno ? -errno : -EIO;
        (void)close(fd);
        return r;
}

static int listen_tcp(void)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r = fd < 0 ? -errno : 0;

        if (r >= 0 && listen(fd, 1) < 0)
                r = -errno;
        if (fd >= 0)
                (void)close(fd);
        return r;
}

static int make_udp(void)
{
        return outcome(socket(AF_INET, SOCK_DGRAM, 0));
}

static int make_raw(void)
{
        return outcome(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

static int make_mptcp(void)
{
        return outcome(socket(AF_INET, SOCK_STREAM, 262));
}

static int make_local(void)
{
        return outcome(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int make_netlink(void)
{
        return outcome(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

static int open_file(void)
{
        return outcome(open("/", O_RDONLY));
}

static int leave_network(void)
{
        return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
}

/* tests/kernel/test_target_needs.py has the same order. */
static int (*const probes[])(void) = {
        listen_tcp, make_udp, make_raw, make_mptcp, make_local, make_netlink, open_file, leave_network};

static int probing_open(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)device;
        (void)problems;
        *ret = (struct target_geometry){.logical_block_size = BLOCK};
        return 0;
}

static int probing_read(struct target_io *io)
{
        uint64_t block = io->offset / BLOCK;
        int32_t result = 0;

        memset(io->data, 0, io->length);
        if (block < PORTS)
                result = block > 0 ? connect_tcp((uint16_t)block) : 0;
        else if (block - PORTS < ARRAY_SIZE(probes))
                result = probes[block - PORTS]();
        memcpy(io->data, &result, sizeof(result));
        return (int)io->length;
}

const struct target null_target = {.desc = &null_desc, .open = probing_open, .read = probing_read};
