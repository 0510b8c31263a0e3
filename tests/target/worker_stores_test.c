/* SPDX-License-Identifier: MIT */
/* The real ublkd-worker with a list of stores in its CONFIG: what it reports of them, to the first supervisor and to the next. */
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/proto/worker_msg.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { PATIENCE = 60000 /* milliseconds: the machine may be busy */, FILES = 2, FILE_SIZE = 256 << 10 };

static const char *program;
static struct scratch scratch;
static char paths[FILES][512];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct listed_store list[FILES];
static int kept[FILES] = {-1, -1}; /* what a worker has reported */
static pid_t pid;

/* Return the channel to a new worker. */
static int start(void)
{
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid = fork();
        if (pid == 0) {
                if (!freopen("/dev/null", "w", stderr))
                        _exit(127);
                pair[1] = fcntl(pair[1], F_DUPFD_CLOEXEC, WORKER_CHANNEL_FD + 1);
                dup2(pair[1], WORKER_CHANNEL_FD);
                execl(program, "ublkd-worker", "stores", NULL);
                _exit(127);
        }
        close(pair[1]);
        return pair[0];
}

static void configure(int channel)
{
        char spec[2048];
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1}, next = CONFIG_FD_STORE;
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "stores",
                           .uid = (char *)(uintptr_t) "some-uid",
                           .spec = spec,
                           .queues = 1,
                           .queue_depth = 16,
                           .max_io_size = 1 << 20,
                           .stores = {list, FILES}}
        };

        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":\"%s\"},{"
                "\"type\":"
                "\"loop\",\"path\":\"%s\"}]}}",
                paths[0], paths[1]);
        fds[CONFIG_FD_LISTENER] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        (void)unlink(address.sun_path);
        CHECK_INT(bind(fds[CONFIG_FD_LISTENER], (struct sockaddr *)&address, sizeof(address)), 0);
        fds[CONFIG_FD_REGION] = memfd_create("region", MFD_CLOEXEC);
        CHECK_INT(device_region_format(
                          fds[CONFIG_FD_REGION], &(struct device_region_key){.queues = msg.config.queues}),
                0);
        for (unsigned i = 0; i < FILES; i++)
                if (list[i].has_fd)
                        fds[next++] = kept[i];
        CHECK_INT(worker_msg_send_fds(channel, &msg, fds), 0);
        close(fds[CONFIG_FD_LISTENER]);
        close(fds[CONFIG_FD_REGION]);
}

/* The next message, which must be of that type; the caller clears it, and closes the descriptors. */
static bool expect(int fd, enum worker_msg_type type, struct worker_msg *ret, int *ret_fds)
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

        for (unsigned i = 0; i < _CONFIG_FD_MAX; i++)
                ret_fds[i] = -1;
        return CHECK_INT(poll(&poll_fd, 1, PATIENCE), 1)
               && CHECK_INT(worker_report_receive(fd, ret, ret_fds, _CONFIG_FD_MAX), 1)
               && CHECK_INT(ret->type, type);
}

static void skip(int fd, enum worker_msg_type type)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        int fds[_CONFIG_FD_MAX];

        (void)expect(fd, type, &msg, fds);
        CHECK_INT(fds[0], -1);
}

static bool is_file(int fd, const char *path)
{
        struct stat one, other;

        return fstat(fd, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev
               && one.st_ino == other.st_ino;
}

/* Keep what is reported of both. */
static void expect_stores(int channel)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        int fds[_CONFIG_FD_MAX];

        if (!expect(channel, WORKER_MSG_BACKING, &msg, fds) || !CHECK_INT(msg.backing.stores.count, FILES))
                return;
        CHECK_STR(msg.backing.lasting, "");
        for (unsigned i = 0; i < FILES; i++) {
                const struct listed_store *store = &msg.backing.stores.items[i];

                CHECK(store->has_fd && is_file(fds[i], paths[i]));
                CHECK(!backing_identity_is_empty(&store->identity));
                list[i] = (struct listed_store){
                        .identity = store->identity, .has_fd = true, .in_this_boot = true};
                close_fd(kept[i]);
                kept[i] = fds[i];
        }
        CHECK_INT(fds[FILES], -1);
}

static bool is_locked(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        struct flock lock = {.l_type = F_WRLCK};

        CHECK_INT(fcntl(fd, F_OFD_GETLK, &lock), 0);
        return lock.l_type != F_UNLCK;
}

static int end(int channel)
{
        int status = 0;

        close(channel);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_each_store_is_reported_with_its_descriptor(void)
{
        int channel = start();

        skip(channel, WORKER_MSG_HELLO);
        configure(channel);
        expect_stores(channel);
        skip(channel, WORKER_MSG_PARAMS);
        for (unsigned i = 0; i < FILES; i++)
                CHECK(is_locked(paths[i]));
        CHECK_INT(end(channel), 0);
}

/* The first supervisor has them already; one that adopts the worker gets them. */
static void test_stores_that_were_given_are_reported_to_the_next_supervisor(void)
{
        int channel = start(), next;

        skip(channel, WORKER_MSG_HELLO);
        configure(channel);
        skip(channel, WORKER_MSG_PARAMS);
        next = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        CHECK_INT(connect(next, (struct sockaddr *)&address, sizeof(address)), 0);
        skip(next, WORKER_MSG_HELLO);
        expect_stores(next);
        skip(next, WORKER_MSG_PARAMS);
        close(channel);
        CHECK_INT(end(next), 0);
}

static void expect_failure(int channel, const char *pointer, const char *reason)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        int fds[_CONFIG_FD_MAX];

        if (!expect(channel, WORKER_MSG_FAILED, &msg, fds) || !CHECK_INT(msg.failed.problems.count, 1))
                return;
        CHECK_STR(msg.failed.problems.items[0].pointer, pointer);
        CHECK_STR(msg.failed.problems.items[0].reason, reason);
}

/* Which one it is shows in the list; none has a descriptor. */
static void test_a_store_that_is_another_one_is_reported(void)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        const struct listed_store *stores;
        int channel = start(), fds[_CONFIG_FD_MAX];
        char aside[600];

        snprintf(aside, sizeof(aside), "%s-aside", paths[0]);
        CHECK_INT(rename(paths[0], aside), 0);
        CHECK_INT(scratch_file(&scratch, "a", FILE_SIZE, paths[0], sizeof(paths[0])), 0);
        list[0].has_fd = list[1].has_fd = false;
        skip(channel, WORKER_MSG_HELLO);
        configure(channel);
        if (expect(channel, WORKER_MSG_BACKING, &msg, fds) && CHECK_INT(msg.backing.stores.count, FILES)) {
                stores = msg.backing.stores.items;
                CHECK_INT(backing_compare(&list[0].identity, &stores[0].identity, true), BACKING_OTHER);
                CHECK_INT(backing_compare(&list[1].identity, &stores[1].identity, true), BACKING_SAME);
                CHECK(!stores[0].has_fd && !stores[1].has_fd);
                CHECK_INT(fds[0], -1);
        }
        expect_failure(channel, "/target/children/0/path", "BackingChanged");
        CHECK_INT(end(channel), 1);
}

/* As if the kernel had dropped it: which one is missing is not known. */
static void test_a_descriptor_that_is_missing(void)
{
        int channel = start();

        list[0].has_fd = list[1].has_fd = true;
        close_fd(kept[1]);
        kept[1] = -1;
        skip(channel, WORKER_MSG_HELLO);
        configure(channel);
        expect_failure(channel, "/target", "MalformedSpec");
        CHECK_INT(end(channel), 1);
}

int main(int argc, char **argv)
{
        if (argc != 2)
                return 2;
        program = argv[1];
        (void)signal(SIGPIPE, SIG_IGN);
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0))
                return check_report();
        snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/socket", scratch.path);
        for (unsigned i = 0; i < FILES; i++) {
                const char name[] = {(char)('a' + i), '\0'};

                CHECK_INT(scratch_file(&scratch, name, FILE_SIZE, paths[i], sizeof(paths[i])), 0);
        }
        test_each_store_is_reported_with_its_descriptor();
        test_stores_that_were_given_are_reported_to_the_next_supervisor();
        test_a_store_that_is_another_one_is_reported();
        test_a_descriptor_that_is_missing();
        close_fd(kept[0]);
        scratch_remove(&scratch);
        return check_report();
}
