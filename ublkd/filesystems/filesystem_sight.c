/* SPDX-License-Identifier: MIT */
/* What is on a disk. */
#include "ublkd/filesystems/filesystem_sight.h"

#include "ublkd/base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

enum {
        CHUNK = 1 << 20,
        END_SIZE = 4 << 20, /* at the beginning, and at the end */
        SAMPLES = 256,
        SAMPLE_SIZE = 4096,
        UUID_BYTES = 16,
};

/* Where each kind has its magic number and its UUID, in bytes from the beginning of the disk. */
static const struct {
        size_t magic_at, uuid_at;
        const char *magic;
} places[_FILESYSTEM_KIND_MAX] = {
        [FILESYSTEM_EXT4] = {1024 + 0x38, 1024 + 0x68, "\x53\xef"},
        [FILESYSTEM_XFS] = {0,           32,          "XFSB"    },
};

/* Return the bytes that were read, fewer only at the end of the disk; -errno. */
static ssize_t read_at(int disk, unsigned char *buffer, size_t size, off_t at)
{
        size_t done = 0;

        while (done < size) {
                ssize_t n = pread(disk, buffer + done, size - done, at + (off_t)done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t)n;
        }
        return (ssize_t)done;
}

static bool is_zero(const unsigned char *buffer, size_t size)
{
        return size == 0 || (buffer[0] == 0 && memcmp(buffer, buffer + 1, size - 1) == 0);
}

/* Return 1 if all bytes are zero, 0 if not, -errno. */
static int range_is_zero(int disk, unsigned char *buffer, off_t from, off_t end)
{
        while (from < end) {
                size_t size = end - from < CHUNK ? (size_t)(end - from) : CHUNK;
                ssize_t n = read_at(disk, buffer, size, from);

                if (n < 0)
                        return (int)n;
                if ((size_t)n < size)
                        return -EIO; /* it has become shorter */
                if (!is_zero(buffer, size))
                        return 0;
                from += n;
        }
        return 1;
}

static int is_blank(int disk, unsigned char *buffer, off_t size)
{
        off_t head = size < END_SIZE ? size : END_SIZE;
        off_t tail = size - END_SIZE > head ? size - END_SIZE : head;
        int r = range_is_zero(disk, buffer, 0, head);

        if (r > 0)
                r = range_is_zero(disk, buffer, tail, size);
        for (int i = 1; r > 0 && i < SAMPLES; i++) {
                off_t at = size / SAMPLES * i / SAMPLE_SIZE * SAMPLE_SIZE;

                if (at >= head && at + SAMPLE_SIZE <= tail)
                        r = range_is_zero(disk, buffer, at, at + SAMPLE_SIZE);
        }
        return r;
}

static bool parse_uuid(const char *text, unsigned char ret[static UUID_BYTES])
{
        for (size_t i = 0; i < UUID_BYTES; i++) {
                unsigned byte;

                if (*text == '-')
                        text++;
                if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1])
                        || sscanf(text, "%2x", &byte) != 1)
                        return false;
                ret[i] = (unsigned char)byte;
                text += 2;
        }
        return *text == '\0';
}

static bool has_filesystem(const unsigned char *head, enum filesystem_kind kind, const char *uuid)
{
        unsigned char wanted[UUID_BYTES];

        return parse_uuid(uuid, wanted)
               && memcmp(head + places[kind].magic_at, places[kind].magic, strlen(places[kind].magic)) == 0
               && memcmp(head + places[kind].uuid_at, wanted, UUID_BYTES) == 0;
}

int filesystem_sight(int disk, enum filesystem_kind kind, const char *uuid)
{
        _cleanup_free_ unsigned char *buffer = malloc(CHUNK);
        off_t size = lseek(disk, 0, SEEK_END);
        ssize_t n;
        int r;

        if (!buffer || size < 0)
                return buffer ? -errno : -ENOMEM;
        n = read_at(disk, buffer, SAMPLE_SIZE, 0);
        if (n < 0)
                return (int)n;
        if (n == SAMPLE_SIZE && has_filesystem(buffer, kind, uuid))
                return FILESYSTEM_SEES_IT;
        r = is_blank(disk, buffer, size);
        if (r < 0)
                return r;
        return r > 0 ? FILESYSTEM_SEES_BLANK : FILESYSTEM_SEES_OTHER;
}

int filesystem_is_there(int disk)
{
        unsigned char head[SAMPLE_SIZE];
        ssize_t n = read_at(disk, head, sizeof(head), 0);

        if (n < 0)
                return (int)n;
        for (size_t i = 0; n == SAMPLE_SIZE && i < ARRAY_SIZE(places); i++)
                if (places[i].magic
                        && memcmp(head + places[i].magic_at, places[i].magic, strlen(places[i].magic)) == 0)
                        return 1;
        return 0;
}

int filesystem_is_unused(int disk, enum filesystem_kind kind)
{
        enum {
                EXT4_MOUNT_TIME = 1024 + 0x2C, /* s_mtime: of the last mount */
                XFS_IN_PROGRESS = 126,         /* sb_inprogress: until mkfs has ended */
        };
        unsigned char head[SAMPLE_SIZE];
        ssize_t n = read_at(disk, head, sizeof(head), 0);

        if (n < 0)
                return (int)n;
        if (n < SAMPLE_SIZE)
                return -EIO;
        return kind == FILESYSTEM_XFS ? head[XFS_IN_PROGRESS] != 0 : is_zero(head + EXT4_MOUNT_TIME, 4);
}
