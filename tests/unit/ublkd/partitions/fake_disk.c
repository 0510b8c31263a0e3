/* SPDX-License-Identifier: MIT */
/* A disk without a kernel. */
#include "tests/unit/ublkd/partitions/fake_disk.h"
#include "tests/unit/check.h"
#include "tests/unit/ublkd/partitions/shell.h"
#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

static char top[] = "/tmp/fake-disk-XXXXXX";
static char sys[sizeof(top) + 8];
static uint32_t in_use;

_printf_(1, 2) static const char *path_of(const char *format, ...)
{
        static char path[256];
        va_list arguments;
        int used = snprintf(path, sizeof(path), "%s/", top);

        va_start(arguments, format);
        (void)vsnprintf(path + used, sizeof(path) - (size_t)used, format, arguments);
        va_end(arguments);
        return path;
}

/* A hanging disk is a pipe without a writer. */
static int open_fake(int number)
{
        int fd = open(path_of("image%d", number), O_RDONLY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

/* The number of a disk whose image is open. */
static int number_of(int disk)
{
        char link[64], target[256] = "";

        snprintf(link, sizeof(link), "/proc/self/fd/%d", disk);
        CHECK(readlink(link, target, sizeof(target) - 1) > 0);
        return atoi(strstr(target, "image") + strlen("image"));
}

static int change_fake(int disk, const struct partition_step *step)
{
        int number = number_of(disk);

        if (step->action == PARTITION_DELETE && step->partition.number == in_use)
                return -EBUSY;
        if (step->action == PARTITION_DELETE)
                shell_run("rm -r %s",
                        path_of("sys/block/ublkb%d/ublkb%dp%u", number, number, step->partition.number));
        else
                fake_disk_show(number, &step->partition);
        return 0;
}

const struct disk_partitions_roots fake_disk_roots = {
        .sys = sys, .dev = top, .open = open_fake, .change = change_fake};

void fake_disk_begin(void)
{
        CHECK(mkdtemp(top));
        snprintf(sys, sizeof(sys), "%s/sys", top);
        shell_run("mkdir -p %s/block", sys);
}

void fake_disk_end(void)
{
        shell_run("rm -r %s", top);
}

void fake_disk_resize(int number, unsigned sectors)
{
        CHECK_INT(truncate(path_of("image%d", number), (off_t)sectors * PARTITION_SECTOR), 0);
}

void fake_disk_add(int number, const char *script)
{
        _cleanup_close_ int fd = -1;

        (void)unlink(path_of("image%d", number));
        fd = open(path_of("image%d", number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0);
        fake_disk_resize(number, 65536);
        shell_run("mkdir -p %s", path_of("sys/block/ublkb%d/queue", number));
        if (script)
                shell_run(
                        "printf '%s' | PATH=$PATH:/sbin:/usr/sbin sfdisk --quiet --no-reread --wipe never %s",
                        script, path_of("image%d", number));
}

void fake_disk_hang(int number)
{
        (void)unlink(path_of("image%d", number));
        CHECK_INT(mkfifo(path_of("image%d", number), 0600), 0);
}

void fake_disk_show(int number, const struct partition *partition)
{
        char folder[256];

        snprintf(folder, sizeof(folder), "%s",
                path_of("sys/block/ublkb%d/ublkb%dp%u", number, number, partition->number));
        shell_run("mkdir -p %s && echo %u >%s/partition && echo %" PRIu64 " >%s/start && echo %" PRIu64
                  " >%s/size",
                folder, partition->number, folder, partition->start, folder, partition->size, folder);
}

void fake_disk_use(uint32_t number)
{
        in_use = number;
}

static int by_number(const void *one, const void *other)
{
        const struct partition *left = one, *right = other;

        return (left->number > right->number) - (left->number < right->number);
}

const char *fake_disk_shown(int number)
{
        static char text[1024];
        struct partition_list list = {};
        size_t used = 0;

        CHECK_INT(disk_partitions_read(&fake_disk_roots, number, &list), 0);
        qsort(list.items, list.count, sizeof(list.items[0]), by_number);
        text[0] = '\0';
        for (size_t i = 0; i < list.count; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u@%" PRIu64 "+%" PRIu64,
                        i ? " " : "", list.items[i].number, list.items[i].start, list.items[i].size);
        return text;
}
