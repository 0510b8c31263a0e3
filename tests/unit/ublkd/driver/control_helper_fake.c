/* SPDX-License-Identifier: MIT */
/* Control helpers for the test of ublk_ctl. */
#include "tests/unit/ublkd/driver/control_helper_fake.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/driver/ublk_ctl.h"
#include "ublkd/driver/ublk_ctl_wire.h"
#include "ublkd/offload/proc_spawn.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

static void reply(const struct ctl_request *request, int result, const union ctl_payload *payload)
{
        struct ctl_reply reply = {.sequence = request->sequence, .result = result, .payload = *payload};

        (void)!send(PROC_SPAWN_FIRST_FD, &reply, sizeof(reply), MSG_NOSIGNAL);
}

static void greet(enum ctl_step step, int result)
{
        struct ctl_reply greeting = {.step = step, .result = result, .payload.features = 0x1fe};

        (void)!send(PROC_SPAWN_FIRST_FD, &greeting, sizeof(greeting), MSG_NOSIGNAL);
}

static bool receive(struct ctl_request *ret)
{
        return recv(PROC_SPAWN_FIRST_FD, ret, sizeof(*ret), 0) == sizeof(*ret);
}

static void fill_info(struct ublksrv_ctrl_dev_info *info, uint32_t number)
{
        *info = (struct ublksrv_ctrl_dev_info){
                .nr_hw_queues = 2,
                .queue_depth = 64,
                .state = number == NUMBER_ODD ? 99 : UBLK_S_DEV_QUIESCED,
                .max_io_buf_bytes = 1 << 20,
                .dev_id = number,
                .ublksrv_pid = -1,
                .flags = number == NUMBER_FOREIGN ? UBLK_F_UNPRIVILEGED_DEV : UBLK_F_USER_RECOVERY,
                .ublksrv_flags = CONTROL_COOKIE,
        };
}

/* The driver looks at the rights of whom it serves. */
static int simulate_add(const struct ctl_request *request, union ctl_payload *payload)
{
        if (payload->info.flags & UBLK_F_UNPRIVILEGED_DEV)
                return request->as_user && request->uid == 1000 && request->gid == 1001 ? 0 : -EPERM;
        if (request->as_user)
                return -EPERM;
        if (request->number != payload->info.dev_id || request->size != sizeof(payload->info))
                return -EINVAL;
        payload->info.flags &= ~(uint64_t)UBLK_F_USER_RECOVERY_FAIL_IO; /* as 6.12 does: silently */
        return request->number == 1 ? -EEXIST : 0;
}

/* All that test_params() asks for. */
static int simulate_set_params(const struct ctl_request *request)
{
        const struct ublk_all_params *params = &request->payload.params;

        if (request->number != NUMBER_PARAMS)
                return -ENODEV;
        return request->size == sizeof(*params) && params->len == sizeof(*params)
                               && params->types == (UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD)
                               && params->basic.attrs
                                          == (UBLK_ATTR_ROTATIONAL | UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA)
                               && params->basic.logical_bs_shift == 9 && params->basic.physical_bs_shift == 12
                               && params->basic.io_min_shift == 12 && params->basic.io_opt_shift == 20
                               && params->basic.max_sectors == 2048
                               && params->basic.dev_sectors == UINT64_C(1) << 40
                               && params->basic.chunk_sectors == 0 && params->basic.virt_boundary_mask == 0
                               && params->discard.discard_granularity == 4096
                               && params->discard.max_discard_sectors == 2 << 20
                               && params->discard.max_write_zeroes_sectors == 1 << 20
                               && params->discard.max_discard_segments == 1
                               && params->discard.discard_alignment == 0
                       ? 0
                       : -EINVAL;
}

static int simulate_info(const struct ctl_request *request, union ctl_payload *payload)
{
        if (request->number == NUMBER_MISSING)
                return -ENODEV;
        if (request->number == NUMBER_FOREIGN)
                return -EINVAL;
        if (request->number == NUMBER_OLD)
                return -524;
        fill_info(&payload->info, request->number);
        return request->size == sizeof(payload->info) ? 0 : -EFAULT;
}

static int simulate_info2(const struct ctl_request *request, union ctl_payload *payload)
{
        if (request->number != NUMBER_FOREIGN || strcmp(payload->info2.path, "/dev/ublkc500") != 0
                || request->path_size != sizeof(payload->info2.path)
                || request->size != sizeof(payload->info2))
                return -EFAULT;
        fill_info(&payload->info2.info, request->number);
        return 0;
}

/* To queue 3 come the requests of CPU 2, 3 and the last. */
static int simulate_affinity(const struct ctl_request *request, union ctl_payload *payload)
{
        if (request->data != 3 || request->size != sizeof(payload->queue_cpus))
                return -EINVAL;
        payload->queue_cpus[0] = 0x0c;
        payload->queue_cpus[KERNEL_CPUS_SIZE - 1] = 0x80;
        return 0;
}

/* Commands to a device in unprivileged mode: the path first, and what is behind it is as for another device. */
static int simulate_by_path(const struct ctl_request *request, union ctl_payload *payload)
{
        const struct ublk_all_params *params = (const void *)(payload->behind_path + CTL_DEV_PATH_SIZE);
        bool named =
                request->path_size == CTL_DEV_PATH_SIZE && strcmp(payload->info2.path, "/dev/ublkc500") == 0;

        switch (named ? request->command : 0) {
        case UBLK_U_CMD_SET_PARAMS:
                return request->size == CTL_DEV_PATH_SIZE + sizeof(*params) && params->len == sizeof(*params)
                               ? 0
                               : -EFAULT;
        case UBLK_U_CMD_GET_QUEUE_AFFINITY:
                payload->behind_path[CTL_DEV_PATH_SIZE] = 0x0c;
                return request->size == CTL_DEV_PATH_SIZE + KERNEL_CPUS_SIZE ? 0 : -EFAULT;
        case UBLK_U_CMD_START_DEV:
                return request->data == 4711 && request->size == CTL_DEV_PATH_SIZE ? 0 : -EFAULT;
        case UBLK_U_CMD_DEL_DEV:
                return request->size == CTL_DEV_PATH_SIZE ? 0 : -EFAULT;
        default: /* DEL_DEV_ASYNC is not in the list of the driver */
                return -EINVAL;
        }
}

/* A guarded command to one of ours. */
static bool is_for_disk(const struct ctl_request *request)
{
        return ctl_request_is_guarded(request) && request->payload.cookie == CONTROL_COOKIE;
}

static bool is_question(uint32_t command)
{
        return command == UBLK_U_CMD_GET_DEV_INFO || command == UBLK_U_CMD_GET_DEV_INFO2;
}

static int simulate(const struct ctl_request *request, union ctl_payload *payload)
{
        if (request->number == NUMBER_FOREIGN && ctl_request_is_guarded(request))
                return -ESTALE;
        if (request->number == NUMBER_FOREIGN && !is_question(request->command))
                return simulate_by_path(request, payload);
        switch (request->command) {
        case UBLK_U_CMD_GET_DEV_INFO:
                return simulate_info(request, payload);
        case UBLK_U_CMD_GET_DEV_INFO2:
                return simulate_info2(request, payload);
        case UBLK_U_CMD_GET_QUEUE_AFFINITY:
                return simulate_affinity(request, payload);
        case UBLK_U_CMD_ADD_DEV:
                return simulate_add(request, payload);
        case UBLK_U_CMD_SET_PARAMS:
                return simulate_set_params(request);
        case UBLK_U_CMD_END_USER_RECOVERY:
                if (!is_for_disk(request))
                        return -ESTALE;
                return request->data == 4711 ? 0 : -EINVAL;
        case UBLK_U_CMD_START_DEV:
                return request->data == 4711 && request->size == 0 ? 0 : -EINVAL;
        case UBLK_U_CMD_START_USER_RECOVERY:
                return is_for_disk(request) ? -EBUSY : -ESTALE;
        case UBLK_U_CMD_STOP_DEV:
                return -EINTR;
        case UBLK_U_CMD_DEL_DEV: /* of a kernel before 6.9, so that DEL_DEV_ASYNC is unknown */
                return 0;
        default:
                return -EOPNOTSUPP;
        }
}

static void play_kernel(void)
{
        struct ctl_request request, held[3];
        unsigned count = 0;
        bool answering = false;

        greet(CTL_STEP_READY, 0);
        while (receive(&request)) {
                union ctl_payload payload = request.payload;

                if (request.number == NUMBER_HANGS)
                        continue;
                if (request.number >= NUMBER_REVERSED && request.number < NUMBER_REVERSED + 3) {
                        held[count++] = request;
                        while (count == 3 || (count > 0 && answering)) {
                                answering = true;
                                fill_info(&payload.info, held[--count].number);
                                reply(&held[count], 0, &payload);
                        }
                        continue;
                }
                reply(&request, simulate(&request, &payload), &payload);
        }
}

static void *be_a_thread(void *tid)
{
        __atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
        while (pause() < 0)
                continue;
        return NULL;
}

/* Holds on to a thread until the process `test` is gone. */
static void trace(pid_t tid, int test, int ready)
{
        struct pollfd test_gone = {.fd = test, .events = POLLIN};
        char traced = ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0;

        close(PROC_SPAWN_FIRST_FD);
        (void)!write(ready, &traced, 1);
        if (traced)
                poll(&test_gone, 1, -1);
        _exit(0);
}

/* One of its threads is traced by a process that does not care for it: when the helper is killed, it does not
 * end, as a process that hangs in the kernel does not. */
static void play_undying(void)
{
        int test = pidfd_open(getppid(), 0), ready[2];
        pthread_t thread;
        pid_t tid = 0;
        char traced = false;

        if (pipe(ready) < 0 || pthread_create(&thread, NULL, be_a_thread, &tid) != 0)
                return;
        while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
                sched_yield();
        if (fork() == 0)
                trace(tid, test, ready[1]);
        (void)!read(ready[0], &traced, 1);
        if (traced)
                play_kernel();
        else
                greet(CTL_STEP_OPEN, -EPERM);
}

static void play_mute(void)
{
        for (;;)
                pause();
}

static void play_dying(void)
{
        struct ctl_request request;

        greet(CTL_STEP_READY, 0);
        (void)receive(&request);
}

static void play_refused(void)
{
        greet(CTL_STEP_OPEN, -EACCES);
}

static void play_old(void)
{
        greet(CTL_STEP_FEATURES, -524);
}

static void play_no_ring(void)
{
        greet(CTL_STEP_RING, -ENOSYS);
}

static void play_silent_exit(void)
{
}

int control_helper_fake(void)
{
        static const struct {
                const char *name;
                void (*play)(void);
        } parts[] = {
                {"kernel",      play_kernel     },
                {"mute",        play_mute       },
                {"undying",     play_undying    },
                {"dying",       play_dying      },
                {"refused",     play_refused    },
                {"old",         play_old        },
                {"no-ring",     play_no_ring    },
                {"silent-exit", play_silent_exit},
        };
        const char *name = getenv("CTL_TEST_HELPER");

        for (size_t i = 0; name && i < ARRAY_SIZE(parts); i++)
                if (strcmp(name, parts[i].name) == 0) {
                        parts[i].play();
                        return 0;
                }
        return ublk_ctl_helper_main(PROC_SPAWN_FIRST_FD);
}
