/* SPDX-License-Identifier: MIT */
/* A server of ublk for one disk, null or a part of a file, by zero copy, whose loop runs in user space or, with --bpf,
 * as a program of the kernel. A program of the benchmarks, which also answers what stands in the way of the latter:
 * bench/RESULTS.md. Built by bench/peers where clang, bpftool and libbpf are.
 *
 *   inkernel add -t null|loop [-f FILE] [-d DEPTH] [OPTION...]   prints "dev id N", and serves in the background
 *   inkernel recover -n N [the same options]                     serves a disk whose server has died
 *   inkernel del|state -n N
 *
 * Options: --bpf, --batch, --start BYTES, --length BYTES (of the file), --recovery, --log FILE; to see what is permitted,
 * --restrict (the ring, as ublkd does), --drop 1|2|3 (all capabilities of the queue's thread, before it loads, before it
 * attaches, after that), --keep MASK (but these, of 32 and more).
 *
 * SIGUSR1 prints what the loop has counted, and moves it from BPF to user space. */
#include "bench/inkernel/attach.h"
#include "bench/inkernel/control.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <linux/fs.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum drop { DROP_NEVER, DROP_BEFORE_LOAD, DROP_BEFORE_ATTACH, DROP_AFTER };

struct options {
        struct disk disk;
        const char *file, *log;
        uint64_t start, length;
        bool bpf, restricted;
        enum drop drop;
        uint32_t kept_capabilities; /* of the upper half: CAP_PERFMON is 38, CAP_BPF is 39 */
};

struct server {
        struct options options;
        struct queue queue;
        struct attached *attached;
        pthread_t thread;
        sem_t ready;
        int result;
};

static volatile sig_atomic_t asked;

static void ask(int number)
{
        asked = number;
}

/* Of this thread only: the main thread still has its control commands to send. */
static int drop(const struct options *options)
{
        struct {
                uint32_t version;
                int pid;
        } header = {.version = 0x20080522};
        struct {
                uint32_t effective, permitted, inheritable;
        } sets[2] = {};

        sets[1].effective = sets[1].permitted = options->kept_capabilities;
        return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

static int drop_at(const struct options *options, enum drop moment)
{
        return options->drop == moment ? drop(options) : 0;
}

static int load_and_attach(struct server *server)
{
        const struct options *options = &server->options;
        int r = drop_at(options, DROP_BEFORE_LOAD);

        if (r >= 0)
                r = attached_load(&server->queue, &server->attached);
        if (r < 0)
                (void)fprintf(stderr, "load: %s\n", strerror(-r));
        if (r >= 0)
                r = drop_at(options, DROP_BEFORE_ATTACH);
        if (r < 0)
                return r;
        r = attached_install(server->attached, &server->queue.state);
        if (r < 0)
                (void)fprintf(stderr, "attach: %s\n", strerror(-r));
        return r < 0 ? r : drop_at(options, DROP_AFTER);
}

static void report(const char *loop, const struct state *state)
{
        (void)fprintf(stderr, "%s: %llu rounds, %llu requests\n", loop, (unsigned long long)state->rounds,
                (unsigned long long)state->requests);
}

/* Until the loop has moved to user space, or is over. */
static int serve_in_kernel(struct server *server)
{
        int r;

        do
                r = queue_enter(&server->queue);
        while (r == -EINTR && !asked);
        server->queue.state = *(struct state *)(uintptr_t)attached_state(server->attached);
        (void)fprintf(stderr, "io_uring_enter returned %d\n", r);
        report("bpf", &server->queue.state);
        if (r != -EINTR)
                return r < 0 ? r : server->queue.state.failure;
        asked = 0;
        attached_remove(server->attached);
        return -EINTR;
}

static int serve(struct server *server)
{
        struct state state;
        int r = server->options.bpf ? serve_in_kernel(server) : -EINTR;

        while (r == -EINTR) {
                r = queue_serve(&server->queue, &state);
                server->queue.state = state;
                report("user space", &state);
        }
        return r;
}

static void *run_queue(void *argument)
{
        struct server *server = argument;
        int r = queue_fetch(&server->queue);

        if (r >= 0 && server->options.bpf)
                r = load_and_attach(server);
        server->result = r;
        (void)sem_post(&server->ready);
        if (r < 0)
                return NULL;
        r = serve(server);
        (void)fprintf(stderr, "the loop ended with %d\n", r);
        return NULL;
}

/* ---- a disk ---- */

static int open_backing(struct options *options)
{
        int fd = open(options->file, O_RDWR | O_DIRECT | O_CLOEXEC);
        struct stat facts;

        if (fd < 0 || fstat(fd, &facts) < 0)
                return -errno;
        options->disk.size = (uint64_t)facts.st_size;
        if (S_ISBLK(facts.st_mode) && ioctl(fd, BLKGETSIZE64, &options->disk.size) < 0)
                return -errno;
        options->disk.size -= options->start;
        if (options->length > 0 && options->length < options->disk.size)
                options->disk.size = options->length;
        return fd;
}

static int open_command(int number)
{
        char path[32];

        (void)snprintf(path, sizeof(path), "/dev/ublkc%d", number);
        for (int turn = 0; turn < 500; turn++) {
                int fd = open(path, O_RDWR | O_CLOEXEC);

                if (fd >= 0)
                        return fd;
                (void)usleep(10000);
        }
        return -errno;
}

static int start_queue(struct server *server, int backing)
{
        struct disk *disk = &server->options.disk;
        int command = open_command(disk->number), r;

        if (command < 0)
                return command;
        server->queue.restricted = server->options.restricted;
        server->queue.settings = (struct settings){.null = disk->null,
                .batch = disk->batch,
                .depth = disk->depth,
                .start = server->options.start};
        r = queue_open(&server->queue, command, backing < 0 ? command : backing);
        if (r < 0)
                return r;
        (void)sem_init(&server->ready, 0, 0);
        r = -pthread_create(&server->thread, NULL, run_queue, server);
        if (r < 0)
                return r;
        (void)sem_wait(&server->ready);
        return server->result;
}

static int start_disk(struct server *server, bool recover)
{
        struct disk *disk = &server->options.disk;
        int backing = disk->null ? -1 : open_backing(&server->options);
        int r = backing < 0 && !disk->null ? backing : 0;

        if (r >= 0)
                r = recover ? control_start_recovery(disk->number) : control_add(disk);
        if (r >= 0)
                r = start_queue(server, backing);
        if (r >= 0)
                r = recover ? control_end_recovery(disk->number) : control_start(disk->number);
        return r;
}

/* The process that was called prints the number once the disk is there. */
static int serve_in_background(struct server *server, bool recover)
{
        int ends[2], r;
        pid_t child;

        if (pipe(ends) < 0)
                return -errno;
        child = fork();
        if (child < 0)
                return -errno;
        if (child > 0) {
                (void)close(ends[1]);
                return read(ends[0], &r, sizeof(r)) == (ssize_t)sizeof(r) ? r : -EIO;
        }
        (void)setsid();
        (void)sigaction(SIGUSR1, &(struct sigaction){.sa_handler = ask}, NULL);
        r = start_disk(server, recover);
        if (r >= 0)
                (void)printf("dev id %d\n", server->options.disk.number);
        (void)fflush(stdout);
        (void)!write(ends[1], &r, sizeof(r));
        if (r < 0)
                exit(1);
        if (!freopen(server->options.log, "a", stdout) || dup2(STDOUT_FILENO, STDERR_FILENO) < 0)
                exit(1);
        return -pthread_join(
                server->thread, NULL); /* the process has open files as long as its first thread */
}

/* ---- arguments ---- */

static const struct option long_options[] = {
        {"bpf", no_argument, NULL, 'b'},
        {"batch", no_argument, NULL, 'B'},
        {"recovery", no_argument, NULL, 'r'},
        {"restrict", no_argument, NULL, 'R'},
        {"start", required_argument, NULL, 's'},
        {"length", required_argument, NULL, 'l'},
        {"log", required_argument, NULL, 'L'},
        {"drop", required_argument, NULL, 'D'},
        {"keep", required_argument, NULL, 'k'},
        {}
};

static void take_option(struct options *options, int option, const char *value)
{
        switch (option) {
        case 'n':
                options->disk.number = atoi(value);
                break;
        case 't':
                options->disk.null = strcmp(value, "null") == 0;
                break;
        case 'f':
                options->file = value;
                break;
        case 'd':
                options->disk.depth = (uint32_t)atoi(value);
                break;
        case 'b':
                options->bpf = true;
                break;
        case 'B':
                options->disk.batch = true;
                break;
        case 'r':
                options->disk.recovery = true;
                break;
        case 'R':
                options->restricted = true;
                break;
        case 's':
                options->start = strtoull(value, NULL, 0);
                break;
        case 'l':
                options->length = strtoull(value, NULL, 0);
                break;
        case 'L':
                options->log = value;
                break;
        case 'D':
                options->drop = (enum drop)atoi(value);
                break;
        case 'k':
                options->kept_capabilities = (uint32_t)strtoul(value, NULL, 0);
                break;
        default:
                exit(2);
        }
}

static int command(const char *name, struct server *server)
{
        int number = server->options.disk.number, r;
        unsigned state = 0;

        if (strcmp(name, "add") == 0 || strcmp(name, "recover") == 0)
                return serve_in_background(server, *name == 'r');
        if (strcmp(name, "state") == 0) {
                r = control_state(number, &state);
                (void)printf("state %u\n", state);
                return r;
        }
        if (strcmp(name, "del") != 0)
                return -EINVAL;
        r = control_stop(number);
        return r < 0 ? r : control_delete(number);
}

int main(int argc, char **argv)
{
        static struct server server = {
                .options = {.disk = {.number = -1, .depth = 64, .size = 16ULL << 30}, .log = "/dev/null"}
        };
        int option, r;

        while ((option = getopt_long(argc, argv, "n:t:f:d:q:", long_options, NULL)) >= 0)
                if (option != 'q')
                        take_option(&server.options, option, optarg);
        if (optind != argc - 1) {
                (void)fprintf(stderr, "usage: inkernel add|recover|del|state [OPTION...]\n");
                return 2;
        }
        r = command(argv[optind], &server);
        if (r < 0)
                (void)fprintf(stderr, "inkernel %s: %s\n", argv[optind], strerror(-r));
        return r < 0 ? 1 : 0;
}
