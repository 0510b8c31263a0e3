/* SPDX-License-Identifier: MIT */
/* What a new process has, in our control group and in another one (cgroup v2, where this machine has one that can be
 * written). This program is the new process, too. */
#include "ublkd/offload/proc_spawn.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ANSWER_FD = PROC_SPAWN_FIRST_FD, SECOND_FD, STATUS_FINE = 23, FDS_SEEN = 64 };

static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

static char program[PATH_MAX], directory[PATH_MAX]; /* of the group; "": this machine has none */

/* What the new process says of itself. */
struct answer {
        pid_t pid, session;
        uint64_t fds; /* a bit for each that is open */
        bool all_blocked, none_blocked, ignores, listens;
        char group[512]; /* its line of /proc/self/cgroup */
};

/* ---- in the new process ---- */

static void read_group(char *ret, size_t size)
{
        _cleanup_fclose_ FILE *stream = fopen("/proc/self/cgroup", "re");
        char line[512] = "";

        while (stream && fgets(line, sizeof(line), stream))
                if (strncmp(line, "0::", 3) == 0)
                        snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static bool is_open(int fd)
{
        return fcntl(fd, F_GETFD) >= 0;
}

static int print_state(void)
{
        struct answer answer = {
                .pid = getpid(), .session = getsid(0), .none_blocked = true, .all_blocked = true};
        sigset_t mask;

        for (int fd = 0; fd < FDS_SEEN; fd++)
                answer.fds |= is_open(fd) ? UINT64_C(1) << fd : 0;
        sigprocmask(SIG_SETMASK, NULL, &mask);
        for (int number = 1; number <= SIGSYS; number++) {
                struct sigaction action;
                bool blockable = number != SIGKILL && number != SIGSTOP;

                answer.all_blocked = answer.all_blocked && (!blockable || sigismember(&mask, number));
                answer.none_blocked = answer.none_blocked && !sigismember(&mask, number);
                if (sigaction(number, NULL, &action) == 0)
                        answer.ignores = answer.ignores || action.sa_handler == SIG_IGN;
        }
        answer.listens = getenv("LISTEN_FDS") != NULL;
        read_group(answer.group, sizeof(answer.group));
        return write(ANSWER_FD, &answer, sizeof(answer)) == sizeof(answer) ? STATUS_FINE : EXIT_FAILURE;
}

/* ---- here ---- */

static int status_of(int pidfd)
{
        siginfo_t info = {};

        CHECK_INT(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
        close(pidfd);
        return info.si_status;
}

static struct answer ask(int group, bool block_signals)
{
        struct answer answer = {};
        pid_t pid = 0;
        int pair[2], pidfd = -1;

        CHECK_INT(pipe2(pair, 0), 0); /* without O_CLOEXEC: it must not be kept all the same */
        CHECK_INT(proc_spawn(
                          &(struct proc_spawn){
                                  .program = program,
                                  .argv = (const char *[]){"proc_spawn_test", "--print", NULL},
                                  .fds = {pair[1], pair[0]},
                                  .fd_count = 2,
                                  .block_signals = block_signals,
                                  .group = group,
        },
                          &pid, &pidfd),
                0);
        CHECK(is_open(pair[1]));
        close(pair[1]);
        CHECK_INT(read(pair[0], &answer, sizeof(answer)), sizeof(answer));
        close(pair[0]);
        CHECK_INT(answer.pid, pid);
        CHECK((fcntl(pidfd, F_GETFD) & FD_CLOEXEC) != 0);
        CHECK_INT(status_of(pidfd), STATUS_FINE);
        return answer;
}

static void check_answer(int group, bool block_signals)
{
        struct answer answer = ask(group, block_signals);

        CHECK_INT(answer.session, answer.pid);
        CHECK_INT(answer.fds, (1U << (SECOND_FD + 1)) - 1);
        CHECK(answer.all_blocked == block_signals);
        CHECK(answer.none_blocked == !block_signals);
        CHECK(!answer.ignores && !answer.listens);
}

static void on_signal(int number _unused_)
{
}

/* Signals of ours that are blocked, handled and ignored. */
static void be_peculiar(void)
{
        sigset_t mask;

        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        (void)signal(SIGUSR1, on_signal);
        (void)signal(SIGPIPE, SIG_IGN);
        (void)setenv("LISTEN_FDS", "1", 1);
}

static void keeps_its_signals(void)
{
        struct sigaction action;
        sigset_t mask;

        sigprocmask(SIG_SETMASK, NULL, &mask);
        CHECK(sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGHUP));
        CHECK(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == on_signal);
        CHECK(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
}

static int spawn_missing(int group)
{
        pid_t pid;
        int pidfd;

        return proc_spawn(
                &(struct proc_spawn){
                        .program = "/nowhere/program",
                        .argv = (const char *[]){"program", NULL},
                        .group = group
        },
                &pid, &pidfd);
}

static void test_in_our_group(void)
{
        char own[512] = "";

        read_group(own, sizeof(own));
        for (int block = 0; block < 2; block++)
                check_answer(0, block);
        CHECK_STR(ask(-ENOENT, false).group, own);
        CHECK_INT(spawn_missing(0), -ENOENT);
        keeps_its_signals();
}

/* The process starts all the same. */
static void test_without_such_a_group(void)
{
        int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char own[512] = "";

        read_group(own, sizeof(own));
        check_answer(fd, true);
        CHECK_STR(ask(fd, false).group, own);
        CHECK_INT(spawn_missing(fd), -ENOENT);
        close(fd);
}

static void test_in_another_group(void)
{
        int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct answer answer;

        CHECK(fd > 0);
        for (int block = 0; block < 2; block++)
                check_answer(fd, block);
        answer = ask(fd, false);
        CHECK_STR(strrchr(answer.group, '/'), strrchr(directory, '/'));
        CHECK_INT(spawn_missing(fd), -ENOENT);
        CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* it was reaped */
        keeps_its_signals();
        CHECK_INT(rmdir(directory), 0);
        check_answer(fd, false); /* the group was removed */
        close(fd);
}

static bool make_group(void)
{
        for (unsigned i = 0; i < ARRAY_SIZE(mounts); i++) {
                snprintf(directory, sizeof(directory), "%s/cgroup.controllers", mounts[i]);
                if (access(directory, F_OK) < 0)
                        continue;
                snprintf(directory, sizeof(directory), "%s/proc-spawn-test-%d", mounts[i], getpid());
                return mkdir(directory, 0755) == 0;
        }
        return false;
}

int main(int argc, char *argv[])
{
        if (argc == 2 && strcmp(argv[1], "--print") == 0)
                return print_state();
        CHECK(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
        be_peculiar();
        test_in_our_group();
        test_without_such_a_group();
        if (make_group())
                test_in_another_group();
        return check_report();
}
