/* SPDX-License-Identifier: MIT */
/* What the process that reads a partition table can still do, and that it reads nothing without one of its walls. */
#include "tests/unit/check.h"
#include "ublkd/partitions/partition_reader.h"
#include "ublkd/partitions/partition_wire.h"
#include "ublkd/partitions/reader_walls.h"

#include "ublkd/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

/* ---- a wall that cannot be raised ---- */

static const char *missing = ""; /* the function that fails */
static int missing_argument;     /* its first argument */

static bool is_missing(const char *function, int argument)
{
        return strcmp(missing, function) == 0 && missing_argument == argument;
}

int __real_prctl(int option, ...);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);

int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
        errno = EPERM;
        return is_missing("prctl", option) ? -1 : __real_prctl(option, a, b, c, d);
}

int __real_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);

int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
        errno = EPERM;
        return is_missing("setrlimit", (int)resource) ? -1 : __real_setrlimit(resource, limit);
}

int __real_setgroups(size_t count, const gid_t *groups);
int __wrap_setgroups(size_t count, const gid_t *groups);

int __wrap_setgroups(size_t count, const gid_t *groups)
{
        errno = EPERM;
        return is_missing("setgroups", 0) ? -1 : __real_setgroups(count, groups);
}

int __real_setresuid(uid_t real, uid_t effective, uid_t saved);
int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved);

int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved)
{
        errno = EPERM;
        return is_missing("setresuid", 0) ? -1 : __real_setresuid(real, effective, saved);
}

static void test_no_table_is_read_without_a_wall(void)
{
        static const struct {
                const char *function;
                int argument;
        } walls[] = {
                {"setgroups", 0                  },
                {"setresuid", 0                  },
                {"prctl",     PR_SET_KEEPCAPS    },
                {"prctl",     PR_SET_NO_NEW_PRIVS},
                {"prctl",     PR_SET_DUMPABLE    },
                {"prctl",     PR_SET_PDEATHSIG   },
                {"setrlimit", RLIMIT_AS          },
                {"setrlimit", RLIMIT_NOFILE      },
                {"setrlimit", RLIMIT_NPROC       },
                {"prctl",     PR_SET_SECCOMP     },
        };

        for (size_t i = 0; i < (SANITIZED ? (size_t)6 : ARRAY_SIZE(walls)); i++) {
                struct partition_end end = {};
                int answer[2];
                pid_t child;

                CHECK_INT(pipe2(answer, O_CLOEXEC), 0);
                child = fork();
                if (child == 0) {
                        missing = walls[i].function;
                        missing_argument = walls[i].argument;
                        _exit(partition_reader_main(answer[1], open("/dev/zero", O_RDONLY | O_CLOEXEC)));
                }
                close(answer[1]);
                CHECK_INT(read(answer[0], &end, sizeof(end)), sizeof(end));
                if (!CHECK_INT(end.result, -EPERM))
                        fprintf(stderr, "    without %s(%d)\n", walls[i].function, walls[i].argument);
                close(answer[0]);
                CHECK_INT(waitpid(child, NULL, 0), child);
        }
}

/* ---- behind them ---- */

enum { MEMORY = 512 << 20, ATTACKS_MAX = 32 };

static int outcome(long r)
{
        return r < 0 ? -errno : 0;
}

static int open_file(void)
{
        return outcome(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int make_socket(void)
{
        return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int copy_descriptor(void)
{
        return outcome(dup(STDIN_FILENO));
}

static int make_process(void)
{
        long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

        if (pid == 0)
                _exit(0);
        return outcome(pid);
}

static int execute(void)
{
        char *const arguments[] = {NULL};

        return outcome(execve("/bin/true", arguments, arguments));
}

static int signal_parent(void)
{
        return outcome(syscall(SYS_kill, getppid(), 0));
}

static int trace_parent(void)
{
        return outcome(ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
}

static int make_namespace(void)
{
        return outcome(unshare(CLONE_NEWUSER));
}

static int make_ring(void)
{
        struct io_uring_params params = {};

        return outcome(syscall(SYS_io_uring_setup, 4, &params));
}

static int take_memory(void)
{
        return outcome((long)(intptr_t)mmap(
                NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int become_root(void)
{
        return outcome(syscall(SYS_setuid, 0));
}

static const struct {
        const char *name;
        int (*try)(void);
} attacks[] = {
        {"open a file",              open_file      },
        {"a socket",                 make_socket    },
        {"a copy of a descriptor",   copy_descriptor},
        {"a process",                make_process   },
        {"execute a program",        execute        },
        {"a signal to the parent",   signal_parent  },
        {"trace the parent",         trace_parent   },
        {"a user namespace",         make_namespace },
        {"a ring",                   make_ring      },
        {"memory beyond all bounds", take_memory    },
        {"root",                     become_root    },
};
_Static_assert(ARRAY_SIZE(attacks) <= ATTACKS_MAX, "they fit");

/* Raises the walls, and reports what came of each attack; stays until `stay` is closed. */
static _Noreturn void attack(int answer, int stay)
{
        int results[ATTACKS_MAX] = {};
        char byte;

        if (reader_walls_raise() < 0)
                _exit(1);
        for (size_t i = 0; !SANITIZED && i < ARRAY_SIZE(attacks); i++)
                results[i] = attacks[i].try();
        (void)!write(answer, results, sizeof(results));
        (void)!read(stay, &byte, 1);
        _exit(0);
}

/* Check that a line of a file of the process begins so. */
static void check_line(pid_t pid, const char *file, const char *wanted)
{
        char path[64], line[512];
        bool found = false;
        FILE *stream;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
        stream = fopen(path, "re");
        if (!CHECK(stream))
                return;
        while (!found && fgets(line, sizeof(line), stream))
                found = strncmp(line, wanted, strlen(wanted)) == 0;
        if (!CHECK(found))
                fprintf(stderr, "    %s: no line begins with \"%s\"\n", path, wanted);
        fclose(stream);
}

static void check_identity(pid_t pid)
{
        static const char *const lines[] = {"Uid:\t65534\t65534\t65534\t65534\n",
                "Gid:\t65534\t65534\t65534\t65534\n", "Groups:\t \n", "CapInh:\t0000000000000000\n",
                "CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "NoNewPrivs:\t1\n"};

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                check_line(pid, "status", lines[i]);
        if (SANITIZED)
                return;
        check_line(pid, "status", "Seccomp:\t2\n");
        check_line(pid, "limits", "Max open files            0                    0  ");
        check_line(pid, "limits", "Max processes             0                    0  ");
        check_line(pid, "limits", "Max file size             0                    0  ");
}

static void test_behind_its_walls_it_can_only_read(void)
{
        int answer[2], stay[2], results[ATTACKS_MAX] = {};
        pid_t child;

        CHECK_INT(pipe2(answer, O_CLOEXEC), 0);
        CHECK_INT(pipe2(stay, O_CLOEXEC), 0);
        child = fork();
        if (child == 0) {
                close(stay[1]);
                attack(answer[1], stay[0]);
        }
        close(answer[1]);
        if (CHECK_INT(read(answer[0], results, sizeof(results)), sizeof(results)))
                check_identity(child);
        for (size_t i = 0; !SANITIZED && i < ARRAY_SIZE(attacks); i++)
                if (!CHECK(results[i] == -EPERM || results[i] == -ENOMEM))
                        fprintf(stderr, "    %s: %d\n", attacks[i].name, results[i]);
        close(stay[1]);
        CHECK_INT(waitpid(child, NULL, 0), child);
        close(stay[0]);
        close(answer[0]);
}

int main(void)
{
        if (geteuid() != 0) {
                fputs("needs root\n", stderr);
                return CHECK_SKIP;
        }
        test_no_table_is_read_without_a_wall();
        test_behind_its_walls_it_can_only_read();
        return check_report();
}
