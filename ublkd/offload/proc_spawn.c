/* SPDX-License-Identifier: MIT */
/* posix_spawn(): it shares our memory with the child until the exec, so that its cost does not grow with
 * ours. That matters, because a spawn is part of every recovery. proc_clone() does so, too; execute() then does in the
 * child what posix_spawn() would do. */
#include "ublkd/offload/proc_spawn.h"

#include "ublkd/offload/proc_clone.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/* AddressSanitizer does not know the stack of proc_clone(). */
#define _on_other_stack_ __attribute__((no_sanitize("address")))

enum { FDS_END = PROC_SPAWN_FIRST_FD + PROC_SPAWN_FDS_MAX };

static void destroy_actions(posix_spawn_file_actions_t *actions)
{
        (void)posix_spawn_file_actions_destroy(actions);
}

static void destroy_attributes(posix_spawnattr_t *attributes)
{
        (void)posix_spawnattr_destroy(attributes);
}

/* The service manager sets it for ublkd. Another program would take it for its own. */
static bool is_for_us_alone(const char *assignment)
{
        static const char *const names[] = {"NOTIFY_SOCKET=", "LISTEN_FDS=", "LISTEN_FDNAMES=", "LISTEN_PID=",
                "WATCHDOG_USEC=", "WATCHDOG_PID="};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strncmp(assignment, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

/* The strings belong to `environ`. */
static char **make_environment(void)
{
        size_t count = 0, kept = 0;
        char **result;

        while (environ && environ[count])
                count++;
        result = calloc(count + 1, sizeof(*result));
        for (size_t i = 0; result && i < count; i++)
                if (!is_for_us_alone(environ[i]))
                        result[kept++] = environ[i];
        return result;
}

/* dup2() onto a number that is the source of a later dup2() would lose it: so all sources are above them. */
static int add_descriptors(posix_spawn_file_actions_t *actions, const int *fds, unsigned count)
{
        int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

        if (r == 0)
                r = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
        for (unsigned i = 0; r == 0 && i < count; i++)
                r = posix_spawn_file_actions_adddup2(actions, fds[i], PROC_SPAWN_FIRST_FD + (int)i);
        if (r == 0)
                r = posix_spawn_file_actions_addclosefrom_np(actions, PROC_SPAWN_FIRST_FD + (int)count);
        return -r;
}

static sigset_t first_mask(const struct proc_spawn *spawn)
{
        sigset_t mask;

        if (spawn->block_signals)
                sigfillset(&mask);
        else
                sigemptyset(&mask);
        return mask;
}

static int set_attributes(posix_spawnattr_t *attributes, const struct proc_spawn *spawn)
{
        sigset_t mask = first_mask(spawn), all;
        int r;

        sigfillset(&all);
        r = posix_spawnattr_setsigmask(attributes, &mask);
        if (r == 0)
                r = posix_spawnattr_setsigdefault(attributes, &all);
        if (r == 0)
                r = posix_spawnattr_setflags(
                        attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
        return -r;
}

/* pidfd_open() of a child that only we reap cannot meet another process of the same number. */
static int run_here(
        const struct proc_spawn *spawn, const int *fds, char **environment, pid_t *ret_pid, int *ret_pidfd)
{
        _cleanup_(destroy_actions) posix_spawn_file_actions_t actions;
        _cleanup_(destroy_attributes) posix_spawnattr_t attributes;
        pid_t pid;
        int r, pidfd;

        (void)posix_spawn_file_actions_init(&actions); /* neither can fail with the GNU C library */
        (void)posix_spawnattr_init(&attributes);
        r = add_descriptors(&actions, fds, spawn->fd_count);
        if (r >= 0)
                r = set_attributes(&attributes, spawn);
        if (r < 0)
                return r;
        r = posix_spawn(&pid, spawn->program, &actions, &attributes, (char *const *)spawn->argv, environment);
        if (r != 0)
                return -r;
        pidfd = pidfd_open(pid, 0);
        if (pidfd < 0) {
                r = -errno;
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
                return r;
        }
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        return 0;
}

/* ---- in a control group ---- */

struct child {
        const struct proc_spawn *spawn;
        const int *fds;
        char **environment;
        sigset_t mask;
        int error; /* -errno: the program could not be executed */
};

/* As add_descriptors(). */
static _on_other_stack_ bool take_descriptors(const struct child *child)
{
        unsigned count = child->spawn->fd_count;
        int null = open("/dev/null", O_RDONLY);

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return false;
        for (unsigned i = 0; i < count; i++)
                if (dup2(child->fds[i], PROC_SPAWN_FIRST_FD + (int)i) < 0)
                        return false;
        return close_range(PROC_SPAWN_FIRST_FD + count, ~0U, 0) == 0;
}

/* As set_attributes(). Handlers are gone already; ignored signals are still ignored. */
static _on_other_stack_ bool take_attributes(const struct child *child)
{
        const struct sigaction by_default = {.sa_handler = SIG_DFL};

        for (int number = 1; number < NSIG; number++)
                (void)sigaction(
                        number, &by_default, NULL); /* refuses SIGKILL, SIGSTOP and the C library's own */
        return setsid() >= 0 && sigprocmask(SIG_SETMASK, &child->mask, NULL) == 0;
}

/* In the child, which has our memory. */
static _on_other_stack_ int execute(void *userdata)
{
        struct child *child = userdata;

        if (take_descriptors(child) && take_attributes(child))
                (void)execve(child->spawn->program, (char *const *)child->spawn->argv, child->environment);
        child->error = -errno;
        return EXIT_FAILURE;
}

/* Return 1; 0: no process can be started there; -errno: the program cannot be executed. */
static int run_in_group(
        const struct proc_spawn *spawn, const int *fds, char **environment, pid_t *ret_pid, int *ret_pidfd)
{
        struct child child = {
                .spawn = spawn, .fds = fds, .environment = environment, .mask = first_mask(spawn)};
        int pidfd;
        pid_t pid;

        if (spawn->group <= 0 || proc_clone(spawn->group, execute, &child, &pid, &pidfd) < 0)
                return 0;
        if (child.error < 0) {
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
                close_fd(pidfd);
                return child.error;
        }
        *ret_pid = pid;
        *ret_pidfd = pidfd;
        return 1;
}

static int run(const struct proc_spawn *spawn, const int *fds, pid_t *ret_pid, int *ret_pidfd)
{
        _cleanup_free_ char **environment = make_environment();
        int r = environment ? run_in_group(spawn, fds, environment, ret_pid, ret_pidfd) : -ENOMEM;

        if (r == 0)
                r = run_here(spawn, fds, environment, ret_pid, ret_pidfd);
        return r < 0 ? r : 0;
}

int proc_spawn(const struct proc_spawn *spawn, pid_t *ret_pid, int *ret_pidfd)
{
        struct proc_spawn complete = *spawn;
        int fds[PROC_SPAWN_FDS_MAX] = {};
        unsigned moved = 0;
        int r = 0;

        if (!complete.program)
                complete.program = "/proc/self/exe";
        for (; moved < spawn->fd_count; moved++) {
                fds[moved] = fcntl(spawn->fds[moved], F_DUPFD_CLOEXEC, FDS_END);
                if (fds[moved] < 0) {
                        r = -errno;
                        break;
                }
        }
        if (r >= 0)
                r = run(&complete, fds, ret_pid, ret_pidfd);
        while (moved > 0)
                close_fd(fds[--moved]);
        return r;
}
