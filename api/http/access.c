/* SPDX-License-Identifier: MIT */
/* Identify the client, and decide what it may do. */
#include "api/http/access.h"

#include "api/http/tenancy.h"

#include "ublkd/base/file_io.h"
#include "ublkd/peers/peer_groups.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { TOKEN_BYTES = (TOKEN_TEXT_SIZE - 1) / 2 };

/* Return whether a peer with these groups is in `group`. */
static bool is_member(gid_t first, const struct peer_groups *others, const struct api_group *group)
{
        return group->exists && (first == group->gid || peer_groups_have(others, group->gid));
}

/* Fill in what the user and the groups of the peer give it. Return 0 or -errno. */
static int read_claims(int fd, const struct api_rights *rights, struct peer *peer)
{
        struct peer_groups groups;
        int r = peer_groups_read(fd, &groups);

        if (r < 0)
                return r;
        peer->is_root = peer->uid == 0 || peer->uid == geteuid();
        peer->is_administrator = is_member(peer->gid, &groups, &rights->administrators);
        peer->is_reader = is_member(peer->gid, &groups, &rights->readers);
        peer_groups_clear(&groups);
        return 0;
}

/* Return whether anything depends on where the peer runs. An ublkd that is not root has no rights but those of its own
 * user, and no tenants. */
static bool home_counts(const struct peer *peer, const struct api_rights *rights)
{
        return geteuid() == 0
               && (peer->is_root || peer->is_administrator || peer->is_reader
                       || (rights->policy && rights->policy->rule_count > 0));
}

/* Take away what only users of the host have. Return 0 or -errno. */
static int keep_claims_at_home(int fd, struct peer *peer)
{
        int r = peer_home_of(fd, &peer->home);

        if (peer->home != PEER_AT_HOME)
                peer->is_root = peer->is_administrator = peer->is_reader = false;
        return r;
}

static int find_tenant(int fd, const struct api_rights *rights, struct peer *peer)
{
        _cleanup_tenancy_ struct tenancy tenancy = {};
        int r = tenancy_find(fd, rights->policy, peer->uid, peer->gid, peer->home, &tenancy);

        if (r < 0 || !tenancy.rule)
                return r;
        tenant_of_user(peer->uid, peer->tenant);
        peer->account = policy_account(tenancy.rule, peer->uid).first;
        peer->changes_per_minute = (unsigned)tenancy.rule->options.changes_per_minute;
        return 0;
}

int peer_of_socket(int fd, const struct api_rights *rights, struct peer *ret)
{
        struct sockaddr_storage address;
        struct ucred credentials;
        socklen_t size = sizeof(address);
        int r;

        if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
                return -errno;
        if (address.ss_family != AF_UNIX) {
                *ret = (struct peer){.tcp = true, .uid = (uid_t)-1, .gid = (gid_t)-1, .account = (uid_t)-1};
                return 0;
        }
        size = sizeof(credentials);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
                return -errno;
        *ret = (struct peer){.uid = credentials.uid,
                .gid = credentials.gid,
                .pid = credentials.pid,
                .account = credentials.uid};
        r = read_claims(fd, rights, ret);
        if (r < 0 || !home_counts(ret, rights))
                return r;
        r = keep_claims_at_home(fd, ret);
        return r < 0 || peer_may_change(ret) ? r : find_tenant(fd, rights, ret);
}

bool peer_may_change(const struct peer *peer)
{
        return peer->tcp || peer->is_root || peer->is_administrator;
}

bool peer_may_read(const struct peer *peer, const struct api_rights *rights)
{
        return peer_may_change(peer) || rights->everyone_reads || peer->is_reader;
}

/* Read the token that an earlier start made. 0; -ENOENT; -EPERM: other users could read it; -EBADMSG: not a
 * token; other -errno. */
static int read_token(const char *path, char ret_token[static TOKEN_TEXT_SIZE])
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        char text[TOKEN_TEXT_SIZE + 1];
        struct stat info;
        ssize_t n;

        if (fd < 0 || fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode) || (info.st_mode & 077) || (info.st_uid != 0 && info.st_uid != geteuid()))
                return -EPERM;
        n = read(fd, text, sizeof(text));
        if (n < 0)
                return -errno;
        if (n > 0 && text[n - 1] == '\n')
                n--;
        if (n != TOKEN_TEXT_SIZE - 1 || memchr(text, '\0', (size_t)n))
                return -EBADMSG;
        memcpy(ret_token, text, TOKEN_TEXT_SIZE - 1);
        ret_token[TOKEN_TEXT_SIZE - 1] = '\0';
        return 0;
}

/* Write the token `userdata` to a new file that survives a power cut; for replace_at(). */
static int write_token(int dir, const char *name, void *userdata)
{
        _cleanup_close_ int fd =
                openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

        return fd < 0 || dprintf(fd, "%s\n", (const char *)userdata) < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int make_token(const char *path, char ret_token[static TOKEN_TEXT_SIZE])
{
        unsigned char bytes[TOKEN_BYTES];
        char token[TOKEN_TEXT_SIZE];
        int r;

        if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
                return -EIO;
        for (size_t i = 0; i < sizeof(bytes); i++)
                snprintf(token + 2 * i, 3, "%02x", bytes[i]);
        r = replace_at(AT_FDCWD, path, write_token, token);
        if (r >= 0)
                memcpy(ret_token, token, sizeof(token));
        return r;
}

int token_open(const char *state_dir, char ret_token[static TOKEN_TEXT_SIZE], struct problem_list *problems)
{
        char path[PATH_MAX];
        int r, n = snprintf(path, sizeof(path), "%s/api-token", state_dir);

        if (n < 0 || (size_t)n >= sizeof(path))
                return -ENAMETOOLONG;
        r = read_token(path, ret_token);
        if (r == -ENOENT)
                r = make_token(path, ret_token);
        if (r == -EPERM || r == -EBADMSG)
                (void)problem_add(problems, -r, "", "TokenUnusable",
                        "Cannot use the token in %s: only root may read the file, and it must hold one "
                        "token. Give it back to root with mode 0600, or move it away; ublkd then makes a "
                        "new token.",
                        path);
        else if (r < 0)
                (void)problem_add(problems, -r, "", "TokenUnusable",
                        "Cannot read or create the token in %s: %s; TCP needs one.", path, strerror(-r));
        return r;
}

bool token_matches(const char *token, const char *authorization)
{
        static const char scheme[] = "Bearer ";
        volatile unsigned char difference = 0;
        const char *given;

        if (!*token || !authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
                return false;
        given = authorization + sizeof(scheme) - 1;
        given += strspn(given, " ");
        if (strlen(given) != TOKEN_TEXT_SIZE - 1)
                return false;
        for (size_t i = 0; i < TOKEN_TEXT_SIZE - 1; i++)
                difference |= (unsigned char)(given[i] ^ token[i]);
        return difference == 0;
}
