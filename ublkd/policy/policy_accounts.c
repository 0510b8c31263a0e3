/* SPDX-License-Identifier: MIT */
/* The users, groups and subordinate uids of this host, from files. */
#include "ublkd/policy/policy_accounts.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum { FIELDS_MAX = 3, UID_LAST = UINT32_MAX - 1 /* UINT32_MAX stands for none */ };

/* Called for each line with its first fields. Return 0: go on; else the result of the whole. */
typedef int (*line_reader)(char *const fields[static FIELDS_MAX], void *userdata);

/* A FIFO in its place would never end. */
static int open_file(const char *path, FILE **ret)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat info;

        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode))
                return -EBADMSG;
        *ret = fdopen(fd, "re");
        if (!*ret)
                return -errno;
        (void)TAKE_FD(fd);
        return 0;
}

/* Lines with fewer fields are skipped. */
static bool split(char *line, char *fields[static FIELDS_MAX])
{
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < FIELDS_MAX; i++) {
                fields[i] = strsep(&line, ":");
                if (!fields[i])
                        return false;
        }
        return true;
}

/* A file that does not exist has no lines. */
static int read_lines(const char *path, line_reader read, void *userdata)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *line = NULL;
        char *fields[FIELDS_MAX];
        size_t size = 0;
        int r = open_file(path, &file);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        while (r == 0 && (errno = 0, getline(&line, &size, file)) > 0)
                if (split(line, fields))
                        r = read(fields, userdata);
        if (r == 0 && errno != 0)
                return -errno;
        return r;
}

static bool parse_number(const char *text, uint64_t *ret)
{
        unsigned long long number;
        char *end;

        if (text[0] < '0' || text[0] > '9')
                return false;
        errno = 0;
        number = strtoull(text, &end, 10);
        if (errno != 0 || *end != '\0')
                return false;
        *ret = number;
        return true;
}

struct lookup {
        const char *name;
        uint32_t number;
};

/* NAME:PASSWORD:NUMBER:..., of passwd(5) and group(5). */
static int read_account(char *const fields[static FIELDS_MAX], void *userdata)
{
        struct lookup *lookup = userdata;
        uint64_t number;

        if (strcmp(fields[0], lookup->name) != 0 || !parse_number(fields[2], &number) || number > UID_LAST)
                return 0;
        lookup->number = (uint32_t)number;
        return 1;
}

static int find(const char *path, const char *name, uint32_t *ret)
{
        struct lookup lookup = {.name = name};
        int r = read_lines(path, read_account, &lookup);

        if (r > 0)
                *ret = lookup.number;
        return r;
}

int policy_accounts_user(const struct policy_accounts *accounts, const char *name, uint32_t *ret_uid)
{
        return find(accounts->passwd ? accounts->passwd : "/etc/passwd", name, ret_uid);
}

int policy_accounts_group(const struct policy_accounts *accounts, const char *name, uint32_t *ret_gid)
{
        return find(accounts->group ? accounts->group : "/etc/group", name, ret_gid);
}

struct range_lookup {
        const char *name; /* NULL: all but root */
        bool has_uid;
        uint32_t uid;
        struct uid_range **ranges;
        size_t *count;
        int added;
};

static bool is_owner(const struct range_lookup *lookup, const char *owner)
{
        uint64_t uid = 0;
        bool is_uid = parse_number(owner, &uid);

        if (!lookup->name)
                return strcmp(owner, "root") != 0 && !(is_uid && uid == 0);
        return strcmp(owner, lookup->name) == 0 || (lookup->has_uid && is_uid && uid == lookup->uid);
}

static bool is_range(uint64_t first, uint64_t length)
{
        return first > 0 && first <= UID_LAST && length > 0 && length <= UID_LAST - first + 1;
}

/* What of it can be uids of users; length 0: nothing. */
static void cut_range(uint64_t *first, uint64_t *length)
{
        if (*first == 0 && *length > 0) {
                *first = 1;
                --*length;
        }
        if (*first > UID_LAST)
                *length = 0;
        else if (*length > UID_LAST - *first + 1)
                *length = UID_LAST - *first + 1;
}

/* OWNER:FIRST:COUNT, of subuid(5), with the name or the uid of the owner. A line that is not as it should be, and that
 * newuidmap(1) may take, is left out where a rule names its owner. All ranges are asked for to refuse them: such a line is
 * cut to what can be, or a fault. */
static int read_range(char *const fields[static FIELDS_MAX], void *userdata)
{
        struct range_lookup *lookup = userdata;
        struct uid_range *ranges;
        uint64_t first, length;

        if (!is_owner(lookup, fields[0]))
                return 0;
        if (!parse_number(fields[1], &first) || !parse_number(fields[2], &length))
                return lookup->name ? 0 : -EBADMSG;
        if (!lookup->name)
                cut_range(&first, &length);
        if (!is_range(first, length))
                return 0;
        ranges = reallocarray(*lookup->ranges, *lookup->count + 1, sizeof(*ranges));
        if (!ranges)
                return -ENOMEM;
        *lookup->ranges = ranges;
        ranges[(*lookup->count)++] =
                (struct uid_range){.first = (uint32_t)first, .last = (uint32_t)(first + length - 1)};
        lookup->added++;
        return 0;
}

static const char *path_of_subuids(const struct policy_accounts *accounts)
{
        return accounts->subuid ? accounts->subuid : "/etc/subuid";
}

int policy_accounts_subuids(
        const struct policy_accounts *accounts, const char *name, struct uid_range **ranges, size_t *count)
{
        struct range_lookup lookup = {.name = name, .ranges = ranges, .count = count};
        int r = policy_accounts_user(accounts, name, &lookup.uid);

        if (r < 0)
                return r;
        lookup.has_uid = r > 0;
        r = read_lines(path_of_subuids(accounts), read_range, &lookup);
        return r < 0 ? r : lookup.added;
}

int policy_accounts_all_subuids(
        const struct policy_accounts *accounts, struct uid_range **ranges, size_t *count)
{
        struct range_lookup lookup = {.ranges = ranges, .count = count};

        return read_lines(path_of_subuids(accounts), read_range, &lookup);
}
