/* SPDX-License-Identifier: MIT */
/* A device spec: parsed, checked and compared.
 *
 * The generated tables check what a schema can say. The rules below check fields against each other and
 * against the target. A rule runs only if the fields that it reads are valid: otherwise it would report a
 * default that the client has not given. */
#include "ublkd/model/device_spec.h"
#include "targets/known/target_tree_parse.h"
#include "ublkd/values/quantity.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CPU_MASK_SIZE = 4096 / 8, HANG_AFTER_MIN = 1000 * 1000 /* microseconds */ };

/* Return whether no problem was found at `pointer` or below it. */
static bool is_good(const struct problem_list *problems, const char *pointer)
{
        for (size_t i = 0; i < problems->count; i++)
                if (pointer_rest(problems->items[i].pointer, pointer))
                        return false;
        return problems->dropped == 0;
}

static int rule_size_required(const struct device_spec *spec, struct problem_list *problems)
{
        if (spec->options.size != 0 || target_tree_has_size(spec->tree))
                return 0;
        if (spec->target->has_size && !is_good(problems, "/target")) /* it depends on what is below */
                return 0;
        return problem_add(problems, EINVAL, "/size", "SizeRequired",
                "size is missing, and the target %s has none of its own; give one, like \"1GiB\"",
                spec->target->name);
}

static int rule_size_multiple(const struct device_spec *spec, struct problem_list *problems)
{
        const struct device_options *options = &spec->options;

        if (options->block_size == 0 || options->size % (uint64_t)options->block_size == 0)
                return 0;
        return problem_add(problems, EINVAL, "/size", "SizeNotMultiple",
                "size is %llu, not a multiple of blockSize; give a multiple of %lld",
                (unsigned long long)options->size, (long long)options->block_size);
}

static int rule_queues(const struct device_spec *spec, struct problem_list *problems)
{
        if (!(target_tree_flags(spec->tree) & TARGET_ONE_QUEUE) || spec->options.queues <= 1)
                return 0;
        return problem_add(problems, EINVAL, "/queues", "OneQueueOnly",
                "queues is %lld, but the target %s can serve only one; give 1 or \"auto\"",
                (long long)spec->options.queues, spec->target->name);
}

/* That memory is not of the control group of the worker; but what the disk may take of the host has one limit. */
static int rule_kept(const struct device_spec *spec, struct problem_list *problems)
{
        uint64_t most = spec->options.resources.memory_max, kept = device_spec_kept_bytes(spec);
        char most_text[SIZE_TEXT_MAX], kept_text[SIZE_TEXT_MAX];

        if (most == 0 || kept <= most)
                return 0;
        format_size(most, most_text);
        format_size(kept, kept_text);
        return problem_add(problems, EINVAL, "/resources/memoryMax", "KeptMemoryTooLarge",
                "memoryMax is %s, but the %s %s %s %s for a disk; give as much, or fewer queues", most_text,
                spec->tree->count > 1 ? "targets of" : "target", spec->target->name,
                spec->tree->count > 1 ? "keep" : "keeps", kept_text);
}

static int rule_on_crash(const struct device_spec *spec, struct problem_list *problems)
{
        if (spec->options.recovery.on_crash != ON_CRASH_REISSUE
                || (target_tree_flags(spec->tree) & TARGET_REISSUE_SAFE))
                return 0;
        return problem_add(problems, EINVAL, "/recovery/onCrash", "ReplayUnsafe",
                "onCrash is \"reissue\", but a request that is replayed would do harm with the target %s; "
                "give \"queue\", \"fail\" or \"none\"",
                spec->target->name);
}

static bool is_limited(const struct io_limits *limits)
{
        return limits->iops > 0 || limits->bytes_per_sec > 0;
}

/* The driver kills a worker that holds a request for 30 seconds (ublk_timeout()). 0 (also when problems were added) or
 * -ENOMEM. */
static int check_holding(const struct device_options *options, struct problem_list *problems)
{
        int r = 0;

        if (options->on_full == ON_FULL_WAIT)
                r = problem_add(problems, EINVAL, "/onFull", "WaitInKernelIsolation",
                        "in the unprivileged mode of the driver no request may wait for long; give onFull "
                        "\"error\", or leave isolation out");
        if (r >= 0 && (is_limited(&options->limits.read) || is_limited(&options->limits.write)))
                r = problem_add(problems, EINVAL, "/limits", "LimitsInKernelIsolation",
                        "in the unprivileged mode of the driver no request may wait for long; leave it "
                        "out, or leave isolation out");
        return r;
}

/* What a disk of the driver's unprivileged mode needs and cannot have (ublk_ctrl_add_dev(), ublk_open() in ublk_drv.c). 0
 * (also when problems were added) or -ENOMEM. */
static int rule_isolation(const struct device_spec *spec, struct problem_list *problems)
{
        const struct device_options *options = &spec->options;
        int r = 0;

        if (options->isolation != ISOLATION_KERNEL)
                return 0;
        if (options->recovery.on_crash != ON_CRASH_NONE)
                r = problem_add(problems, EINVAL, "/recovery/onCrash", "NoRecoveryInKernelIsolation",
                        "the unprivileged mode of the driver has no recovery; give onCrash \"none\", or "
                        "leave isolation out");
        if (r >= 0 && options->data_path != DATA_PATH_AUTO && options->data_path != DATA_PATH_COPY)
                r = problem_add(problems, EINVAL, "/dataPath", "CopyInKernelIsolation",
                        "the unprivileged mode of the driver has no dataPath but \"copy\"; give \"copy\" "
                        "or \"auto\", or leave isolation out");
        if (r >= 0 && options->owner.gid < 0)
                r = problem_add(problems, EINVAL, "/owner/gid", "GroupInKernelIsolation",
                        "in the unprivileged mode of the driver only processes of one user and one group "
                        "open the disk; give owner.gid, the group of these processes, or leave isolation "
                        "out");
        return r < 0 ? r : check_holding(options, problems);
}

/* A machine that is busy may keep a worker from its CPU for a while. */
static int rule_hang_after(const struct device_spec *spec, struct problem_list *problems)
{
        uint64_t hang_after = spec->options.recovery.hang_after;

        if (hang_after == 0 || hang_after >= HANG_AFTER_MIN)
                return 0;
        return problem_add(problems, EINVAL, "/recovery/hangAfter", "HangAfterTooShort",
                "hangAfter is %llu us, which a worker that is well may need; give at least 1s, or \"0\" for "
                "never",
                (unsigned long long)hang_after);
}

static int rule_cpus(const struct device_spec *spec, struct problem_list *problems)
{
        unsigned char mask[CPU_MASK_SIZE];
        int r = spec->options.cpus ? parse_cpu_list(spec->options.cpus, mask, sizeof(mask)) : 0;

        if (r == 0)
                return 0;
        return problem_add(problems, EINVAL, "/cpus", "BadCpuList",
                "cpus is \"%s\", %s; give CPU numbers and ascending ranges, like \"0-3,8\"",
                spec->options.cpus,
                r == -ERANGE ? "which names a CPU above 4095" : "which has a range that does not ascend");
}

/* A block of the disk must not straddle two blocks of what is below. */
static int check_multiple(
        const struct device_spec *spec, unsigned number, const char *name, struct problem_list *problems)
{
        const struct target_node *node = &spec->tree->nodes[number];
        const struct option_field *option = option_find(node->desc->options, name);
        char pointer[TARGET_POINTER_SIZE], whole[TARGET_POINTER_SIZE + 16];
        uint64_t value;

        if (!option || option->kind != OPTION_BYTES)
                return 0;
        memcpy(&value, (const char *)node->options + option->offset, sizeof(value));
        if (value % (uint64_t)spec->options.block_size == 0)
                return 0;
        target_tree_pointer(spec->tree, number, pointer);
        snprintf(whole, sizeof(whole), "%s/%s", pointer, name);
        return problem_add(problems, EINVAL, whole, "OffsetNotMultiple",
                "%s is %llu, not a multiple of blockSize; give a multiple of %lld", name,
                (unsigned long long)value, (long long)spec->options.block_size);
}

static int rule_offset_multiple(const struct device_spec *spec, struct problem_list *problems)
{
        int r = 0;

        for (unsigned i = 0; r >= 0 && spec->options.block_size != 0 && i < spec->tree->count; i++) {
                r = check_multiple(spec, i, "offset", problems);
                if (r >= 0)
                        r = check_multiple(spec, i, "length", problems);
        }
        return r;
}

static int rule_target(const struct device_spec *spec, struct problem_list *problems)
{
        return target_tree_check(spec->tree, spec->options.size, problems);
}

/* 0 (also when a problem was added) or -ENOMEM. */
static int check_burst(
        struct problem_list *problems, const char *direction, const char *rate, bool burst_alone)
{
        char pointer[64];

        if (!burst_alone)
                return 0;
        snprintf(pointer, sizeof(pointer), "/limits/%s/%sBurst", direction, rate);
        return problem_add(problems, EINVAL, pointer, "BurstWithoutLimit",
                "%sBurst is given, but there is no limit that it would go beyond; give %s, too", rate, rate);
}

static int check_bursts(struct problem_list *problems, const char *direction, const struct io_limits *limits)
{
        int r = check_burst(problems, direction, "iops", limits->iops_burst > 0 && limits->iops == 0);

        return r < 0 ? r
                     : check_burst(problems, direction, "bytesPerSec",
                               limits->bytes_per_sec_burst > 0 && limits->bytes_per_sec == 0);
}

static int rule_burst(const struct device_spec *spec, struct problem_list *problems)
{
        int r = check_bursts(problems, "read", &spec->options.limits.read);

        return r < 0 ? r : check_bursts(problems, "write", &spec->options.limits.write);
}

/* 0 (also when a problem was added) or -ENOMEM. */
typedef int (*spec_rule)(const struct device_spec *spec, struct problem_list *problems);

static const struct {
        spec_rule check;
        bool needs_target;     /* every type of its tree is known */
        const char *fields[5]; /* the rule runs only if all are valid */
} rules[] = {
        {.check = rule_size_required, .needs_target = true, .fields = {"/size"}},
        {.check = rule_size_multiple, .fields = {"/size", "/blockSize"}},
        {.check = rule_burst, .needs_target = false, .fields = {"/limits"}},
        {.check = rule_queues, .needs_target = true, .fields = {"/queues"}},
        {.check = rule_kept, .needs_target = true, .fields = {"/target", "/queues", "/resources"}},
        {.check = rule_on_crash, .needs_target = true, .fields = {"/recovery"}},
        {.check = rule_isolation, .fields = {"/recovery", "/dataPath", "/owner", "/onFull", "/limits"}},
        {.check = rule_hang_after, .fields = {"/recovery"}},
        {.check = rule_cpus, .fields = {"/cpus"}},
        {.check = rule_offset_multiple, .needs_target = true, .fields = {"/target", "/blockSize"}},
        {.check = rule_target, .needs_target = true, .fields = {"/target", "/size"}},
};

static bool has_known_targets(const struct device_spec *spec)
{
        for (unsigned i = 0; spec->tree && i < spec->tree->count; i++)
                if (!spec->tree->nodes[i].desc)
                        return false;
        return spec->tree != NULL;
}

static int check_rules(const struct device_spec *spec, struct problem_list *problems)
{
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                bool applies = !rules[i].needs_target || has_known_targets(spec);

                for (size_t j = 0; j < ARRAY_SIZE(rules[i].fields) && rules[i].fields[j]; j++)
                        applies = applies && is_good(problems, rules[i].fields[j]);
                if (applies && rules[i].check(spec, problems) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Return 0 (also if problems were added) or -ENOMEM. */
static int parse_target(struct device_spec *spec, struct problem_list *problems)
{
        int r;

        if (!spec->options.target)
                return 0;
        r = target_tree_parse(spec->options.target, &spec->tree, problems);
        spec->target = r >= 0 ? spec->tree->nodes[0].desc : NULL;
        return r;
}

/* Add the name to a document without one, else compare the two. Return 0 (also if a problem was added) or
 * -ENOMEM. */
static int settle_name(cJSON *document, const char *name, struct problem_list *problems)
{
        const cJSON *given = cJSON_GetObjectItemCaseSensitive(document, "name");

        if (!given)
                return cJSON_AddStringToObject(document, "name", name) ? 0 : -ENOMEM;
        if (!cJSON_IsString(given) || strcmp(given->valuestring, name) == 0)
                return 0;
        return problem_add(problems, EINVAL, "/name", "NameMismatch",
                "the name differs from that of the device, \"%s\", and cannot be changed; leave it out, or "
                "create another device",
                name);
}

static int parse(
        struct device_spec *spec, const cJSON *document, const char *name, struct problem_list *problems)
{
        int r;

        spec->document = cJSON_Duplicate(document, true);
        if (!spec->document)
                return -ENOMEM;
        if (name && cJSON_IsObject(spec->document)) {
                r = settle_name(spec->document, name, problems);
                if (r < 0)
                        return r;
        }
        r = dispatch(spec->document, &device_spec_table, "", &spec->options, problems);
        if (r == -ENOMEM)
                return r;
        r = parse_target(spec, problems);
        if (r < 0)
                return r;
        return check_rules(spec, problems);
}

int device_spec_parse(
        const cJSON *document, const char *name, struct device_spec **ret, struct problem_list *problems)
{
        /* Not the list of the caller: is_good() must see the problems of this spec only. */
        _cleanup_problems_ struct problem_list found = {};
        _cleanup_device_spec_ struct device_spec *spec = calloc(1, sizeof(*spec));
        int r;

        if (!spec)
                return -ENOMEM;
        r = parse(spec, document, name, &found);
        if (r < 0)
                return r;
        if (found.count > 0) {
                r = problem_list_append(problems, &found);
                return r < 0 ? r : -EINVAL;
        }
        *ret = TAKE_PTR(spec);
        return 0;
}

struct device_spec *device_spec_free(struct device_spec *spec)
{
        if (!spec)
                return NULL;
        target_tree_free(spec->tree);
        dispatch_release(&spec->options, &device_spec_table);
        cJSON_Delete(spec->document);
        free(spec);
        return NULL;
}

unsigned device_spec_flags(const struct device_spec *spec)
{
        return target_tree_flags(spec->tree);
}

uint64_t device_spec_kept_bytes(const struct device_spec *spec)
{
        struct target_tree_kept kept = {};
        int64_t queues = spec->options.queues;

        if (spec->tree)
                target_tree_kept(spec->tree, &kept);
        if (kept.queue_bytes == 0)
                return kept.disk_bytes;
        if (device_spec_flags(spec) & TARGET_ONE_QUEUE)
                queues = 1;
        else if (queues == OPTION_AUTO)
                queues = QUEUES_AUTO_MAX;
        return kept.disk_bytes + (uint64_t)queues * kept.queue_bytes;
}

enum on_crash device_spec_on_crash(const struct device_spec *spec)
{
        if (spec->options.recovery.on_crash != ON_CRASH_DEFAULT)
                return (enum on_crash)spec->options.recovery.on_crash;
        return target_tree_flags(spec->tree) & TARGET_REISSUE_SAFE ? ON_CRASH_REISSUE : ON_CRASH_QUEUE;
}

/* Compare the options that a disk is made with. */
static bool targets_equal(const struct device_spec *one, const struct device_spec *other)
{
        return target_tree_equal(one->tree, other->tree, false);
}

static bool targets_same(const struct device_spec *one, const struct device_spec *other)
{
        return target_tree_equal(one->tree, other->tree, true);
}

bool device_spec_targets_equal(const struct device_spec *one, const struct device_spec *other)
{
        return targets_equal(one, other);
}

static bool on_crash_equal(const struct device_spec *one, const struct device_spec *other)
{
        return device_spec_on_crash(one) == device_spec_on_crash(other);
}

/* The driver keeps the owner of a disk in its unprivileged mode. */
static bool driver_owners_equal(const struct device_spec *one, const struct device_spec *other)
{
        return one->options.isolation != ISOLATION_KERNEL
               || (one->options.owner.uid == other->options.owner.uid
                       && one->options.owner.gid == other->options.owner.gid);
}

/* All of "recovery" that concerns the supervisor alone. */
static bool triggers_equal(const struct device_spec *one, const struct device_spec *other)
{
        return one->options.recovery.trigger == other->options.recovery.trigger
               && one->options.recovery.give_up_after == other->options.recovery.give_up_after
               && one->options.recovery.hang_after == other->options.recovery.hang_after;
}

/* Without a size in the spec the disk keeps its size. */
static bool size_is_live(const struct device_spec *to, const struct disk_now *now, const char **ret_why)
{
        uint64_t size = to->options.size;

        if (size == 0 || size == now->size)
                return true;
        if (size > now->size && now->size > 0 && now->can_grow)
                return true;
        *ret_why = size < now->size ? "a disk cannot shrink while it is in use"
                   : now->size > 0  ? "this kernel cannot change the size of a disk; Linux 6.16 can"
                                    : NULL;
        return false;
}

/* Without an id in the spec the device keeps its number. */
static bool id_is_live(
        const struct device_spec *to, const struct disk_now *now, const char **ret_why _unused_)
{
        return to->options.id < 0 || to->options.id == now->number;
}

/* How the fields of a spec compare. A field that is not listed is compared by value, and a change of it needs
 * a new disk. */
static const struct field_rule {
        const char *option; /* as in the table */
        const char *field;  /* the name in messages, if it is only a part of the option */
        bool live;          /* can be changed while the disk is served */
        /* NULL, or whether this change can; else *ret_why says why not */
        bool (*is_live)(const struct device_spec *to, const struct disk_now *now, const char **ret_why);
        bool (*equal)(const struct device_spec *one, const struct device_spec *other); /* NULL: by value */
} field_rules[] = {
        {.option = "target", .field = "target", .equal = targets_equal},
        {.option = "target", .field = "target", .live = true, .equal = targets_same},
        {.option = "recovery", .field = "recovery.onCrash", .equal = on_crash_equal},
        {.option = "recovery", .field = "recovery.trigger", .live = true, .equal = triggers_equal},
        {.option = "size", .field = "size", .is_live = size_is_live},
        {.option = "id", .field = "id", .is_live = id_is_live},
        {.option = "limits", .field = "limits", .live = true},
        {.option = "resources", .field = "resources", .live = true},
        {.option = "busyPollUs", .field = "busyPollUs", .live = true},
        {.option = "onFull", .field = "onFull", .live = true},
        {.option = "partitions", .field = "partitions", .live = true},
        {.option = "temporary", .field = "temporary", .live = true},
        {.option = "labels", .field = "labels", .live = true},
        {.option = "owner", .field = "owner", .equal = driver_owners_equal},
        {.option = "owner", .field = "owner", .live = true},
        {.option = "enabled", .field = "enabled", .live = true},
};

/* Compare one field of the table by value. */
static bool option_equal(
        const struct device_spec *one, const struct device_spec *other, const struct option_field *option)
{
        const struct option_table single = {.options = option, .count = 1};

        return dispatch_equal(&one->options, &other->options, &single, NULL);
}

static bool rule_holds(const struct field_rule *rule, const struct device_spec *one,
        const struct device_spec *other, const struct option_field *option)
{
        return rule->equal ? rule->equal(one, other) : option_equal(one, other, option);
}

/* Find the first difference. Return false if there is none. now: NULL: any difference counts; else only a
 * difference that needs a new disk. */
static bool difference(const struct device_spec *one, const struct device_spec *other,
        const struct disk_now *now, struct disk_change *ret)
{
        for (size_t i = 0; i < device_spec_table.count; i++) {
                const struct option_field *option = &device_spec_table.options[i];
                bool ruled = false;

                *ret = (struct disk_change){.field = option->name};
                for (size_t j = 0; j < ARRAY_SIZE(field_rules); j++) {
                        const struct field_rule *rule = &field_rules[j];

                        if (strcmp(rule->option, option->name) != 0)
                                continue;
                        ruled = true;
                        ret->field = rule->field;
                        if ((now && rule->live) || rule_holds(rule, one, other, option))
                                continue;
                        if (!now || !rule->is_live || !rule->is_live(other, now, &ret->why))
                                return true;
                }
                if (!ruled && !option_equal(one, other, option))
                        return true;
        }
        return false;
}

bool device_spec_equal(const struct device_spec *one, const struct device_spec *other)
{
        struct disk_change change;

        return !difference(one, other, NULL, &change);
}

bool device_spec_needs_new_disk(const struct device_spec *from, const struct device_spec *to,
        const struct disk_now *now, struct disk_change *ret)
{
        struct disk_change change;

        if (!difference(from, to, now, &change))
                return false;
        if (ret)
                *ret = change;
        return true;
}

bool device_spec_lets_users_write(const struct device_spec *spec)
{
        unsigned long mode = strtoul(spec->options.owner.mode, NULL, 8);

        return spec->options.owner.uid != 0 || mode & S_IWOTH
               || (mode & S_IWGRP && spec->options.owner.gid > 0);
}

bool device_spec_is_volume(const struct device_spec *spec)
{
        return !spec->options.private_node
               && cJSON_GetObjectItemCaseSensitive(spec->options.target, "pool") != NULL
               && !device_spec_lets_users_write(spec);
}

bool device_name_is_valid(const char *name)
{
        /* The table defines a valid name; use it, so that the definition exists once. */
        const struct option_table single = {
                .options = option_find(&device_spec_table, "name"),
                .count = 1,
                .struct_size = device_spec_table.struct_size,
        };
        _cleanup_problems_ struct problem_list problems = {};
        struct device_options options = {};
        cJSON *document = cJSON_CreateObject();
        bool valid = document && cJSON_AddStringToObject(document, "name", name)
                     && dispatch(document, &single, "", &options, &problems) == 0;

        dispatch_release(&options, &single);
        cJSON_Delete(document);
        return valid;
}
