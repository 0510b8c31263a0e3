/* SPDX-License-Identifier: MIT */
/* What the worker reads out of a CONFIG message: the few fields of a spec that are its business.
 *
 * The supervisor has checked the spec against the schema. Here only the fields that are used are looked at,
 * so that a new field of the spec does not concern the worker. */
#include "targets/worker/disk/config.h"
#include "targets/known/target_tree_parse.h"
#include "targets/target_tree_kept.h"
#include "targets/worker/disk/registry.h"
#include "targets/worker/disk/target_check.h"
#include "ublkd/values/cpu_list.h"
#include "ublkd/values/json_util.h"

#include <stdio.h>
#include <string.h>

struct spec_fields {
        cJSON *target;
        uint64_t size;
        int64_t block_size;
        bool read_only;
        char *cpus;
};

static const struct option_field spec_options[] = {
        {.name = "target",
         .kind = OPTION_DOCUMENT,
         .offset = offsetof(struct spec_fields, target),
         .required = true},
        {.name = "size",
         .kind = OPTION_BYTES,
         .offset = offsetof(struct spec_fields, size),
         .maximum = INT64_MAX},
        {.name = "blockSize",
         .kind = OPTION_INTEGER,
         .offset = offsetof(struct spec_fields, block_size),
         .maximum = INT32_MAX},
        {.name = "readOnly", .kind = OPTION_BOOL, .offset = offsetof(struct spec_fields, read_only)},
        {.name = "cpus",
         .kind = OPTION_STRING,
         .offset = offsetof(struct spec_fields, cpus),
         .length_max = 4096},
};

static const struct option_table spec_table = {
        .options = spec_options,
        .count = ARRAY_SIZE(spec_options),
        .struct_size = sizeof(struct spec_fields),
};

static void release_fields(struct spec_fields *fields)
{
        dispatch_release(fields, &spec_table);
}

static bool is_ours(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(spec_options); i++)
                if (strcmp(spec_options[i].name, name) == 0)
                        return true;
        return false;
}

/* Leaves only the fields of spec_table. */
static void keep_ours(cJSON *spec)
{
        cJSON *next;

        for (cJSON *item = spec->child; item; item = next) {
                next = item->next;
                if (!is_ours(item->string))
                        cJSON_Delete(cJSON_DetachItemViaPointer(spec, item));
        }
}

static int parse_cpus(const char *text, struct worker_config *ret, struct problem_list *problems)
{
        unsigned char mask[CPU_SETSIZE / 8];
        int r;

        r = parse_cpu_list(text, mask, sizeof(mask));
        if (r < 0)
                return problem_add(problems, -r, "/cpus", "CpusInvalid",
                        "\"%s\" is not a list of CPUs like \"0-3,8\", or names one beyond %d.", text,
                        CPU_SETSIZE - 1);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (mask[cpu / 8] & 1 << cpu % 8)
                        CPU_SET(cpu, &ret->cpus);
        ret->cpus_given = true;
        return 0;
}

/* Return NULL with a problem where this worker has no such target, or one that is not complete; or on ENOMEM. */
static const struct target *target_of(
        const struct target_tree *tree, unsigned number, struct problem_list *problems)
{
        const struct target_desc *desc = tree->nodes[number].desc;
        const struct target *target = desc ? target_find(desc->name) : NULL;
        const char *lack = target ? target_check(target) : NULL;
        char pointer[TARGET_POINTER_SIZE + 8];

        if (target && !lack)
                return target;
        target_tree_pointer(tree, number, pointer);
        strcat(pointer, "/type");
        if (!target)
                (void)problem_add(
                        problems, ENOENT, pointer, "UnknownTarget", "This worker has no such target.");
        else
                (void)problem_add(problems, ENOENT, pointer, "UnknownTarget",
                        "The target \"%s\" of this worker is not complete. %s", desc->name, lack);
        return NULL;
}

/* Several targets become one. */
static int make_stack(struct worker_config *ret, struct problem_list *problems)
{
        ret->stack = calloc(1, sizeof(*ret->stack));
        if (!ret->stack)
                return -ENOMEM;
        for (unsigned i = 0; i < ret->tree->count; i++) {
                ret->stack->targets[i] = target_of(ret->tree, i, problems);
                if (!ret->stack->targets[i])
                        return problems->count > 0 ? -EINVAL : -ENOMEM;
        }
        stack_make(ret->tree, ret->stack);
        ret->target = &ret->stack->target;
        ret->options = ret->stack;
        return 0;
}

static int parse_target(const cJSON *object, struct worker_config *ret, struct problem_list *problems)
{
        size_t before = problems->count;
        int r = target_tree_parse(object, &ret->tree, problems);

        if (r < 0 || problems->count > before)
                return r < 0 ? r : -EINVAL;
        if (ret->tree->count > 1)
                return make_stack(ret, problems);
        ret->target = target_of(ret->tree, 0, problems);
        ret->options = ret->tree->nodes[0].options;
        return ret->target ? 0 : problems->count > before ? -EINVAL : -ENOMEM;
}

static int parse_spec(const char *text, struct worker_config *ret, struct problem_list *problems)
{
        _cleanup_(release_fields) struct spec_fields fields = {};
        _cleanup_json_ cJSON *spec = cJSON_Parse(text);
        int r;

        if (!cJSON_IsObject(spec)) {
                r = problem_add(problems, EBADMSG, "", "MalformedSpec", "The spec is not a JSON object.");
                return r < 0 ? r : -EINVAL;
        }
        keep_ours(spec);
        r = dispatch(spec, &spec_table, "", &fields, problems);
        if (r < 0)
                return r;
        ret->wish.size = fields.size;
        ret->wish.block_size = (uint32_t)fields.block_size;
        ret->wish.read_only = fields.read_only;
        r = fields.cpus ? parse_cpus(fields.cpus, ret, problems) : 0;
        return r < 0 ? r : parse_target(fields.target, ret, problems);
}

static void copy_token(char to[static BACKING_TOKEN_SIZE], const char *from)
{
        snprintf(to, BACKING_TOKEN_SIZE, "%s", from ? from : ""); /* the message has checked its length */
}

static void read_expected(const struct worker_msg *msg, struct worker_config *ret)
{
        ret->expected.basis = (enum backing_basis)msg->config.expected_basis;
        ret->expected.is_disk = msg->config.expected_is_disk;
        copy_token(ret->expected.boot, msg->config.expected_boot);
        copy_token(ret->expected.lasting, msg->config.expected_lasting);
        ret->expected_in_this_boot = msg->config.expected_in_this_boot;
        ret->expected_served = msg->config.expected_served;
        ret->shared = msg->config.shared;
        ret->store_user = msg->config.store_user;
}

/* ---- several stores ---- */

static unsigned count_stores(const struct target_tree *tree)
{
        unsigned count = 0;

        for (unsigned i = 0; i < tree->count; i++)
                count += target_node_has_store(&tree->nodes[i]);
        return count;
}

static int refuse_list(unsigned there, unsigned given, const char *what, struct problem_list *problems)
{
        int r = problem_add(problems, EBADMSG, "/target", "MalformedSpec",
                "The target has %u backing stores, and ublkd gave the worker %u %s; install ublkd and "
                "ublkd-worker of one version, and start ublkd again.",
                there, given, what);

        return r < 0 ? r : -EINVAL;
}

/* `given` only says that there is to be a descriptor: worker_config_take_stores(). */
static struct target_store read_store(
        const struct listed_store *from, const struct worker_config *config, unsigned count)
{
        return (struct target_store){
                .given = -1,
                .kept = -1,
                .as_given = from->has_fd,
                .expected = from->identity,
                .expected_in_this_boot = from->in_this_boot,
                .served = config->exists,
                .has_data = config->wish.has_data,
                .shared = from->is_shared,
                .is_one_of_several = count > 1,
                .user = from->user,
        };
}

static int read_list(const struct store_list *list, struct worker_config *ret, struct problem_list *problems)
{
        unsigned there = count_stores(ret->tree);

        if (list->count == 0)
                return 0;
        if (!ret->stack || list->count != there)
                return refuse_list(there, list->count, "of them in a list", problems);
        ret->stores = calloc(list->count, sizeof(*ret->stores));
        if (!ret->stores)
                return -ENOMEM;
        ret->store_count = list->count;
        for (unsigned i = 0; i < list->count; i++) {
                ret->stores[i] = read_store(&list->items[i], ret, list->count);
                ret->expected_served =
                        ret->expected_served || list->items[i].was_served || list->items[i].has_fd;
        }
        ret->stack->stores = ret->stores;
        ret->stack->store_count = ret->store_count;
        return 0;
}

int worker_config_take_stores(
        struct worker_config *config, int fds[static STORE_LIST_MAX], struct problem_list *problems)
{
        unsigned wanted = 0, there = 0;

        while (there < STORE_LIST_MAX && fds[there] >= 0)
                there++;
        for (unsigned i = 0; i < config->store_count; i++)
                wanted += config->stores[i].as_given;
        if (config->store_count > 0 && wanted != there) /* which of them is missing is not known */
                return refuse_list(
                        config->store_count, there, "descriptors of them, not those of its list", problems);
        for (unsigned i = 0, next = 0; i < config->store_count; i++)
                if (config->stores[i].as_given) {
                        config->stores[i].given = TAKE_FD(fds[next]);
                        next++;
                }
        return 0;
}

static bool any_is_expected(const struct store_list *list)
{
        for (unsigned i = 0; i < list->count; i++)
                if (!backing_identity_is_empty(&list->items[i].identity))
                        return true;
        return false;
}

int worker_config_parse(
        const struct worker_msg *msg, struct worker_config *ret, struct problem_list *problems)
{
        int r;

        *ret = (struct worker_config){
                .name = strdup(msg->config.name),
                .uid = strdup(msg->config.uid),
                .epoch = msg->config.epoch,
                .restart = msg->config.restart,
                .started_at = msg->config.started_at,
                .lock = msg->config.lock,
                .exists = msg->config.exists,
                .wish = {.queues = msg->config.queues,
                         .queue_depth = msg->config.queue_depth,
                         .max_io_size = msg->config.max_io_size},
        };
        if (!ret->name || !ret->uid)
                return -ENOMEM;
        read_expected(msg, ret);
        ret->wish.has_data = ret->exists || msg->config.has_data || !backing_identity_is_empty(&ret->expected)
                             || any_is_expected(&msg->config.stores);
        r = parse_spec(msg->config.spec, ret, problems);
        if (r >= 0 && problems->count == 0)
                r = read_list(&msg->config.stores, ret, problems);
        if (r < 0)
                return r;
        return problems->count > 0 ? -EINVAL : 0;
}

static void share_live(struct worker_config *config, struct region_control *control)
{
        _Static_assert((int)REGION_TARGET_OPTIONS == (int)TARGET_LIVE_MAX
                               && (int)REGION_TARGET_COUNTS == (int)TARGET_COUNTS_MAX,
                "the contract promises what the region has");
        config->live = (struct target_live){
                .sequence = &control->target.sequence,
                .size = &control->target.size,
                .options = control->target.options,
                .counts = control->target.counts,
        };
}

static int map_region(struct worker_config *config, int fd, void **ret)
{
        struct target_tree_kept kept;
        struct region_kept_wish wish;
        int r = fd < 0 ? -EBADF : device_region_map(fd, config->wish.queues, ret);

        _Static_assert((int)REGION_KEPT_DISK_MAX == (int)TARGET_KEPT_DISK_MAX
                               && (int)REGION_KEPT_QUEUE_MAX == (int)TARGET_KEPT_QUEUE_MAX,
                "the contract promises what the region has");
        target_tree_kept(config->tree, &kept);
        wish = (struct region_kept_wish){
                .target = kept.name,
                .disk_bytes = kept.disk_bytes,
                .queue_bytes = kept.queue_bytes,
                .version = kept.version,
        };
        if (r >= 0)
                share_live(config, device_region_control(*ret));
        if (r >= 0)
                r = region_kept_map(fd, config->wish.queues, &wish, &config->kept);
        return r >= 0 && config->kept.base ? region_kept_take(fd) : r;
}

int worker_config_map_region(struct worker_config *config, int fd, void **ret, struct problem_list *problems)
{
        int r = map_region(config, fd, ret), added;

        if (r >= 0)
                return 0;
        if (r == -EPROTO)
                added = problem_add(problems, EPROTO, "", "RegionUnusable",
                        "The memory that workers of this device share cannot be used: the ublkd that made it "
                        "has "
                        "another version than this worker; install one version of both programs, and start "
                        "ublkd "
                        "again.");
        else
                added = problem_add(problems, -r, "", "RegionUnusable",
                        "The memory that workers of this device share cannot be used: %s; start the worker "
                        "through ublkd.",
                        strerror(-r));
        return added < 0 ? added : r;
}

void worker_config_clear(struct worker_config *config)
{
        for (unsigned i = 0; i < config->store_count; i++)
                close_fd(config->stores[i].given);
        free(config->stores);
        free(config->stack);
        target_tree_free(config->tree);
        free(config->name);
        free(config->uid);
        *config = (struct worker_config){};
}
