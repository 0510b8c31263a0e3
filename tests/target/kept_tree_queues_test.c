/* SPDX-License-Identifier: MIT */
/* Kept memory of a tree with three queues: each target finds that of the disk, and that of each queue, as the worker before has left it,
 * and none of it is another one's. */
#include "targets/target_tree_kept.h"
#include "tests/target/target_host.h"
#include "tests/unit/check.h"
#include "tests/unit/loop_driver.h"
#include "ublkd/base/cleanup.h"
#include "ublkd/proto/device_region.h"

#include <string.h>
#include <sys/mman.h>

enum {
        NODES = 4,
        QUEUES = 3,
        AREAS = 1 + QUEUES /* of a target: that of the disk is the first */,
        WORKERS = 3
};

static const struct {
        uint64_t disk, queue; /* bytes */
} sizes[NODES] = {
        {8,  100},
        {0,  65 },
        {70, 300},
        {40, 0  },
};

static struct target targets[NODES];
static struct target_desc descs[NODES];
static unsigned worker; /* which one serves */
static unsigned found;  /* areas, by all workers */
static uint64_t seeds[NODES * AREAS];

/* ---- the target of each node ---- */

/* What a worker leaves in each byte of an area. */
static char mark_of(unsigned of_worker, unsigned node, unsigned area)
{
        return (char)(1 + (of_worker * NODES + node) * AREAS + area);
}

static void use(const struct target_kept *kept, unsigned node, unsigned area, uint64_t size)
{
        char *bytes = kept->memory, wanted = worker > 0 ? mark_of(worker - 1, node, area) : '\0';

        CHECK_INT(kept->state, worker > 0 ? TARGET_KEPT_FOUND : TARGET_KEPT_FRESH);
        if (!CHECK_INT(kept->size, size))
                return;
        for (uint64_t i = 0; i < size && CHECK_INT(bytes[i], wanted); i++)
                continue;
        memset(bytes, mark_of(worker, node, area), size);
        seeds[node * AREAS + area] = kept->seed;
        found++;
}

static int open_node(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        (void)device;
        (void)problems;
        *ret = (struct target_geometry){.size = 4096};
        return 0;
}

static uint64_t size_of_node(const struct target_device *device, const uint64_t *of_children)
{
        (void)device;
        return of_children[0];
}

static int start_device(struct target_device *device, struct problem_list *problems)
{
        unsigned node = (unsigned)(device->target - targets);

        (void)problems;
        if (sizes[node].disk > 0)
                use(&device->kept, node, 0, sizes[node].disk);
        else
                CHECK(!device->kept.memory);
        return 0;
}

static int start_queue(struct target_queue *queue)
{
        unsigned node = (unsigned)(queue->device->target - targets);

        if (sizes[node].queue > 0 && CHECK(queue->kept))
                use(queue->kept, node, 1 + queue->index, sizes[node].queue);
        else
                CHECK(!queue->kept);
        return 0;
}

static int read_nothing(struct target_io *io)
{
        return (int)io->length;
}

/* ---- the workers ---- */

static bool put_targets(struct stack_config *stack)
{
        if (!CHECK_INT(stack->tree->count, NODES))
                return false;
        for (unsigned i = 0; i < NODES; i++) {
                descs[i] = *stack->tree->nodes[i].desc;
                descs[i].kept_disk_bytes = sizes[i].disk;
                descs[i].kept_queue_bytes = sizes[i].queue;
                targets[i] = (struct target){.desc = &descs[i],
                        .open = open_node,
                        .size = size_of_node,
                        .start_device = start_device,
                        .start_queue = start_queue,
                        .read = read_nothing};
                stack->targets[i] = &targets[i];
                stack->tree->nodes[i].desc = &descs[i];
        }
        stack_make(stack->tree, stack);
        return true;
}

static int parse(struct target_host *host, struct problem_list *problems)
{
        static const char tree[] =
                "{\"target\":{\"type\":\"stripe\",\"chunk\":4096,\"children\":[{\"type\":\"null\"},"
                "{\"type\":\"null\"},{\"type\":\"null\"}]},\"size\":4096}";

        return target_host_configure(host, tree, QUEUES, problems);
}

static int new_region(const struct target_tree_kept *kept)
{
        const struct region_kept_wish wish = {.target = kept->name,
                .disk_bytes = kept->disk_bytes,
                .queue_bytes = kept->queue_bytes,
                .version = kept->version,
                .new_disk = true};
        int fd = memfd_create("region", MFD_CLOEXEC);

        CHECK_INT(region_kept_format(fd, &(struct device_region_key){.queues = QUEUES}, &wish, -1), 0);
        return fd;
}

static void run_worker(int *region)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct target_host host;

        if (CHECK_INT(parse(&host, &problems), 0) && put_targets(host.config.stack)) {
                if (*region < 0) {
                        struct target_tree_kept kept;

                        target_tree_kept(host.config.tree, &kept);
                        *region = new_region(&kept);
                }
                CHECK_INT(region_kept_give(*region), 0);
                CHECK_INT(worker_config_map_region(&host.config, *region, &host.shared.region, &problems), 0);
                CHECK_INT(target_host_start(&host, &problems), 0);
                CHECK_INT(host.queues, QUEUES);
        }
        target_host_close(&host);
}

int main(void)
{
        _cleanup_close_ int region = -1;

        if (!io_uring_is_there())
                return CHECK_SKIP;
        for (worker = 0; worker < WORKERS; worker++)
                run_worker(&region);
        CHECK_INT(found, WORKERS * (3 + 3 * QUEUES));
        for (unsigned i = 0; i < NODES * AREAS; i++)
                for (unsigned k = 0; k < i; k++)
                        CHECK(seeds[i] == 0 || seeds[i] != seeds[k]);
        return check_report();
}
