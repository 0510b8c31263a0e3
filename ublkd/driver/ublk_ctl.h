/* SPDX-License-Identifier: MIT */
/* The kernel control plane: asynchronous control commands with deadlines, issued by a helper process that can
 * be given up. The only place of the supervisor that sees the ublk UAPI. Runs on the supervisor's loop. */
#pragma once

#include "ublkd/base/problem.h"
#include "ublkd/proto/worker_msg.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

enum kernel_state {
        KERNEL_STATE_DEAD,
        KERNEL_STATE_LIVE,
        KERNEL_STATE_QUIESCED,
        KERNEL_STATE_FAIL_IO,
        _KERNEL_STATE_MAX
};

enum { KERNEL_CPUS_SIZE = 128 }; /* bytes of a mask of CPUs, as many as a cpu_set_t has */

/* What GET_DEV_INFO2 returns. */
struct kernel_device {
        int number;
        enum kernel_state state;
        uint64_t cookie; /* ublksrv_flags: ours */
        uint64_t flags;  /* as negotiated, UBLK_F_* bits */
        pid_t server_pid;
        uint16_t queues, queue_depth;
        uint32_t max_io_size;                       /* bytes */
        unsigned char queue_cpus[KERNEL_CPUS_SIZE]; /* of get_affinity only, which reports nothing else */
};

/* Asked for with ADD_DEV. */
struct kernel_device_request {
        int number;
        uint64_t cookie;
        uint64_t flags; /* UBLK_F_* bits, from ublk_ctl_flags() */
        uint16_t queues, queue_depth;
        uint32_t max_io_size;
        /* Have the driver make it in its unprivileged mode: for this user and this group, without recovery, without another
         * path of data than copy. */
        bool unprivileged;
        uid_t uid;
        gid_t gid;
};

/* What the supervisor asks of a device, free of the UAPI. */
enum kernel_recovery {
        KERNEL_RECOVERY_NONE,
        KERNEL_RECOVERY_QUEUE,
        KERNEL_RECOVERY_REISSUE,
        KERNEL_RECOVERY_FAIL,
        _KERNEL_RECOVERY_MAX
};
/* Return the flags for ADD_DEV, whether or not the driver has them: compare with ublk_ctl_missing(). */
uint64_t ublk_ctl_flags(enum kernel_recovery recovery);
/* Return the flags to add for ADD_DEV for what a disk can do more, if the driver can (`features`). batch: it
 * is served in batches, which excludes QUIESCE. */
uint64_t ublk_ctl_extra_flags(enum kernel_recovery recovery, bool batch, uint64_t features);
/* Return the flag of a disk in the driver's unprivileged mode, and those of `features` that such a disk may have. */
uint64_t ublk_ctl_unprivileged_flag(void);
uint64_t ublk_ctl_unprivileged_features(uint64_t features);
/* Return the flags without which a disk does not have that path; 0 for DATA_PATH_AUTO. */
uint64_t ublk_ctl_path_flags(enum data_path path);
/* Return all flags of a route. */
uint64_t ublk_ctl_route_flags(const struct data_route *route);
/* Return the route of a disk with these flags (as negotiated); of a kernel's features: the most that it can.
 */
struct data_route ublk_ctl_route(uint64_t flags);
/* Return the first flag in `wanted` that is not in `got`: its name without UBLK_F_, or NULL if all are there.
 */
const char *ublk_ctl_missing(uint64_t wanted, uint64_t got);

struct ublk_ctl;
struct ublk_ctl_call;

/* result: 0 or -errno. -ETIMEDOUT: the command did not come back by its deadline and was given up; the truth
 * is unknown. -EINTR: unknown as well; read the device again. -ECONNRESET: the helper died; unknown. `device`
 * is set for get_info, get_affinity and add when result is 0, else NULL. Called once, from the loop, unless
 * the call was cancelled. */
typedef void (*ublk_ctl_done)(void *userdata, int result, const struct kernel_device *device);

/* The control plane is there (0, with what GET_FEATURES returns: commands may be sent from now on), or why not:
 * -errno, with one problem, which may be taken over: no driver, not root, io_uring disabled, kernel below the
 * floor or known to crash, or no answer. Called once, from the loop; may free the control plane. */
typedef void (*ublk_ctl_opened)(void *userdata, int result, uint64_t features, struct problem_list *problems);

/* Beside `opened`, all 0: what the program itself uses. Tests bring a helper and deadlines of their own. */
struct ublk_ctl_options {
        ublk_ctl_opened opened;
        void *userdata;
        const char *helper_path; /* NULL: this very program */
        uint64_t deadline_usec;  /* of every call; 0: 10 s, and 30 s for start and end_recovery */
        uint64_t start_usec;     /* until the first helper has answered; 0: 10 s */
};

/* Start the helper: this very program, with the argument --control-helper and its channel as descriptor 3. It
 * makes its checks while the loop continues, and `opened` reports the result. Return 0, or -errno: out of
 * memory. */
int ublk_ctl_open(sd_event *event, const struct ublk_ctl_options *options, struct ublk_ctl **ret);
/* Return whether the helper of a control plane that could not be opened has ended. One that hangs in the
 * driver may stay for ever, and another would hang beside it. */
bool ublk_ctl_is_idle(const struct ublk_ctl *ctl);
/* Free all calls without calling back, and kill the helpers; wait up to a second for their end, if any live.
 * NULL is fine. Return NULL. */
struct ublk_ctl *ublk_ctl_free(struct ublk_ctl *ctl);

/* Called from the loop: a command for the number that was given up can have no effect any more. May not free
 * the control plane. */
typedef void (*ublk_ctl_released)(void *userdata, int number);
/* Set the function that is called when a command that was given up can have no effect any more; NULL: none.
 */
void ublk_ctl_on_released(struct ublk_ctl *ctl, ublk_ctl_released on_released, void *userdata);

/* Send a command. Each function below returns 0 and (ret may be NULL) a handle valid until `done` is called;
 * or -errno and `done` is never called. -EALREADY, of all but get_info and get_affinity: a command for that
 * number was given up, and may still take effect; ublk_ctl_on_released() reports when it cannot any more.
 * -EAGAIN: 17 helpers hang in the driver, and no more are started. -EINVAL: an impossible number or
 * parameter. Result of get_info: -ENODEV if there is no such device. */
int ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
int ublk_ctl_add(struct ublk_ctl *ctl, const struct kernel_device_request *request, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
/* Ask on which CPUs requests come to a queue. Result: -EINVAL if the machine has more than the mask. */
int ublk_ctl_get_affinity(struct ublk_ctl *ctl, int number, uint16_t queue, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
int ublk_ctl_set_params(struct ublk_ctl *ctl, int number, const struct disk_params *params,
        ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
int ublk_ctl_start(struct ublk_ctl *ctl, int number, pid_t worker, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret);
int ublk_ctl_stop(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
/* Stop the disk unless it has an opener: -EBUSY. It cannot be opened from then on. */
int ublk_ctl_try_stop(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
/* Stop the disk unless an opener has it open exclusively, as a mount (in any mount namespace, also one that
 * was unmounted lazily), a swap area, a dm or md device or a partition of it does: -EBUSY. For a driver
 * without TRY_STOP_DEV. The helper has the disk open exclusively from before the command until it has
 * returned, so that no mount can come in between. -ETIME: the disk could not be opened in time, or not at
 * all, so that its use is unknown; nothing was done. Openers that are not exclusive are not seen: for them
 * there is disk_search.h, and an opener that comes between its answer and this command sees I/O errors. Only
 * for a disk that a living worker serves: opening another could wait for I/O. */
int ublk_ctl_stop_unheld(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
/* Keep new requests away from the worker of a live disk, and take back the tags that wait for one. The worker
 * can still answer the requests that it has; their tags are taken back by a later call. Result 0: they are
 * taken back, or the disk is not live any more; -EBUSY: every tag of a queue is held by a request that waits.
 */
int ublk_ctl_quiesce(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
/* Set the size of the disk, in bytes. Only for a disk that is or was live: others have none whose size could
 * change, and older drivers do not check. */
int ublk_ctl_update_size(struct ublk_ctl *ctl, int number, uint64_t size, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret);
/* Delete the device, with DEL_DEV_ASYNC if the kernel has it: the device stays DEAD, and its number taken,
 * until the last reference to it is gone. */
int ublk_ctl_del(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
/* Begin, or end, the recovery of the disk with that number and that cookie: ublksrv_flags, as GET_DEV_INFO has returned it.
 * The helper compares right before the command. Result -ESTALE: another disk has the number, or the driver does not say
 * which one, and no command was sent; -ENODEV: none has it.
 *
 * begin: the helper compares also after the command, with the same results, so any result but these and -EBUSY is about that
 * disk, which still had the number then. While the driver still holds what a dead worker had, the helper compares and sends
 * again for some milliseconds; then -EBUSY.
 * end: while the worker has /dev/ublkcN open, the disk cannot lose the number between comparison and command. */
int ublk_ctl_begin_recovery(struct ublk_ctl *ctl, int number, uint64_t cookie, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
int ublk_ctl_end_recovery(struct ublk_ctl *ctl, int number, uint64_t cookie, pid_t worker, ublk_ctl_done done,
        void *userdata, struct ublk_ctl_call **ret);
/* Return whether the helper that gets the next command compares, which an older one, started after an upgrade was reversed,
 * does not: it sends the two commands to whatever disk has the number. */
bool ublk_ctl_guards(const struct ublk_ctl *ctl);

/* Cancel a call: `done` will not be called; the command may still take effect. */
void ublk_ctl_call_cancel(struct ublk_ctl_call *call);

/* Run the helper process: serve commands on `fd` until that closes, and then end the process. Return an exit
 * status if it cannot begin. */
int ublk_ctl_helper_main(int fd);
