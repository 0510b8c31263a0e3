/* SPDX-License-Identifier: MIT */
/* The control plane: what each command carries, and what its answer means. How it gets to the driver and back
 * is the business of ublk_ctl_calls and, in another process, of ublk_ctl_helper. */
#include "ublkd/driver/ublk_ctl.h"

#include "ublkd/kernel/ublk_uapi.h"
#include "ublkd/driver/ublk_ctl_calls.h"
#include "ublkd/driver/ublk_ctl_check.h"
#include "ublkd/driver/unprivileged_disks.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum { NUMBERS = 1 << 20 };  /* minors of a character device (MINORBITS) */
enum { QUIESCE_MSEC = 200 }; /* longer than a request takes to come back to the block layer */

enum { GREETING_USEC = 10 * 1000 * 1000, SECTOR_SHIFT = 9, BLOCK_SHIFT_MAX = 12, KERNEL_ENOTSUPP = 524 };

enum ctl_kind {
        CTL_GET_INFO,
        CTL_GET_AFFINITY,
        CTL_ADD,
        CTL_SET_PARAMS,
        CTL_START,
        CTL_STOP,
        CTL_TRY_STOP,
        CTL_STOP_UNHELD,
        CTL_QUIESCE,
        CTL_UPDATE_SIZE,
        CTL_DEL,
        CTL_BEGIN_RECOVERY,
        CTL_END_RECOVERY,
        _CTL_KIND_MAX
};

#define SECONDS(n) ((n) * UINT64_C(1000000))

/* clang-format off */
/* START and END wait for the worker, too: it has fetched by the time they are sent, so that does not take
 * long. */
static const struct {
        uint32_t command;
        uint64_t deadline_usec;
        bool brings_device; /* its answer is a struct ublksrv_ctrl_dev_info, or a mask */
        bool only_asks;    /* it changes nothing, and waits for no other command */
        bool by_number;    /* also for a disk in unprivileged mode, which has no recovery: the helper sees another disk */
} kinds[] = {
        [CTL_GET_INFO]       = {UBLK_U_CMD_GET_DEV_INFO,        SECONDS(10), true,  true,  true},
        [CTL_GET_AFFINITY]   = {UBLK_U_CMD_GET_QUEUE_AFFINITY,  SECONDS(10), true,  true,  false},
        [CTL_ADD]            = {UBLK_U_CMD_ADD_DEV,             SECONDS(10), true,  false, true},
        [CTL_SET_PARAMS]     = {UBLK_U_CMD_SET_PARAMS,          SECONDS(10), false, false, false},
        [CTL_START]          = {UBLK_U_CMD_START_DEV,           SECONDS(30), false, false, false},
        [CTL_STOP]           = {UBLK_U_CMD_STOP_DEV,            SECONDS(10), false, false, false},
        [CTL_TRY_STOP]       = {UBLK_U_CMD_TRY_STOP_DEV,        SECONDS(10), false, false, false},
        [CTL_STOP_UNHELD]    = {UBLK_U_CMD_STOP_DEV,            SECONDS(15), false, false, false},
        [CTL_QUIESCE]        = {UBLK_U_CMD_QUIESCE_DEV,         SECONDS(10), false, false, false},
        [CTL_UPDATE_SIZE]    = {UBLK_U_CMD_UPDATE_SIZE,         SECONDS(10), false, false, false},
        [CTL_DEL]            = {UBLK_U_CMD_DEL_DEV_ASYNC,       SECONDS(10), false, false, false},
        [CTL_BEGIN_RECOVERY] = {UBLK_U_CMD_START_USER_RECOVERY, SECONDS(10), false, false, true},
        [CTL_END_RECOVERY]   = {UBLK_U_CMD_END_USER_RECOVERY,   SECONDS(30), false, false, true},
};
/* clang-format on */
_Static_assert(ARRAY_SIZE(kinds) == _CTL_KIND_MAX, "every kind has a row");

enum ctl_opening {
        OPENING_WAITS, /* for the first helper's greeting */
        OPENING_GREETED,
        OPENING_FAILED, /* the first helper could not be started, or was lost */
        OPENING_REPORTED,
};

struct ublk_ctl {
        const char *helper_path; /* for sentences */
        struct ctl_calls *calls;
        uint64_t deadline_usec; /* 0: as in `kinds` */
        bool no_async_delete;   /* the kernel has refused DEL_DEV_ASYNC as unknown */
        struct unprivileged_disks *unprivileged;
        ublk_ctl_released released;
        void *released_userdata;
        enum ctl_opening opening;
        ublk_ctl_opened opened;
        void *opened_userdata;
        sd_event_source *verdict;  /* until it is delivered: the deadline, or as soon as it is known */
        struct ctl_reply greeting; /* meaningful with OPENING_GREETED */
        int start_error;           /* the same with OPENING_FAILED: -errno */
};

struct ublk_ctl_call {
        struct ctl_call call; /* first */
        enum ctl_kind kind;
        ublk_ctl_done done;
        void *userdata;
};

DEFINE_CLEANUP(struct ublk_ctl, ublk_ctl_free);

/* ---- structs of the UAPI ---- */

static int read_info(const unsigned char *answer, struct kernel_device *ret)
{
        static const struct {
                uint16_t state;
                enum kernel_state ours;
        } states[] = {
                {UBLK_S_DEV_DEAD,     KERNEL_STATE_DEAD    },
                {UBLK_S_DEV_LIVE,     KERNEL_STATE_LIVE    },
                {UBLK_S_DEV_QUIESCED, KERNEL_STATE_QUIESCED},
                {UBLK_S_DEV_FAIL_IO,  KERNEL_STATE_FAIL_IO },
        };
        struct ublksrv_ctrl_dev_info copy, *info = &copy;

        memcpy(info, answer, sizeof(*info));
        if (info->dev_id >= NUMBERS)
                return -EPROTO;
        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                if (states[i].state != info->state)
                        continue;
                *ret = (struct kernel_device){
                        .number = (int)info->dev_id,
                        .state = states[i].ours,
                        .cookie = info->ublksrv_flags,
                        .flags = info->flags,
                        .server_pid = info->ublksrv_pid,
                        .queues = info->nr_hw_queues,
                        .queue_depth = info->queue_depth,
                        .max_io_size = info->max_io_buf_bytes,
                };
                return 0;
        }
        return -EPROTO;
}

static int read_cpus(const unsigned char *cpus, struct kernel_device *ret)
{
        *ret = (struct kernel_device){};
        memcpy(ret->queue_cpus, cpus, sizeof(ret->queue_cpus));
        return 0;
}

static bool is_power_of_two(uint32_t value)
{
        return value && !(value & (value - 1));
}

/* The driver takes sizes as shifts: one that is not a power of two, which only hints can be, is rounded down,
 * and none at all is 0, which the block layer takes for "none". */
static uint8_t shift_of(uint32_t bytes)
{
        return bytes ? (uint8_t)(31 - __builtin_clz(bytes)) : 0;
}

static uint32_t attributes_of(const struct disk_params *params)
{
        const struct {
                bool set;
                uint32_t attribute;
        } attributes[] = {
                {params->read_only,                     UBLK_ATTR_READ_ONLY     },
                {params->rotational,                    UBLK_ATTR_ROTATIONAL    },
                {params->volatile_cache,                UBLK_ATTR_VOLATILE_CACHE},
                /* without a cache every write is as good as FUA, and the driver must not get it */
                {params->volatile_cache && params->fua, UBLK_ATTR_FUA           },
        };
        uint32_t result = 0;

        for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
                if (attributes[i].set)
                        result |= attributes[i].attribute;
        return result;
}

/* What the pages of a request may be, so that the backing store takes them as they are. */
static void write_page_limits(const struct disk_params *params, struct ublk_all_params *ret)
{
        if (is_power_of_two(params->dma_alignment) && params->dma_alignment <= 1U << BLOCK_SHIFT_MAX) {
                ret->types |= UBLK_PARAM_TYPE_DMA_ALIGN;
                ret->dma.alignment = params->dma_alignment - 1;
        }
        if (params->max_segments == 0 || params->max_segment_size < UBLK_SEGMENT_SIZE_MIN)
                return;
        ret->types |= UBLK_PARAM_TYPE_SEGMENT;
        ret->segment.seg_boundary_mask = INT64_MAX; /* no boundary; one more would be 0 to the driver */
        ret->segment.max_segment_size = params->max_segment_size;
        ret->segment.max_segments = params->max_segments;
}

static int write_params(const struct disk_params *params, struct ublk_all_params *ret)
{
        uint32_t logical = params->logical_block_size;
        uint32_t physical = params->physical_block_size > logical ? params->physical_block_size : logical;

        if (!is_power_of_two(logical) || !is_power_of_two(physical) || shift_of(logical) < SECTOR_SHIFT
                || shift_of(logical) > BLOCK_SHIFT_MAX || params->size < logical
                || params->size % logical != 0 || params->max_io_size < physical)
                return -EINVAL;
        *ret = (struct ublk_all_params){
                .len = sizeof(*ret),
                .types = UBLK_PARAM_TYPE_BASIC,
                .basic =
                        {
                                .attrs = attributes_of(params),
                                .logical_bs_shift = shift_of(logical),
                                .physical_bs_shift = shift_of(physical),
                                .io_min_shift = shift_of(params->io_min > logical ? params->io_min : logical),
                                .io_opt_shift = shift_of(params->io_opt),
                                .max_sectors = params->max_io_size >> SECTOR_SHIFT,
                                .dev_sectors = params->size >> SECTOR_SHIFT,
                                },
        };
        write_page_limits(params, ret);
        if (!params->max_discard_size && !params->max_write_zeroes_size)
                return 0;
        ret->types |= UBLK_PARAM_TYPE_DISCARD;
        ret->discard = (struct ublk_param_discard){
                .discard_granularity =
                        params->discard_granularity > logical ? params->discard_granularity : logical,
                .max_discard_sectors = params->max_discard_size >> SECTOR_SHIFT,
                .max_write_zeroes_sectors = params->max_write_zeroes_size >> SECTOR_SHIFT,
                .max_discard_segments = 1,
        };
        return 0;
}

/* ---- answers ---- */

static bool is_unknown_command(int result)
{
        return result == -EOPNOTSUPP || result == -EINVAL || result == -KERNEL_ENOTSUPP;
}

/* A device in unprivileged mode takes only commands that name its node, before their payload
 * (ublk_ctrl_uring_cmd_permission() in ublk_drv.c). Of another device the driver would take the path for the payload. */
static void name_node(struct ctl_request *request)
{
        unsigned char *bytes = (unsigned char *)&request->payload;

        memmove(bytes + CTL_DEV_PATH_SIZE, bytes, request->size);
        memset(bytes, 0, CTL_DEV_PATH_SIZE);
        snprintf((char *)bytes, CTL_DEV_PATH_SIZE, "/dev/ublkc%u", request->number);
        request->path_size = CTL_DEV_PATH_SIZE;
        request->size += CTL_DEV_PATH_SIZE;
}

static void ask_by_path(struct ctl_request *request)
{
        request->command = UBLK_U_CMD_GET_DEV_INFO2;
        request->payload = (union ctl_payload){};
        name_node(request);
}

static bool reconsider(void *owner, struct ctl_call *call, int result)
{
        struct ublk_ctl *ctl = owner;

        switch (call->request.command) {
        case UBLK_U_CMD_DEL_DEV_ASYNC:
                if (!is_unknown_command(result))
                        return false;
                ctl->no_async_delete = true;
                call->request.command = UBLK_U_CMD_DEL_DEV;
                return true;
        case UBLK_U_CMD_GET_DEV_INFO:
                if (result != -EINVAL)
                        return false;
                ask_by_path(&call->request);
                return true;
        default:
                return false;
        }
}

static void deliver(void *owner, struct ctl_call *base)
{
        struct ublk_ctl *ctl = owner;
        struct ublk_ctl_call *call = (struct ublk_ctl_call *)base;
        const unsigned char *answer = (const unsigned char *)&base->answer + base->request.path_size;
        struct kernel_device device;
        int result = base->result == -KERNEL_ENOTSUPP ? -EOPNOTSUPP : base->result < 0 ? base->result : 0;
        bool brings_device = result == 0 && kinds[call->kind].brings_device;
        ublk_ctl_done done = call->done;
        void *userdata = call->userdata;

        if (brings_device) {
                result = call->kind == CTL_GET_AFFINITY ? read_cpus(answer, &device)
                                                        : read_info(answer, &device);
                if (result == 0 && call->kind != CTL_GET_AFFINITY)
                        result = unprivileged_disks_note(ctl->unprivileged, &device);
                brings_device = result == 0;
        }
        /* The driver looks the path up, which DEL_DEV removes at once; the number is free when the last opener leaves. */
        if (result == -ENOENT && base->request.path_size > 0 && call->kind == CTL_GET_INFO) {
                device = unprivileged_disks_deleted(ctl->unprivileged, (int)base->request.number);
                brings_device = true;
                result = 0;
        } else if (result == -ENOENT && base->request.path_size > 0 && call->kind == CTL_DEL) {
                result = 0;
        }
        free(call);
        done(userdata, result, brings_device ? &device : NULL);
}

static void released(void *owner, uint32_t number)
{
        struct ublk_ctl *ctl = owner;

        if (ctl->released)
                ctl->released(ctl->released_userdata, (int)number);
}

/* ---- the public face ---- */

void ublk_ctl_on_released(struct ublk_ctl *ctl, ublk_ctl_released on_released, void *userdata)
{
        ctl->released = on_released;
        ctl->released_userdata = userdata;
}

static int submit(struct ublk_ctl *ctl, enum ctl_kind kind, const struct ctl_request *request,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        struct ublk_ctl_call *call;
        int r;

        if (request->number >= NUMBERS)
                return -EINVAL;
        call = calloc(1, sizeof(*call));
        if (!call)
                return -ENOMEM;
        call->call.request = *request;
        call->call.request.command = kinds[kind].command;
        if (!kinds[kind].by_number && unprivileged_disks_have(ctl->unprivileged, (int)request->number))
                name_node(&call->call.request);
        if (kind == CTL_DEL && (ctl->no_async_delete || call->call.request.path_size > 0))
                call->call.request.command = UBLK_U_CMD_DEL_DEV;
        call->call.changes = !kinds[kind].only_asks;
        call->kind = kind;
        call->done = done;
        call->userdata = userdata;
        r = ctl_calls_submit(
                ctl->calls, &call->call, ctl->deadline_usec ? ctl->deadline_usec : kinds[kind].deadline_usec);
        if (r < 0) {
                free(call);
                return r;
        }
        if (ret)
                *ret = call;
        return 0;
}

/* A command without payload. */
static int submit_plain(struct ublk_ctl *ctl, enum ctl_kind kind, int number, uint64_t data,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(ctl, kind, &(struct ctl_request){.number = (uint32_t)number, .data = data}, done,
                userdata, ret);
}

int ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        struct ctl_request request = {
                .number = (uint32_t)number, .size = sizeof(struct ublksrv_ctrl_dev_info)};

        return submit(ctl, CTL_GET_INFO, &request, done, userdata, ret);
}

int ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *wanted, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        struct ctl_request request = {
                .number = (uint32_t)wanted->number,
                .size = sizeof(struct ublksrv_ctrl_dev_info),
                .as_user = wanted->unprivileged,
                .uid = wanted->uid,
                .gid = wanted->gid,
                .payload.info =
                        {
                                       .nr_hw_queues = wanted->queues,
                                       .queue_depth = wanted->queue_depth,
                                       .max_io_buf_bytes = wanted->max_io_size,
                                       .dev_id = (uint32_t)wanted->number,
                                       .flags = wanted->flags,
                                       .ublksrv_flags = wanted->cookie,
                                       },
        };

        return submit(ctl, CTL_ADD, &request, done, userdata, ret);
}

int ublk_ctl_get_affinity(struct ublk_ctl *ctl, int number, uint16_t queue, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        struct ctl_request request = {.number = (uint32_t)number, .size = KERNEL_CPUS_SIZE, .data = queue};

        return submit(ctl, CTL_GET_AFFINITY, &request, done, userdata, ret);
}

int ublk_ctl_set_params(struct ublk_ctl *ctl, int number, const struct disk_params *params,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        struct ctl_request request = {.number = (uint32_t)number, .size = sizeof(struct ublk_all_params)};
        int r = write_params(params, &request.payload.params);

        return r < 0 ? r : submit(ctl, CTL_SET_PARAMS, &request, done, userdata, ret);
}

int ublk_ctl_start(struct ublk_ctl *ctl, int number, pid_t worker, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_START, number, (uint64_t)worker, done, userdata, ret);
}

int ublk_ctl_stop(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_STOP, number, 0, done, userdata, ret);
}

int ublk_ctl_try_stop(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_TRY_STOP, number, 0, done, userdata, ret);
}

int ublk_ctl_stop_unheld(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit(ctl, CTL_STOP_UNHELD, &(struct ctl_request){.number = (uint32_t)number, .hold = 1},
                done, userdata, ret);
}

int ublk_ctl_quiesce(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_QUIESCE, number, QUIESCE_MSEC, done, userdata, ret);
}

int ublk_ctl_update_size(struct ublk_ctl *ctl, int number, uint64_t size, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_UPDATE_SIZE, number, size >> SECTOR_SHIFT, done, userdata, ret);
}

int ublk_ctl_del(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret)
{
        return submit_plain(ctl, CTL_DEL, number, 0, done, userdata, ret);
}

int ublk_ctl_begin_recovery(struct ublk_ctl *ctl, int number, uint64_t cookie, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        return submit(ctl, CTL_BEGIN_RECOVERY, &(struct ctl_request){CTL_GUARDED(number, 0, cookie)}, done,
                userdata, ret);
}

int ublk_ctl_end_recovery(struct ublk_ctl *ctl, int number, uint64_t cookie, pid_t worker, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret)
{
        return submit(ctl, CTL_END_RECOVERY, &(struct ctl_request){CTL_GUARDED(number, worker, cookie)}, done,
                userdata, ret);
}

bool ublk_ctl_guards(const struct ublk_ctl *ctl)
{
        return ctl_calls_guard(ctl->calls);
}

void ublk_ctl_call_cancel(struct ublk_ctl_call *call)
{
        ctl_call_cancel(&call->call);
}

/* ---- opening ---- */

static int explain_greeting(
        const struct ctl_reply *greeting, const char *release, struct problem_list *problems)
{
        int error = greeting->result == -KERNEL_ENOTSUPP ? EOPNOTSUPP : -greeting->result;

        switch (greeting->step) {
        case CTL_STEP_READY:
                return 0;
        case CTL_STEP_OPEN:
                return ctl_explain_open(error, ctl_find_module("", release), release, problems);
        case CTL_STEP_RING:
                return ctl_explain_ring(error, greeting->payload.io_uring_disabled, problems);
        default:
                return ctl_explain_features(error, release, problems);
        }
}

static int explain_opening(const struct ublk_ctl *ctl, struct problem_list *problems)
{
        struct utsname machine;

        if (uname(&machine) < 0)
                return -errno;
        if (ctl_kernel_is_known_bad(machine.release))
                return ctl_explain_known_bad(machine.release, problems);
        switch (ctl->opening) {
        case OPENING_GREETED:
                return explain_greeting(&ctl->greeting, machine.release, problems);
        case OPENING_FAILED:
                return ctl_explain_helper(-ctl->start_error, ctl->helper_path, problems);
        default:
                return ctl_explain_helper(ETIMEDOUT, ctl->helper_path, problems);
        }
}

static int on_verdict(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct ublk_ctl *ctl = userdata;
        _cleanup_problems_ struct problem_list problems = {};
        int r = explain_opening(ctl, &problems);

        ctl->opening = OPENING_REPORTED;
        ctl->verdict = sd_event_source_disable_unref(ctl->verdict);
        if (r < 0)
                ctl_calls_stop(ctl->calls);
        ctl->opened(ctl->opened_userdata, r, r < 0 ? 0 : ctl->greeting.payload.features, &problems);
        return 0;
}

/* At the end of the loop's turn: the callee may free what is in use until then. */
static void know_verdict(struct ublk_ctl *ctl, enum ctl_opening opening)
{
        ctl->opening = opening;
        (void)sd_event_source_set_time(ctl->verdict, 0); /* else it comes at the deadline */
}

static void greeted(void *owner, const struct ctl_reply *greeting)
{
        struct ublk_ctl *ctl = owner;

        if (ctl->opening != OPENING_WAITS)
                return;
        if (greeting)
                ctl->greeting = *greeting;
        else
                ctl->start_error = -ECONNRESET;
        know_verdict(ctl, greeting ? OPENING_GREETED : OPENING_FAILED);
}

/* A kernel that crashes is not even asked. */
static void start_helper(struct ublk_ctl *ctl)
{
        struct utsname machine;

        if (uname(&machine) >= 0 && ctl_kernel_is_known_bad(machine.release))
                ctl->start_error = -EOPNOTSUPP;
        else
                ctl->start_error = ctl_calls_start(ctl->calls);
        if (ctl->start_error < 0)
                know_verdict(ctl, OPENING_FAILED);
}

int ublk_ctl_open(sd_event *event, const struct ublk_ctl_options *options, struct ublk_ctl **ret)
{
        static const struct ctl_calls_handlers handlers = {
                .reconsider = reconsider, .deliver = deliver, .released = released, .greeted = greeted};
        _cleanup_(ublk_ctl_free_pointer) struct ublk_ctl *ctl = calloc(1, sizeof(*ctl));
        int r;

        if (!ctl)
                return -ENOMEM;
        ctl->unprivileged = unprivileged_disks_new();
        if (!ctl->unprivileged)
                return -ENOMEM;
        ctl->helper_path = options->helper_path ? options->helper_path : "/proc/self/exe";
        ctl->deadline_usec = options->deadline_usec;
        ctl->opened = options->opened;
        ctl->opened_userdata = options->userdata;
        r = ctl_calls_new(event, ctl->helper_path, &handlers, ctl, &ctl->calls);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &ctl->verdict, CLOCK_MONOTONIC,
                        options->start_usec ? options->start_usec : GREETING_USEC, 0, on_verdict, ctl);
        if (r < 0)
                return r;
        start_helper(ctl);
        *ret = TAKE_PTR(ctl);
        return 0;
}

bool ublk_ctl_is_idle(const struct ublk_ctl *ctl)
{
        return ctl_calls_are_idle(ctl->calls);
}

struct ublk_ctl *ublk_ctl_free(struct ublk_ctl *ctl)
{
        if (!ctl)
                return NULL;
        sd_event_source_disable_unref(ctl->verdict);
        ctl_calls_free(ctl->calls);
        unprivileged_disks_free(ctl->unprivileged);
        free(ctl);
        return NULL;
}
