/* The control helper: a process that does nothing but pass control commands to the driver, through one ring,
 * so that a command which never comes back holds up nobody but a process that can be given up.
 *
 * Commands that sleep run on kernel threads of the ring (io-wq), so many are under way at once. All signals
 * are blocked: a command that a signal interrupts leaves its outcome unknown. The helper ends when its
 * channel does. */
#include "ublkd/base/cleanup.h"
#include "ublkd/ublk_ctl.h"
#include "ublkd/ublk_ctl_check.h"
#include "ublkd/ublk_ctl_wire.h"

#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { SUBMISSIONS = 64, COMPLETIONS = 4096, BLOCKED_COMMANDS_MAX = 64 };

struct helper {
        int channel;
        int control;
        struct io_uring ring;
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

static int submit(struct helper *helper, struct ctl_request *request)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&helper->ring);
        struct command command = {
                .dev_id = request->number,
                .queue_id = UINT16_MAX,
                .len = (uint16_t)request->size,
                .addr = request->size ? (uint64_t)(uintptr_t)&request->payload : 0,
                .data = request->data,
                .dev_path_len = request->path_size,
        };
        int r;

        if (!sqe)
                return -EBUSY;
        memset(sqe, 0, 2 * sizeof(*sqe)); /* a large entry is two */
        sqe->opcode = IORING_OP_URING_CMD;
        sqe->fd = helper->control;
        sqe->cmd_op = request->command;
        memcpy(sqe->cmd, &command, sizeof(command));
        io_uring_sqe_set_data(sqe, request);
        r = io_uring_submit(&helper->ring);
        return r < 0 ? r : 0;
}

/* May block: the supervisor reads, or is gone. */
static int answer(struct helper *helper, const struct ctl_request *request, int result)
{
        struct ctl_reply reply = {
                .sequence = request->sequence, .result = result, .payload = request->payload};

        return send(helper->channel, &reply, sizeof(reply), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* 1: there may be more; 0: none for now; -errno: the supervisor is gone. */
static int take_request(struct helper *helper)
{
        _cleanup_free_ struct ctl_request *request = malloc(sizeof(*request));
        ssize_t size;
        int r;

        if (!request)
                return -ENOMEM;
        size = recv(helper->channel, request, sizeof(*request), MSG_DONTWAIT);
        if (size < 0)
                return errno == EAGAIN ? 0 : -errno;
        if (size != sizeof(*request))
                return -EPIPE;
        r = submit(helper, request);
        if (r < 0) {
                r = answer(helper, request, r);
                return r < 0 ? r : 1;
        }
        (void)TAKE_PTR(request); /* the command writes into it; give_answers() frees it */
        return 1;
}

static int give_answers(struct helper *helper)
{
        struct io_uring_cqe *cqe;

        while (io_uring_peek_cqe(&helper->ring, &cqe) == 0) {
                _cleanup_free_ struct ctl_request *request = io_uring_cqe_get_data(cqe);
                int result = cqe->res, r;

                io_uring_cqe_seen(&helper->ring, cqe);
                r = answer(helper, request, result);
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
                if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
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
        struct ctl_request request = {
                .command = UBLK_U_CMD_GET_FEATURES, .number = UINT32_MAX, .size = UBLK_FEATURES_LEN};
        struct io_uring_cqe *cqe;
        int r = submit(helper, &request);

        if (r >= 0)
                r = io_uring_wait_cqe(&helper->ring, &cqe);
        if (r < 0)
                return r;
        r = cqe->res;
        io_uring_cqe_seen(&helper->ring, cqe);
        if (r >= 0)
                *ret = request.payload.features;
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
        struct helper helper = {.channel = fd, .control = -1};
        struct ctl_reply greeting = {};
        sigset_t all;
        int error;

        sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        (void)prctl(PR_SET_NAME, "ublkd-control");
        greeting.step = prepare(&helper, &greeting.payload.features, &error);
        greeting.result = error;
        if (greeting.step == CTL_STEP_RING) /* here, for the supervisor's loop reads no file of /proc */
                greeting.payload.io_uring_disabled = ctl_io_uring_disabled();
        if (send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) < 0 || greeting.step != CTL_STEP_READY)
                return EXIT_FAILURE;
        (void)serve(&helper);
        /* The supervisor has gone. What commands in flight point to is the kernel's: nothing can be tidied
         * up. */
        _exit(EXIT_SUCCESS);
}
