/* SPDX-License-Identifier: MIT */
/* Descriptors that the service manager keeps: the messages that it gets. */
#include "ublkd/base/cleanup.h"
#include "ublkd/runtime/fd_store.h"

#include "tests/unit/check.h"
#include "tests/unit/ublkd/service_manager.h"

#include <fcntl.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

/* It keeps all descriptors of one name, and the next ublkd takes one of them: it must have no older one. */
static void test_a_descriptor_replaces_the_one_before(int manager)
{
        _cleanup_close_ int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct fd_store *store;

        if (!CHECK_INT(fd_store_new(&store), 0))
                return;
        fd_store_keep(store, uid, 3, 0, fd);
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3");
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTORE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3\nFDPOLL=0");
        fd_store_drop(store, uid, 3, 0);
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-3");
        CHECK_STR(fake_service_manager_take(manager), "");
        fd_store_free(store);
}

/* The exclusive open that a disk has inherited, beside its own descriptor of the same block device. */
static void test_a_claim_has_a_name_of_its_own(int manager)
{
        _cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC),
                            fd = fcntl(null, F_DUPFD_CLOEXEC, 16);
        struct fd_store *store;
        uint16_t epoch = 0;
        char pid[16];

        CHECK_INT(dup2(fd, 3), 3);
        CHECK_INT(dup2(fd, 4), 4);
        snprintf(pid, sizeof(pid), "%d", getpid());
        CHECK_INT(setenv("LISTEN_PID", pid, 1), 0);
        CHECK_INT(setenv("LISTEN_FDS", "2", 1), 0);
        CHECK_INT(setenv("LISTEN_FDNAMES",
                          "store-0b7a1c9e-0000-4000-8000-1234567890ab-3:store-claim-"
                          "0b7a1c9e-0000-4000-8000-1234567890ab",
                          1),
                0);
        if (!CHECK_INT(fd_store_new(&store), 0))
                return;
        CHECK_INT(fd_store_sockets(store), 0);
        CHECK_INT(fd_store_take_claim(store, uid, 0), 4);
        CHECK_INT(fd_store_take_claim(store, uid, 0), -1);
        CHECK_INT(fd_store_take(store, uid, &epoch), 3);
        CHECK_INT(epoch, 3);
        fd_store_keep_claim(store, uid, 0, fd);
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-claim-0b7a1c9e-0000-4000-8000-1234567890ab");
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTORE=1\nFDNAME=store-claim-0b7a1c9e-0000-4000-8000-1234567890ab\nFDPOLL=0");
        fd_store_drop_claim(store, uid, 0);
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-claim-0b7a1c9e-0000-4000-8000-1234567890ab");
        CHECK_STR(fake_service_manager_take(manager), "");
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

/* Of several stores of one disk each has a name, and those of an older disk are not taken beside it. */
static void test_each_store_of_a_list_has_a_name(int manager)
{
        struct fd_store *store;
        uint16_t epoch = 0;
        char pid[16];

        for (int i = 3; i < 6; i++)
                CHECK_INT(dup2(manager, i), i);
        snprintf(pid, sizeof(pid), "%d", getpid());
        CHECK_INT(setenv("LISTEN_PID", pid, 1), 0);
        CHECK_INT(setenv("LISTEN_FDS", "3", 1), 0);
        CHECK_INT(setenv("LISTEN_FDNAMES",
                          "store-0b7a1c9e-0000-4000-8000-1234567890ab-9.1:store-0b7a1c9e-0000-4000-8000-"
                          "1234567890ab-10:store-0b7a1c9e-0000-4000-8000-1234567890ab-10.1",
                          1),
                0);
        if (!CHECK_INT(fd_store_new(&store), 0))
                return;
        CHECK_INT(fd_store_take(store, uid, &epoch), 4);
        CHECK_INT(epoch, 10);
        CHECK_INT(fd_store_take_listed(store, uid, epoch, 1), 5);
        CHECK_INT(fd_store_take_listed(store, uid, epoch, 1), -1);
        CHECK_INT(fd_store_take_listed(store, uid, epoch, 2), -1);
        fd_store_keep(store, uid, 10, 1, 5);
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTOREREMOVE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-10.1");
        CHECK_STR(fake_service_manager_take(manager),
                "FDSTORE=1\nFDNAME=store-0b7a1c9e-0000-4000-8000-1234567890ab-10.1\nFDPOLL=0");
        (void)close(4);
        (void)close(5);
        fd_store_free(store);
}

int main(void)
{
        _cleanup_close_ int low = fake_service_manager(), manager = fcntl(low, F_DUPFD_CLOEXEC, 16);

        test_a_descriptor_replaces_the_one_before(manager);
        test_a_claim_has_a_name_of_its_own(manager);
        test_a_descriptor_of_an_older_disk_is_found(manager);
        test_each_store_of_a_list_has_a_name(manager);
        return check_report();
}
