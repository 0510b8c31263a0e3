/* SPDX-License-Identifier: MIT */
/* The control helper: a process that does nothing but pass control commands to the driver, through one ring,
 * so that a command which never comes back holds up only a process that can be given up.
 *
 * Commands that sleep run on kernel threads of the ring (io-wq), so many are under way at once. All signals
 * are blocked: a command that a signal interrupts leaves its outcome unknown. The helper ends when its
 * channel does.
 *
 * A command that is to be sent only while the disk has no opener is an errand of several operations of the
 * ring: open the disk exclusively, send the command, close the disk, answer. From the open until the close
 * the kernel refuses mounts and other exclusive opens. An open that does not come back in time is answered
 * (-ETIME: not known) and left alone. Until it has come back the helper opens that disk no more, so one disk
 * costs one thread of the ring however often it is tried.
 *
 * START_USER_RECOVERY that the driver refuses as busy is sent again for some milliseconds, a fraction of one apart: a
 * recovery waits for the driver's release of a dead worker, and each try of the supervisor is a turn.
 *
 * A guarded command is an errand, too: ask which disk has the number, and send the command if it is the one that the
 * command is for. What the supervisor has seen may be older: another program can have removed the disk, and made another
 * one with its number. A newer driver answers the question at once, without a thread. START_USER_RECOVERY is followed by
 * another question, because a worker goes to the disk after it. */
#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/driver/ublk_ctl_check.h"
#include "ublkd/driver/ublk_ctl_hold.h"
#include "ublkd/driver/ublk_ctl_user.h"
#include "ublkd/driver/ublk_ctl_wire.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

/* How long START_USER_RECOVERY is sent again while the driver refuses it as busy, and the time between two tries. In most
 * recoveries the driver has released the dead worker by then. */
enum { BUSY_USEC = 4 * 1000, BUSY_APART_USEC = 500 };
enum { SUBMISSIONS = 64, COMPLETIONS = 4096, BLOCKED_COMMANDS_MAX = 64 };

/* What the ring is doing for a request. */
enum errand_stage {
        ERRAND_COMMAND,    /* nothing else is to be done */
        ERRAND_OPENING,    /* the disk */
        ERRAND_HOLDING,    /* the disk, while the command is under way */
        ERRAND_CLOSING,    /* the disk */
        ERRAND_WAITING,    /* nothing: the command was refused as busy, and is sent again */
        ERRAND_LOOKING,    /* asking which disk has the number, before the command */
        ERRAND_CONFIRMING, /* the same, after the command */
};

struct errand {
        struct ctl_request request;
        enum errand_stage stage;
        bool answered;       /* no caller waits for it any more */
        int fd;              /* of the disk */
        int result;          /* of the command, or why it was not sent; -errno */
        int64_t deadline;    /* CLOCK_MONOTONIC, ms, of ERRAND_OPENING */
        uint64_t again_at;   /* CLOCK_MONOTONIC, microseconds, of ERRAND_WAITING */
        uint64_t busy_until; /* the same, of a command that may be sent again; 0: before its first answer */
        char path[CTL_HOLD_PATH_SIZE];     /* the kernel may read it late */
        struct ublksrv_ctrl_dev_info seen; /* of ERRAND_LOOKING and ERRAND_CONFIRMING */
        LIST_ENTRY(errand) link; /* in `opening`, with ERRAND_OPENING; in `waiting`, with ERRAND_WAITING */
};

struct helper {
        int channel;
        int control;
        struct io_uring ring;
        LIST_HEAD(errand_list, errand) opening;
        struct errand_list waiting;
};

/* As the driver reads it: an older <linux/ublk_cmd.h> has no name for the length of the path. */
struct command {
        uint32_t dev_id;
        uint16_t queue_id;
        uint16_t len;
        uint64_t addr;
        uint64_t data;
        uint16_t dev_path_len;
        uint16_t pad;
        uint32_t reserved;
};
_Static_assert(sizeof(struct command) == sizeof(struct ublksrv_ctrl_cmd), "one command, two declarations");

/* NULL: the ring is full. */
static struct io_uring_sqe *get_entry(struct helper *helper)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&helper->ring);

        if (sqe)
                memset(sqe, 0, 2 * sizeof(*sqe)); /* a large entry is two */
        return sqe;
}

/* An entry that was taken goes out with the next one. It has no errand. */
static void withdraw(struct io_uring_sqe *sqe)
{
        memset(sqe, 0, 2 * sizeof(*sqe));
        io_uring_prep_nop(sqe);
}

static int submit(
        struct helper *helper, struct errand *errand, uint32_t operation, const struct command *command)
{
        struct io_uring_sqe *sqe = get_entry(helper);
        const struct ctl_request *request = &errand->request;
        int user = 0, r;

        if (!sqe)
                return -EBUSY;
        if (request->as_user)
                user = ctl_user_lend(&helper->ring, request->uid, request->gid);
        if (user < 0) {
                withdraw(sqe);
                return user;
        }
        sqe->personality = (uint16_t)user;
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = helper->control;
        sqe->cmd_op = operation;
        memcpy(sqe->cmd, command, sizeof(*command));
        io_uring_sqe_set_data(sqe, errand);
        r = io_uring_submit(&helper->ring);
        if (user > 0) /* the command keeps the rights for itself */
                (void)io_uring_unregister_personality(&helper->ring, user);
        if (r < 0)
                withdraw(sqe);
        return r < 0 ? r : 0;
}

static int submit_command(struct helper *helper, struct errand *errand)
{
        const struct ctl_request *request = &errand->request;
        uint32_t size =
                ctl_request_is_guarded(request) ? 0 : request->size; /* the cookie is for the helper */
        const struct command command = {
                .dev_id = request->number,
                .queue_id = UINT16_MAX,
                .len = (uint16_t)size,
                .addr = size ? (uint64_t)(uintptr_t)&request->payload : 0,
                .data = request->data,
                .dev_path_len = request->path_size,
        };

        return submit(helper, errand, request->command, &command);
}

static int submit_look(struct helper *helper, struct errand *errand)
{
        const struct command command = {
                .dev_id = errand->request.number,
                .queue_id = UINT16_MAX,
                .len = sizeof(errand->seen),
                .addr = (uint64_t)(uintptr_t)&errand->seen,
        };

        errand->seen = (struct ublksrv_ctrl_dev_info){};
        return submit(helper, errand, UBLK_U_CMD_GET_DEV_INFO, &command);
}

/* May block: the supervisor reads, or is gone. */
static int answer(struct helper *helper, const struct ctl_request *request, int result)
{
        struct ctl_reply reply = {
                .sequence = request->sequence, .result = result, .payload = request->payload};

        return send(helper->channel, &reply, sizeof(reply), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* ---- errands ---- */

/* Takes the errand over: it is done. */
static int finish(struct helper *helper, struct errand *errand, int result)
{
        _cleanup_free_ struct errand *owned = errand;

        return owned->answered ? 0 : answer(helper, &owned->request, result);
}

/* Then it answers with errand->result. Closing the last descriptor of a disk may take long. */
static int begin_closing(struct helper *helper, struct errand *errand)
{
        struct io_uring_sqe *sqe = get_entry(helper);

        errand->stage = ERRAND_CLOSING;
        if (!sqe) {
                errand->fd = close_fd(errand->fd);
                return finish(helper, errand, errand->result);
        }
        io_uring_prep_close(sqe, errand->fd);
        sqe->flags |= IOSQE_ASYNC;
        io_uring_sqe_set_data(sqe, errand);
        (void)io_uring_submit(&helper->ring); /* else with the next one */
        return 0;
}

/* Read-only, so that no udev event follows its close; O_NONBLOCK as programs that only look at a disk. */
static int begin_opening(struct helper *helper, struct errand *errand)
{
        struct io_uring_sqe *sqe = get_entry(helper);

        if (!sqe)
                return finish(helper, errand, -ETIME);
        ctl_hold_path(errand->request.number, errand->path);
        errand->stage = ERRAND_OPENING;
        errand->deadline = clock_msec(CLOCK_MONOTONIC) + CTL_HOLD_MSEC;
        io_uring_prep_openat(sqe, AT_FDCWD, errand->path, O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0);
        sqe->flags |= IOSQE_ASYNC; /* it may block */
        io_uring_sqe_set_data(sqe, errand);
        LIST_INSERT_HEAD(&helper->opening, errand, link);
        (void)io_uring_submit(&helper->ring);
        return 0;
}

static int begin_command(struct helper *helper, struct errand *errand, enum errand_stage stage)
{
        int r;

        errand->stage = stage;
        r = submit_command(helper, errand);
        if (r >= 0)
                return 0;
        errand->result = r;
        return stage == ERRAND_HOLDING ? begin_closing(helper, errand) : finish(helper, errand, r);
}

/* ---- which disk ---- */

/* result: of the question. Return 0: the disk is the one that the command is for; -ENODEV: there is none; -ESTALE: it is
 * another one, or the driver does not say. A disk in unprivileged mode is asked for by its path only; it has no recovery. */
static int recognise(const struct errand *errand, int result)
{
        if (result == -ENODEV)
                return -ENODEV;
        return result >= 0 && errand->seen.dev_id == errand->request.number
                               && errand->seen.ublksrv_flags == errand->request.payload.cookie
                       ? 0
                       : -ESTALE;
}

static int begin_looking(struct helper *helper, struct errand *errand, enum errand_stage stage)
{
        int r;

        errand->stage = stage;
        r = submit_look(helper, errand);
        return r < 0 ? finish(helper, errand, recognise(errand, r)) : 0;
}

static int looked(struct helper *helper, struct errand *errand, int result)
{
        int r = recognise(errand, result);

        return r < 0 ? finish(helper, errand, r) : begin_command(helper, errand, ERRAND_COMMAND);
}

static int confirmed(struct helper *helper, struct errand *errand, int result)
{
        int r = recognise(errand, result);

        return finish(helper, errand, r < 0 ? r : errand->result);
}

/* A command that needs no opened disk. */
static int begin_plain(struct helper *helper, struct errand *errand)
{
        return ctl_request_is_guarded(&errand->request) ? begin_looking(helper, errand, ERRAND_LOOKING)
                                                        : begin_command(helper, errand, ERRAND_COMMAND);
}

/* ---- a disk that is held ---- */

static bool is_being_opened(const struct helper *helper, uint32_t number)
{
        const struct errand *errand;

        LIST_FOREACH (errand, &helper->opening, link)
                if (errand->request.number == number)
                        return true;
        return false;
}

/* What the open has come to: the disk is held, another program holds it (-EBUSY), or that is not known
 * (-ETIME). */
static int opened(struct helper *helper, struct errand *errand, int result)
{
        LIST_REMOVE(errand, link);
        if (result < 0)
                return finish(helper, errand, result == -EBUSY ? -EBUSY : -ETIME);
        errand->fd = result;
        errand->result = -ETIME;
        if (errand->answered || !ctl_hold_is_disk(errand->request.number, errand->fd))
                return begin_closing(helper, errand);
        return begin_command(helper, errand, ERRAND_HOLDING);
}

/* ---- a driver that is busy ---- */

static bool may_wait(struct errand *errand, int result)
{
        uint64_t now;

        if (result != -EBUSY || errand->request.command != UBLK_U_CMD_START_USER_RECOVERY)
                return false;
        now = clock_usec(CLOCK_MONOTONIC);
        if (errand->busy_until == 0)
                errand->busy_until = now + BUSY_USEC;
        errand->again_at = now + BUSY_APART_USEC;
        return errand->again_at <= errand->busy_until;
}

static int command_done(struct helper *helper, struct errand *errand, int result)
{
        const struct ctl_request *request = &errand->request;

        if (may_wait(errand, result)) {
                errand->stage = ERRAND_WAITING;
                LIST_INSERT_HEAD(&helper->waiting, errand, link);
                return 0;
        }
        if (!ctl_request_is_guarded(request) || request->command != UBLK_U_CMD_START_USER_RECOVERY
                || result == -EBUSY)
                return finish(helper, errand, result);
        errand->result = result;
        return begin_looking(helper, errand, ERRAND_CONFIRMING);
}

/* Send again what is due. Return the microseconds until the next, -1: there is none; or -errno of the channel in
 * *ret_error. */
static int64_t send_again(struct helper *helper, int *ret_error)
{
        uint64_t now = LIST_EMPTY(&helper->waiting) ? 0 : clock_usec(CLOCK_MONOTONIC);
        struct errand *errand, *after;
        int64_t next = -1;

        *ret_error = 0;
        for (errand = LIST_FIRST(&helper->waiting); errand; errand = after) {
                after = LIST_NEXT(errand, link);
                if (errand->again_at > now) {
                        int64_t left = (int64_t)(errand->again_at - now);

                        next = next < 0 || left < next ? left : next;
                        continue;
                }
                LIST_REMOVE(errand, link);
                *ret_error = begin_plain(helper, errand);
                if (*ret_error < 0)
                        return -1;
        }
        return next;
}

/* ---- what the ring has done ---- */

/* An operation of the ring is over. */
static int go_on(struct helper *helper, struct errand *errand, int result)
{
        switch (errand->stage) {
        case ERRAND_OPENING:
                return opened(helper, errand, result);
        case ERRAND_HOLDING:
                errand->result = result;
                return begin_closing(helper, errand);
        case ERRAND_CLOSING:
                return finish(helper, errand, errand->result);
        case ERRAND_LOOKING:
                return looked(helper, errand, result);
        case ERRAND_CONFIRMING:
                return confirmed(helper, errand, result);
        default:
                return command_done(helper, errand, result);
        }
}

static int begin(struct helper *helper, struct errand *errand)
{
        if (!errand->request.hold || !ctl_hold_has_disk(errand->request.number))
                return begin_plain(helper, errand);
        if (is_being_opened(helper, errand->request.number))
                return finish(helper, errand, -ETIME);
        return begin_opening(helper, errand);
}

/* Answers what has taken too long. Returns the milliseconds until the next, -1: there is none; or -errno of
 * the channel in *ret_error. */
static int answer_late(struct helper *helper, int *ret_error)
{
        int64_t now = clock_msec(CLOCK_MONOTONIC), next = -1;
        struct errand *errand;

        *ret_error = 0;
        LIST_FOREACH (errand, &helper->opening, link) {
                if (errand->answered)
                        continue;
                if (errand->deadline <= now) {
                        errand->answered = true;
                        *ret_error = answer(helper, &errand->request, -ETIME);
                        if (*ret_error < 0)
                                return -1;
                } else if (next < 0 || errand->deadline - now < next) {
                        next = errand->deadline - now;
                }
        }
        return (int)next;
}

/* ---- the channel and the ring ---- */

/* 1: there may be more; 0: none for now; -errno: the supervisor is gone. */
static int take_request(struct helper *helper)
{
        _cleanup_free_ struct errand *errand = calloc(1, sizeof(*errand));
        ssize_t size;
        int r;

        if (!errand)
                return -ENOMEM;
        size = recv(helper->channel, &errand->request, sizeof(errand->request), MSG_DONTWAIT);
        if (size < 0)
                return errno == EAGAIN ? 0 : -errno;
        if (size != sizeof(errand->request))
                return -EPIPE;
        r = begin(helper, TAKE_PTR(errand)); /* the kernel writes into it until it is finished */
        return r < 0 ? r : 1;
}

static int give_answers(struct helper *helper)
{
        struct io_uring_cqe *cqe;

        while (io_uring_peek_cqe(&helper->ring, &cqe) == 0) {
                struct errand *errand = io_uring_cqe_get_data(cqe);
                int result = cqe->res, r;

                io_uring_cqe_seen(&helper->ring, cqe);
                r = errand ? go_on(helper, errand, result) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int serve(struct helper *helper)
{
        struct pollfd fds[] = {
                {.fd = helper->channel,      .events = POLLIN},
                {.fd = helper->ring.ring_fd, .events = POLLIN},
        };
        int r;

        for (;;) {
                int64_t late = answer_late(helper, &r), again = r < 0 ? -1 : send_again(helper, &r);
                int64_t patience = late < 0 || (again >= 0 && again < late * 1000) ? again : late * 1000;
                const struct timespec time = {
                        .tv_sec = patience / 1000000, .tv_nsec = patience % 1000000 * 1000};

                if (r < 0)
                        return r;
                if (ppoll(fds, ARRAY_SIZE(fds), patience < 0 ? NULL : &time, NULL) < 0)
                        return -errno;
                do
                        r = fds[0].revents ? take_request(helper) : 0;
                while (r > 0);
                if (r >= 0)
                        r = give_answers(helper);
                if (r < 0)
                        return r;
        }
}

static int make_ring(struct io_uring *ring)
{
        struct io_uring_params params = {
                .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQSIZE, .cq_entries = COMPLETIONS};
        unsigned limits[2] = {BLOCKED_COMMANDS_MAX, BLOCKED_COMMANDS_MAX};
        int r = io_uring_queue_init_params(SUBMISSIONS, ring, &params);

        if (r < 0)
                return r;
        (void)io_uring_register_iowq_max_workers(ring, limits); /* the default is four for every CPU */
        return 0;
}

static int get_features(struct helper *helper, uint64_t *ret)
{
        struct errand errand = {
                .request = {
                            .command = UBLK_U_CMD_GET_FEATURES, .number = UINT32_MAX, .size = UBLK_FEATURES_LEN}
        };
        struct io_uring_cqe *cqe;
        int r = submit_command(helper, &errand);

        if (r >= 0)
                r = io_uring_wait_cqe(&helper->ring, &cqe);
        if (r < 0)
                return r;
        r = cqe->res;
        io_uring_cqe_seen(&helper->ring, cqe);
        if (r >= 0)
                *ret = errand.request.payload.features;
        return r;
}

/* Returns the step that failed, or CTL_STEP_READY; *ret_error is 0 or -errno. */
static enum ctl_step prepare(struct helper *helper, uint64_t *ret_features, int *ret_error)
{
        *ret_error = 0;
        helper->control = open("/dev/ublk-control", O_RDWR | O_CLOEXEC);
        if (helper->control < 0) {
                *ret_error = -errno;
                return CTL_STEP_OPEN;
        }
        *ret_error = make_ring(&helper->ring);
        if (*ret_error < 0)
                return CTL_STEP_RING;
        *ret_error = get_features(helper, ret_features);
        return *ret_error < 0 ? CTL_STEP_FEATURES : CTL_STEP_READY;
}

int ublk_ctl_helper_main(int fd)
{
        struct helper helper = {
                .channel = fd,
                .control = -1,
                .opening = LIST_HEAD_INITIALIZER(helper.opening),
                .waiting = LIST_HEAD_INITIALIZER(helper.waiting),
        };
        struct ctl_reply greeting = {};
        sigset_t all;
        int error;

        sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "ublkd-control");
        greeting.step = prepare(&helper, &greeting.payload.features, &error);
        greeting.result = error;
        if (greeting.step == CTL_STEP_READY)
                greeting.payload.greeting.guards = CTL_GUARDS;
        if (greeting.step == CTL_STEP_RING) /* here, for the supervisor's loop reads no file of /proc */
                greeting.payload.io_uring_disabled = ctl_io_uring_disabled();
        if (send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) < 0 || greeting.step != CTL_STEP_READY)
                return EXIT_FAILURE;
        (void)serve(&helper);
        /* The supervisor has gone. What commands in flight point to is the kernel's: nothing can be tidied
         * up. */
        _exit(EXIT_SUCCESS);
}
