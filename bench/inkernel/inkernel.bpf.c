/* SPDX-License-Identifier: MIT */
/* The loop of a queue as a program of the kernel: once it is attached to a ring, io_uring_enter(2) runs it until it
 * returns STOP. */
#include "bench/inkernel/layout.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct iou_ctx {
};

struct iou_loop_params {
        __u32 cq_wait_idx;
};

struct io_uring_bpf_ops {
        int (*loop_step)(struct iou_ctx *context, struct iou_loop_params *parameters);
        __u32 ring_fd;
};

enum { REGION_SHARED, REGION_RINGS, REGION_ENTRIES }; /* IOU_REGION_MEM, CQ, SQ */
enum { CONTINUE, STOP };

extern __u8 *bpf_io_uring_get_region(struct iou_ctx *context, __u32 region, const __u64 size) __ksym;
extern int bpf_io_uring_submit_sqes(struct iou_ctx *context, __u32 count) __ksym;

const volatile struct settings settings;
struct state state;

#define STORE(place, value) (*(volatile __typeof__(place) *)&(place) = (value))

/* `may_goto`, which ends a loop that does not end by itself, in bytes: clang 14 has no name for it. With it the verifier
 * looks at few turns of the loop instead of at all. */
#define TURN()                                                                                               \
        do {                                                                                                 \
                __label__ over;                                                                              \
                asm volatile goto("1: .byte 0xe5, 0; .long ((%l[over] - 1b - 8) / 8) & 0xffff; .short 0" ::  \
                                          : "memory"                                                         \
                                  : over);                                                                   \
                break;                                                                                       \
        over:                                                                                                \
                goto round_over;                                                                             \
        } while (0)

static inline __attribute__((always_inline)) long read_descriptor(
        __u16 tag, struct ublksrv_io_desc *descriptor)
{
        return bpf_copy_from_user(descriptor, sizeof(*descriptor),
                (const void *)(settings.descriptors + tag * sizeof(*descriptor)));
}

#include "bench/inkernel/step.h"

SEC("struct_ops/queue_loop") /* libbpf 1.1 has no struct_ops.s: attach.c marks it as one that may sleep */
int queue_loop(__u64 *arguments)
{
        struct iou_ctx *context = (struct iou_ctx *)arguments[0];
        struct iou_loop_params *parameters = (struct iou_loop_params *)arguments[1];
        struct memory memory = {
                .sqes = (void *)bpf_io_uring_get_region(
                        context, REGION_ENTRIES, ENTRIES * sizeof(struct io_uring_sqe)),
                .rings = (void *)bpf_io_uring_get_region(context, REGION_RINGS, settings.rings_size),
        };
        __u32 more;

        if (!memory.sqes || !memory.rings)
                return STOP;
        if (settings.batch) {
                memory.shared = (void *)bpf_io_uring_get_region(context, REGION_SHARED, SHARED_SIZE);
                if (!memory.shared)
                        return STOP;
        }
        more = step_round(&memory);
        if (state.prepared > 0 && bpf_io_uring_submit_sqes(context, state.prepared) != (int)state.prepared) {
                state.failure = -EAGAIN;
                return STOP;
        }
        if (state.failure < 0 || state.aborted == settings.depth)
                return STOP;
        parameters->cq_wait_idx = *(volatile __u32 *)(memory.rings + settings.cq_head) + more;
        return CONTINUE;
}

SEC(".struct_ops")
struct io_uring_bpf_ops queue_ops = {
        .loop_step = (void *)queue_loop,
        .ring_fd = RING_FD,
};

char program_license[] SEC("license") = "Dual MIT/GPL";
