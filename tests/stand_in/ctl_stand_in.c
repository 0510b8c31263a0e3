/* SPDX-License-Identifier: MIT */
/* ublkd/driver/ublk_ctl_calls.h without a helper: its real module is not linked. */
#include "tests/stand_in/ctl_stand_in.h"

#include "ublkd/base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { SECTOR_SHIFT = 9 };

struct ctl_calls {
        const struct ctl_calls_handlers *handlers;
        void *owner;
};

static struct ctl_calls *current;

/* ---- the control plane ---- */

int ctl_calls_new(sd_event *event _unused_, const char *helper_path _unused_,
        const struct ctl_calls_handlers *handlers, void *owner, struct ctl_calls **ret)
{
        *ret = calloc(1, sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        **ret = (struct ctl_calls){handlers, owner};
        current = *ret;
        return 0;
}

struct ctl_calls *ctl_calls_free(struct ctl_calls *calls)
{
        if (calls == current)
                current = NULL;
        free(calls);
        return NULL;
}

int ctl_calls_start(struct ctl_calls *calls _unused_)
{
        return 0;
}

void ctl_calls_stop(struct ctl_calls *calls _unused_)
{
}

bool ctl_stand_in_guards = true;

bool ctl_calls_guard(const struct ctl_calls *calls _unused_)
{
        return ctl_stand_in_guards;
}

bool ctl_calls_are_idle(const struct ctl_calls *calls _unused_)
{
        return true;
}

/* Whatever the machine of the test has. */
int __wrap_uname(struct utsname *ret);
int __wrap_uname(struct utsname *ret)
{
        *ret = (struct utsname){.release = "7.2.0"};
        return 0;
}

void ctl_stand_in_greets(uint64_t features)
{
        current->handlers->greeted(current->owner,
                &(const struct ctl_reply){.step = CTL_STEP_READY, .payload.features = features});
}

/* ---- calls ---- */

static enum command_type type_of(const struct ctl_request *request)
{
        static const struct {
                uint32_t command;
                enum command_type type;
        } types[] = {
                {UBLK_U_CMD_GET_DEV_INFO,        COMMAND_GET_INFO      },
                {UBLK_U_CMD_GET_QUEUE_AFFINITY,  COMMAND_GET_AFFINITY  },
                {UBLK_U_CMD_ADD_DEV,             COMMAND_ADD           },
                {UBLK_U_CMD_SET_PARAMS,          COMMAND_SET_PARAMS    },
                {UBLK_U_CMD_START_DEV,           COMMAND_START         },
                {UBLK_U_CMD_START_USER_RECOVERY, COMMAND_BEGIN_RECOVERY},
                {UBLK_U_CMD_END_USER_RECOVERY,   COMMAND_END_RECOVERY  },
                {UBLK_U_CMD_STOP_DEV,            COMMAND_STOP          },
                {UBLK_U_CMD_TRY_STOP_DEV,        COMMAND_TRY_STOP      },
                {UBLK_U_CMD_QUIESCE_DEV,         COMMAND_QUIESCE       },
                {UBLK_U_CMD_UPDATE_SIZE,         COMMAND_UPDATE_SIZE   },
                {UBLK_U_CMD_DEL_DEV_ASYNC,       COMMAND_DEL           },
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (types[i].command == request->command)
                        return request->hold ? COMMAND_STOP_UNHELD : types[i].type;
        abort();
}

static struct ctl_wish wish_of(const struct ctl_request *request)
{
        const struct ublksrv_ctrl_dev_info *info = &request->payload.info;
        struct ctl_wish wish = {.type = type_of(request),
                .number = (int)request->number,
                .guarded = ctl_request_is_guarded(request)};

        if (wish.guarded)
                wish.cookie = request->payload.cookie;
        switch (wish.type) {
        case COMMAND_ADD:
                wish.request = (struct kernel_device_request){
                        .number = wish.number,
                        .cookie = info->ublksrv_flags,
                        .flags = info->flags,
                        .queues = info->nr_hw_queues,
                        .queue_depth = info->queue_depth,
                        .max_io_size = info->max_io_buf_bytes,
                };
                break;
        case COMMAND_SET_PARAMS:
                wish.size = request->payload.params.basic.dev_sectors << SECTOR_SHIFT;
                break;
        case COMMAND_UPDATE_SIZE:
                wish.size = request->data << SECTOR_SHIFT;
                break;
        default:
                wish.worker = (pid_t)request->data;
        }
        return wish;
}

int ctl_calls_submit(struct ctl_calls *calls, struct ctl_call *call, uint64_t deadline_usec _unused_)
{
        struct ctl_wish wish = wish_of(&call->request);

        call->calls = calls;
        return on_ctl_submitted(&wish, call);
}

void ctl_call_cancel(struct ctl_call *call)
{
        on_ctl_cancelled(call);
        free(call);
}

static void write_info(const struct kernel_device *device, struct ublksrv_ctrl_dev_info *ret)
{
        static const uint16_t states[_KERNEL_STATE_MAX] = {
                [KERNEL_STATE_DEAD] = UBLK_S_DEV_DEAD,
                [KERNEL_STATE_LIVE] = UBLK_S_DEV_LIVE,
                [KERNEL_STATE_QUIESCED] = UBLK_S_DEV_QUIESCED,
                [KERNEL_STATE_FAIL_IO] = UBLK_S_DEV_FAIL_IO,
        };

        *ret = (struct ublksrv_ctrl_dev_info){
                .dev_id = (uint32_t)device->number,
                .state = states[device->state],
                .ublksrv_flags = device->cookie,
                .flags = device->flags,
                .ublksrv_pid = device->server_pid,
                .nr_hw_queues = device->queues,
                .queue_depth = device->queue_depth,
                .max_io_buf_bytes = device->max_io_size,
        };
}

void ctl_stand_in_answers(struct ctl_call *call, int result, const struct kernel_device *device)
{
        struct ctl_calls *calls = call->calls;

        if (calls->handlers->reconsider(calls->owner, call, result))
                abort(); /* type_of() knows no other command for it */
        if (type_of(&call->request) == COMMAND_GET_AFFINITY && device)
                memcpy(call->answer.queue_cpus, device->queue_cpus, sizeof(device->queue_cpus));
        else if (device)
                write_info(device, &call->answer.info);
        call->result = result;
        calls->handlers->deliver(calls->owner, call);
}

void ctl_stand_in_releases(int number)
{
        if (current)
                current->handlers->released(current->owner, (uint32_t)number);
}
