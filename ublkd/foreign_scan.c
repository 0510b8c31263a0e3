/* Finds the ublk devices of the kernel that belong to no record here: /sys lists the numbers, the driver says
 * of each what it is. */
#include "ublkd/foreign_scan.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/foreign_disk.h"
#include "ublkd/observe.h"

#include <dirent.h>
#include <stdio.h>

struct foreign_scan {
        struct foreign_scan_config config;
        struct ublk_ctl *ctl;
        struct ublk_ctl_call *call; /* of the one that is asked about now */
        int *numbers;               /* owned */
        size_t count, next;
        struct foreign_disks found; /* so far */
        uint64_t hung_at;           /* CLOCK_MONOTONIC: the driver did not answer then; 0: it always did */
};

/* A question that hangs costs a helper of the control plane, which devices need more. */
enum { HUNG_USEC = 60 * 1000 * 1000 };

DEFINE_CLEANUP(DIR, closedir);

/* A bit for each number where a disk of ours was seen: nobody has to ask what is there. */
static unsigned char *numbers_of_ours(const struct device_store *store)
{
        unsigned char *bits = calloc(DEVICE_NUMBER_MAX / 8 + 1, 1);

        if (bits)
                DEVICE_STORE_FOREACH (record, store)
                        if (record->number >= 0 && record->status.disk)
                                bits[record->number / 8] |= (unsigned char)(1U << record->number % 8);
        return bits;
}

static bool is_set(const unsigned char *bits, int number)
{
        return number >= 0 && number <= DEVICE_NUMBER_MAX && (bits[number / 8] & 1U << number % 8);
}

/* Those that may be foreign, in no order. */
static int list_numbers(const struct foreign_scan_config *config, int **ret, size_t *ret_count)
{
        _cleanup_(closedir_pointer) DIR *directory =
                opendir(config->folder ? config->folder : "/sys/class/ublk-char");
        _cleanup_free_ unsigned char *ours = numbers_of_ours(config->store);
        _cleanup_free_ int *numbers = NULL;
        const struct dirent *entry;
        size_t count = 0;

        if (!ours)
                return -ENOMEM;
        while (directory && (entry = readdir(directory))) { /* no driver: no folder */
                int number, end = 0;
                int *more;

                if (sscanf(entry->d_name, "ublkc%d%n", &number, &end) != 1 || entry->d_name[end]
                        || is_set(ours, number))
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
        DEVICE_STORE_FOREACH (record, scan->config.store)
                if (record->number == kernel->number && device_cookie_matches(kernel->cookie, record->uid))
                        return true;
        return false;
}

static void forget_numbers(struct foreign_scan *scan)
{
        free(scan->numbers);
        scan->numbers = NULL;
        scan->count = scan->next = 0;
}

static void finish(struct foreign_scan *scan)
{
        forget_numbers(scan);
        foreign_disks_clear(scan->config.found);
        *scan->config.found = scan->found;
        scan->found = (struct foreign_disks){};
}

static void on_info(void *userdata, int result, const struct kernel_device *kernel);

/* One question at a time. What is not answered is not known, and not told. False: that was all. */
static bool ask_next(struct foreign_scan *scan)
{
        while (scan->next < scan->count) {
                int number = scan->numbers[scan->next++];

                if (ublk_ctl_get_info(scan->ctl, number, on_info, scan, &scan->call) >= 0)
                        return true;
                scan->call = NULL;
        }
        finish(scan);
        return false;
}

static void on_info(void *userdata, int result, const struct kernel_device *kernel)
{
        struct foreign_scan *scan = userdata;

        scan->call = NULL;
        if (result == -ETIMEDOUT) {
                scan->hung_at = clock_usec(CLOCK_MONOTONIC);
                scan->next = scan->count; /* no more for now */
        }
        if (result >= 0 && scan->found.count < FOREIGN_DISKS_MAX && !is_ours(scan, kernel)) {
                struct foreign_disk disk = foreign_disk_describe("/proc", kernel);

                disk.is_new = !foreign_disks_contain(scan->config.found, &disk);
                (void)foreign_disks_add(&scan->found, &disk); /* without memory one is not told */
        }
        if (!ask_next(scan))
                scan->config.done(scan->config.userdata);
}

bool foreign_scan_begin(struct foreign_scan *scan)
{
        if (scan->call)
                return true;
        if (scan->hung_at > 0 && clock_usec(CLOCK_MONOTONIC) - scan->hung_at < HUNG_USEC)
                return false;
        return scan->ctl && list_numbers(&scan->config, &scan->numbers, &scan->count) >= 0 && ask_next(scan);
}

void foreign_scan_set_control(struct foreign_scan *scan, struct ublk_ctl *ctl)
{
        bool scanning = scan->call != NULL;

        if (scanning)
                ublk_ctl_call_cancel(scan->call);
        scan->call = NULL;
        scan->ctl = ctl;
        forget_numbers(scan);
        foreign_disks_clear(&scan->found);
        if (scanning)
                scan->config.done(scan->config.userdata);
}

int foreign_scan_new(const struct foreign_scan_config *config, struct foreign_scan **ret)
{
        struct foreign_scan *scan = calloc(1, sizeof(*scan));

        if (!scan)
                return -ENOMEM;
        scan->config = *config;
        *ret = scan;
        return 0;
}

struct foreign_scan *foreign_scan_free(struct foreign_scan *scan)
{
        if (!scan)
                return NULL;
        if (scan->call)
                ublk_ctl_call_cancel(scan->call);
        forget_numbers(scan);
        foreign_disks_clear(&scan->found);
        free(scan);
        return NULL;
}
