/* SPDX-License-Identifier: MIT */
/* The control groups of all workers.
 *
 * Nothing is noted of a group: its name has the pid, and cgroup.procs its processes. So a ublkd that dies between any
 * two calls leaves nothing that its successor does not see: an empty group, or the remains of a dead worker, which
 * group_tree_sweep() ends. A group whose worker lives is never killed, whichever ublkd of this machine has started
 * it.
 *
 * A pid means something in one pid namespace only, and a ublkd in a container may have its groups in the same directory.
 * So the name says which namespace: worker-PID for that of the machine, worker-PID-INODE for another one. A ublkd
 * touches no group with a name of another namespace. Nothing that a process of the group does can change that. */
#include "ublkd/cgroups/group_tree.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/file_io.h"
#include "ublkd/cgroups/group_limits.h"
#include "ublkd/cgroups/group_procs.h"
#include "ublkd/cgroups/group_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NAME_SIZE = 64, CONTROLLERS_SIZE = 512, LINE_SIZE = 256, EVENTS_SIZE = 512 };

#define PREFIX "worker-"
#define REST "rest"

/* ---- small files ---- */

/* file: NULL: the group itself. */
static int print_name(const struct group_tree *tree, char name[static NAME_SIZE], pid_t pid, const char *file)
{
        int n = snprintf(name, NAME_SIZE, PREFIX "%d", (int)pid);

        if (tree->pid_namespace > 0)
                n += snprintf(name + n, NAME_SIZE - (size_t)n, "-%" PRIu64, tree->pid_namespace);
        if (file)
                n += snprintf(name + n, NAME_SIZE - (size_t)n, "/%s", file);
        return n > 0 && n < NAME_SIZE ? 0 : -ENAMETOOLONG;
}

/* ---- what is in a group ---- */

struct members {
        bool worker; /* the process that the group is named after */
        bool others; /* processes beside it */
};

static int read_members(const struct group_tree *tree, pid_t pid, struct members *ret)
{
        _cleanup_fclose_ FILE *stream = NULL;
        struct members members = {};
        char name[NAME_SIZE];
        long number;
        int r = print_name(tree, name, pid, NULL);

        if (r >= 0)
                r = group_procs_open(tree->fd, name, &stream);
        if (r < 0)
                return r;
        while ((r = group_procs_next(stream, &number)) > 0) {
                members.worker = members.worker || number == pid;
                members.others = members.others || number != pid;
        }
        if (r >= 0)
                *ret = members;
        return r;
}

/* ---- the tree ---- */

static int open_tree(const struct group_place *place, int flags, struct group_tree *ret)
{
        int fd = open(place->path, flags | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = (struct group_tree){.fd = fd, .pid_namespace = place->pid_namespace};
        return 0;
}

int group_tree_open(const struct group_place *place, bool make, struct group_tree *ret)
{
        if (make && mkdir(place->path, 0755) < 0 && errno != EEXIST)
                return -errno;
        return open_tree(place, O_RDONLY, ret);
}

void group_tree_close(struct group_tree *tree)
{
        tree->fd = close_fd(tree->fd);
}

/* Return whether the text, words with blanks between them, has the word. */
static bool has_word(const char *text, const char *word)
{
        size_t length = strlen(word);

        for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
                if ((at == text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
                        return true;
        return false;
}

/* Those for CPU and I/O cost something with every request, so only if their limits are set. That for memory also shows the
 * OOM killer; that for processes costs only where one begins or ends, and is enabled early, because it takes the longer the
 * more groups there are. One by one: the kernel takes all or nothing, and one may be missing. */
static void enable_in(int dir, const struct group_limits *limits)
{
        char enabled[CONTROLLERS_SIZE], order[LINE_SIZE];

        if (read_line_at(dir, "cgroup.subtree_control", enabled, sizeof(enabled)) < 0)
                return;
        for (unsigned i = 0; i < _GROUP_LIMIT_MAX; i++) {
                const char *controller = group_limit_controller((enum group_limit)i);

                snprintf(order, sizeof(order), "+%s", controller);
                if (i != GROUP_MEMORY_MAX && i != GROUP_PIDS_MAX
                        && !group_limit_is_set(limits, (enum group_limit)i))
                        continue;
                if (!has_word(enabled, controller))
                        (void)group_write(dir, "cgroup.subtree_control", order);
        }
}

/* pid: as cgroup.procs shows it: 0 is a process of another pid namespace, and "0" would move this one. */
static void move_to_rest(const struct group_tree *tree, long pid)
{
        char text[32];

        snprintf(text, sizeof(text), "%ld", pid);
        if (pid > 0 && (mkdirat(tree->fd, REST, 0755) == 0 || errno == EEXIST))
                (void)group_write(tree->fd, REST "/" GROUP_PROCS, text);
}

/* The process of the unit, or one that another program has put there: a group that has processes passes nothing on. */
static void clear_tree(const struct group_tree *tree)
{
        _cleanup_fclose_ FILE *stream = NULL;
        long pid;

        if (group_procs_open(tree->fd, ".", &stream) < 0)
                return;
        while (group_procs_next(stream, &pid) > 0)
                move_to_rest(tree, pid);
}

void group_tree_enable(const struct group_tree *tree, const struct group_limits *limits, bool above)
{
        _cleanup_close_ int parent = above ? openat(tree->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (parent >= 0)
                enable_in(parent, limits);
        clear_tree(tree);
        group_write_no_pressure(tree->fd);
        enable_in(tree->fd, limits);
}

/* ---- one worker ---- */

int group_tree_open_own(const struct group_tree *tree, pid_t pid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, pid, NULL), fd;

        if (r < 0)
                return r;
        fd = openat(tree->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int remove_group(const struct group_tree *tree, pid_t pid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, pid, NULL);

        if (r < 0)
                return r;
        return unlinkat(tree->fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Kill all processes in the group. */
static int kill_group(const struct group_tree *tree, pid_t pid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, pid, "cgroup.kill");

        return r < 0 ? r : group_write(tree->fd, name, "1");
}

int group_tree_kill(const struct group_tree *tree, pid_t pid)
{
        struct members members;
        int r = read_members(tree, pid, &members);

        if (r >= 0 && members.others)
                r = kill_group(tree, pid);
        return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int group_tree_end(const struct group_tree *tree, pid_t pid)
{
        struct members members;
        int r = read_members(tree, pid, &members);

        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (members.worker)
                return 1;
        if (members.others)
                r = kill_group(tree, pid);
        return r < 0 ? r : remove_group(tree, pid);
}

static int move_process(const struct group_tree *tree, pid_t pid)
{
        char name[NAME_SIZE], text[32];
        int r = print_name(tree, name, pid, GROUP_PROCS);

        snprintf(text, sizeof(text), "%d", (int)pid);
        return r < 0 ? r : group_write(tree->fd, name, text);
}

static int make_group(const struct group_tree *tree, pid_t pid)
{
        char name[NAME_SIZE];
        int r = print_name(tree, name, pid, NULL);

        if (r >= 0 && mkdirat(tree->fd, name, 0755) < 0)
                r = -errno;
        if (r >= 0) {
                _cleanup_close_ int group = group_tree_open_own(tree, pid);

                group_write_new(group);
        }
        return r;
}

/* An empty group that was left behind counts the OOM kills of another process. */
static int renew_group(const struct group_tree *tree, pid_t pid)
{
        int r = group_tree_end(tree, pid);

        return r < 0 ? r : r > 0 ? -EBUSY : make_group(tree, pid);
}

int group_tree_hold(const struct group_tree *tree, pid_t pid)
{
        struct members members;
        int r = make_group(tree, pid);

        if (r == -EEXIST) {
                r = read_members(tree, pid, &members);
                if (r >= 0 && members.worker)
                        return 0;
                r = renew_group(tree, pid);
        }
        if (r >= 0)
                r = move_process(tree, pid);
        return r < 0 ? r : 1;
}

void group_tree_undo(const struct group_tree *tree, pid_t pid)
{
        struct members members;

        if (read_members(tree, pid, &members) >= 0 && members.worker)
                move_to_rest(tree, pid);
        (void)remove_group(tree, pid);
}

int group_tree_limit(const struct group_tree *tree, pid_t pid, const struct group_limits *limits,
        int ret[static _GROUP_LIMIT_MAX])
{
        _cleanup_close_ int group = group_tree_open_own(tree, pid);

        return group_write_limits(group, limits, ret);
}

/* ---- all workers ---- */

/* Return the pid of a group's name; 0: it is not the group of a worker of this pid namespace. */
static pid_t pid_of(const struct group_tree *tree, const char *name)
{
        char own[NAME_SIZE];
        int pid;

        if (sscanf(name, PREFIX "%d", &pid) != 1 || pid <= 0 || print_name(tree, own, pid, NULL) < 0
                || strcmp(name, own) != 0)
                return 0;
        return (pid_t)pid;
}

/* Return whether it is a child of ours that is dead, and that the supervisor has not reaped yet: it looks at first whether the
 * OOM killer was in the group. */
static bool is_looked_at(pid_t pid)
{
        siginfo_t info = {};

        return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

int group_tree_sweep(const struct group_tree *tree)
{
        _cleanup_closedir_ DIR *dir = NULL;
        const struct dirent *entry;
        int fd = openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), left = 0;

        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                int r = -errno;

                close_fd(fd);
                return r;
        }
        while ((entry = readdir(dir))) {
                pid_t pid = pid_of(tree, entry->d_name);

                if (pid > 0 && (is_looked_at(pid) || group_tree_end(tree, pid) < 0))
                        left++;
        }
        return left;
}

/* ---- without the lock ---- */

int group_tree_open_path(const struct group_place *place, struct group_tree *ret)
{
        return open_tree(place, O_PATH, ret);
}

int group_tree_open_rest(const struct group_place *place)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        int r = open_tree(place, O_PATH, &tree), fd;

        if (r < 0)
                return r;
        fd = openat(tree.fd, REST, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && (mkdirat(tree.fd, REST, 0755) == 0 || errno == EEXIST))
                fd = openat(tree.fd, REST, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int group_tree_has(const struct group_place *place, pid_t pid)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        struct members members = {};
        int r = open_tree(place, O_PATH, &tree);

        if (r >= 0)
                r = read_members(&tree, pid, &members);
        if (r == -ENOENT)
                return 0;
        return r < 0 ? r : members.worker;
}

int group_tree_open_events(const struct group_place *place, pid_t pid)
{
        _cleanup_(group_tree_close) struct group_tree tree = {.fd = -1};
        char name[NAME_SIZE];
        int r = open_tree(place, O_PATH, &tree), fd;

        if (r >= 0)
                r = print_name(&tree, name, pid, "memory.events");
        if (r < 0)
                return r;
        fd = openat(tree.fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int group_tree_oom_kills(int events, uint64_t *ret)
{
        static const char key[] = "\noom_kill "; /* not the first line, in any version of the kernel */
        char text[EVENTS_SIZE];
        ssize_t n = pread(events, text, sizeof(text) - 1, 0);
        const char *line;

        if (n < 0)
                return -errno;
        text[n] = '\0';
        line = strstr(text, key);
        return line && sscanf(line + strlen(key), "%" SCNu64, ret) == 1 ? 0 : -EBADMSG;
}
