/* SPDX-License-Identifier: MIT */
/* A plugin of nbdkit: a file whose reads and writes can be held, be late, or fail (tests/kernel/harness/backing.py).
 *
 * Orders are files in DIRECTORY, so that a test gives and takes them back without a connection of its own:
 *
 *   failing     writes and flushes fail with EIO
 *   held        a write waits until the lock of this file is free
 *   held-reads  so does a read
 *   slow        has a number of seconds: a write waits as long for the lock of `shore`, and then lands all the same
 *
 * What was seen are files in DIRECTORY/marks: `asked` for a held read, `arrived` for a write that is held or slow, and `landed`
 * once it is in the file. Each name ends with a number. */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

enum {
        TRY_NSEC = 20 * 1000
                   * 1000, /* between two tries to get the lock of the shore: flock(2) has no time limit */
        ZEROES_SIZE = 64 * 1024,
};

static int file = -1, orders = -1;

static int testy_config(const char *key, const char *value)
{
        int *fd = strcmp(key, "file") == 0 ? &file : strcmp(key, "directory") == 0 ? &orders : NULL;

        if (!fd) {
                nbdkit_error("unknown parameter '%s'", key);
                return -1;
        }
        *fd = open(value, (fd == &file ? O_RDWR : O_RDONLY | O_DIRECTORY) | O_CLOEXEC);
        if (*fd < 0) {
                nbdkit_error("%s: %m", value);
                return -1;
        }
        return 0;
}

static int testy_config_complete(void)
{
        if (file >= 0 && orders >= 0)
                return 0;
        nbdkit_error("give file=FILE and directory=DIRECTORY");
        return -1;
}

static void *testy_open(int readonly)
{
        (void)readonly;
        return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t testy_get_size(void *handle)
{
        struct stat info;

        (void)handle;
        if (fstat(file, &info) == 0)
                return info.st_size;
        nbdkit_error("fstat: %m");
        return -1;
}

static int testy_can_fua(void *handle)
{
        (void)handle;
        return NBDKIT_FUA_NATIVE;
}

/* Return 0, or -1 with an error for nbdkit. */
static int check_orders(void)
{
        if (faccessat(orders, "failing", F_OK, 0) < 0)
                return 0;
        nbdkit_error("EIO as the test wants it");
        nbdkit_set_error(EIO);
        return -1;
}

static void mark(const char *what)
{
        static atomic_uint last;
        char name[64];
        int fd;

        snprintf(name, sizeof(name), "marks/%s.%u", what, atomic_fetch_add(&last, 1));
        fd = openat(orders, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
                nbdkit_error("%s: %m", name);
        else
                close(fd);
}

/* Wait for the lock of a file. A file that is gone holds nothing. Return whether it was there. */
static bool wait_for(const char *name, const char *seen)
{
        int fd = openat(orders, name, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return false;
        mark(seen);
        while (flock(fd, LOCK_SH) < 0 && errno == EINTR) {}
        close(fd);
        return true;
}

/* Return the seconds that a write takes now; 0: it is not slow. */
static unsigned slowness(void)
{
        int fd = openat(orders, "slow", O_RDONLY | O_CLOEXEC);
        unsigned seconds = 0;
        char text[16] = "";

        if (fd < 0)
                return 0;
        if (read(fd, text, sizeof(text) - 1) > 0)
                (void)sscanf(text, "%u", &seconds);
        close(fd);
        return seconds;
}

static void wait_for_shore(unsigned seconds)
{
        const struct timespec pause = {.tv_nsec = TRY_NSEC};
        int fd = openat(orders, "shore", O_RDONLY | O_CLOEXEC);
        struct timespec begin, now;

        if (fd < 0)
                return;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
                if (flock(fd, LOCK_SH | LOCK_NB) == 0)
                        break;
                nanosleep(&pause, NULL);
                clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec - begin.tv_sec < (time_t)seconds);
        close(fd);
}

/* Wait as the test wants it. Return whether the write is a late one. */
static bool be_late(void)
{
        unsigned seconds;

        if (wait_for("held", "arrived"))
                return true;
        seconds = slowness();
        if (seconds == 0)
                return false;
        mark("arrived");
        wait_for_shore(seconds);
        return true;
}

static int put(const char *data, size_t count, off_t offset)
{
        while (count > 0) {
                ssize_t n = pwrite(file, data, count, offset);

                if (n < 0) {
                        nbdkit_error("pwrite: %m");
                        return -1;
                }
                data += n;
                offset += n;
                count -= (size_t)n;
        }
        return 0;
}

static int testy_pread(void *handle, void *data, uint32_t count, uint64_t offset, uint32_t flags)
{
        (void)handle;
        (void)flags;
        (void)wait_for("held-reads", "asked");
        for (char *at = data; count > 0;) {
                ssize_t n = pread(file, at, count, (off_t)offset);

                if (n <= 0) {
                        nbdkit_error("pread: %s", n < 0 ? strerror(errno) : "the file ends");
                        return -1;
                }
                at += n;
                offset += (uint64_t)n;
                count -= (uint32_t)n;
        }
        return 0;
}

static int testy_pwrite(void *handle, const void *data, uint32_t count, uint64_t offset, uint32_t flags)
{
        bool late;
        int r;

        (void)handle;
        (void)flags; /* FUA: the file is as durable as a test needs */
        if (check_orders() < 0)
                return -1;
        late = be_late();
        r = put(data, count, (off_t)offset);
        if (late)
                mark("landed");
        return r;
}

/* A trim too: what was trimmed reads as zeroes. */
static int testy_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
        static const char zeroes[ZEROES_SIZE];
        bool late;
        int r = 0;

        (void)handle;
        (void)flags;
        if (check_orders() < 0)
                return -1;
        late = be_late();
        while (r == 0 && count > 0) {
                uint32_t part = count < ZEROES_SIZE ? count : ZEROES_SIZE;

                r = put(zeroes, part, (off_t)offset);
                offset += part;
                count -= part;
        }
        if (late)
                mark("landed");
        return r;
}

static int testy_flush(void *handle, uint32_t flags)
{
        (void)handle;
        (void)flags;
        return check_orders();
}

static struct nbdkit_plugin plugin = {
        .name = "testy",
        .version = "1",
        .config = testy_config,
        .config_complete = testy_config_complete,
        .open = testy_open,
        .get_size = testy_get_size,
        .can_fua = testy_can_fua,
        .pread = testy_pread,
        .pwrite = testy_pwrite,
        .zero = testy_zero,
        .trim = testy_zero,
        .flush = testy_flush,
};

struct nbdkit_plugin *plugin_init(void); /* nbdkit-plugin.h has no prototype of what it defines */

NBDKIT_REGISTER_PLUGIN(plugin)
