/* SPDX-License-Identifier: MIT */
/* The identity of a file or a block device. */
#include "targets/loop/store_identity.h"

#include "targets/loop/block_device.h"
#include "targets/loop/loop_node.h"
#include "ublkd/backing/file_identity.h"
#include "ublkd/base/file_io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

enum { NAME_TOKEN_SIZE = 200 };

/* Drop a token that does not fit: a truncated token could match another store. */
static _printf_(2, 3) bool put_token(char ret[static BACKING_TOKEN_SIZE], const char *format, ...)
{
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vsnprintf(ret, BACKING_TOKEN_SIZE, format, arguments);
        va_end(arguments);
        if (n > 0 && n < BACKING_TOKEN_SIZE)
                return true;
        ret[0] = '\0';
        return false;
}

/* Where the name of a disk is found. Paths are below /sys/dev/block/MAJOR:MINOR; of a partition also below
 * its disk's. */
static const struct {
        enum backing_basis basis;
        const char *path;
        bool of_partition; /* else it names the whole disk */
} names[] = {
        {BACKING_DM_UUID,     "dm/uuid",       true },
        {BACKING_DISK_WWID,   "wwid",          false}, /* nvme */
        {BACKING_DISK_WWID,   "device/wwid",   false}, /* scsi */
        {BACKING_DISK_SERIAL, "serial",        false}, /* virtio */
        {BACKING_DISK_SERIAL, "device/serial", false},
};

/* What udev found on the disk, in its database. */
static const struct {
        enum backing_basis basis;
        const char *key;
} udev_names[] = {
        {BACKING_MD_UUID,        "E:MD_UUID="           },
        {BACKING_PARTITION_UUID, "E:ID_PART_ENTRY_UUID="},
};

/* Reads a short text that ends at the end of the line, with spaces cut off. False: there is none, or it is
 * empty. */
static bool read_text(const char *path, char *ret, size_t size)
{
        ssize_t length = read_line_at(AT_FDCWD, path, ret, size);

        if (length <= 0)
                return false;
        while (length > 0 && ret[length - 1] == ' ')
                length--;
        ret[length] = '\0';
        return length > 0;
}

static bool read_attribute(dev_t number, const char *name, char ret[static NAME_TOKEN_SIZE])
{
        char path[128];

        snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(number), minor(number), name);
        return read_text(path, ret, NAME_TOKEN_SIZE);
}

static bool read_udev(dev_t number, const char *key, char ret[static NAME_TOKEN_SIZE])
{
        char path[64], *line = NULL;
        size_t size = 0;
        bool found = false;
        FILE *file;

        snprintf(path, sizeof(path), "/run/udev/data/b%u:%u", major(number), minor(number));
        file = fopen(path, "re");
        while (file && !found && getline(&line, &size, file) > 0) {
                line[strcspn(line, "\n")] = '\0';
                found = strncmp(line, key, strlen(key)) == 0 && strlen(line) - strlen(key) < NAME_TOKEN_SIZE;
                if (found)
                        strcpy(ret, line + strlen(key));
        }
        free(line);
        if (file)
                fclose(file);
        return found && *ret;
}

/* The file below a loop device, where its path still leads to it: inode numbers are the same in many file
 * systems, so the file system counts as well. */
static bool read_loop_file(dev_t disk, char ret[static BACKING_TOKEN_SIZE])
{
        struct backing_identity below = {};
        _cleanup_close_ int file = -1;
        struct loop_backing backing;
        struct stat stat;

        if (!is_loop_device(disk) || loop_node_read(disk, &backing) < 0 || backing.disk != 0
                || loop_node_open_file(disk, &backing, &file) < 0 || fstat(file, &stat) < 0)
                return false;
        file_identify(file, &stat, &below);
        return *below.lasting && put_token(ret, "%s@%ju", below.lasting, (uintmax_t)backing.start);
}

static void set_lasting(struct backing_identity *identity, enum backing_basis basis, const char *name,
        bool is_part, uint64_t start)
{
        char place[32] = "";

        if (is_part)
                snprintf(place, sizeof(place), "+%" PRIu64, start);
        if (put_token(identity->lasting, "%s:%s%s", backing_basis_to_string(basis), name, place))
                identity->basis = basis;
}

static void identify_disk(const struct stat *stat, struct backing_identity *ret)
{
        char name[BACKING_TOKEN_SIZE], *text = name;
        dev_t number = stat->st_rdev, disk;
        uint64_t start;
        bool is_part;

        block_device_place(number, &disk, &start);
        is_part = disk != number;
        if (read_attribute(disk, "diskseq", text)) {
                ret->basis = BACKING_DISK_SEQUENCE;
                put_token(ret->boot, "diskseq:%s+%" PRIu64, text, start);
        }
        for (size_t i = 0; i < ARRAY_SIZE(names) && !*ret->lasting; i++)
                if (read_attribute(names[i].of_partition ? number : disk, names[i].path, text))
                        set_lasting(ret, names[i].basis, text, is_part && !names[i].of_partition, start);
        if (!*ret->lasting && read_loop_file(disk, name))
                set_lasting(ret, BACKING_LOOP_FILE, name, is_part, start);
        for (size_t i = 0; i < ARRAY_SIZE(udev_names) && !*ret->lasting; i++)
                if (read_udev(number, udev_names[i].key, text))
                        set_lasting(ret, udev_names[i].basis, text, false, 0);
}

void store_identify(int fd, const struct stat *stat, struct backing_identity *ret)
{
        *ret = (struct backing_identity){.is_disk = S_ISBLK(stat->st_mode)};
        if (ret->is_disk)
                identify_disk(stat, ret);
        else
                file_identify(fd, stat, ret);
}
