/* SPDX-License-Identifier: MIT */
/* Serves a target without a driver. */
#include "tests/target/target_host.h"
#include "targets/target_tree_kept.h"
#include "targets/worker/disk/disk_start.h"
#include "targets/worker/queue/perform.h"
#include "targets/worker/wait/wait_room.h"
#include "tests/unit/loop_driver.h"
#include "tests/unit/shared_region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DATA_SIZE ((size_t)HOST_DEPTH * HOST_DATA_SIZE)

/* Mapped, not allocated: what no request uses is never touched, as in a worker. */
static char *map_data(void)
{
        void *data = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return data == MAP_FAILED ? NULL : data;
}

static int open_loop(struct target_host *host, unsigned index)
{
        struct target_device *device = &host->disk.device;
        unsigned depth = device->queue_depth;
        unsigned stacks = depth + wait_room_stacks(device, index, depth) + queue_action_stacks(device, index);
        struct io_loop *loop = target_host_loop(host, index);
        int r = io_loop_init(loop, device, index, depth, stacks, -1, IO_LOOP_HELD_BY_RING);

        return r < 0 ? r : wait_room_open(loop, depth, host->work, &host->failure);
}

static int start_loop(struct target_host *host, unsigned index)
{
        const struct target *target = host->disk.device.target;
        struct io_loop *loop = target_host_loop(host, index);
        int r;

        if (host->disk.device.queues_kept)
                loop->queue.kept = &host->disk.device.queues_kept[index];
        if (target->queue_size > 0) {
                loop->queue.state = calloc(1, target->queue_size);
                if (!loop->queue.state)
                        return -ENOMEM;
        }
        r = target->start_queue ? target->start_queue(&loop->queue) : 0;
        host->started += r >= 0;
        return r < 0 ? r : io_loop_start(loop);
}

/* As the worker has it: all queues are started before one runs. */
static int start_loops(struct target_host *host)
{
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < host->queues; i++)
                r = start_loop(host, i);
        for (unsigned i = 0; r >= 0 && i < host->queues; i++)
                r = wait_room_run(target_host_loop(host, i));
        return r;
}

static int start(struct target_host *host, struct problem_list *problems)
{
        const struct target *target = host->disk.device.target;
        unsigned threads = target->desc->waits.work_threads;
        int r = 0;

        host->queues = host->disk.device.queues;
        assert(host->queues > 0 && host->queues <= HOST_QUEUES_MAX);
        if (threads > 0)
                r = work_pool_new(threads, host->queues, NULL, NULL, &host->work);
        for (unsigned i = 0; r >= 0 && i < host->queues; i++)
                r = open_loop(host, i);
        throttle_open(&host->throttle, host->shared.region, 0);
        if (r >= 0 && target->act)
                r = action_port_new(device_region_control(host->shared.region), -1, &host->actions);
        if (r >= 0)
                r = queue_action_open(&host->action, &host->loop, host->actions, &host->throttle,
                        HOST_DATA_SIZE, &host->failure);
        if (r < 0)
                return r;
        host->data = map_data();
        if (!host->data)
                return -ENOMEM;
        r = disk_start(&host->disk, device_region_control(host->shared.region), problems);
        if (r < 0)
                return r;
        r = start_loops(host);
        if (r >= 0)
                r = queue_action_begin(&host->action);
        if (r >= 0)
                disk_started(&host->disk);
        host->open = r >= 0;
        return r;
}

static int parse(
        struct worker_config *config, const char *spec, unsigned queues, struct problem_list *problems)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = (char *)(uintptr_t)spec,
                           .queues = (uint16_t)queues,
                           .queue_depth = HOST_DEPTH,
                           .max_io_size = HOST_DATA_SIZE}
        };

        return worker_config_parse(&msg, config, problems);
}

int target_host_new_region(const char *spec, unsigned queues, int *ret, uint64_t *ret_size)
{
        struct device_region_key key = {.queues = queues};
        _cleanup_problems_ struct problem_list problems = {};
        _cleanup_close_ int fd = -1;
        struct region_kept_wish wish = {.new_disk = true};
        struct target_tree_kept kept;
        struct worker_config config;
        int r = parse(&config, spec, queues, &problems);

        if (r >= 0) {
                if (target_tree_flags(config.tree) & TARGET_ONE_QUEUE)
                        key.queues = 1;
                target_tree_kept(config.tree, &kept);
                wish.target = kept.name;
                wish.disk_bytes = kept.disk_bytes;
                wish.queue_bytes = kept.queue_bytes;
                wish.version = kept.version;
        }
        worker_config_clear(&config);
        if (r < 0)
                return r;
        if (wish.disk_bytes + wish.queue_bytes == 0) {
                *ret = -1;
                *ret_size = 0;
                return 0;
        }
        fd = memfd_create("region", MFD_CLOEXEC);
        r = fd < 0 ? -errno : region_kept_format(fd, &key, &wish, -1);
        if (r < 0)
                return r;
        *ret = TAKE_FD(fd);
        *ret_size = region_kept_size(&wish, key.queues);
        return 0;
}

int target_host_configure(
        struct target_host *host, const char *spec, unsigned queues, struct problem_list *problems)
{
        *host = (struct target_host){};
        return parse(&host->config, spec, queues, problems);
}

static int open_with(struct target_host *host, const char *spec, unsigned queues, int region,
        struct problem_list *problems)
{
        int r = target_host_configure(host, spec, queues, problems);

        if (r >= 0 && region >= 0)
                r = region_kept_give(region);
        if (r >= 0 && region >= 0)
                r = worker_config_map_region(&host->config, region, &host->shared.region, problems);
        if (host->config.stack)
                host->config.stack->stores_anywhere = true;
        return r < 0 ? r : target_host_start(host, problems);
}

int target_host_start(struct target_host *host, struct problem_list *problems)
{
        void *given = host->shared.region;
        int r;

        host->shared = shared_region_new();
        if (given) {
                shared_region_unmap(&host->shared);
                host->shared.region = given;
        }
        r = disk_open(&host->config, -1, &host->disk, problems);
        host->durability = (struct durability){.shared = &host->shared,
                .witnesses = host->disk.witnesses,
                .witness_count = host->disk.witness_count};
        return r < 0 ? r : start(host, problems);
}

int target_host_open(struct target_host *host, const char *spec, struct problem_list *problems)
{
        return open_with(host, spec, 1, -1, problems);
}

int target_host_open_queues(
        struct target_host *host, const char *spec, unsigned queues, struct problem_list *problems)
{
        return open_with(host, spec, queues, -1, problems);
}

int target_host_open_kept(
        struct target_host *host, const char *spec, int region, struct problem_list *problems)
{
        struct device_region_header header;
        int r = device_region_read_header(region, &header);

        *host = (struct target_host){};
        return r < 0 ? r : open_with(host, spec, header.queues, region, problems);
}

static int turn(struct io_loop *loop, bool wait)
{
        return wait ? loop_turn(loop) : io_loop_submit(loop, false);
}

static void close_loop(struct target_host *host, unsigned index)
{
        const struct target *target = host->disk.device.target;
        struct io_loop *loop = target_host_loop(host, index);

        if (host->open)
                (void)wait_room_stop(loop, turn);
        if (index < host->started && target->stop_queue)
                target->stop_queue(&loop->queue);
        free(loop->queue.state);
        wait_room_close(loop);
        io_loop_destroy(loop);
}

/* The worker keeps it to its end. A test opens thousands of hosts. */
static void unmap_kept(const struct target_host *host)
{
        const struct device_region_header *header = host->shared.region;
        const struct region_kept_map *kept = &host->config.kept;
        const struct region_kept_wish wish = {
                .disk_bytes = kept->disk_bytes, .queue_bytes = kept->queue_bytes};

        if (kept->base)
                (void)munmap(
                        kept->base - header->size, header->size + region_kept_size(&wish, header->queues));
}

void target_host_close(struct target_host *host)
{
        if (host->open)
                (void)queue_action_stop(&host->action, turn);
        for (unsigned i = host->queues; i-- > 0;)
                close_loop(host, i);
        host->work = work_pool_free(host->work);
        host->actions = action_port_free(host->actions);
        disk_close(&host->disk);
        unmap_kept(host);
        worker_config_clear(&host->config);
        if (host->data)
                (void)munmap(host->data, DATA_SIZE);
        shared_region_unmap(&host->shared);
        *host = (struct target_host){};
}

int target_host_act(struct target_host *host, uint64_t id, unsigned verb, const void *arguments, size_t size)
{
        struct action_order order = {.id = id, .worker = 1, .verb = verb};
        int r;

        assert(size <= sizeof(order.arguments));
        memcpy(order.arguments, arguments, size);
        r = action_port_give(host->actions, &order);
        while (r >= 0 && action_port_is_busy(host->actions))
                r = loop_turn(&host->loop);
        return r;
}

char *target_host_data(const struct target_host *host, unsigned index)
{
        return host->data + (size_t)index * HOST_DATA_SIZE;
}

static void request_co(void *argument)
{
        struct host_request *request = argument;

        request->result = perform_co(&request->io, request->durability);
}

int target_host_perform(struct target_host *host, struct host_request *requests, unsigned count)
{
        assert(count <= HOST_DEPTH);
        for (unsigned i = 0; i < count; i++) {
                struct host_request *request = &requests[i];
                bool has_data = request->op == IO_READ || request->op == IO_WRITE;
                int r;

                assert(!has_data || request->length <= HOST_DATA_SIZE);
                request->data = has_data ? target_host_data(host, i) : NULL;
                request->durability = &host->durability;
                request->io = (struct target_io){
                        .queue = &host->loop.queue,
                        .op = request->op,
                        .flags = request->flags,
                        .offset = request->offset,
                        .length = request->length,
                        .tag = (uint16_t)i,
                        .data = request->data,
                };
                r = co_start(&host->loop.coroutines, request_co, request);
                if (r < 0)
                        return r;
        }
        return loop_drive(&host->loop);
}

int target_host_one(struct target_host *host, enum io_op op, unsigned flags, uint64_t offset, uint32_t length)
{
        struct host_request request = {.op = op, .flags = flags, .offset = offset, .length = length};
        int r = target_host_perform(host, &request, 1);

        return r < 0 ? r : request.result;
}
