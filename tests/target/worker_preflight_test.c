/* SPDX-License-Identifier: MIT */
/* What becomes of a real worker when its ublkd dies while the worker is in a call that waits for the store: the store is
 * a file under a lease, whose holder is slow. A preflight worker dies with ublkd; another worker does not. */
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/workers/worker_proc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { PATIENCE = 20 /* seconds; a lease is broken after 45 */ };

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";
static const char *program;
static struct scratch scratch;
static char spec[256];

static void on_change(void *userdata _unused_, struct worker_proc *worker _unused_)
{
}

/* A ublkd that starts one worker, and writes its pid. */
_Noreturn static void be_ublkd(enum worker_lock lock, int report)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct worker_msg config = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)"(preflight)",
                           .uid = (char *)uid,
                           .spec = spec,
                           .queues = 1,
                           .queue_depth = 8,
                           .max_io_size = 1 << 20,
                           .lock = lock}
        };
        const struct worker_confinement confinement = {.best_effort = true};
        struct worker_start *starter;
        struct worker_proc *worker;
        struct runtime_dir *dir;
        sd_event *event;
        pid_t pid;

        if (sd_event_new(&event) < 0 || runtime_dir_open(scratch.path, &dir, &problems) < 0
                || worker_start_new(event, program, &confinement, &starter) < 0
                || worker_proc_spawn(event, dir, starter, &config, NULL, NULL, on_change, NULL, &worker) < 0)
                _exit(90);
        pid = worker_proc_pid(worker);
        if (write(report, &pid, sizeof(pid)) != sizeof(pid))
                _exit(92);
        for (;;)
                pause();
}

/* Start both, and kill ublkd when the worker waits for the lease. Return the pid of the worker, which is a child of the
 * test then. */
static pid_t leave_worker(enum worker_lock lock, const sigset_t *lease_breaks)
{
        const struct timespec patience = {.tv_sec = PATIENCE};
        int report[2], status;
        pid_t ublkd, worker = 0;

        CHECK_INT(pipe2(report, O_CLOEXEC), 0);
        ublkd = fork();
        if (ublkd == 0)
                be_ublkd(lock, report[1]);
        close(report[1]);
        CHECK_INT(read(report[0], &worker, sizeof(worker)), sizeof(worker));
        close(report[0]);
        CHECK_INT(sigtimedwait(lease_breaks, NULL, &patience), SIGIO);
        CHECK_INT(kill(ublkd, SIGKILL), 0);
        CHECK_INT(waitpid(ublkd, &status, 0), ublkd);
        return worker;
}

/* Wait for its exit; false: it lives. */
static bool wait_for(pid_t worker, int *ret_status)
{
        const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};

        for (unsigned i = 0; i < PATIENCE * 100; i++) {
                if (waitpid(worker, ret_status, WNOHANG) == worker)
                        return true;
                (void)nanosleep(&nap, NULL);
        }
        return false;
}

static void test_a_preflight_worker_dies_with_ublkd(int fd, const sigset_t *lease_breaks)
{
        pid_t worker;
        int status;

        CHECK_INT(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
        worker = leave_worker(WORKER_LOCK_NEVER, lease_breaks);
        if (CHECK(wait_for(worker, &status)))
                CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK_INT(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
}

/* It goes on when the store answers. Without GO it has nothing to stay for then. */
static void test_another_worker_does_not(int fd, const sigset_t *lease_breaks)
{
        pid_t worker;
        int status;

        CHECK_INT(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
        worker = leave_worker(WORKER_LOCK_TO_OPEN, lease_breaks);
        CHECK_INT(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
        if (CHECK(wait_for(worker, &status)))
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
        sigset_t lease_breaks;
        char path[160];
        int fd;

        if (argc != 2)
                return 2;
        program = argv[1];
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0)
                || !CHECK_INT(prctl(PR_SET_CHILD_SUBREAPER, 1), 0))
                return check_report();
        sigemptyset(&lease_breaks);
        sigaddset(&lease_breaks, SIGIO);
        CHECK_INT(sigprocmask(SIG_BLOCK, &lease_breaks, NULL), 0);
        snprintf(path, sizeof(path), "%.80s/store.img", scratch.path);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(ftruncate(fd, 1 << 20), 0);
        test_a_preflight_worker_dies_with_ublkd(fd, &lease_breaks);
        test_another_worker_does_not(fd, &lease_breaks);
        close(fd);
        scratch_remove(&scratch);
        return check_report();
}
