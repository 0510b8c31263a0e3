/* SPDX-License-Identifier: MIT */
/* The rights of a user of the host for files. */
#include "targets/loop/user_rights.h"

#include "ublkd/base/cleanup.h"

#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>

enum {
        GROUPS_MAX = 1024, /* of a user; further ones do not count */
        NO_GROUP = 65534,  /* "nogroup", which owns nothing */
        NAME_SIZE = 256,
        STACK_SIZE = 256 * 1024,
};

struct run {
        uid_t user;
        gid_t groups[GROUPS_MAX]; /* the first is the user's own */
        size_t group_count;
        int (*work)(void *userdata);
        void *userdata;
        int result;
};

/* ---- which groups ---- */

/* A group that is missing can give rights: a mode or an ACL may shut it out. So a file that cannot be read is a failure.
 *
 * Find the name and the group of the user. Return 1; 0: the file does not have the user; -errno. */
static int read_passwd(const char *path, uid_t user, char name[static NAME_SIZE], gid_t *ret)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        const struct passwd *entry;

        if (!file)
                return errno == ENOENT ? 0 : -errno;
        while (errno = 0, (entry = fgetpwent(file)))
                if (entry->pw_uid == user && strlen(entry->pw_name) < NAME_SIZE) {
                        strcpy(name, entry->pw_name);
                        *ret = entry->pw_gid;
                        return 1;
                }
        return ferror(file) ? -errno : 0;
}

static bool is_member(const struct group *group, const char *name)
{
        for (char *const *member = group->gr_mem; *member; member++)
                if (strcmp(*member, name) == 0)
                        return true;
        return false;
}

static int read_groups(const char *path, const char *name, struct run *run)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        const struct group *entry;

        if (!file)
                return errno == ENOENT ? 0 : -errno;
        while (errno = 0, (entry = fgetgrent(file))) {
                if (!is_member(entry, name))
                        continue;
                if (run->group_count == GROUPS_MAX)
                        return -E2BIG;
                run->groups[run->group_count++] = entry->gr_gid;
        }
        return ferror(file) ? -errno : 0;
}

static int find_groups(const struct user_accounts *accounts, struct run *run)
{
        const char *passwd = accounts && accounts->passwd ? accounts->passwd : "/etc/passwd";
        const char *group = accounts && accounts->group ? accounts->group : "/etc/group";
        char name[NAME_SIZE];
        int r;

        run->groups[0] = NO_GROUP;
        run->group_count = 1;
        r = read_passwd(passwd, run->user, name, &run->groups[0]);
        return r > 0 ? read_groups(group, name, run) : r;
}

/* ---- in the thread ---- */

static int drop_capabilities(void)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

        return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

#ifdef SYS_setgroups32 /* the other call has numbers of 16 bits there */
#define SETGROUPS SYS_setgroups32
#else
#define SETGROUPS SYS_setgroups
#endif

/* The functions of libc change all threads of the process, but for those that begin with setfs. Those return the id
 * from before, and never a failure. */
static int become(const struct run *run)
{
        if (geteuid() == run->user)
                return drop_capabilities();
        if (syscall(SETGROUPS, run->group_count, run->groups) < 0)
                return -errno;
        (void)setfsgid(run->groups[0]);
        (void)setfsuid(run->user);
        if ((gid_t)setfsgid((gid_t)-1) != run->groups[0] || (uid_t)setfsuid((uid_t)-1) != run->user)
                return -EPERM;
        return drop_capabilities();
}

/* A thread shares its root directory with the process for a moment longer than pthread_join() waits, and a process with a
 * shared one cannot enter a mount namespace. So this thread has one of its own from the start. */
static void *run_thread(void *userdata)
{
        struct run *run = userdata;

        run->result = unshare(CLONE_FS) < 0 ? -errno : become(run);
        if (run->result >= 0)
                run->result = run->work(run->userdata);
        return NULL;
}

static int run_in_thread(struct run *run)
{
        pthread_attr_t attributes;
        pthread_t thread;
        int r = -pthread_attr_init(&attributes);

        if (r < 0)
                return r;
        r = -pthread_attr_setstacksize(&attributes, STACK_SIZE);
        if (r == 0)
                r = -pthread_create(&thread, &attributes, run_thread, run);
        (void)pthread_attr_destroy(&attributes);
        if (r == 0)
                r = -pthread_join(thread, NULL);
        return r < 0 ? r : run->result;
}

int user_rights_run(
        uid_t user, const struct user_accounts *accounts, int (*work)(void *userdata), void *userdata)
{
        struct run run = {.user = user, .work = work, .userdata = userdata};
        int r = find_groups(accounts, &run);

        return r < 0 ? r : run_in_thread(&run);
}
