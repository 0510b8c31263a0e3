/* The claim of a disk on its backing store, kept in the runtime directory: a line with the range, a line with
 * the key.
 */
#include "ublkd/claim_file.h"

#include "ublkd/base/cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = PATH_MAX + 256 };

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

int claim_file_write(const char *runtime_dir, const char *uid, const struct backing_claim *claim)
{
        char path[PATH_MAX], temporary[PATH_MAX], text[TEXT_SIZE];
        int r, n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %d\n%s\n", claim->start, claim->end,
                       claim->writes, claim->key);

        if (n < 0 || n >= (int)sizeof(text))
                return -ENAMETOOLONG;
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

/* Cuts the key out of `text` and returns where it begins, or NULL. */
static char *find_key(char *text, size_t offset)
{
        char *key = text + offset, *end = strchr(key, '\n');

        if (!end || end == key || end[1])
                return NULL;
        *end = '\0';
        return key;
}

int claim_file_read(const char *runtime_dir, const char *uid, struct backing_claim *ret)
{
        struct backing_claim claim = {};
        char path[PATH_MAX], text[TEXT_SIZE], *key;
        _cleanup_close_ int fd = -1;
        int writes, offset = 0, r = path_of(path, runtime_dir, uid, "");
        ssize_t n;

        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        if (sscanf(text, "%" SCNu64 " %" SCNu64 " %d%n", &claim.start, &claim.end, &writes, &offset) != 3
                || text[offset] != '\n')
                return -EBADMSG;
        key = find_key(text, (size_t)offset + 1);
        if (!key)
                return -EBADMSG;
        claim.key = strdup(key);
        if (!claim.key)
                return -ENOMEM;
        claim.writes = writes != 0;
        *ret = claim;
        return 0;
}

int claim_file_remove(const char *runtime_dir, const char *uid)
{
        char path[PATH_MAX];
        int r = path_of(path, runtime_dir, uid, "");

        if (r < 0)
                return r;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}
