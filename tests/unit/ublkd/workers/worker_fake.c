/* SPDX-License-Identifier: MIT */
/* Workers for the test of worker_proc: they speak the protocol, or do not. */
#include "tests/unit/ublkd/workers/worker_fake.h"

#include "ublkd/proto/device_region.h"
#include "ublkd/proto/worker_msg.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

const char worker_fake_uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

/* The supervisor may exit at any time; the worker continues. */
static void send_message(const struct worker_msg *msg)
{
        int r = worker_msg_send(WORKER_CHANNEL_FD, msg);

        if (r < 0 && r != -EPIPE)
                _exit(90);
}

static void send_hello(const char *as_uid, pid_t pid, enum worker_stage stage, int number)
{
        send_message(&(struct worker_msg){
                .type = WORKER_MSG_HELLO,
                .hello = {.protocol = WORKER_PROTOCOL,
                          .uid = (char *)as_uid,
                          .version = (char *)"test",
                          .epoch = WORKER_FAKE_EPOCH,
                          .started_at = stage == WORKER_STAGE_SERVING ? WORKER_FAKE_STARTED : 0,
                          .pid = pid,
                          .number = number,
                          .stage = stage},
        });
}

static void send_params_with(uint64_t size_max, uint64_t claim_start)
{
        struct backing_claim claim = {
                .key = (char *)"file:8:1:4711", .start = claim_start, .end = claim_start + (1 << 20)};

        send_message(&(struct worker_msg){
                .type = WORKER_MSG_PARAMS,
                .params = {.size = 1 << 20,
                           .size_max = size_max,
                           .logical_block_size = 512,
                           .queues = 1,
                           .queue_depth = 8,
                           .claims = {&claim, 1}}
        });
}

static void send_params(void)
{
        send_params_with(0, 0);
}

static void send_grown(uint64_t size, uint64_t size_max)
{
        send_message(&(struct worker_msg){
                .type = WORKER_MSG_GROWN, .grown = {.size = size, .size_max = size_max}
        });
}

static void send_failed(void)
{
        struct worker_msg msg = {.type = WORKER_MSG_FAILED};

        problem_add(
                &msg.failed.problems, ENOENT, "/target/path", "BackingFileMissing", "There is no such file");
        problem_add(&msg.failed.problems, EINVAL, "/size", "SizeMissing", "And no size");
        msg.failed.holder = 47;
        send_message(&msg);
        worker_msg_clear(&msg);
}

static int listener = -1; /* from CONFIG */

/* Waits for one message of that type, or for the end of the channel (false). */
static bool listen_for(enum worker_msg_type type)
{
        struct worker_msg msg = {};
        struct pollfd channel = {.fd = WORKER_CHANNEL_FD, .events = POLLIN};
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1}, r;
        bool right;

        poll(&channel, 1, -1);
        r = worker_msg_receive_fds(WORKER_CHANNEL_FD, &msg, fds);
        if (r == 0)
                return false;
        if (type == WORKER_MSG_CONFIG)
                listener = fds[CONFIG_FD_LISTENER];
        right = r == 1 && msg.type == type;
        worker_msg_clear(&msg);
        if (!right)
                _exit(91);
        return true;
}

static void send_stores(void)
{
        static struct listed_store stores[2];

        send_message(&(struct worker_msg){
                .type = WORKER_MSG_BACKING,
                .backing = {.boot = (char *)(uintptr_t) "",
                            .lasting = (char *)(uintptr_t) "",
                            .stores = {stores, 2}}
        });
}

static bool lists_later; /* its first ublkd had given it a list, which this one does not know */

/* Every later supervisor gets the whole story. */
void worker_fake_serve(int at)
{
        for (;;) {
                struct pollfd calls = {.fd = at, .events = POLLIN};
                int fd = poll(&calls, 1, -1) < 0 ? -1 : accept(at, NULL, NULL);

                if (fd < 0 || dup2(fd, WORKER_CHANNEL_FD) < 0)
                        _exit(93);
                close(fd);
                send_hello(worker_fake_uid, getpid(), WORKER_STAGE_SERVING, WORKER_FAKE_NUMBER);
                if (lists_later)
                        send_stores();
                send_params();
                send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
                while (listen_for(WORKER_MSG_LIVE))
                        continue;
        }
}

static void be_good(void)
{
        if (!listen_for(WORKER_MSG_CONFIG))
                _exit(96);
        if (listen(listener, 4) < 0)
                _exit(92);
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params();
        if (!listen_for(WORKER_MSG_GO))
                _exit(94);
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
        if (listen_for(WORKER_MSG_LIVE))
                while (listen_for(WORKER_MSG_LIVE))
                        continue;
        worker_fake_serve(listener);
}

static void be_failing(void)
{
        send_hello("", /* it has not read CONFIG */ getpid(), WORKER_STAGE_OPENING, -1);
        send_failed();
        _exit(1);
}

static void be_failing_and_stay(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_failed();
        pause();
}

static void be_killed(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        raise(SIGTERM);
}

static void be_silent(void)
{
        pause();
}

static void be_garbage(void)
{
        (void)!send(WORKER_CHANNEL_FD, "{]", 2, 0);
        pause();
}

static void be_ready_first(void)
{
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
        pause();
}

static void be_ready_before_go(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params();
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
        pause();
}

/* As far as a worker is that serves. */
static void get_ready(void)
{
        if (!listen_for(WORKER_MSG_CONFIG))
                _exit(96);
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params();
        if (!listen_for(WORKER_MSG_GO))
                _exit(94);
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
}

static void be_ready_twice(void)
{
        get_ready();
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
        pause();
}

static void be_unreachable(void)
{
        if (!listen_for(WORKER_MSG_CONFIG) || listen(listener, 4) < 0)
                _exit(96);
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params();
        close(listener);
        if (!listen_for(WORKER_MSG_GO))
                _exit(94);
        send_message(&(struct worker_msg){.type = WORKER_MSG_READY});
        for (;;)
                pause();
}

static void be_failing_twice(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_failed();
        send_failed();
        pause();
}

/* Send for ever, as fast as the supervisor reads. */
static void flood(const struct worker_msg *msg)
{
        struct pollfd channel = {.fd = WORKER_CHANNEL_FD, .events = POLLOUT};

        for (;;) {
                int r = worker_msg_send(WORKER_CHANNEL_FD, msg);

                if (r == -EAGAIN)
                        (void)poll(&channel, 1, 1000);
                else if (r < 0)
                        pause();
        }
}

static void be_flooding_with_news(void)
{
        get_ready();
        flood(&(struct worker_msg){.type = WORKER_MSG_NEWS});
}

static void be_flooding_with_notices(void)
{
        struct worker_msg msg = {.type = WORKER_MSG_NOTICE};

        problem_add(&msg.notice, EBUSY, "/target", "BackingRead", "Look here");
        get_ready();
        flood(&msg);
}

static void be_noticing_much(void)
{
        struct worker_msg msg = {.type = WORKER_MSG_NOTICE};

        problem_add(&msg.notice, EBUSY, "/target", "BackingRead", "Look here");
        problem_add(&msg.notice, EBUSY, "/target", "BackingRead", "And here");
        get_ready();
        flood(&msg);
}

/* A message with a field that no supervisor knows. */
static void send_padded(const char *type, size_t size)
{
        char *text = malloc(size + 1);
        int head = snprintf(text, size + 1, "{\"type\":\"%s\",\"more\":\"", type);

        memset(text + head, 'x', size - (size_t)head);
        memcpy(text + size - 2, "\"}", 2);
        if (send(WORKER_CHANNEL_FD, text, size, 0) < 0)
                _exit(90);
        free(text);
}

static void be_long_winded(void)
{
        get_ready();
        send_padded("news", WORKER_SHORT_SIZE_MAX); /* that is all right */
        send_padded("news", WORKER_SHORT_SIZE_MAX + 1);
        pause();
}

static void be_huge(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_padded("params", WORKER_REPORT_SIZE_MAX + 1);
        pause();
}

static void be_commanding(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_message(&(struct worker_msg){.type = WORKER_MSG_GO});
        pause();
}

static void be_wrong_uid(void)
{
        send_hello("another", getpid(), WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_wrong_pid(void)
{
        send_hello(worker_fake_uid, 1, WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_twice(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_listing_stores(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_stores();
        pause();
}

static void be_listing_stores_later(void)
{
        lists_later = true;
        be_good();
}

static void be_bragging(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_SERVING, 1);
        pause();
}

static void begin_to_grow(void)
{
        if (!listen_for(WORKER_MSG_CONFIG))
                _exit(96);
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params_with(4 << 20, 0);
}

static void be_growing_unasked(void)
{
        begin_to_grow();
        send_grown(2 << 20, 4 << 20);
        pause();
}

/* Answers what it was asked, and one thing more. */
static void answer_grow(uint64_t size, uint64_t size_max)
{
        begin_to_grow();
        if (!listen_for(WORKER_MSG_GROW))
                _exit(94);
        send_grown(size, size_max);
        send_grown(size, size_max);
        pause();
}

static void be_growing_twice(void)
{
        answer_grow(2 << 20, 4 << 20);
}

static void be_overgrowing(void)
{
        answer_grow(3 << 20, 4 << 20);
}

static void be_shrinking(void)
{
        answer_grow(1 << 19, 4 << 20);
}

static void be_growing_without_end(void)
{
        answer_grow(2 << 20, UINT64_MAX - 1);
}

static void be_boundless(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params_with(INT64_MAX, 1 << 20);
        pause();
}

static void be_wrapping(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_params_with(0, UINT64_MAX - (1 << 20) + 1);
        pause();
}

/* What it says is logged, and shown to people. */
static void be_forging(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        send_message(&(struct worker_msg){
                .type = WORKER_MSG_PARAMS,
                .params = {.size = 1 << 20,
                           .logical_block_size = 512,
                           .queues = 1,
                           .queue_depth = 8,
                           .path_may_change = true,
                           .stable_path = (char *)"/dev/x\nublkd: all is well"}
        });
        pause();
}

/* As one whose supervisor does not read, and that fails then. */
static void be_failing_late(void)
{
        const struct worker_msg news = {.type = WORKER_MSG_NEWS};

        get_ready();
        if (!listen_for(WORKER_MSG_LIVE))
                _exit(94);
        for (unsigned i = 0; i < 500; i++)
                if (worker_msg_send(WORKER_CHANNEL_FD, &news) < 0)
                        _exit(90);
        send_failed();
        _exit(1);
}

/* As one whose supervisor does not read for long. */
static void be_full(void)
{
        struct pollfd channel = {.fd = WORKER_CHANNEL_FD, .events = POLLOUT};
        const struct worker_msg news = {.type = WORKER_MSG_NEWS};

        get_ready();
        if (!listen_for(WORKER_MSG_LIVE))
                _exit(94);
        while (worker_msg_send(WORKER_CHANNEL_FD, &news) >= 0)
                continue;
        (void)poll(&channel, 1, -1);
        send_failed();
        _exit(1);
}

static void be_closing_and_stay(void)
{
        get_ready();
        if (!listen_for(WORKER_MSG_LIVE))
                _exit(94);
        close(WORKER_CHANNEL_FD);
        for (;;)
                pause();
}

static void be_closing(void)
{
        send_hello(worker_fake_uid, getpid(), WORKER_STAGE_OPENING, -1);
        close(WORKER_CHANNEL_FD);
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
        _exit(7);
}

/* Exits with 0 when all that a worker is promised holds. */
static void be_inspecting(void)
{
        sigset_t mask;
        struct worker_msg config = {};
        int fds[_CONFIG_FD_MAX] = {[0 ... _CONFIG_FD_MAX - 1] = -1};
        DIR *dir = opendir("/proc/self/fd");
        char null[64] = "";

        for (struct dirent *entry; (entry = readdir(dir));)
                if (atoi(entry->d_name) > WORKER_LOG_FD && atoi(entry->d_name) != dirfd(dir))
                        _exit(10);
        if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0 || sigismember(&mask, SIGTERM)
                || signal(SIGPIPE, SIG_DFL) != SIG_DFL)
                _exit(11);
        if (getsid(0) != getpid())
                _exit(12);
        if (readlink("/proc/self/fd/0", null, sizeof(null)) < 0 || strcmp(null, "/dev/null") != 0)
                _exit(13);
        if (getenv("NOTIFY_SOCKET") || !getenv("KEPT"))
                _exit(14);
        if (worker_msg_receive_fds(WORKER_CHANNEL_FD, &config, fds) != 1 || config.type != WORKER_MSG_CONFIG
                || strcmp(config.config.uid, worker_fake_uid) != 0 || strcmp(config.config.spec, "{}") != 0)
                _exit(15);
        if (fcntl(1, F_GETFD) < 0 || !(fcntl(WORKER_LOG_FD, F_GETFL) & O_NONBLOCK)
                || listen(fds[CONFIG_FD_LISTENER], 1) < 0
                || fcntl(fds[CONFIG_FD_REGION], F_GETFD) != FD_CLOEXEC)
                _exit(16);
        _exit(0);
}

static const struct {
        const char *name;
        void (*be)(void);
} characters[] = {
        {"good",                 be_good                 },
        {"failing",              be_failing              },
        {"failing-and-stay",     be_failing_and_stay     },
        {"killed",               be_killed               },
        {"silent",               be_silent               },
        {"garbage",              be_garbage              },
        {"ready-first",          be_ready_first          },
        {"ready-before-go",      be_ready_before_go      },
        {"ready-twice",          be_ready_twice          },
        {"unreachable",          be_unreachable          },
        {"failing-twice",        be_failing_twice        },
        {"flood-of-news",        be_flooding_with_news   },
        {"flood-of-notices",     be_flooding_with_notices},
        {"notice-of-two",        be_noticing_much        },
        {"long-winded",          be_long_winded          },
        {"huge",                 be_huge                 },
        {"commanding",           be_commanding           },
        {"wrong-uid",            be_wrong_uid            },
        {"wrong-pid",            be_wrong_pid            },
        {"twice",                be_twice                },
        {"listing-stores",       be_listing_stores       },
        {"listing-stores-later", be_listing_stores_later },
        {"bragging",             be_bragging             },
        {"closing",              be_closing              },
        {"failing-late",         be_failing_late         },
        {"full",                 be_full                 },
        {"closing-and-stay",     be_closing_and_stay     },
        {"growing-unasked",      be_growing_unasked      },
        {"growing-twice",        be_growing_twice        },
        {"overgrowing",          be_overgrowing          },
        {"shrinking",            be_shrinking            },
        {"without-end",          be_growing_without_end  },
        {"boundless",            be_boundless            },
        {"wrapping",             be_wrapping             },
        {"forging",              be_forging              },
        {"inspecting",           be_inspecting           },
};

/* Leaves CONFIG where it is. */
static void become_named(char name[static 64])
{
        struct pollfd channel = {.fd = WORKER_CHANNEL_FD, .events = POLLIN};
        _cleanup_worker_msg_ struct worker_msg config = {};
        char text[4096];
        ssize_t n;

        poll(&channel, 1, -1);
        n = recv(WORKER_CHANNEL_FD, text, sizeof(text), MSG_PEEK);
        if (n == 0)
                _exit(0); /* the test has exited */
        if (n < 0 || worker_msg_decode(text, (size_t)n, &config) < 0)
                _exit(97);
        snprintf(name, 64, "%s", config.config.name);
}

int worker_fake(const char *as)
{
        char name[64];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        snprintf(name, sizeof(name), "%s", as);
        if (strncmp(as, WORKER_SPARE_NAME, strlen(WORKER_SPARE_NAME)) == 0)
                become_named(name);
        for (size_t i = 0; i < ARRAY_SIZE(characters); i++)
                if (strcmp(name, characters[i].name) == 0)
                        characters[i].be();
        return 95;
}
