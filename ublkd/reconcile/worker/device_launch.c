/* SPDX-License-Identifier: MIT */
/* Starts the workers of a device, each with its CONFIG. */
#include "ublkd/reconcile/worker/device_launch.h"
#include "ublkd/reconcile/worker/device_group.h"
#include "ublkd/reconcile/backing/backing_wish.h"
#include "ublkd/reconcile/backing/device_faults.h"
#include "ublkd/reconcile/backing/device_shared.h"
#include "ublkd/reconcile/parts/managed_device.h"

#include "ublkd/store/device_change.h"
#include "ublkd/values/json_print.h"

#include <string.h>

static uint16_t queues_for(const struct managed_device *device, const struct device_spec *spec)
{
        int64_t queues = spec->options.queues;
        unsigned cpus = device->env->config.host->cpus;

        if (device_spec_flags(spec) & TARGET_ONE_QUEUE)
                return 1;
        if (queues == OPTION_AUTO)
                return (uint16_t)(cpus < QUEUES_AUTO_MAX ? cpus : QUEUES_AUTO_MAX);
        return (uint16_t)(queues < cpus ? queues : cpus); /* the kernel clamps to the CPUs as well */
}

static int set_number(cJSON *object, const char *name, double value)
{
        cJSON *number = cJSON_CreateNumber(value);

        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
        if (number && cJSON_AddItemToObject(object, name, number))
                return 0;
        cJSON_Delete(number);
        return -ENOMEM;
}

/* Return whether there is a disk. It is live only during a preflight. */
static bool has_disk(const struct managed_device *device)
{
        return device->view.facts.kernel == KERNEL_DOWN || device->view.facts.kernel == KERNEL_LIVE;
}

/* Write the spec for the worker. An existing disk keeps its size: the worker serves a file that has grown as before,
 * and refuses one that has shrunk as too small. */
static int spec_text(const struct managed_device *device, const struct device_record *record, char **ret)
{
        cJSON *document = cJSON_Duplicate(record->spec->document, true);
        int r = document ? 0 : -ENOMEM;

        if (r >= 0 && has_disk(device))
                r = device->view.geometry.error;
        if (r >= 0 && has_disk(device))
                r = set_number(document, "size", (double)device->view.geometry.size);
        if (r >= 0 && has_disk(device))
                r = set_number(document, "blockSize", device->view.geometry.block_size);
        if (r >= 0) {
                *ret = json_print(document);
                r = *ret ? 0 : -ENOMEM;
        }
        cJSON_Delete(document);
        return r;
}

/* Have a region with the kept memory of the targets: it belongs to the disk, so that of a disk before this one is replaced
 * by zeroes. Whatever the worker sees of it later, it cannot be larger. */
static int keep_memory(struct managed_device *device, const char *uid, const struct target_tree *tree,
        const struct device_region_key *key, bool new_disk)
{
        struct target_tree_kept kept;
        struct region_kept_wish wish;
        _cleanup_close_ int fd = -1;

        target_tree_kept(tree, &kept);
        wish = (struct region_kept_wish){
                .target = kept.name,
                .disk_bytes = kept.disk_bytes,
                .queue_bytes = kept.queue_bytes,
                .version = kept.version,
                .new_disk = new_disk,
        };
        fd = runtime_dir_ensure_kept(device->env->config.runtime_dir, uid, key, &wish);
        if (fd >= 0)
                device_shared_report_loss(device, fd);
        if (fd < 0 || !target_tree_keeps(tree))
                return fd < 0 ? fd : 0;
        return region_kept_give(fd);
}

int device_launch_worker(struct managed_device *device, const struct device_record *record, const char *name,
        const char *uid, enum worker_lock lock, worker_proc_changed changed, struct worker_proc **ret)
{
        const struct reconciler_config *config = &device->env->config;
        bool down = has_disk(device), preflight = strcmp(uid, record->uid) != 0;
        struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config =
                        {
                                 .name = (char *)name,
                                 .uid = (char *)uid, /* only read */
                                .hide_name = tenant_is_set(record->tenant) && !preflight,
                                 .epoch = record->epoch,
                                 .restart = record->restart,
                                 .queues =
                                        down ? device->view.kernel.queues : queues_for(device, record->spec),
                                 .queue_depth = down ? device->view.kernel.queue_depth
                                                    : (uint16_t)record->spec->options.queue_depth,
                                 .max_io_size = down ? device->view.kernel.max_io_size
                                                    : (uint32_t)record->spec->options.max_io_size,
                                 .reissue = device_spec_on_crash(record->spec) == ON_CRASH_REISSUE,
                                 .lock = lock,
                                 },
        };
        const struct device_region_key key = {.queues = msg.config.queues, .epoch = record->epoch};
        const struct group_limits limits = device_group_bounds(device, record->spec);
        _cleanup_free_ char *spec = NULL;
        struct backing_wish stores;
        int r = spec_text(device, record, &spec);

        if (r >= 0)
                r = keep_memory(device, uid, record->spec->tree, &key, !down || preflight);
        if (r >= 0 && !preflight)
                r = device_faults_carry(device, &key);
        if (r < 0)
                return r;
        msg.config.spec = spec;
        msg.config.store_user = device_store_user(record, record->spec);
        r = backing_wish_of_device(device, record, &stores, &msg);
        return r < 0 ? r
                     : worker_proc_spawn(config->event, config->runtime_dir, config->worker_start, &msg,
                               stores.fds, &limits, changed, device, ret);
}

/* Write the spec for a preflight worker. The image of a pool grows after the preflight, so only what it has now counts. */
static int preflight_text(const struct managed_device *device, const struct device_spec *spec, char **ret)
{
        const struct device_geometry *disk = &device->view.geometry;
        bool grows = device_spec_pool(spec) && disk->error == 0 && disk->size > 0
                     && spec->options.size > disk->size;
        cJSON *document = cJSON_Duplicate(spec->document, true);
        int r = document ? 0 : -ENOMEM;

        if (r >= 0 && grows)
                r = set_number(document, "size", (double)disk->size);
        if (r >= 0) {
                *ret = json_print(document);
                r = *ret ? 0 : -ENOMEM;
        }
        cJSON_Delete(document);
        return r;
}

int device_launch_preflight(struct managed_device *device, const struct device_record *record,
        const struct device_spec *spec, const char *uid, worker_proc_changed changed,
        struct worker_proc **ret)
{
        const struct reconciler_config *config = &device->env->config;
        _cleanup_free_ char *text = NULL;
        struct backing_wish stores;
        struct worker_msg msg = {.type = WORKER_MSG_CONFIG};
        const struct group_limits limits = device_group_bounds(device, spec);
        int r = preflight_text(device, spec, &text);

        if (r < 0)
                return r;
        msg.config.name = (char *)WORKER_PREFLIGHT_NAME; /* not changed either */
        msg.config.uid = (char *)uid;
        msg.config.spec = text;
        msg.config.epoch = record->epoch;
        msg.config.restart = record->restart;
        msg.config.queues = queues_for(device, spec);
        msg.config.queue_depth = (uint16_t)spec->options.queue_depth;
        msg.config.max_io_size = (uint32_t)spec->options.max_io_size;
        msg.config.reissue = device_spec_on_crash(spec) == ON_CRASH_REISSUE;
        msg.config.lock = WORKER_LOCK_NEVER;
        msg.config.shared = true; /* the served disk may have the claim */
        msg.config.has_data = true;
        msg.config.store_user = device_store_user(record, spec);
        r = keep_memory(device, uid, spec->tree,
                &(struct device_region_key){.queues = msg.config.queues, .epoch = record->epoch}, true);
        if (r >= 0)
                r = backing_wish_of_spec(device, record, spec, &stores, &msg);
        if (r < 0)
                return r;
        return worker_proc_spawn(config->event, config->runtime_dir, config->worker_start, &msg, stores.fds,
                &limits, changed, device, ret);
}
