/* SPDX-License-Identifier: MIT */
/* Finds the ublk disks that belong to no record of this ublkd: /sys lists the numbers, and the driver describes
 * each disk. */
#include "ublkd/host/foreign_scan.h"

#include "ublkd/offload/apart.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/host/foreign_disk.h"
#include "ublkd/model/device_cookie.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

struct foreign_scan {
        struct foreign_scan_config config;
        struct ublk_ctl *ctl;
        struct ublk_ctl_call *call; /* of the current question to the driver */
        int *numbers;               /* owned */
        size_t count, next;
        struct foreign_disks found; /* so far */
        struct apart *apart;        /* examines their processes, after the last answer */
        bool looking;
        uint64_t hung_at; /* CLOCK_MONOTONIC of the last question without an answer; 0: all were answered */
};

/* A question that hangs occupies a helper of the control plane, which devices need more. */
enum {
        HUNG_USEC = 60 * 1000 * 1000,
        LOOK_USEC = 1000 * 1000, /* a client of GET /host waits for two seconds */
};

DEFINE_CLEANUP(struct foreign_scan, foreign_scan_free);

/* Return whether a device of this ublkd has its disk at the number: no need to ask the driver. */
static bool is_seen(const struct device_store *store, int number)
{
        const struct device_record *record = device_store_of_number(store, number);

        return record && record->age == RECORD_CURRENT && record->status.disk;
}

/* List the numbers that may belong to foreign disks, unsorted. */
static int list_numbers(const struct foreign_scan_config *config, int **ret, size_t *ret_count)
{
        _cleanup_closedir_ DIR *directory = opendir(config->folder ? config->folder : "/sys/class/ublk-char");
        _cleanup_free_ int *numbers = NULL;
        const struct dirent *entry;
        size_t count = 0;

        while (directory && (entry = readdir(directory))) { /* without the driver there is no directory */
                int number, end = 0;
                int *more;

                if (sscanf(entry->d_name, "ublkc%d%n", &number, &end) != 1 || entry->d_name[end]
                        || is_seen(config->store, number))
                        continue;
                more = reallocarray(numbers, count + 1, sizeof(*numbers));
                if (!more)
                        return -ENOMEM;
                numbers = more;
                numbers[count++] = number;
        }
        *ret = TAKE_PTR(numbers);
        *ret_count = count;
        return 0;
}

static bool is_ours(const struct foreign_scan *scan, const struct kernel_device *kernel)
{
        const struct device_record *record = device_store_of_number(scan->config.store, kernel->number);

        return record && record->age == RECORD_CURRENT && device_cookie_matches(kernel->cookie, record->uid);
}

static void drop_numbers(struct foreign_scan *scan)
{
        free(scan->numbers);
        scan->numbers = NULL;
        scan->count = scan->next = 0;
}

/* ---- their processes ---- */

/* In a separate process: write one record for each disk with a server, in the order of the disks. */
static void look_at_servers(void *userdata, FILE *answer)
{
        const struct foreign_scan *scan = userdata;

        for (size_t i = 0; i < scan->found.count; i++) {
                struct foreign_server server;

                if (scan->found.items[i].server_pid == 0)
                        continue;
                server = foreign_server_look(
                        scan->config.proc ? scan->config.proc : "/proc", scan->found.items[i].server_pid);
                (void)fwrite(&server, sizeof(server), 1, answer);
                (void)fflush(answer); /* the next process may hang */
        }
}

/* Describe a disk; if its process could not be examined now, use the result of the last scan. */
static void describe(
        const struct foreign_scan *scan, struct foreign_disk *disk, const struct foreign_server *server)
{
        const struct foreign_disk *before = foreign_disks_find(scan->config.found, disk);
        bool same = before && before->looked && before->server_pid == disk->server_pid;

        const struct adoptable *item = adoptables_find_cookie(scan->config.adoptable, disk->cookie);

        foreign_disk_describe(disk,
                server ? server
                : same ? &before->server
                       : NULL,
                item ? item->name : NULL);
        disk->held = item && item->age != RECORD_CURRENT;
        disk->is_new = !foreign_disks_contain(scan->config.found, disk);
}

/* End the scan with `size` bytes of records; a disk without a record has an unknown server. */
static void finish(struct foreign_scan *scan, const char *records, size_t size)
{
        size_t at = 0;

        for (size_t i = 0; i < scan->found.count; i++) {
                struct foreign_disk *disk = &scan->found.items[i];
                struct foreign_server server;
                bool known = disk->server_pid > 0 && size - at >= sizeof(server);

                if (known) {
                        memcpy(&server, records + at, sizeof(server));
                        at += sizeof(server);
                }
                describe(scan, disk, known ? &server : NULL);
        }
        drop_numbers(scan);
        foreign_disks_clear(scan->config.found);
        *scan->config.found = scan->found;
        scan->found = (struct foreign_disks){};
}

static void on_looked(void *userdata, int error _unused_, const void *answer, size_t size)
{
        struct foreign_scan *scan = userdata;

        scan->looking = false;
        finish(scan, answer, size);
        scan->config.done(scan->config.userdata);
}

static bool has_servers(const struct foreign_disks *disks)
{
        for (size_t i = 0; i < disks->count; i++)
                if (disks->items[i].server_pid > 0)
                        return true;
        return false;
}

/* ---- the scan ---- */

static void on_info(void *userdata, int result, const struct kernel_device *kernel);

/* Ask the driver about the next number. A disk without an answer is not shown. Return false after the last one.
 */
static bool ask_next(struct foreign_scan *scan)
{
        while (scan->next < scan->count) {
                int number = scan->numbers[scan->next++];

                if (ublk_ctl_get_info(scan->ctl, number, on_info, scan, &scan->call) >= 0)
                        return true;
                scan->call = NULL;
        }
        scan->looking = has_servers(&scan->found) && apart_begin(scan->apart) >= 0;
        if (scan->looking)
                return true;
        finish(scan, NULL, 0);
        return false;
}

static void on_info(void *userdata, int result, const struct kernel_device *kernel)
{
        struct foreign_scan *scan = userdata;

        scan->call = NULL;
        if (result == -ETIMEDOUT) {
                scan->hung_at = clock_usec(CLOCK_MONOTONIC);
                scan->next = scan->count; /* end this scan */
        }
        if (result >= 0 && scan->found.count < FOREIGN_DISKS_MAX && !is_ours(scan, kernel)) {
                const struct foreign_disk disk = foreign_disk_of(kernel);

                (void)foreign_disks_add(&scan->found, &disk); /* on ENOMEM the disk is not shown */
        }
        if (!ask_next(scan))
                scan->config.done(scan->config.userdata);
}

bool foreign_scan_begin(struct foreign_scan *scan)
{
        if (scan->call || scan->looking)
                return true;
        if (scan->hung_at > 0 && clock_usec(CLOCK_MONOTONIC) - scan->hung_at < HUNG_USEC)
                return false;
        return scan->ctl && list_numbers(&scan->config, &scan->numbers, &scan->count) >= 0 && ask_next(scan);
}

void foreign_scan_set_control(struct foreign_scan *scan, struct ublk_ctl *ctl)
{
        bool scanning = scan->call || scan->looking;

        if (scan->call)
                ublk_ctl_call_cancel(scan->call);
        apart_cancel(scan->apart);
        scan->looking = false;
        scan->call = NULL;
        scan->ctl = ctl;
        drop_numbers(scan);
        foreign_disks_clear(&scan->found);
        if (scanning)
                scan->config.done(scan->config.userdata);
}

int foreign_scan_new(const struct foreign_scan_config *config, struct foreign_scan **ret)
{
        _cleanup_(foreign_scan_free_pointer) struct foreign_scan *scan = calloc(1, sizeof(*scan));
        int r;

        if (!scan)
                return -ENOMEM;
        scan->config = *config;
        r = apart_new(config->event,
                &(struct apart_options){
                        .process = "ublkd-look",
                        .patience_usec = config->patience_usec ? config->patience_usec : LOOK_USEC,
                        .look = look_at_servers,
                        .done = on_looked,
                        .userdata = scan,
                },
                &scan->apart);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(scan);
        return 0;
}

struct foreign_scan *foreign_scan_free(struct foreign_scan *scan)
{
        if (!scan)
                return NULL;
        if (scan->call)
                ublk_ctl_call_cancel(scan->call);
        apart_free(scan->apart);
        drop_numbers(scan);
        foreign_disks_clear(&scan->found);
        free(scan);
        return NULL;
}
