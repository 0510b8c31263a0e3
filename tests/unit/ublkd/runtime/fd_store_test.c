/* SPDX-License-Identifier: MIT */
/* Descriptors that the service manager keeps: what it is told. */
#include "ublkd/base/cleanup.h"
#include "ublkd/runtime/fd_store.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

/* A socket that is told what the service manager would be. */
static int listen_as_service_manager(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size;
        char name[sizeof(address.sun_path) + 1];

        size = snprintf(
                address.sun_path + 1, sizeof(address.sun_path) - 1, "ublkd-fd-store-test-%d", getpid());
        CHECK_INT(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)),
                0);
        snprintf(name, sizeof(name), "@%s", address.sun_path + 1);
        CHECK_INT(setenv("NOTIFY_SOCKET", name, 1), 0);
        return fd;
}

/* The next message, or "". */
static const char *take_message(int fd)
{
        static char text[256];
        ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

        text[n > 0 ? n : 0] = '\0';
        return text;
}

/* It keeps all descriptors of one name, and the next ublkd takes one of them: it must have no older one. */
static void test_a_descriptor_replaces_the_one_before(int manager)
{
        _cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct fd_store *store;

        if (!CHECK_INT(fd_store_new(&store), 0))
                return;
        fd_store_keep(store, uid, 3, fd);
        CHECK_STR(take_message(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3");
        CHECK_STR(take_message(manager),
                "FDSTORE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3\nFDPOLL=0");
        fd_store_forget(store, uid, 3);
        CHECK_STR(take_message(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3");
        CHECK_STR(take_message(manager), "");
        fd_store_free(store);
}

/* The record of a device may have got another epoch before ublkd ended, and its disk was still there. */
static void test_a_descriptor_of_an_older_disk_is_found(int manager)
{
        char pid[16];
        struct fd_store *store;
        uint16_t epoch = 7;
        int fd;

        CHECK_INT(dup2(manager, 3), 3);
        CHECK_INT(dup2(manager, 4), 4);
        snprintf(pid, sizeof(pid), "%d", getpid());
        CHECK_INT(setenv("LISTEN_PID", pid, 1), 0);
        CHECK_INT(setenv("LISTEN_FDS", "2", 1), 0);
        CHECK_INT(setenv("LISTEN_FDNAMES",
                          "store-0b7a1c9e-0000-4000-8000-1234567890ab-9:store-0b7a1c9e-0000-4000-8000-"
                          "1234567890ab-10",
                          1),
                0);
        if (!CHECK_INT(fd_store_new(&store), 0))
                return;
        CHECK_INT(fd_store_take(store, "0b7a1c9e-0000-4000-8000-1234567890ac", &epoch), -1);
        CHECK_INT(epoch, 7);
        fd = fd_store_take(store, uid, &epoch);
        CHECK_INT(fd, 4);
        CHECK_INT(epoch, 10);
        close_fd(fd);
        fd_store_free(store);
}

int main(void)
{
        _cleanup_close_ int manager = listen_as_service_manager();

        test_a_descriptor_replaces_the_one_before(manager);
        test_a_descriptor_of_an_older_disk_is_found(manager);
        return check_report();
}
