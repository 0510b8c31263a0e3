/* SPDX-License-Identifier: MIT */
/* A thread of await_work() in a call that no signal ends (state D), of a worker that stops or is killed: a read of a file in user
 * space (FUSE), whose server is this process and does not answer. */
#include "tests/unit/targets/worker/wait/wait_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 20000 /* milliseconds */, TURN = 10 };

enum way {
        WAY_SERVES, /* the read ends, and the worker stops after it */
        WAY_KILLED, /* the worker is killed while it serves */
        WAY_STOPS,  /* the worker is asked to stop, and then the read ends */
        WAY_STOPS_AND_IS_KILLED,
        _WAY_MAX
};

static char path[] = "/tmp/ublkd-stuck-XXXXXX";
static int fuse = -1;

/* ---- the worker ---- */

static int stuck = -1;
static unsigned done;
static bool stops;
static int reports = -1;

static int read_run(void *argument)
{
        char byte;
        ssize_t n = read(stuck, &byte, 1);

        (void)argument;
        return n < 0 ? -errno : (int)n;
}

static int nothing_run(void *argument)
{
        (void)argument;
        return 2;
}

/* What has begun is waited for, and what is in the line behind it is cancelled. */
static void background_co(struct target_queue *queue, unsigned number)
{
        if (number == 0)
                CHECK_INT(await_work(queue, read_run, NULL), 1);
        else
                CHECK_INT(await_work(queue, nothing_run, NULL), stops ? -ECANCELED : 2);
        CHECK_INT(target_queue_stopping(queue), stops);
        done++;
}

/* Report that the worker has asked its background to stop, and waits. */
static int report_and_turn(struct io_loop *self, bool wait)
{
        if (reports >= 0 && done == 1) { /* the one in the line */
                CHECK_INT(write(reports, "s", 1), 1);
                reports = close_fd(reports);
        }
        return world_turn(self, wait);
}

__attribute__((noreturn)) static void worker(enum way way, int held, int go, int reported)
{
        char byte;

        close_fd(fuse);
        stuck = open(path, O_RDONLY | O_CLOEXEC);
        stops = way >= WAY_STOPS;
        reports = reported;
        desc = (struct target_desc){
                .name = "test", .waits = {.background = 2, .work_threads = 1}
        };
        target = (struct target){.background = background_co};
        if (!CHECK(stuck >= 0) || !world_open(&held, 1) || !world_run())
                _exit(EXIT_FAILURE);
        if (stops) {
                CHECK_INT(read(go, &byte, 1), 1); /* the read is under way */
                CHECK_INT(wait_room_stop(&loop, report_and_turn), 0);
        }
        while (done < 2 && CHECK_INT(loop_turn(&loop), 0))
                continue;
        world_close();
        _exit(check_report());
}

/* ---- the file system ---- */

static void put(const char *file, const char *text)
{
        _cleanup_close_ int fd = open(file, O_WRONLY | O_CLOEXEC);

        (void)(fd >= 0 && write(fd, text, strlen(text)));
}

/* Return 0 or -errno. */
static int mount_silent(void)
{
        unsigned uid = getuid(), gid = getgid();
        char text[128];
        int fd;

        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -errno;
        snprintf(text, sizeof(text), "0 %u 1", uid);
        put("/proc/self/uid_map", text);
        put("/proc/self/setgroups", "deny");
        snprintf(text, sizeof(text), "0 %u 1", gid);
        put("/proc/self/gid_map", text);
        fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        fd = fuse < 0 ? -1 : mkstemp(path);
        if (fd < 0)
                return -errno;
        close_fd(fd);
        snprintf(text, sizeof(text), "fd=%d,rootmode=100444,user_id=0,group_id=0", fuse);
        return mount("silent", path, "fuse", MS_NOSUID | MS_NODEV, text) < 0 ? -errno : 0;
}

static void answer(uint64_t unique, int error, const void *body, size_t size)
{
        char bytes[256];
        const struct fuse_out_header head = {
                .len = (uint32_t)(sizeof(head) + size), .error = error, .unique = unique};

        memcpy(bytes, &head, sizeof(head));
        if (size > 0)
                memcpy(bytes + sizeof(head), body, size);
        CHECK_INT(write(fuse, bytes, head.len), head.len);
}

/* Answer one request but a read. Return the number of a read, or 0: none came within `patience` milliseconds. */
static uint64_t serve_one(int patience)
{
        static const struct fuse_init_out init = {
                .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
        static const struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};
        static const struct fuse_attr_out attributes = {
                .attr = {.ino = FUSE_ROOT_ID, .size = 4096, .mode = S_IFREG | 0444, .nlink = 1}
        };
        static char request[FUSE_MIN_READ_BUFFER];
        const struct fuse_in_header *in = (const void *)request;
        struct pollfd ready = {.fd = fuse, .events = POLLIN};

        if (poll(&ready, 1, patience) != 1 || read(fuse, request, sizeof(request)) < (ssize_t)sizeof(*in))
                return 0;
        if (in->opcode == FUSE_READ)
                return in->unique;
        if (in->opcode == FUSE_INIT)
                answer(in->unique, 0, &init, sizeof(init));
        else if (in->opcode == FUSE_OPEN)
                answer(in->unique, 0, &opened, sizeof(opened));
        else if (in->opcode == FUSE_GETATTR)
                answer(in->unique, 0, &attributes, sizeof(attributes));
        else if (in->opcode != FUSE_INTERRUPT && in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET)
                answer(in->unique, -ENOSYS, NULL, 0);
        return 0;
}

static uint64_t serve_until_read(void)
{
        uint64_t unique = 0;

        for (unsigned i = 0; unique == 0 && i < PATIENCE / TURN; i++)
                unique = serve_one(TURN);
        CHECK(unique > 0);
        return unique;
}

/* Return how the worker ended. */
static int serve_until_end(pid_t pid)
{
        int status = -1;

        for (unsigned i = 0; i < PATIENCE / TURN; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid)
                        return status;
                (void)serve_one(TURN);
        }
        CHECK(false);
        return -1;
}

/* ---- what is left of a worker that was killed ---- */

/* Of "PID (NAME) STATE …". */
static char state_of(pid_t pid, const char *thread)
{
        char file[320], line[256] = "";
        const char *end;
        int fd;

        snprintf(file, sizeof(file), "/proc/%d/task/%s/stat", pid, thread);
        fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
                line[0] = '\0';
        close_fd(fd);
        end = strrchr(line, ')');
        return end && end[1] ? end[2] : '\0';
}

/* Return whether the main thread has exited and one other thread is left, in its call. */
static bool only_work_is_left(pid_t pid)
{
        unsigned dead = 0, stuck_threads = 0, others = 0;
        struct dirent *entry;
        char folder[64];
        DIR *tasks;

        snprintf(folder, sizeof(folder), "/proc/%d/task", pid);
        tasks = opendir(folder);
        while (tasks && (entry = readdir(tasks))) {
                char state = entry->d_name[0] == '.' ? '.' : state_of(pid, entry->d_name);

                dead += state == 'Z';
                stuck_threads += state == 'D';
                others += state != '.' && state != 'Z' && state != 'D';
        }
        if (tasks)
                (void)closedir(tasks);
        return dead == 1 && stuck_threads == 1 && others == 0;
}

static bool is_held(int held)
{
        struct pollfd end = {.fd = held, .events = POLLIN};

        return poll(&end, 1, 0) == 0;
}

/* All else of it ends at once, and the call holds what a worker holds: no other worker gets the disk. */
static void check_killed(pid_t pid, int held)
{
        unsigned turns = 0;
        int status;

        CHECK_INT(kill(pid, SIGKILL), 0);
        while (!only_work_is_left(pid) && turns++ < PATIENCE / TURN)
                (void)serve_one(TURN);
        CHECK(only_work_is_left(pid));
        CHECK_INT(waitpid(pid, &status, WNOHANG), 0);
        CHECK(is_held(held));
}

/* ---- the test ---- */

static void test_way(enum way way)
{
        bool killed = way == WAY_KILLED || way == WAY_STOPS_AND_IS_KILLED;
        int held[2], go[2], reported[2], status;
        uint64_t unique;
        char byte;
        pid_t pid;

        CHECK(pipe2(held, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0 && pipe2(reported, O_CLOEXEC) == 0);
        pid = fork();
        if (pid == 0) {
                close_fd(held[0]);
                worker(way, held[1], go[0], reported[1]);
        }
        held[1] = close_fd(held[1]);
        reported[1] = close_fd(reported[1]);
        unique = serve_until_read();
        if (way >= WAY_STOPS) {
                CHECK_INT(write(go[1], "x", 1), 1);
                CHECK_INT(read(reported[0], &byte, 1), 1);
                CHECK_INT(waitpid(pid, &status, WNOHANG), 0); /* it waits for the call */
        }
        if (killed)
                check_killed(pid, held[0]);
        answer(unique, 0, "x", 1);
        status = serve_until_end(pid);
        CHECK(killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                     : WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_INT(poll(&(struct pollfd){.fd = held[0], .events = POLLIN}, 1, PATIENCE), 1);
        CHECK_INT(read(held[0], &byte, 1), 0);
        close_fd(held[0]);
        close_fd(reported[0]);
        close_fd(go[0]);
        close_fd(go[1]);
}

int main(void)
{
        int r;

        if (!io_uring_is_there())
                return CHECK_SKIP;
        r = mount_silent();
        if (r < 0) {
                fprintf(stderr, "no file system in user space: %s\n", strerror(-r));
                (void)unlink(path);
                return CHECK_SKIP;
        }
        for (holder = IO_LOOP_HELD_BY_RING; holder <= IO_LOOP_HELD_BY_PROCESS; holder++)
                for (enum way way = WAY_SERVES; way < _WAY_MAX; way++) {
                        test_way(way);
                        test_way(WAY_SERVES); /* the next worker */
                }
        (void)umount2(path, MNT_DETACH);
        (void)unlink(path);
        return check_report();
}
