/* SPDX-License-Identifier: MIT */
/* What a process could do to others, and to itself. */
#include "tests/kernel/hostile/hostile.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int pidfd_of_worker(const struct victims *victims)
{
        return outcome(syscall(SYS_pidfd_open, victims->worker, 0));
}

static int steal_descriptors(const struct victims *victims)
{
        long pidfd = syscall(SYS_pidfd_open, victims->worker, 0);
        int r = -errno;

        for (int fd = 3; pidfd >= 0 && fd < HOSTILE_FDS; fd++) {
                long stolen = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

                r = errno == EBADF && stolen < 0 ? r : -errno;
                if (stolen >= 0) {
                        close((int)stolen);
                        r = 0;
                        break;
                }
        }
        if (pidfd >= 0)
                close((int)pidfd);
        return r;
}

/* Allowed, it says that nothing is at this address. */
static int memory(long call, pid_t pid)
{
        char byte = 0;
        struct iovec ours = {.iov_base = &byte, .iov_len = 1}, theirs = {.iov_base = NULL, .iov_len = 1};
        int r = outcome(syscall(call, pid, &ours, 1, &theirs, 1, 0));

        return r == -EFAULT ? 0 : r;
}

static int read_memory(const struct victims *victims)
{
        return memory(SYS_process_vm_readv, victims->worker);
}

static int write_memory(const struct victims *victims)
{
        return memory(SYS_process_vm_writev, victims->worker);
}

static int trace(const struct victims *victims)
{
        int r = outcome(ptrace(PTRACE_SEIZE, victims->worker, NULL, NULL));

        if (r == 0) {
                (void)kill(victims->worker, SIGSTOP);
                (void)waitpid(victims->worker, NULL, 0);
                (void)ptrace(PTRACE_DETACH, victims->worker, NULL, NULL);
                (void)kill(victims->worker, SIGCONT);
        }
        return r;
}

static int signal_worker(const struct victims *victims)
{
        return outcome(kill(victims->worker, 0));
}

static int signal_supervisor(const struct victims *victims)
{
        return outcome(kill(victims->supervisor, 0));
}

static int queue_signal(const struct victims *victims)
{
        siginfo_t info = {.si_code = SI_QUEUE};

        return outcome(syscall(SYS_rt_sigqueueinfo, victims->supervisor, 0, &info));
}

static int fork_and(int (*then)(void))
{
        long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        int status = 0;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(then ? -then() : 0);
        while (waitpid((pid_t)pid, &status, 0) < 0 && errno == EINTR)
                continue;
        return -WEXITSTATUS(status);
}

/* Not a child of the worker any more, which waits for the one between them. */
static int leave_a_child(void)
{
        long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

        while (pid == 0)
                pause();
        return outcome(pid);
}

void hostile_stay(void)
{
        (void)fork_and(leave_a_child);
}

static int fork_a_child(const struct victims *victims)
{
        (void)victims;
        return fork_and(NULL);
}

static int become_root_of_a_namespace(void)
{
        return outcome(unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS));
}

static int user_namespace(const struct victims *victims)
{
        (void)victims;
        return fork_and(become_root_of_a_namespace);
}

static int new_namespace(const struct victims *victims)
{
        (void)victims;
        return outcome(unshare(CLONE_NEWNET));
}

static int execute(const struct victims *victims)
{
        char *const none[] = {NULL};
        int r;

        (void)victims;
        r = outcome(execve("/proc/missing/exe", none, none));
        return r == -ENOENT ? 0 : r; /* allowed, there is no such file */
}

static int new_code(const struct victims *victims)
{
        void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int r;

        (void)victims;
        if (memory == MAP_FAILED)
                return -errno;
        r = outcome(mprotect(memory, 4096, PROT_READ | PROT_EXEC));
        munmap(memory, 4096);
        return r;
}

static int limit_another(const struct victims *victims)
{
        struct rlimit64 old;

        return outcome(syscall(SYS_prlimit64, victims->worker, RLIMIT_NOFILE, NULL, &old));
}

static int pin_another(const struct victims *victims)
{
        cpu_set_t cpus;

        if (sched_getaffinity(victims->worker, sizeof(cpus), &cpus) < 0)
                return -errno;
        return outcome(sched_setaffinity(victims->worker, sizeof(cpus), &cpus));
}

static int slow_down_another(const struct victims *victims)
{
        return outcome(setpriority(PRIO_PROCESS, (id_t)victims->worker, 0));
}

static int keyring(const struct victims *victims)
{
        (void)victims;
        return outcome(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0));
}

static int add_key(const struct victims *victims)
{
        long key = syscall(SYS_add_key, "user", "ublkd-hostile", "x", 1UL, KEY_SPEC_PROCESS_KEYRING);

        (void)victims;
        return outcome(key);
}

static int gain_capabilities(const struct victims *victims)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {
                [0] = {.effective = 1, .permitted = 1},
        };

        (void)victims;
        return outcome(syscall(SYS_capset, &header, data));
}

/* A capability that an executable file could still bring. */
static int bounding_set(const struct victims *victims)
{
        (void)victims;
        for (unsigned long capability = 0;; capability++) {
                int r = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);

                if (r < 0)
                        return errno == EINVAL ? -EPERM : -errno;
                if (r > 0)
                        return 0;
        }
}

static int secure_bits(const struct victims *victims)
{
        int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

        (void)victims;
        if (bits < 0)
                return -errno;
        return (bits & 0xaa) == 0xaa ? -EPERM : 0; /* each of the four is locked */
}

static int groups(const struct victims *victims)
{
        int count = getgroups(0, NULL);

        (void)victims;
        if (count < 0)
                return -errno;
        return count > 0 ? 0 : -EPERM;
}

static int new_privileges(const struct victims *victims)
{
        int r = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

        (void)victims;
        if (r < 0)
                return -errno;
        return r == 0 ? 0 : -EPERM;
}

static int be_root(const struct victims *victims)
{
        (void)victims;
        return getuid() == 0 || geteuid() == 0 || getegid() == 0 ? 0 : outcome(setuid(0));
}

const struct named_attack process_attacks[] = {
        {"pidfd of another worker", pidfd_of_worker},
        {"descriptors of another worker", steal_descriptors},
        {"read memory of another worker", read_memory},
        {"write memory of another worker", write_memory},
        {"trace another worker", trace},
        {"signal another worker", signal_worker},
        {"signal the supervisor", signal_supervisor},
        {"queue a signal to the supervisor", queue_signal},
        {"limits of another worker", limit_another},
        {"CPUs of another worker", pin_another},
        {"priority of another worker", slow_down_another},
        {"a child process", fork_a_child},
        {"capabilities in a user namespace", user_namespace},
        {"a network namespace", new_namespace},
        {"execute a file", execute},
        {"new executable memory", new_code},
        {"the user keyring", keyring},
        {"add a key", add_key},
        {"gain a capability", gain_capabilities},
        {"a capability in the bounding set", bounding_set},
        {"securebits that are not locked", secure_bits},
        {"supplementary groups", groups},
        {"new privileges", new_privileges},
        {"to be root", be_root},
        {},
};
