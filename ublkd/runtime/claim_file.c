/* SPDX-License-Identifier: MIT */
/* The claims of a disk on its backing store, kept in the runtime directory. For each a line with its range,
 * whether the disk writes, and " 1" if it is mapped; then a line with its key. */
#include "ublkd/runtime/claim_file.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
        CLAIM_SIZE_MAX = BACKING_KEY_MAX + 64, /* as text */
        TEXT_SIZE = BACKING_CLAIMS_MAX * CLAIM_SIZE_MAX,
};

static int path_of(char path[static PATH_MAX], const char *runtime_dir, const char *uid, const char *suffix)
{
        int n = snprintf(path, PATH_MAX, "%s/workers/%s.claim%s", runtime_dir, uid, suffix);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int write_all(const char *path, const char *text, size_t size)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = write(fd, text, size);
        if (n < 0)
                return -errno;
        return (size_t)n == size ? 0 : -ENOSPC;
}

/* Returns the length, or -ENAMETOOLONG. */
static int make_text(const struct backing_claims *claims, char text[static TEXT_SIZE])
{
        size_t size = 0;

        for (size_t i = 0; i < claims->count; i++) {
                const struct backing_claim *claim = &claims->items[i];
                int n = snprintf(text + size, TEXT_SIZE - size, "%" PRIu64 " %" PRIu64 " %d%s\n%s\n",
                        claim->start, claim->end, claim->writes, claim->mapped ? " 1" : "", claim->key);

                if (n < 0 || (size_t)n >= TEXT_SIZE - size)
                        return -ENAMETOOLONG;
                size += (size_t)n;
        }
        return (int)size;
}

int claim_file_write(const char *runtime_dir, const char *uid, const struct backing_claims *claims)
{
        char path[PATH_MAX], temporary[PATH_MAX], text[TEXT_SIZE];
        int r, n = make_text(claims, text);

        if (n < 0)
                return n;
        r = path_of(path, runtime_dir, uid, "");
        if (r >= 0)
                r = path_of(temporary, runtime_dir, uid, ".new");
        if (r >= 0)
                r = write_all(temporary, text, (size_t)n);
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void)unlink(temporary);
        return r;
}

/* Cuts the next line out of `*text`. NULL: there is none that ends. */
static char *take_line(char **text)
{
        char *line = *text, *end = strchr(line, '\n');

        if (!end)
                return NULL;
        *end = '\0';
        *text = end + 1;
        return line;
}

static int take_claim(char **text, struct backing_claims *claims)
{
        struct backing_claim claim = {};
        char *range = take_line(text);
        int writes, mapped = 0, offset = 0, n;

        claim.key = range ? take_line(text) : NULL;
        if (!claim.key)
                return -EBADMSG;
        n = sscanf(range, "%" SCNu64 " %" SCNu64 " %d%n %d%n", &claim.start, &claim.end, &writes, &offset,
                &mapped, &offset);
        if (n < 3 || range[offset] != '\0')
                return -EBADMSG;
        claim.writes = writes != 0;
        claim.mapped = mapped != 0;
        n = backing_claims_add(claims, &claim);
        return n == -ENOMEM ? n : n < 0 ? -EBADMSG : 0;
}

static int parse(char *text, struct backing_claims *ret)
{
        _cleanup_claims_ struct backing_claims claims = {};
        int r;

        do
                r = take_claim(&text, &claims);
        while (r >= 0 && *text);
        if (r < 0)
                return r;
        *ret = claims;
        claims = (struct backing_claims){};
        return 0;
}

int claim_file_read(const char *runtime_dir, const char *uid, struct backing_claims *ret)
{
        char path[PATH_MAX], text[TEXT_SIZE];
        _cleanup_close_ int fd = -1;
        int r = path_of(path, runtime_dir, uid, "");
        ssize_t n;

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        return parse(text, ret);
}

int claim_file_remove(const char *runtime_dir, const char *uid)
{
        char path[PATH_MAX];
        int r = path_of(path, runtime_dir, uid, "");

        if (r < 0)
                return r;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
