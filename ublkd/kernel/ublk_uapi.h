/* SPDX-License-Identifier: MIT */
/* <linux/ublk_cmd.h>, plus what older copies of it lack. Only ublk_ctl and ublk_queue may include this.
 *
 * The header of Debian 12 stops at Linux 6.1. The numbers below are the kernel's ABI; each is guarded so that
 * a newer header wins. The structs that both programs exchange with the driver have not changed their size
 * since. */
#pragma once

#include <linux/ublk_cmd.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* The ioctl-encoded commands (Linux 6.4). The bare numbers before them depend on a build option of the
 * kernel, and are not used here. */
#ifndef UBLK_U_CMD_GET_QUEUE_AFFINITY
#define UBLK_U_CMD_GET_QUEUE_AFFINITY _IOR('u', 0x01, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_GET_DEV_INFO
#define UBLK_U_CMD_GET_DEV_INFO _IOR('u', 0x02, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_ADD_DEV
#define UBLK_U_CMD_ADD_DEV _IOWR('u', 0x04, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_DEL_DEV
#define UBLK_U_CMD_DEL_DEV _IOWR('u', 0x05, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_START_DEV
#define UBLK_U_CMD_START_DEV _IOWR('u', 0x06, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_STOP_DEV
#define UBLK_U_CMD_STOP_DEV _IOWR('u', 0x07, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_SET_PARAMS
#define UBLK_U_CMD_SET_PARAMS _IOWR('u', 0x08, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_GET_PARAMS
#define UBLK_U_CMD_GET_PARAMS _IOR('u', 0x09, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_START_USER_RECOVERY
#define UBLK_U_CMD_START_USER_RECOVERY _IOWR('u', 0x10, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_END_USER_RECOVERY
#define UBLK_U_CMD_END_USER_RECOVERY _IOWR('u', 0x11, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_GET_DEV_INFO2
#define UBLK_U_CMD_GET_DEV_INFO2 _IOR('u', 0x12, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_GET_FEATURES /* 6.5: our floor */
#define UBLK_U_CMD_GET_FEATURES _IOR('u', 0x13, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_DEL_DEV_ASYNC /* 6.9 */
#define UBLK_U_CMD_DEL_DEV_ASYNC _IOR('u', 0x14, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_UPDATE_SIZE /* 6.16; data[0]: sectors */
#define UBLK_U_CMD_UPDATE_SIZE _IOWR('u', 0x15, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_QUIESCE_DEV /* 6.16; data[0]: milliseconds to wait */
#define UBLK_U_CMD_QUIESCE_DEV _IOWR('u', 0x16, struct ublksrv_ctrl_cmd)
#endif
#ifndef UBLK_U_CMD_TRY_STOP_DEV /* 7.0; EBUSY while a process has the disk open */
#define UBLK_U_CMD_TRY_STOP_DEV _IOWR('u', 0x17, struct ublksrv_ctrl_cmd)
#endif

#ifndef UBLK_U_IO_FETCH_REQ
#define UBLK_U_IO_FETCH_REQ _IOWR('u', 0x20, struct ublksrv_io_cmd)
#endif
#ifndef UBLK_U_IO_COMMIT_AND_FETCH_REQ
#define UBLK_U_IO_COMMIT_AND_FETCH_REQ _IOWR('u', 0x21, struct ublksrv_io_cmd)
#endif
#ifndef UBLK_U_IO_NEED_GET_DATA
#define UBLK_U_IO_NEED_GET_DATA _IOWR('u', 0x22, struct ublksrv_io_cmd)
#endif
#ifndef UBLK_U_IO_REGISTER_IO_BUF /* 6.15 */
#define UBLK_U_IO_REGISTER_IO_BUF _IOWR('u', 0x23, struct ublksrv_io_cmd)
#endif
#ifndef UBLK_U_IO_UNREGISTER_IO_BUF
#define UBLK_U_IO_UNREGISTER_IO_BUF _IOWR('u', 0x24, struct ublksrv_io_cmd)
#endif

/* BATCH_IO (7.0). The names of the structs are ours, so that a newer header does not clash. */
struct ublk_batch_command { /* struct ublk_batch_io */
        uint16_t queue;
        uint16_t flags; /* UBLK_BATCH_F_* */
        uint16_t elements;
        uint8_t element_size; /* bytes */
        uint8_t reserved;
        uint64_t reserved2;
};
struct ublk_batch_element { /* struct ublk_elem_header */
        uint16_t tag;
        uint16_t buffer; /* AUTO_BUF_REG: the index for the pages of the tag's next request */
        int32_t result;  /* of the request; only when committing */
};
#ifndef UBLK_U_IO_PREP_IO_CMDS
#define UBLK_U_IO_PREP_IO_CMDS _IOWR('u', 0x25, struct ublk_batch_command)
#endif
#ifndef UBLK_U_IO_COMMIT_IO_CMDS
#define UBLK_U_IO_COMMIT_IO_CMDS _IOWR('u', 0x26, struct ublk_batch_command)
#endif
#ifndef UBLK_U_IO_FETCH_IO_CMDS
#define UBLK_U_IO_FETCH_IO_CMDS _IOWR('u', 0x27, struct ublk_batch_command)
#endif
#ifndef UBLK_BATCH_F_HAS_BUF_ADDR
#define UBLK_BATCH_F_HAS_BUF_ADDR (1 << 1)
#endif
#ifndef UBLK_BATCH_F_AUTO_BUF_REG_FALLBACK
#define UBLK_BATCH_F_AUTO_BUF_REG_FALLBACK (1 << 2)
#endif
#ifndef IORING_URING_CMD_MULTISHOT
#define IORING_URING_CMD_MULTISHOT (1U << 1)
#endif

/* AUTO_BUF_REG (6.16): when the driver cannot register a request's pages it hands the request over all the
 * same, with this bit in its descriptor. */
#ifndef UBLK_AUTO_BUF_REG_FALLBACK
#define UBLK_AUTO_BUF_REG_FALLBACK (1 << 0)
#endif
#ifndef UBLK_IO_F_NEED_REG_BUF
#define UBLK_IO_F_NEED_REG_BUF (1U << 17)
#endif

#ifndef UBLK_FEATURES_LEN
#define UBLK_FEATURES_LEN 8
#endif

/* Features: the bits of ublksrv_ctrl_dev_info.flags and of GET_FEATURES. */
#ifndef UBLK_F_UNPRIVILEGED_DEV
#define UBLK_F_UNPRIVILEGED_DEV (1ULL << 5)
#endif
#ifndef UBLK_F_CMD_IOCTL_ENCODE
#define UBLK_F_CMD_IOCTL_ENCODE (1ULL << 6)
#endif
#ifndef UBLK_F_USER_COPY
#define UBLK_F_USER_COPY (1ULL << 7)
#endif
#ifndef UBLK_F_ZONED
#define UBLK_F_ZONED (1ULL << 8)
#endif
#ifndef UBLK_F_USER_RECOVERY_FAIL_IO
#define UBLK_F_USER_RECOVERY_FAIL_IO (1ULL << 9)
#endif
#ifndef UBLK_F_UPDATE_SIZE
#define UBLK_F_UPDATE_SIZE (1ULL << 10)
#endif
#ifndef UBLK_F_AUTO_BUF_REG
#define UBLK_F_AUTO_BUF_REG (1ULL << 11)
#endif
#ifndef UBLK_F_QUIESCE
#define UBLK_F_QUIESCE (1ULL << 12)
#endif
#ifndef UBLK_F_PER_IO_DAEMON
#define UBLK_F_PER_IO_DAEMON (1ULL << 13)
#endif
#ifndef UBLK_F_BUF_REG_OFF_DAEMON
#define UBLK_F_BUF_REG_OFF_DAEMON (1ULL << 14)
#endif
#ifndef UBLK_F_BATCH_IO
#define UBLK_F_BATCH_IO (1ULL << 15)
#endif
#ifndef UBLK_F_INTEGRITY
#define UBLK_F_INTEGRITY (1ULL << 16)
#endif
#ifndef UBLK_F_SAFE_STOP_DEV
#define UBLK_F_SAFE_STOP_DEV (1ULL << 17)
#endif
#ifndef UBLK_F_NO_AUTO_PART_SCAN
#define UBLK_F_NO_AUTO_PART_SCAN (1ULL << 18)
#endif
#ifndef UBLK_F_SHMEM_ZC
#define UBLK_F_SHMEM_ZC (1ULL << 19)
#endif

#ifndef UBLK_F_IO_DESC_SIZE /* 7.3 */
#define UBLK_F_IO_DESC_SIZE (1ULL << 20)
#endif

#ifndef UBLK_S_DEV_FAIL_IO
#define UBLK_S_DEV_FAIL_IO 3
#endif

/* Kinds of parameters that newer drivers know; the struct of an older header just ends before them. */
#ifndef UBLK_PARAM_TYPE_DEVT
#define UBLK_PARAM_TYPE_DEVT (1 << 2)
#endif
#ifndef UBLK_PARAM_TYPE_ZONED
#define UBLK_PARAM_TYPE_ZONED (1 << 3)
#endif
#ifndef UBLK_PARAM_TYPE_DMA_ALIGN
#define UBLK_PARAM_TYPE_DMA_ALIGN (1 << 4)
#endif
#ifndef UBLK_PARAM_TYPE_SEGMENT
#define UBLK_PARAM_TYPE_SEGMENT (1 << 5)
#endif

/* struct ublk_params with all that drivers up to 7.2 know; an older one reads what it knows of it. */
struct ublk_all_params {
        uint32_t len, types;
        struct ublk_param_basic basic;
        struct ublk_param_discard discard;
        uint32_t devt[4];
        uint32_t zoned[8];
        struct {
                uint32_t alignment; /* a mask */
                uint8_t pad[4];
        } dma;
        struct {
                uint64_t seg_boundary_mask;
                uint32_t max_segment_size; /* bytes */
                uint16_t max_segments;
                uint8_t pad[2];
        } segment;
};
enum { UBLK_SEGMENT_SIZE_MIN = 4096 };

/* The longest queue and the largest single request that the driver takes. */
enum { UBLK_QUEUE_DEPTH_LIMIT = 4096, UBLK_IO_SIZE_LIMIT = 32 << 20 };

_Static_assert(sizeof(struct ublksrv_ctrl_cmd) == 32, "the ABI of control commands");
_Static_assert(sizeof(struct ublksrv_ctrl_dev_info) == 64, "the ABI of the device info");
_Static_assert(sizeof(struct ublksrv_io_cmd) == 16, "the ABI of I/O commands");
_Static_assert(sizeof(struct ublksrv_io_desc) == 24, "the ABI of I/O descriptors");
_Static_assert(sizeof(struct ublk_batch_command) == 16, "the ABI of batches");
_Static_assert(sizeof(struct ublk_batch_element) == 8, "the ABI of batches");
_Static_assert(sizeof(struct ublk_all_params) == 136, "the ABI of parameters");
