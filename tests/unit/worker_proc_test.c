/* Worker processes: real children that speak the protocol, or do not. This program is the worker, too:
 * started as "ublkd-worker NAME" it behaves as NAME says. */
#include "ublkd/worker_proc.h"

#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static const char uid[] = "0b7a1c9e-0000-4000-8000-1234567890ab";

enum { EPOCH = 3, NUMBER = 42, PATIENCE_USEC = 20 * 1000 * 1000 };

/* ---- the worker ---- */

/* A supervisor may go at any time; that is no reason to end. */
static void say(const struct worker_msg *msg)
{
        int r = worker_msg_send(WORKER_CHANNEL_FD, msg);

        if (r < 0 && r != -EPIPE)
                _exit(90);
}

static void say_hello(const char *as_uid, pid_t pid, enum worker_stage stage, int number)
{
        say(&(struct worker_msg){
                .type = WORKER_MSG_HELLO,
                .hello = {.protocol = WORKER_PROTOCOL,
                          .uid = (char *)as_uid,
                          .version = (char *)"test",
                          .epoch = EPOCH,
                          .pid = pid,
                          .number = number,
                          .stage = stage},
        });
}

static void say_params(void)
{
        say(&(struct worker_msg){
                .type = WORKER_MSG_PARAMS,
                .params = {.size = 1 << 20, .logical_block_size = 512, .queues = 1, .queue_depth = 8}
        });
}

static void say_failed(void)
{
        struct worker_msg msg = {.type = WORKER_MSG_FAILED};

        problem_add(&msg.failed, ENOENT, "/target/path", "BackingFileMissing", "There is no such file");
        problem_add(&msg.failed, EINVAL, "/size", "SizeMissing", "And no size");
        say(&msg);
        worker_msg_clear(&msg);
}

/* Waits for one message of that type, or for the end of the channel (false). */
static bool listen_for(enum worker_msg_type type)
{
        struct worker_msg msg = {};
        struct pollfd channel = {.fd = WORKER_CHANNEL_FD, .events = POLLIN};
        bool right;
        int r;

        poll(&channel, 1, -1);
        r = worker_msg_receive(WORKER_CHANNEL_FD, &msg);
        if (r == 0)
                return false;
        right = r == 1 && msg.type == type;
        worker_msg_clear(&msg);
        if (!right)
                _exit(91);
        return true;
}

/* Every later supervisor gets the whole story. */
static void serve_supervisors(void)
{
        for (;;) {
                struct pollfd listener = {.fd = WORKER_LISTEN_FD, .events = POLLIN};
                int fd = poll(&listener, 1, -1) < 0 ? -1 : accept(WORKER_LISTEN_FD, NULL, NULL);

                if (fd < 0 || dup2(fd, WORKER_CHANNEL_FD) < 0)
                        _exit(93);
                close(fd);
                say_hello(uid, getpid(), WORKER_STAGE_SERVING, NUMBER);
                say_params();
                say(&(struct worker_msg){.type = WORKER_MSG_READY});
                while (listen_for(WORKER_MSG_LIVE))
                        continue;
        }
}

static void be_good(void)
{
        if (listen(WORKER_LISTEN_FD, 4) < 0)
                _exit(92);
        if (!listen_for(WORKER_MSG_CONFIG))
                _exit(96);
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        say_params();
        if (!listen_for(WORKER_MSG_GO))
                _exit(94);
        say(&(struct worker_msg){.type = WORKER_MSG_READY});
        if (listen_for(WORKER_MSG_LIVE))
                while (listen_for(WORKER_MSG_LIVE))
                        continue;
        serve_supervisors();
}

static void be_failing(void)
{
        say_hello("", /* it has not read CONFIG */ getpid(), WORKER_STAGE_OPENING, -1);
        say_failed();
        _exit(1);
}

static void be_failing_and_stay(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        say_failed();
        pause();
}

static void be_killed(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
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
        say(&(struct worker_msg){.type = WORKER_MSG_READY});
        pause();
}

static void be_ready_before_go(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        say_params();
        say(&(struct worker_msg){.type = WORKER_MSG_READY});
        pause();
}

static void be_commanding(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        say(&(struct worker_msg){.type = WORKER_MSG_GO});
        pause();
}

static void be_wrong_uid(void)
{
        say_hello("another", getpid(), WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_wrong_pid(void)
{
        say_hello(uid, 1, WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_twice(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        pause();
}

static void be_bragging(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_SERVING, 1);
        pause();
}

static void be_closing(void)
{
        say_hello(uid, getpid(), WORKER_STAGE_OPENING, -1);
        close(WORKER_CHANNEL_FD);
        close(WORKER_LISTEN_FD);
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
        _exit(7);
}

/* Exits with 0 when all that a worker is promised holds. */
static void be_inspecting(void)
{
        sigset_t mask;
        struct worker_msg config = {};
        DIR *dir = opendir("/proc/self/fd");
        char null[64] = "";

        for (struct dirent *entry; (entry = readdir(dir));)
                if (atoi(entry->d_name) > WORKER_LISTEN_FD && atoi(entry->d_name) != dirfd(dir))
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
        if (worker_msg_receive(WORKER_CHANNEL_FD, &config) != 1 || config.type != WORKER_MSG_CONFIG
                || strcmp(config.config.uid, uid) != 0 || strcmp(config.config.spec, "{}") != 0)
                _exit(15);
        if (fcntl(1, F_GETFD) < 0 || listen(WORKER_LISTEN_FD, 1) < 0)
                _exit(16);
        _exit(0);
}

static const struct {
        const char *name;
        void (*be)(void);
} characters[] = {
        {"good",             be_good            },
        {"failing",          be_failing         },
        {"failing-and-stay", be_failing_and_stay},
        {"killed",           be_killed          },
        {"silent",           be_silent          },
        {"garbage",          be_garbage         },
        {"ready-first",      be_ready_first     },
        {"ready-before-go",  be_ready_before_go },
        {"commanding",       be_commanding      },
        {"wrong-uid",        be_wrong_uid       },
        {"wrong-pid",        be_wrong_pid       },
        {"twice",            be_twice           },
        {"bragging",         be_bragging        },
        {"closing",          be_closing         },
        {"inspecting",       be_inspecting      },
};

static int worker_main(const char *name)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < ARRAY_SIZE(characters); i++)
                if (strcmp(name, characters[i].name) == 0)
                        characters[i].be();
        return 95;
}

/* ---- the supervisor ---- */

struct watch {
        sd_event *event;
        struct runtime_dir *dir;
        struct worker_proc *worker;
        unsigned changes;
        bool in_loop; /* a change may be told only then */
};

static void on_change(void *userdata, struct worker_proc *worker)
{
        struct watch *watch = userdata;

        CHECK(watch->in_loop);
        CHECK(worker == watch->worker);
        watch->changes++;
}

/* Runs the loop until `done`, or long enough to be a failure. */
static bool run_until(struct watch *watch, bool (*done)(const struct watch *watch))
{
        uint64_t start, now;

        sd_event_now(watch->event, CLOCK_MONOTONIC, &start);
        now = start;
        while (!done(watch) && now < start + PATIENCE_USEC) {
                watch->in_loop = true;
                sd_event_run(watch->event, 100 * 1000);
                watch->in_loop = false;
                sd_event_now(watch->event, CLOCK_MONOTONIC, &now);
        }
        return done(watch);
}

static bool is_dead(const struct watch *watch)
{
        return worker_proc_death(watch->worker);
}

static bool is_open(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_OPEN;
}

static bool is_ready(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_READY;
}

static bool is_serving(const struct watch *watch)
{
        return worker_proc_stage(watch->worker) == WORKER_STAGE_SERVING;
}

static int try_spawn(struct watch *watch, const char *program, const char *name, const char *spec)
{
        return worker_proc_spawn(watch->event, watch->dir, program,
                &(struct worker_msg){
                        .type = WORKER_MSG_CONFIG,
                        .config = {.name = (char *)name,
                                   .uid = (char *)uid,
                                   .epoch = EPOCH,
                                   .spec = (char *)spec,
                                   .queues = 1,
                                   .queue_depth = 8},
        },
                on_change, watch, &watch->worker);
}

static void spawn(struct watch *watch, const char *name)
{
        watch->changes = 0;
        CHECK_INT(try_spawn(watch, "/proc/self/exe", name, "{}"), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_OPENING);
        CHECK_INT(worker_proc_number(watch->worker), -1);
        CHECK(!worker_proc_params(watch->worker));
        CHECK(!worker_proc_death(watch->worker));
        CHECK(!worker_proc_adopted(watch->worker));
        CHECK(worker_proc_pid(watch->worker) > 0);
}

static void let_go(struct watch *watch)
{
        watch->worker = worker_proc_free(watch->worker);
}

/* Spawns, and expects this death. */
static void check_death(struct watch *watch, const char *name, const char *sentence)
{
        spawn(watch, name);
        if (CHECK(run_until(watch, is_dead))) {
                CHECK_STR(worker_proc_death(watch->worker)->sentence, sentence);
                CHECK(worker_proc_died_at(watch->worker) > 0);
                CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_LEAVING);
                CHECK_INT(runtime_dir_connect_worker(watch->dir, uid), -ENOENT);
                CHECK_INT(waitpid(worker_proc_pid(watch->worker), NULL, WNOHANG), -1); /* no zombie */
        }
        let_go(watch);
}

static void test_life(struct watch *watch)
{
        uint64_t now = (uint64_t)time(NULL) * 1000000;

        spawn(watch, "good");
        CHECK(worker_proc_started_at(watch->worker) / 1000000 - now / 1000000 < 2);
        CHECK(run_until(watch, is_open));
        CHECK_INT(worker_proc_epoch(watch->worker), EPOCH);
        CHECK_INT(worker_proc_params(watch->worker)->size, 1 << 20);
        CHECK_INT(watch->changes, 2); /* HELLO, PARAMS */
        CHECK_INT(worker_proc_go(watch->worker, NUMBER), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_FETCHING);
        CHECK_INT(worker_proc_number(watch->worker), NUMBER);
        CHECK_INT(watch->changes, 2);
        CHECK(run_until(watch, is_ready));
        CHECK_INT(watch->changes, 3);
        CHECK_INT(worker_proc_live(watch->worker), 0);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_SERVING);
        worker_proc_kill(watch->worker);
        CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_LEAVING);
        CHECK(run_until(watch, is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "was killed by SIGKILL");
        CHECK(worker_proc_death(watch->worker)->by_signal);
        CHECK_INT(worker_proc_death(watch->worker)->code, SIGKILL);
        CHECK_INT(watch->changes, 4);
        CHECK_INT(worker_proc_go(watch->worker, NUMBER), -EPIPE);
        let_go(watch);
}

static int adopt(struct watch *watch)
{
        return worker_proc_adopt(watch->event, watch->dir, "good", uid, on_change, watch, &watch->worker);
}

static void test_adoption(struct watch *watch)
{
        uint64_t started_at, first_start;
        pid_t pid;

        spawn(watch, "good");
        pid = worker_proc_pid(watch->worker);
        first_start = worker_proc_started_at(watch->worker);
        CHECK(run_until(watch, is_open));
        CHECK_INT(worker_proc_go(watch->worker, NUMBER), 0);
        CHECK(run_until(watch, is_ready));
        CHECK_INT(worker_proc_live(watch->worker), 0);
        for (unsigned round = 0; round < 3; round++) {
                int r;

                let_go(watch);
                r = adopt(watch);
                if (!CHECK_INT(r, 0))
                        return;
                CHECK_INT(worker_proc_stage(watch->worker), WORKER_STAGE_OPENING);
                CHECK(worker_proc_adopted(watch->worker));
                CHECK_INT(worker_proc_pid(watch->worker), pid);
                started_at = worker_proc_started_at(watch->worker);
                CHECK(started_at + 1000000 > first_start && started_at < first_start + 1000000);
                CHECK(run_until(watch, is_serving));
                CHECK_INT(worker_proc_number(watch->worker), NUMBER);
                CHECK_INT(worker_proc_epoch(watch->worker), EPOCH);
                CHECK(worker_proc_params(watch->worker));
        }
        CHECK_INT(worker_proc_live(watch->worker), 0);
        kill(pid, SIGKILL);
        CHECK(run_until(watch, is_dead)); /* it is our child after all, so the cause is known */
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "was killed by SIGKILL");
        let_go(watch);
}

/* Adopts a worker that is no child of ours: a go-between started it, and is gone. */
static void test_adoption_of_a_stranger(struct watch *watch)
{
        pid_t go_between;
        int ready[2];
        char byte;

        CHECK_INT(pipe(ready), 0);
        go_between = fork();
        if (go_between == 0) {
                int listener = runtime_dir_bind_worker(watch->dir, uid);

                if (fork() > 0)
                        _exit(0);
                if (listen(listener, 4) < 0 || write(ready[1], "x", 1) != 1
                        || dup2(listener, WORKER_LISTEN_FD) < 0)
                        _exit(92);
                serve_supervisors();
        }
        CHECK_INT(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        CHECK_INT(waitpid(go_between, NULL, 0), go_between);
        if (!CHECK_INT(adopt(watch), 0))
                return;
        CHECK(run_until(watch, is_serving));
        worker_proc_kill(watch->worker);
        CHECK(run_until(watch, is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "is gone (it was not our child)");
        CHECK_INT(worker_proc_death(watch->worker)->code, -1);
        let_go(watch);
}

static void test_adoption_of_nobody(struct watch *watch)
{
        int listener;

        CHECK_INT(worker_proc_adopt(watch->event, watch->dir, "x", uid, on_change, watch, &watch->worker),
                -ENOENT);
        listener = runtime_dir_bind_worker(watch->dir, uid);
        CHECK_INT(worker_proc_adopt(watch->event, watch->dir, "x", uid, on_change, watch, &watch->worker),
                -ENOENT);
        close(listener);
        CHECK_INT(worker_proc_adopt(watch->event, watch->dir, "x", uid, on_change, watch, &watch->worker),
                -ENOENT);
        CHECK(!watch->worker);
        runtime_dir_forget_worker(watch->dir, uid);
}

static void test_failed(struct watch *watch)
{
        const struct problem_list *problems;

        spawn(watch, "failing");
        CHECK(run_until(watch, is_dead));
        CHECK_STR(worker_proc_death(watch->worker)->sentence, "exited with status 1");
        CHECK(!worker_proc_death(watch->worker)->by_signal);
        problems = worker_proc_problems(watch->worker);
        if (CHECK_INT(problems->count, 2)) {
                CHECK_STR(problems->items[0].reason, "BackingFileMissing");
                CHECK_STR(problems->items[1].pointer, "/size");
        }
        let_go(watch);
}

static void test_spawn_that_cannot_be(struct watch *watch)
{
        char *spec = malloc(WORKER_MSG_SIZE_MAX + 1);

        memset(spec, ' ', WORKER_MSG_SIZE_MAX);
        spec[WORKER_MSG_SIZE_MAX] = '\0';
        CHECK_INT(try_spawn(watch, "/nonexistent", "good", "{}"), -ENOENT);
        CHECK_INT(try_spawn(watch, "/etc/passwd", "good", "{}"), -EACCES);
        CHECK_INT(try_spawn(watch, "/proc/self/exe", "good", spec), -EMSGSIZE);
        spec[WORKER_MSG_SIZE_MAX - 300] = '\0';
        CHECK_INT(try_spawn(watch, "/proc/self/exe", "silent", spec), 0); /* nobody reads it, and it fits */
        worker_proc_kill(watch->worker);
        CHECK(run_until(watch, is_dead));
        let_go(watch);
        CHECK_INT(runtime_dir_connect_worker(watch->dir, uid), -ENOENT);
        free(spec);
}

static void free_it(void *userdata, struct worker_proc *worker)
{
        struct watch *watch = userdata;

        worker_proc_free(worker);
        watch->worker = NULL;
}

static bool is_freed(const struct watch *watch)
{
        return !watch->worker;
}

/* At the first message, and at the death. */
static void test_freed_within_the_callback(struct watch *watch)
{
        static const char *const names[] = {"killed", "silent", "garbage", "closing"};

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct worker_msg config = {
                        .type = WORKER_MSG_CONFIG,
                        .config = {.name = (char *)names[i],
                                   .uid = (char *)uid,
                                   .epoch = EPOCH,
                                   .spec = (char *)"{}",
                                   .queues = 1,
                                   .queue_depth = 1}
                };
                pid_t pid;

                CHECK_INT(worker_proc_spawn(watch->event, watch->dir, "/proc/self/exe", &config, free_it,
                                  watch, &watch->worker),
                        0);
                pid = worker_proc_pid(watch->worker);
                if (strcmp(names[i], "silent") == 0)
                        worker_proc_kill(watch->worker);
                CHECK(run_until(watch, is_freed));
                (void)kill(pid, SIGKILL);
                (void)waitpid(pid, NULL, 0);
                runtime_dir_forget_worker(watch->dir, uid);
        }
}

/* Between the request and the exec: it is a part of every recovery. */
static void report_speed(struct watch *watch)
{
        struct timespec before, after;

        clock_gettime(CLOCK_MONOTONIC, &before);
        spawn(watch, "silent");
        clock_gettime(CLOCK_MONOTONIC, &after);
        printf("spawn took %ld us\n",
                (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
        worker_proc_kill(watch->worker);
        CHECK(run_until(watch, is_dead));
        let_go(watch);
}

static void run_tests(struct watch *watch)
{
        test_life(watch);
        test_adoption(watch);
        test_adoption_of_a_stranger(watch);
        test_adoption_of_nobody(watch);
        test_failed(watch);
        test_spawn_that_cannot_be(watch);
        test_freed_within_the_callback(watch);
        check_death(watch, "inspecting", "exited with status 0");
        check_death(watch, "killed", "was killed by SIGTERM");
        check_death(watch, "garbage", "was killed by ublkd: it sent what is no message");
        check_death(watch, "ready-first", "was killed by ublkd: it did not say HELLO first");
        check_death(watch, "ready-before-go", "was killed by ublkd: it said READY before GO");
        check_death(watch, "commanding", "was killed by ublkd: it sent a message that only ublkd may send");
        check_death(watch, "wrong-uid", "was killed by ublkd: it serves another device");
        check_death(watch, "wrong-pid", "was killed by ublkd: it says it is another process");
        check_death(watch, "twice", "was killed by ublkd: it said HELLO twice");
        check_death(watch, "bragging", "was killed by ublkd: it claims to serve before it was told to");
        check_death(watch, "closing", "exited with status 7");
        check_death(watch, "failing-and-stay", "was killed by ublkd: it did not leave by itself");
        report_speed(watch);
}

int main(int argc, char *argv[])
{
        _cleanup_problems_ struct problem_list problems = {};
        char base[] = "/tmp/worker_proc_test.XXXXXX", command[64];
        struct watch watch = {};

        if (argc == 2 && strcmp(argv[0], "ublkd-worker") == 0)
                return worker_main(argv[1]);
        setenv("NOTIFY_SOCKET", "/nowhere", 1);
        setenv("KEPT", "1", 1);
        signal(SIGPIPE, SIG_IGN);
        if (!CHECK(mkdtemp(base)) || !CHECK_INT(sd_event_new(&watch.event), 0)
                || !CHECK_INT(runtime_dir_open(base, &watch.dir, &problems), 0))
                return check_report();
        run_tests(&watch);
        runtime_dir_free(watch.dir);
        sd_event_unref(watch.event);
        snprintf(command, sizeof(command), "rm -r %s", base);
        CHECK_INT(system(command), 0);
        return check_report();
}
