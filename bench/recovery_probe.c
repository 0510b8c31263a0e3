/* SPDX-License-Identifier: MIT */
/* Kills the server of a ublk disk and measures when the disk is back, all on one monotonic clock.
 *
 * usage: recovery_probe NUMBER PID [SOCKET DEVICE] [-- RECOVER-COMMAND...]
 *
 * NUMBER is the disk's, PID that of its server. The probe watches the load for a while. It then kills the
 * server when more than half of the highest number of requests is in flight. With SOCKET and DEVICE, it also
 * asks ublkd's REST API. With a command, the probe is the supervisor: when the server is dead, it runs the
 * command until that succeeds. Prints one line of JSON: milliseconds since the kill.
 *
 *   killedAt   time of the kill: CLOCK_MONOTONIC, in milliseconds
 *   inFlight   requests that the driver had got and not completed, right before the kill
 *   dead       the server's process is gone
 *   live       the kernel says LIVE, and another process serves
 *   firstIo    a request of an opener completed (the count of completions changed)
 *   ownRead    a direct read completed that began when the server was dead
 *   restLive   GET /devices/DEVICE says Live, and another pid
 *   tries      how often the command ran
 *
 * One thread polls the first three once a millisecond, another thread REST every five milliseconds: on two
 * CPUs that costs little beside the recovery. The read blocks in its own thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <linux/ublk_cmd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Definitions that the header of Debian 12 lacks. */
#define GET_DEV_INFO _IOR('u', 0x02, struct ublksrv_ctrl_cmd)

enum {
        STATE_LIVE = 1,
        POLL_US = 1000,
        REST_POLL_US = 5000,
        LOAD_POLL_US = 100,
        LOAD_OBSERVED_MS = 300,
        LOAD_PATIENCE_MS = 10000,
        GIVE_UP_MS = 60000,
        BLOCK = 4096,
        ANSWER_MAX = 65536
};

extern char **environ;

struct probe {
        int number;
        pid_t pid;
        const char *socket_path; /* NULL without REST */
        const char *device;
        char **recover; /* NULL: another supervisor recovers */

        struct io_uring ring;
        int control_fd, stat_fd, inflight_fd;
        int64_t killed_ns;

        /* Results. One thread writes each; main() reads it after pthread_join(). 0: not seen. */
        double dead_ms, live_ms, first_io_ms, own_read_ms, rest_live_ms;
        int tries, in_flight;
};

static void die(const char *format, ...)
{
        va_list arguments;
        int saved = errno;

        va_start(arguments, format);
        fputs("recovery_probe: ", stderr);
        vfprintf(stderr, format, arguments);
        fprintf(stderr, ": %s\n", strerror(saved));
        va_end(arguments);
        exit(1);
}

static int64_t now_ns(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static double since_kill_ms(const struct probe *probe)
{
        return (double)(now_ns() - probe->killed_ns) / 1e6;
}

static void open_control(struct probe *probe)
{
        struct io_uring_params params = {.flags = IORING_SETUP_SQE128};
        int r;

        probe->control_fd = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
        if (probe->control_fd < 0)
                die("/dev/ublk-control");
        r = io_uring_queue_init_params(4, &probe->ring, &params);
        if (r < 0) {
                errno = -r;
                die("io_uring_setup");
        }
}

/* Ask the kernel about the disk. */
static struct ublksrv_ctrl_dev_info disk_info(struct probe *probe)
{
        struct ublksrv_ctrl_dev_info info = {};
        struct ublksrv_ctrl_cmd command = {
                .dev_id = (uint32_t)probe->number,
                .queue_id = UINT16_MAX,
                .len = sizeof(info),
                .addr = (uintptr_t)&info,
        };
        struct io_uring_sqe *sqe = io_uring_get_sqe(&probe->ring);
        struct io_uring_cqe *cqe;
        int r;

        io_uring_prep_rw(IORING_OP_URING_CMD, sqe, probe->control_fd, NULL, 0, 0);
        sqe->off = GET_DEV_INFO; /* cmd_op is its low half */
        memcpy(sqe->cmd, &command, sizeof(command));
        io_uring_submit_and_wait(&probe->ring, 1);
        r = io_uring_wait_cqe(&probe->ring, &cqe);
        if (r == 0) {
                r = cqe->res;
                io_uring_cqe_seen(&probe->ring, cqe);
        }
        if (r < 0) {
                errno = -r;
                die("GET_DEV_INFO of %d", probe->number);
        }
        return info;
}

static int open_attribute(const struct probe *probe, const char *name)
{
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/sys/block/ublkb%d/%s", probe->number, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                die("%s", path);
        return fd;
}

static int in_flight(const struct probe *probe)
{
        int reads = 0, writes = 0;
        char text[64];
        ssize_t n = pread(probe->inflight_fd, text, sizeof(text) - 1, 0);

        if (n < 0)
                die("inflight of ublkb%d", probe->number);
        text[n] = '\0';
        sscanf(text, "%d %d", &reads, &writes);
        return reads + writes;
}

/* Wait until at least `wanted` requests are in flight, or the time is over. Return the highest number. */
static int await_in_flight(struct probe *probe, int wanted, int patience_ms)
{
        int64_t end = now_ns() + patience_ms * INT64_C(1000000);
        int most = 0;

        do {
                probe->in_flight = in_flight(probe);
                if (probe->in_flight > most)
                        most = probe->in_flight;
                if (probe->in_flight >= wanted)
                        return most;
                usleep(LOAD_POLL_US);
        } while (now_ns() < end);
        return most;
}

/* A server that is faster than its load is mostly idle: find a moment when it is not. */
static void await_load(struct probe *probe)
{
        int most = await_in_flight(probe, INT_MAX, LOAD_OBSERVED_MS);

        (void)await_in_flight(probe, most / 2 + 1, LOAD_PATIENCE_MS);
}

/* Return the number of completed reads and writes. */
static unsigned long long completions(const struct probe *probe)
{
        unsigned long long reads = 0, writes = 0;
        char text[512];
        ssize_t n = pread(probe->stat_fd, text, sizeof(text) - 1, 0);

        if (n < 0)
                die("stat of ublkb%d", probe->number);
        text[n] = '\0';
        sscanf(text, "%llu %*u %*u %*u %llu", &reads, &writes);
        return reads + writes;
}

static void *watch_kernel(void *argument)
{
        struct probe *probe = argument;
        unsigned long long before = completions(probe);

        while (probe->live_ms == 0 || probe->first_io_ms == 0) {
                if (probe->first_io_ms == 0 && completions(probe) != before)
                        probe->first_io_ms = since_kill_ms(probe);
                if (probe->live_ms == 0) {
                        struct ublksrv_ctrl_dev_info info = disk_info(probe);

                        if (info.state == STATE_LIVE && info.ublksrv_pid > 0
                                && info.ublksrv_pid != probe->pid)
                                probe->live_ms = since_kill_ms(probe);
                }
                if (since_kill_ms(probe) > GIVE_UP_MS)
                        break;
                usleep(POLL_US);
        }
        return NULL;
}

static void *read_once(void *argument)
{
        struct probe *probe = argument;
        char path[64];
        void *data;
        int fd;

        snprintf(path, sizeof(path), "/dev/ublkb%d", probe->number);
        fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        if (fd < 0)
                die("%s", path);
        if (posix_memalign(&data, BLOCK, BLOCK) != 0)
                die("memory");
        if (pread(fd, data, BLOCK, 0) != BLOCK)
                die("the read of %s that was to wait for the recovery", path);
        probe->own_read_ms = since_kill_ms(probe);
        free(data);
        close(fd);
        return NULL;
}

static int connect_rest(const struct probe *probe)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", probe->socket_path);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                die("%s", probe->socket_path);
        return fd;
}

/* Send a GET on a new connection, which the server closes afterwards. Read the answer as a string. */
static void ask_rest(const struct probe *probe, char answer[ANSWER_MAX])
{
        int fd = connect_rest(probe);
        size_t used = 0;

        dprintf(fd, "GET /devices/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                probe->device);
        for (ssize_t n = 1; n > 0 && used < ANSWER_MAX - 1; used += n > 0 ? (size_t)n : 0)
                n = read(fd, answer + used, ANSWER_MAX - 1 - used);
        answer[used] = '\0';
        close(fd);
}

static bool shows_live(const struct probe *probe, const char *answer)
{
        const char *worker = strstr(answer, "\"worker\":{");
        const char *pid = worker ? strstr(worker, "\"pid\":") : NULL;

        return pid && strstr(answer, "\"phase\":\"Live\"") && atoi(pid + strlen("\"pid\":")) != probe->pid;
}

static void *watch_rest(void *argument)
{
        static char answer[ANSWER_MAX];
        struct probe *probe = argument;

        while (since_kill_ms(probe) < GIVE_UP_MS) {
                ask_rest(probe, answer);
                if (shows_live(probe, answer)) {
                        probe->rest_live_ms = since_kill_ms(probe);
                        break;
                }
                usleep(REST_POLL_US);
        }
        return NULL;
}

static int run_recover(char **command)
{
        posix_spawn_file_actions_t actions;
        pid_t child;
        int status, r;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        r = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
        posix_spawn_file_actions_destroy(&actions);
        if (r != 0) {
                errno = r;
                die("%s", command[0]);
        }
        if (waitpid(child, &status, 0) < 0)
                die("waitpid");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void recover(struct probe *probe)
{
        do {
                probe->tries++;
                if (run_recover(probe->recover) == 0)
                        return;
        } while (since_kill_ms(probe) < GIVE_UP_MS);
}

static pthread_t start(void *(*function)(void *), struct probe *probe)
{
        pthread_t thread;

        errno = pthread_create(&thread, NULL, function, probe);
        if (errno != 0)
                die("pthread_create");
        return thread;
}

static void kill_and_await_death(struct probe *probe)
{
        struct pollfd wait = {.events = POLLIN};

        wait.fd = (int)syscall(SYS_pidfd_open, probe->pid, 0);
        if (wait.fd < 0)
                die("pidfd_open %d", probe->pid);
        await_load(probe);
        probe->killed_ns = now_ns();
        if (syscall(SYS_pidfd_send_signal, wait.fd, SIGKILL, NULL, 0) < 0)
                die("kill %d", probe->pid);
        if (poll(&wait, 1, GIVE_UP_MS) != 1)
                die("process %d stays", probe->pid);
        probe->dead_ms = since_kill_ms(probe);
        close(wait.fd);
}

static void watch_recovery(struct probe *probe)
{
        pthread_t kernel = start(watch_kernel, probe), reader = start(read_once, probe), rest = 0;

        if (probe->socket_path)
                rest = start(watch_rest, probe);
        if (probe->recover)
                recover(probe);
        pthread_join(kernel, NULL);
        if (probe->live_ms > 0)
                pthread_join(reader, NULL); /* without a recovery it would never return */
        if (probe->socket_path)
                pthread_join(rest, NULL);
}

static void print_time(const char *name, double ms)
{
        if (ms > 0)
                printf("\"%s\":%.2f,", name, ms);
        else
                printf("\"%s\":null,", name);
}

int main(int argc, char *argv[])
{
        struct probe probe = {};
        int next = 3;

        if (argc < next) {
                fputs("usage: recovery_probe NUMBER PID [SOCKET DEVICE] [-- RECOVER-COMMAND...]\n", stderr);
                return 2;
        }
        probe.number = atoi(argv[1]);
        probe.pid = atoi(argv[2]);
        if (argc > next + 1 && strcmp(argv[next], "--") != 0) {
                probe.socket_path = argv[next];
                probe.device = argv[next + 1];
                next += 2;
        }
        if (argc > next + 1 && strcmp(argv[next], "--") == 0)
                probe.recover = &argv[next + 1];

        open_control(&probe);
        probe.stat_fd = open_attribute(&probe, "stat");
        probe.inflight_fd = open_attribute(&probe, "inflight");
        kill_and_await_death(&probe);
        watch_recovery(&probe);

        printf("{\"killedAt\":%.3f,", (double)probe.killed_ns / 1e6);
        print_time("dead", probe.dead_ms);
        print_time("live", probe.live_ms);
        print_time("firstIo", probe.first_io_ms);
        print_time("ownRead", probe.own_read_ms);
        print_time("restLive", probe.rest_live_ms);
        printf("\"inFlight\":%d,\"tries\":%d}\n", probe.in_flight, probe.tries);
        return 0;
}
