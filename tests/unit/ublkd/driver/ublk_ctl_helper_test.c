/* SPDX-License-Identifier: MIT */
/* The control helper itself, with a pretended driver: which commands that gets, and what the supervisor is answered. The
 * ring is real, but each command to the driver goes out as a NOP, whose completion gets the result of the pretended one. */
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/driver/ublk_ctl_wire.h"

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { NUMBER = 3, WORKER = 4711, COMMANDS_MAX = 64, NSEC_PER_SEC = 1000 * 1000 * 1000, SLOWER = 200 };

static const uint64_t ours = UINT64_C(0xfedcba9876543210), stranger = 1;

/* Shared by the test and its helper. */
static struct driver {
        /* the test writes */
        uint64_t cookie; /* of the disk with the number */
        uint64_t
                next_cookie; /* not 0: of the one that comes in its place after the next START_USER_RECOVERY */
        int look_error;      /* of GET_DEV_INFO */
        int start_result, end_result;
        unsigned busy; /* so many START_USER_RECOVERYs are refused first */
        /* the helper writes: the commands */
        uint32_t commands[COMMANDS_MAX];
        unsigned count;
} *driver;

/* ---- the driver, in the helper ---- */

/* Slower than time, so that the tries of a busy machine are within the milliseconds that the helper has for them. */
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
        int r = __real_clock_gettime(clock, ret);
        uint64_t nsec = ((uint64_t)ret->tv_sec * NSEC_PER_SEC + (uint64_t)ret->tv_nsec) / SLOWER;

        ret->tv_sec = (time_t)(nsec / NSEC_PER_SEC);
        ret->tv_nsec = (long)(nsec % NSEC_PER_SEC);
        return r;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
        va_list rest;
        int mode;

        if (strcmp(path, "/dev/ublk-control") == 0)
                return __real_open("/dev/null", O_RDWR | O_CLOEXEC);
        va_start(rest, flags);
        mode = flags & O_CREAT ? va_arg(rest, int) : 0;
        va_end(rest);
        return __real_open(path, flags, mode);
}

static int start_recovery(void)
{
        int r = driver->busy > 0 ? -EBUSY : driver->start_result;

        if (driver->busy > 0)
                driver->busy--;
        if (driver->next_cookie)
                driver->cookie = driver->next_cookie;
        driver->next_cookie = 0;
        return r;
}

static int get_info(const struct ublksrv_ctrl_cmd *command)
{
        struct ublksrv_ctrl_dev_info info = {.dev_id = command->dev_id, .ublksrv_flags = driver->cookie};

        if (driver->look_error)
                return driver->look_error;
        if (command->len != sizeof(info))
                return -EINVAL;
        memcpy((void *)(uintptr_t)command->addr, &info, sizeof(info));
        return 0;
}

static int execute(uint32_t operation, const struct ublksrv_ctrl_cmd *command)
{
        bool asks = operation == UBLK_U_CMD_GET_DEV_INFO;

        if (driver->count < COMMANDS_MAX)
                driver->commands[driver->count++] = operation;
        if (command->dev_id != NUMBER)
                return -ENODEV;
        if (!asks && (command->len > 0 || command->addr))
                return -EFAULT;
        switch (operation) {
        case UBLK_U_CMD_GET_DEV_INFO:
                return get_info(command);
        case UBLK_U_CMD_START_USER_RECOVERY:
                return start_recovery();
        case UBLK_U_CMD_END_USER_RECOVERY:
                return command->data[0] == WORKER ? driver->end_result : -ESRCH;
        default:
                return -EOPNOTSUPP;
        }
}

static int features(const struct ublksrv_ctrl_cmd *command)
{
        memset((void *)(uintptr_t)command->addr, 0, UBLK_FEATURES_LEN);
        return 0;
}

/* The helper submits one entry at a time, and a NOP completes at once. */
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring)
{
        struct io_uring_sqe *sqe = &ring->sq.sqes[((ring->sq.sqe_tail - 1) & *ring->sq.kring_mask) << 1];
        struct ublksrv_ctrl_cmd command;
        uint64_t data = sqe->user_data;
        uint32_t operation = sqe->cmd_op;
        int result, r;

        memcpy(&command, sqe->cmd, sizeof(command));
        result = operation == UBLK_U_CMD_GET_FEATURES ? features(&command) : execute(operation, &command);
        memset(sqe, 0, 2 * sizeof(*sqe));
        sqe->opcode = IORING_OP_NOP;
        sqe->user_data = data;
        r = __real_io_uring_submit(ring);
        ring->cq.cqes[(*ring->cq.ktail - 1) & *ring->cq.kring_mask].res = result;
        return r;
}

/* ---- the test ---- */

static int channel;
static pid_t helper;

static void start_helper(void)
{
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                abort();
        helper = fork();
        if (helper < 0)
                abort();
        if (helper == 0) {
                close(ends[0]);
                _exit(ublk_ctl_helper_main(ends[1]));
        }
        close(ends[1]);
        channel = ends[0];
}

static void end_helper(void)
{
        close(channel);
        CHECK_INT(waitpid(helper, NULL, 0), helper);
}

/* Return false: there are no rings here. */
static bool is_greeted(void)
{
        struct ctl_reply greeting;

        return CHECK_INT(recv(channel, &greeting, sizeof(greeting), 0), sizeof(greeting))
               && greeting.step != CTL_STEP_RING && CHECK_INT(greeting.step, CTL_STEP_READY)
               && CHECK_INT(greeting.payload.greeting.guards, CTL_GUARDS);
}

static void reset_driver(void)
{
        *driver = (struct driver){.cookie = ours};
}

/* Return the result of a command to the disk. */
static int send_command(uint32_t operation, bool guarded)
{
        static uint64_t sequence;
        pid_t worker = operation == UBLK_U_CMD_END_USER_RECOVERY ? WORKER : 0;
        struct ctl_request request = {CTL_GUARDED(NUMBER, worker, ours)};
        struct ctl_reply reply = {};

        if (!guarded)
                request = (struct ctl_request){.number = NUMBER, .data = (uint64_t)worker};
        request.sequence = ++sequence;
        request.command = operation;
        CHECK_INT(send(channel, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
        CHECK_INT(recv(channel, &reply, sizeof(reply), 0), sizeof(reply));
        CHECK_INT(reply.sequence, sequence);
        return reply.result;
}

/* As letters: look, start, end. */
static const char *commands(void)
{
        static char text[COMMANDS_MAX + 1];

        for (unsigned i = 0; i < driver->count; i++)
                text[i] = driver->commands[i] == UBLK_U_CMD_GET_DEV_INFO          ? 'l'
                          : driver->commands[i] == UBLK_U_CMD_START_USER_RECOVERY ? 's'
                          : driver->commands[i] == UBLK_U_CMD_END_USER_RECOVERY   ? 'e'
                                                                                  : '?';
        text[driver->count] = '\0';
        return text;
}

static void check_command(uint32_t operation, int result, const char *sent)
{
        CHECK_INT(send_command(operation, true), result);
        CHECK_STR(commands(), sent);
}

static void the_disk_is_compared_before_and_after(void)
{
        reset_driver();
        check_command(UBLK_U_CMD_START_USER_RECOVERY, 0, "lsl");
        reset_driver();
        check_command(UBLK_U_CMD_END_USER_RECOVERY, 0, "le");
}

static void a_refusal_is_about_the_disk(void)
{
        reset_driver();
        driver->start_result = -EINVAL;
        check_command(UBLK_U_CMD_START_USER_RECOVERY, -EINVAL, "lsl");
        reset_driver();
        driver->end_result = -EBUSY;
        check_command(UBLK_U_CMD_END_USER_RECOVERY, -EBUSY, "le");
}

static void another_disk_gets_no_command(void)
{
        reset_driver();
        driver->cookie = stranger;
        check_command(UBLK_U_CMD_START_USER_RECOVERY, -ESTALE, "l");
        check_command(UBLK_U_CMD_END_USER_RECOVERY, -ESTALE, "ll");
}

static void no_command_without_an_answer(void)
{
        static const struct {
                int error, result;
        } cases[] = {
                {-ENODEV, -ENODEV},
                {-EINVAL, -ESTALE},
                {-EBUSY,  -ESTALE},
                {-EINTR,  -ESTALE}
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                reset_driver();
                driver->look_error = cases[i].error;
                check_command(UBLK_U_CMD_START_USER_RECOVERY, cases[i].result, "l");
                check_command(UBLK_U_CMD_END_USER_RECOVERY, cases[i].result, "ll");
        }
}

static void a_disk_that_was_replaced_meanwhile_is_seen(void)
{
        static const int results[] = {0, -EINVAL, -ENODEV};

        for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
                reset_driver();
                driver->start_result = results[i];
                driver->next_cookie = stranger;
                check_command(UBLK_U_CMD_START_USER_RECOVERY, -ESTALE, "lsl");
        }
}

static void each_try_is_compared(void)
{
        reset_driver();
        driver->busy = 2;
        check_command(UBLK_U_CMD_START_USER_RECOVERY, 0, "lslslsl");
        reset_driver();
        driver->busy = 1;
        driver->next_cookie = stranger;
        check_command(UBLK_U_CMD_START_USER_RECOVERY, -ESTALE, "lsl");
}

static void a_driver_that_stays_busy_is_left(void)
{
        size_t sent;

        reset_driver();
        driver->busy = COMMANDS_MAX;
        CHECK_INT(send_command(UBLK_U_CMD_START_USER_RECOVERY, true), -EBUSY);
        sent = strlen(commands());
        CHECK(sent >= 2 && sent % 2 == 0 && commands()[sent - 1] == 's');
}

static void an_older_ublkd_gets_what_it_asks_for(void)
{
        reset_driver();
        driver->cookie = stranger;
        CHECK_INT(send_command(UBLK_U_CMD_END_USER_RECOVERY, false), 0);
        CHECK_STR(commands(), "e");
}

int main(void)
{
        bool greeted;

        driver = mmap(NULL, sizeof(*driver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (driver == MAP_FAILED)
                return 1;
        start_helper();
        greeted = is_greeted();
        if (greeted) {
                the_disk_is_compared_before_and_after();
                a_refusal_is_about_the_disk();
                another_disk_gets_no_command();
                no_command_without_an_answer();
                a_disk_that_was_replaced_meanwhile_is_seen();
                each_try_is_compared();
                a_driver_that_stays_busy_is_left();
                an_older_ublkd_gets_what_it_asks_for();
        }
        end_helper();
        return greeted ? check_report() : CHECK_SKIP;
}
