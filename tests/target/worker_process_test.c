/* SPDX-License-Identifier: MIT */
/* The real ublkd-worker as a process without a driver: which messages it sends, to which supervisor, and when it
 * exits. */
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "ublkd/base/version.h"
#include "ublkd/proto/device_region.h"
#include "ublkd/proto/region_faults.h"
#include "ublkd/proto/worker_msg.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { PATIENCE = 60000 /* milliseconds: the machine may be busy */, NO_SUCH_NUMBER = 1048575 };

static const char *program;
static enum worker_lock wanted_lock; /* of the next CONFIG */
static bool disk_exists;             /* likewise */
static bool disk_was_served;         /* likewise, from that store */
static bool has_data;                /* likewise */
static bool without_locks;           /* the next process is refused any, as by a file system without them */
static struct scratch scratch;

struct process {
        pid_t pid;
        int channel;
        int fds[_CONFIG_FD_MAX];    /* for its CONFIG; -1: no descriptor, or already sent */
        struct sockaddr_un address; /* where it listens */
};

/* In the child: fcntl(…, F_OFD_SETLK) answers ENOLCK. The low half of the command is all there is to look at
 * on machines of either byte order that we run on. */
static void refuse_locks(void)
{
        struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {.len = ARRAY_SIZE(steps), .filter = steps};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
                _exit(126);
}

/* In the child: the descriptor in its place. */
static void become_worker(int channel, const char *name)
{
        if (!freopen("/dev/null", "w", stderr)) /* its log of errors that the test causes */
                _exit(127);
        channel = fcntl(channel, F_DUPFD_CLOEXEC, WORKER_CHANNEL_FD + 1);
        dup2(channel, WORKER_CHANNEL_FD);
        if (without_locks)
                refuse_locks();
        execl(program, "ublkd-worker", name, NULL);
        _exit(127);
}

/* Takes the region over. */
static void start_with(struct process *process, const char *name, int region)
{
        int pair[2], listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        process->fds[CONFIG_FD_LISTENER] = listener;
        process->fds[CONFIG_FD_REGION] = region;
        for (unsigned i = CONFIG_FD_STORE; i < _CONFIG_FD_MAX; i++)
                process->fds[i] = -1;
        process->address = (struct sockaddr_un){.sun_family = AF_UNIX};
        snprintf(
                process->address.sun_path, sizeof(process->address.sun_path), "%.80s/%s", scratch.path, name);
        (void)unlink(process->address.sun_path); /* of the last worker of that name */
        CHECK_INT(bind(listener, (struct sockaddr *)&process->address, sizeof(process->address)), 0);
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        process->pid = fork();
        if (process->pid == 0)
                become_worker(pair[1], name);
        close(pair[1]);
        process->channel = pair[0];
}

/* With a region for the two queues of configure(). */
static void start(struct process *process, const char *name)
{
        int region = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(device_region_format(region, &(struct device_region_key){.queues = 2}), 0);
        start_with(process, name, region);
}

static int call(const struct process *process)
{
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        CHECK_INT(connect(fd, (const struct sockaddr *)&process->address, sizeof(process->address)), 0);
        return fd;
}

/* Read the next message, and check its type. Skip BACKING if another type is expected. The caller clears *ret, which
 * may be NULL. */
static bool expect(int fd, enum worker_msg_type type, struct worker_msg *ret)
{
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        struct worker_msg msg = {};
        bool good;

        CHECK_INT(poll(&poll_fd, 1, PATIENCE), 1);
        if (!CHECK_INT(worker_msg_receive(fd, &msg), 1))
                return false;
        if (msg.type == WORKER_MSG_BACKING && type != WORKER_MSG_BACKING) {
                worker_msg_clear(&msg);
                return expect(fd, type, ret);
        }
        good = CHECK_INT(msg.type, type);
        if (ret && good)
                *ret = msg;
        else
                worker_msg_clear(&msg);
        return good;
}

static void expect_hello(int fd, enum worker_stage stage, const char *uid, pid_t pid)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};

        if (!expect(fd, WORKER_MSG_HELLO, &msg))
                return;
        CHECK_INT(msg.hello.protocol, WORKER_PROTOCOL);
        CHECK_INT(msg.hello.stage, stage);
        CHECK_STR(msg.hello.uid, uid);
        CHECK_STR(msg.hello.version, ublkd_version);
        CHECK_INT(msg.hello.pid, pid);
}

static void close_fds(struct process *process)
{
        for (size_t i = 0; i < _CONFIG_FD_MAX; i++)
                process->fds[i] = close_fd(process->fds[i]);
}

static void configure(struct process *process, const char *spec)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test-name",
                           .uid = (char *)(uintptr_t) "some-uid",
                           .epoch = 3,
                           .spec = (char *)(uintptr_t)spec,
                           .queues = 2,
                           .queue_depth = 16,
                           .max_io_size = 1 << 20,
                           .lock = wanted_lock,
                           .exists = disk_exists,
                           .expected_served = disk_was_served,
                           .has_data = has_data}
        };

        if (process->fds[CONFIG_FD_REGION] < 0)
                CHECK_INT(worker_msg_send(process->channel, &msg), 0);
        else
                CHECK_INT(worker_msg_send_fds(process->channel, &msg, process->fds), 0);
        close_fds(process);
}

/* How it left: its exit status, or -1. */
static int left(struct process *process)
{
        int status = 0;

        close_fds(process);
        CHECK_INT(waitpid(process->pid, &status, 0), process->pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_adoption(void)
{
        static const int harmless[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT, SIGTSTP};
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        struct process process;
        int second, third;

        start(&process, "adopted");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
                CHECK_INT(kill(process.pid, harmless[i]), 0);
        configure(&process, "{\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}");
        if (expect(process.channel, WORKER_MSG_PARAMS, &msg)) {
                CHECK_INT(msg.params.size, 1 << 30);
                CHECK_INT(msg.params.queues, 2);
                CHECK_INT(msg.params.queue_depth, 16);
        }
        /* A later supervisor gets all messages, and replaces the earlier one. */
        second = call(&process);
        expect_hello(second, WORKER_STAGE_OPEN, "some-uid", process.pid);
        (void)expect(second, WORKER_MSG_PARAMS, NULL);
        third = call(&process);
        expect_hello(third, WORKER_STAGE_OPEN, "some-uid", process.pid);
        (void)expect(third, WORKER_MSG_PARAMS, NULL);
        close(second);
        close(process.channel);
        /* Without GO it has nothing to stay for. */
        close(third);
        CHECK_INT(left(&process), 0);
}

static void ask_to_grow(const struct process *process, uint64_t size, uint64_t size_after, const char *reason)
{
        const struct worker_msg grow = {.type = WORKER_MSG_GROW, .grow = {.size = size}};
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};

        CHECK_INT(worker_msg_send(process->channel, &grow), 0);
        if (!expect(process->channel, WORKER_MSG_GROWN, &msg))
                return;
        CHECK_INT(msg.grown.size, size_after);
        CHECK_STR(msg.grown.problems.count > 0 ? msg.grown.problems.items[0].reason : "", reason);
}

static void test_growth(void)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        char spec[256], path[128];
        struct process process;
        int fd;

        snprintf(path, sizeof(path), "%.80s/grown.img", scratch.path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(ftruncate(fd, 1 << 20), 0);
        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"loop\",\"path\":\"%s\",\"offset\":65536},\"size\":524288,"
                "\"blockSize\":4096}",
                path);
        start(&process, "growing");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        if (expect(process.channel, WORKER_MSG_PARAMS, &msg)) {
                CHECK_INT(msg.params.size, 524288);
                CHECK_INT(msg.params.size_max, (1 << 20) - 65536);
        }
        ask_to_grow(&process, 1 << 20, 524288, "BackingTooSmall");
        ask_to_grow(&process, 524288 + 512, 524288, "SizeNotAMultiple");
        ask_to_grow(&process, 4096, 524288, ""); /* that much it serves already */
        ask_to_grow(&process, (1 << 20) - 65536, (1 << 20) - 65536, "");
        CHECK_INT(ftruncate(fd, 2 << 20), 0);
        ask_to_grow(&process, 1 << 20, 1 << 20, "");
        CHECK_INT(ftruncate(fd, 0), 0);
        ask_to_grow(&process, 2 << 20, 1 << 20, "BackingTooSmall");
        close(fd);
        close(process.channel);
        CHECK_INT(left(&process), 0);
}

static void test_refused(const char *spec, const char *pointer, const char *reason)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        struct process process;

        start(&process, reason);
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        if (expect(process.channel, WORKER_MSG_FAILED, &msg) && CHECK_INT(msg.failed.problems.count, 1)) {
                CHECK_STR(msg.failed.problems.items[0].pointer, pointer);
                CHECK_STR(msg.failed.problems.items[0].reason, reason);
        }
        CHECK_INT(left(&process), 1);
        close(process.channel);
}

/* Return whether another process has locked the first bytes of the file. */
static bool is_locked(int fd)
{
        struct flock lock = {.l_type = F_WRLCK, .l_len = 512};

        CHECK_INT(fcntl(fd, F_OFD_GETLK, &lock), 0);
        return lock.l_type != F_UNLCK;
}

/* Start a worker on `fd`, and check whether it locked the file. */
static void test_opened(const char *spec, enum worker_lock lock, int fd, bool locked)
{
        struct process process;

        wanted_lock = lock;
        start(&process, "lock");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        (void)expect(process.channel, WORKER_MSG_PARAMS, NULL);
        CHECK_INT(is_locked(fd), locked);
        close(process.channel);
        CHECK_INT(left(&process), 0);
        CHECK(!is_locked(fd));
        wanted_lock = WORKER_LOCK_TO_OPEN;
}

static void test_locks(void)
{
        _cleanup_close_ int fd = -1, other = -1;
        char spec[256], path[128];

        snprintf(path, sizeof(path), "%.80s/locked.img", scratch.path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(ftruncate(fd, 1 << 20), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        test_opened(spec, WORKER_LOCK_TO_OPEN, fd, true);
        test_opened(spec, WORKER_LOCK_TO_SERVE, fd, true);
        test_opened(spec, WORKER_LOCK_NEVER, fd, false);
        without_locks = true;
        test_opened(spec, WORKER_LOCK_TO_OPEN, fd, false);
        without_locks = false;
        /* From here on another process has it. */
        other = open(path, O_RDWR | O_CLOEXEC);
        CHECK_INT(fcntl(other, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK}), 0);
        test_refused(spec, "/target", "BackingInUse");
}

/* A worker that does not need the lock yet, or never needs it, does not wait for the process that has it. */
static void test_patience(enum worker_lock lock)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        const struct worker_msg go = {.type = WORKER_MSG_GO, .go = {.number = NO_SUCH_NUMBER}};
        char spec[256], path[128];
        struct process process;
        int fd;

        snprintf(path, sizeof(path), "%.80s/locked.img", scratch.path);
        fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_INT(fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK}), 0);
        snprintf(spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"}}", path);
        wanted_lock = lock;
        start(&process, "patience");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        (void)expect(process.channel, WORKER_MSG_PARAMS, NULL);
        if (lock == WORKER_LOCK_TO_SERVE) {
                CHECK_INT(worker_msg_send(process.channel, &go), 0);
                if (expect(process.channel, WORKER_MSG_FAILED, &msg)
                        && CHECK_INT(msg.failed.problems.count, 1))
                        CHECK_STR(msg.failed.problems.items[0].reason, "BackingInUse");
        }
        close(process.channel);
        CHECK_INT(left(&process), lock == WORKER_LOCK_TO_SERVE ? 1 : 0);
        close(fd);
        wanted_lock = WORKER_LOCK_TO_OPEN;
}

/* A disk does not grow into bytes that another process has locked. */
static void test_growth_into_a_lock(void)
{
        _cleanup_close_ int other = -1;
        char spec[256], path[128];
        struct process process;

        snprintf(path, sizeof(path), "%.80s/locked.img", scratch.path);
        other = open(path, O_RDWR | O_CLOEXEC);
        CHECK_INT(fcntl(other, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_start = 768 << 10}), 0);
        snprintf(
                spec, sizeof(spec), "{\"target\":{\"type\":\"loop\",\"path\":\"%s\"},\"size\":524288}", path);
        start(&process, "growing");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        (void)expect(process.channel, WORKER_MSG_PARAMS, NULL);
        ask_to_grow(&process, 1 << 20, 524288, "BackingInUse");
        ask_to_grow(&process, 768 << 10, 768 << 10, "");
        CHECK_INT(fcntl(other, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_start = 600 << 10}), -1);
        close(process.channel);
        CHECK_INT(left(&process), 0);
}

/* A worker gets a file of `end` bytes for 512 KiB from byte 65536 on. *ret: the fault that it leaves behind. */
static void refuse_short_file(uint64_t end, const char *reason, struct fault_report *ret)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        int region = memfd_create("region", MFD_CLOEXEC), kept = dup(region), fd;
        struct fault_report reports[_REGION_FAULT_MAX];
        char spec[256], path[128];
        struct process process;

        snprintf(path, sizeof(path), "%.80s/short.img", scratch.path);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK_INT(ftruncate(fd, (off_t)end), 0);
        close(fd);
        snprintf(spec, sizeof(spec),
                "{\"target\":{\"type\":\"loop\",\"path\":\"%s\",\"offset\":65536},\"size\":524288,"
                "\"blockSize\":4096}",
                path);
        CHECK_INT(device_region_format(region, &(struct device_region_key){.queues = 2}), 0);
        start_with(&process, reason, region);
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, spec);
        if (expect(process.channel, WORKER_MSG_FAILED, &msg) && CHECK_INT(msg.failed.problems.count, 1)) {
                CHECK_STR(msg.failed.problems.items[0].reason, reason);
                /* A store that is extended to its size reads as zeroes there. */
                CHECK_INT(strstr(msg.failed.problems.items[0].detail, "from a copy") != NULL,
                        disk_exists || has_data);
        }
        CHECK_INT(region_faults_read(kept, reports), 0);
        *ret = reports[REGION_FAULT_CUT];
        CHECK_INT(left(&process), 1);
        close(process.channel);
        close(kept);
}

/* A loss stays known when the file of a disk is extended. A new disk has lost nothing. */
static void test_cut_off(void)
{
        static const struct {
                uint64_t end;
                const char *reason;
        } cases[] = {
                {0,                  "BackingFileEmpty"},
                {65536,              "OffsetBeyondEnd" },
                {4096,               "OffsetBeyondEnd" },
                {65536 + 524288 - 1, "BackingTooSmall" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fault_report report;

                disk_exists = disk_was_served = true;
                refuse_short_file(cases[i].end, cases[i].reason, &report);
                CHECK_INT(report.number, 1);
                CHECK_INT(report.error, EIO);
                CHECK_INT(report.detail, cases[i].end);
                disk_was_served = false; /* the administrator has accepted this store in place of the other */
                refuse_short_file(cases[i].end, cases[i].reason, &report);
                CHECK_INT(report.number, 0);
                disk_exists = false;
                refuse_short_file(cases[i].end, cases[i].reason, &report);
                CHECK_INT(report.number, 0);
                has_data = true; /* of another disk, which this disk would replace */
                refuse_short_file(cases[i].end, cases[i].reason, &report);
                CHECK_INT(report.number, 0);
                has_data = false;
        }
}

/* Without the memory that its predecessor left, or with another's, it does not serve. */
static void test_region(int region, const char *reason)
{
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        struct process process;

        start_with(&process, reason, region);
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, "{\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}");
        if (expect(process.channel, WORKER_MSG_FAILED, &msg) && CHECK_INT(msg.failed.problems.count, 1))
                CHECK_STR(msg.failed.problems.items[0].reason, reason);
        CHECK_INT(left(&process), 1);
        close(process.channel);
}

static void test_bad_regions(void)
{
        int region = memfd_create("region", MFD_CLOEXEC);

        test_region(-1, "NotStartedByUblkd");
        CHECK_INT(device_region_format(region, &(struct device_region_key){.queues = 1}), 0);
        test_region(region, "RegionUnusable");
}

/* Its supervisor is dead before it can be greeted. */
static void test_orphan(void)
{
        struct process process = {
                .fds = {-1, -1}
        };
        int pair[2];

        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        close(pair[0]);
        process.pid = fork();
        if (process.pid == 0)
                become_worker(pair[1], WORKER_SPARE_NAME);
        close(pair[1]);
        CHECK_INT(left(&process), 0);
}

static void test_alone(void)
{
        struct process process;

        start(&process, "alone");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        close(process.channel);
        CHECK_INT(left(&process), 0);
        start(&process, "confused");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        CHECK_INT(send(process.channel, "what?", 5, 0), 5);
        CHECK_INT(left(&process), 0);
        close(process.channel);
}

/* ps(1) and systemctl status show the name, without the NULs that fill the room for a longer name. */
static void check_shown(pid_t pid, const char *name)
{
        char path[32], text[256] = "", *shown;
        _cleanup_close_ int fd = -1;
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = read(fd, text, sizeof(text) - 1);
        CHECK(n > 0);
        CHECK_STR(text, "ublkd-worker");
        shown = text + strlen(text) + 1;
        CHECK_STR(shown, name);
        for (char *rest = shown + strlen(name); rest < text + n; rest++)
                CHECK_INT(*rest, '\0');
}

/* A process that was started before its device was known. */
static void test_spare(void)
{
        char name[64];
        struct process process;
        int second;

        snprintf(name, sizeof(name), "%-63s", WORKER_SPARE_NAME);
        start(&process, name);
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        check_shown(process.pid, WORKER_SPARE_NAME);
        /* It cannot be mistaken for the worker of a device yet. */
        second = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        CHECK_INT(connect(second, (struct sockaddr *)&process.address, sizeof(process.address)), -1);
        close(second);
        configure(&process, "{\"target\":{\"type\":\"null\"},\"size\":\"1GiB\"}");
        (void)expect(process.channel, WORKER_MSG_PARAMS, NULL);
        check_shown(process.pid, "test-name");
        second = call(&process);
        expect_hello(second, WORKER_STAGE_OPEN, "some-uid", process.pid);
        close(second);
        close(process.channel);
        CHECK_INT(left(&process), 0);
}

/* GO for a device that does not come: it stays without a supervisor, and then says why it leaves. */
static void test_no_node(void)
{
        const struct worker_msg go = {.type = WORKER_MSG_GO, .go = {.number = NO_SUCH_NUMBER}};
        _cleanup_worker_msg_ struct worker_msg msg = {.type = WORKER_MSG_LIVE};
        struct process process;
        int second;

        start(&process, "node");
        expect_hello(process.channel, WORKER_STAGE_OPENING, "", process.pid);
        configure(&process, "{\"target\":{\"type\":\"null\"},\"size\":\"1GiB\",\"cpus\":\"0-63\"}");
        (void)expect(process.channel, WORKER_MSG_PARAMS, NULL);
        CHECK_INT(worker_msg_send(process.channel, &go), 0);
        close(process.channel);
        second = call(&process);
        expect_hello(second, WORKER_STAGE_FETCHING, "some-uid", process.pid);
        (void)expect(second, WORKER_MSG_PARAMS, NULL);
        if (expect(second, WORKER_MSG_FAILED, &msg) && CHECK_INT(msg.failed.problems.count, 1))
                CHECK_STR(msg.failed.problems.items[0].reason, "DeviceNotOpened");
        CHECK_INT(left(&process), 1);
        close(second);
}

int main(int argc, char **argv)
{
        if (argc != 2)
                return 2;
        program = argv[1];
        if (!CHECK_INT(scratch_make(&scratch, getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"), 0))
                return check_report();
        (void)signal(SIGPIPE, SIG_IGN);
        test_adoption();
        test_refused("{\"target\":{\"type\":\"loop\",\"path\":\"/nowhere\"}}", "/target/path",
                "BackingFileMissing");
        test_refused("{\"target\":{\"type\":\"none\"}}", "/target/type", "UnknownTarget");
        test_refused("{\"target\":{\"type\":\"null\"}}", "/size", "SizeMissing");
        test_refused("{\"target\":{\"type\":\"null\"},\"size\":512,\"cpus\":\"1023\"}", "/cpus",
                "CpusUnavailable");
        test_bad_regions();
        test_orphan();
        test_alone();
        test_growth();
        test_cut_off();
        test_locks();
        test_patience(WORKER_LOCK_TO_SERVE);
        test_patience(WORKER_LOCK_NEVER);
        test_growth_into_a_lock();
        test_spare();
        test_no_node();
        scratch_remove(&scratch);
        return check_report();
}
