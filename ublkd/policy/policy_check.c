/* SPDX-License-Identifier: MIT */
/* Whether a rule allows a device.  What is not here is free: fields that take nothing from other users of the host, such as readOnly,
 * dataPath, blockSize, partitions, privateNode (without a node it takes a rule to have a file system), temporary, enabled and the
 * rest of recovery. A field that is added to the spec has to be looked at. */
#include "ublkd/policy/policy_check.h"

#include "ublkd/policy/policy_ceilings.h"
#include "ublkd/policy/policy_prefix.h"
#include "ublkd/policy/policy_verdict.h"
#include "ublkd/values/path_text.h"
#include "ublkd/values/quantity.h"
#include "ublkd/model/device_spec_store.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_SIZE = 256, LABEL_BYTES_MAX = 1024 };

/* Return whether the list, which may be NULL, has the name. */
static bool has_name(const cJSON *list, const char *name)
{
        const cJSON *item;

        cJSON_ArrayForEach (item, list) {
                if (strcmp(item->valuestring, name) == 0)
                        return true;
        }
        return false;
}

static bool has_field(const cJSON *object, const char *name)
{
        return cJSON_GetObjectItemCaseSensitive(object, name) != NULL;
}

static const char *text_of(const cJSON *object, const char *name)
{
        return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Print the names for a sentence, as many as there is room for. */
static void print_names(const cJSON *list, char ret[static NAMES_SIZE])
{
        const cJSON *item;
        int length = snprintf(ret, NAMES_SIZE, "%s", cJSON_GetArraySize(list) > 0 ? "" : "none");

        cJSON_ArrayForEach (item, list) {
                if (length + (int)strlen(item->valuestring) + 8 < NAMES_SIZE)
                        length += snprintf(ret + length, NAMES_SIZE - (size_t)length, "%s%s",
                                item == list->child ? "" : ", ", item->valuestring);
        }
}

/* ---- what it is made of ---- */

static void check_target(struct policy_verdict *verdict, unsigned number)
{
        const char *name = verdict->spec->tree->nodes[number].desc->name;
        char names[NAMES_SIZE], pointer[TARGET_POINTER_SIZE + 8];

        bool for_tests = verdict->spec->tree->nodes[number].desc->flags & TARGET_FOR_TESTS;

        if (has_name(verdict->rule->options.targets, name) && !for_tests)
                return;
        print_names(verdict->rule->options.targets, names);
        target_tree_pointer(verdict->spec->tree, number, pointer);
        strcat(pointer, "/type");
        if (for_tests) {
                policy_forbid(verdict, pointer,
                        "allows no target for tests, whatever it lists; give another than %s", name);
                return;
        }
        policy_forbid(verdict, pointer, "does not allow the target %s; its targets: %s", name, names);
}

/* One that is below another target needs the same right as one that is alone. */
static void check_targets(struct policy_verdict *verdict)
{
        for (unsigned i = 0; i < verdict->spec->tree->count; i++)
                check_target(verdict, i);
}

static bool is_below(const char *path, const char *directory)
{
        const char *rest = path_rest(path, directory);

        return rest && rest[0] != '\0' && rest[1] != '\0';
}

/* Return 1 if the path, as text, is below a directory of the rule, 0 if not, -ENOMEM. */
static int is_in_a_directory(const struct policy_rule *rule, const char *path)
{
        _cleanup_free_ char *plain = NULL;
        const cJSON *item;
        int r = path_make_absolute("/", path, &plain);

        if (r < 0 || strcmp(plain, path) != 0)
                return r;
        cJSON_ArrayForEach (item, rule->options.directories) {
                if (is_below(path, item->valuestring))
                        return 1;
        }
        return 0;
}

/* Only the text is checked: the worker opens the file with the rights of the user, and follows no link. A target whose
 * worker does not do that reaches what root can reach. */
static void check_path(struct policy_verdict *verdict, unsigned number, const char *path)
{
        const struct policy_rule *rule = verdict->rule;
        char directories[NAMES_SIZE], pools[NAMES_SIZE], pointer[TARGET_POINTER_SIZE + 8];
        int r = 0;

        if (verdict->spec->tree->nodes[number].desc->flags & TARGET_STORE_OF_USER)
                r = is_in_a_directory(rule, path);
        if (r < 0)
                verdict->error = -ENOMEM;
        if (r != 0)
                return;
        print_names(rule->options.directories, directories);
        print_names(rule->options.pools, pools);
        target_tree_pointer(verdict->spec->tree, number, pointer);
        strcat(pointer, "/path");
        policy_forbid(verdict, pointer,
                "does not allow this path; give a pool (its pools: %s), or a file of yours below one of its "
                "directories (%s), without \".\", \"..\" and \"//\"",
                pools, directories);
}

/* An image of a pool is the device's alone and as large as its size, which counts: it has no other part. */
static void check_store(struct policy_verdict *verdict)
{
        const struct device_spec *spec = verdict->spec;
        const char *pool = text_of(spec->options.target, "pool");
        char names[NAMES_SIZE];

        print_names(verdict->rule->options.pools, names);
        if (pool) {
                if (!has_name(verdict->rule->options.pools, pool))
                        policy_forbid(verdict, "/target/pool", "does not allow the pool %s; its pools: %s",
                                pool, names);
                if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(spec->options.target, "keep")))
                        policy_forbid(verdict, "/target/keep",
                                "keeps no image without its device, as it would not count any more; leave "
                                "out keep");
                return;
        }
        /* A path of a container is translated for the only store of a disk. */
        if (device_spec_has_list(spec)) {
                policy_forbid(verdict, "/target",
                        "allows one backing store for each disk, in which it lies as it is; give it as the "
                        "\"child\" of linear targets, or alone");
                return;
        }
        for (unsigned i = 0; i < spec->tree->count; i++) {
                const struct target_node *node = &spec->tree->nodes[i];

                if (!option_find(node->desc->options, "path"))
                        continue;
                if (target_node_path(node))
                        check_path(verdict, i, target_node_path(node));
                else
                        policy_require(verdict, "/target/pool", "give target.pool; its pools: %s", names);
        }
}

/* ---- how much ---- */

static void check_devices(struct policy_verdict *verdict, const struct policy_usage *usage)
{
        if (usage->devices >= (uint64_t)verdict->rule->options.devices)
                policy_exceed(verdict, "", "allows %lld devices, and you have %llu others; delete one",
                        (long long)verdict->rule->options.devices, (unsigned long long)usage->devices);
}

static void check_size(struct policy_verdict *verdict, const struct policy_usage *usage)
{
        uint64_t size = verdict->spec->options.size, most = verdict->rule->options.size;
        uint64_t kept = device_spec_kept_bytes(verdict->spec);
        char all[SIZE_TEXT_MAX], used[SIZE_TEXT_MAX], memory[SIZE_TEXT_MAX];

        if (size == 0) {
                policy_require(verdict, "/size", "give size: it counts for the sum of your devices");
                return;
        }
        if (usage->bytes <= most && size + kept <= most - usage->bytes)
                return;
        format_size(most, all);
        format_size(usage->bytes, used);
        format_size(kept, memory);
        if (kept > 0)
                policy_exceed(verdict, "/size",
                        "allows %s for all your devices, the others have %s, and the target of this one "
                        "keeps "
                        "%s in memory; give a smaller size",
                        all, used, memory);
        else
                policy_exceed(verdict, "/size",
                        "allows %s for all your devices, and the others have %s; give a smaller size", all,
                        used);
}

/* ---- which names and numbers ---- */

static void check_name(struct policy_verdict *verdict)
{
        char prefix[PREFIX_SIZE];

        policy_prefix_print(verdict->rule->options.name_prefix, verdict->client->uid, prefix);
        if (strncmp(verdict->spec->options.name, prefix, strlen(prefix)) != 0)
                policy_forbid(
                        verdict, "/name", "allows names that begin with \"%s\"; give such a name", prefix);
}

static void check_id(struct policy_verdict *verdict)
{
        const struct policy_rule *rule = verdict->rule;
        int64_t id = verdict->spec->options.id;

        if (id < 0 || (id >= rule->ids_first && id <= rule->ids_last))
                return;
        if (rule->ids_first < 0)
                policy_forbid(verdict, "/id", "allows no id; leave it out");
        else
                policy_forbid(verdict, "/id", "allows an id from %lld to %lld; give one of these, or none",
                        (long long)rule->ids_first, (long long)rule->ids_last);
}

static void check_cpus(struct policy_verdict *verdict)
{
        const struct policy_rule *rule = verdict->rule;
        unsigned char wanted[POLICY_CPU_MASK_SIZE];
        const char *cpus = verdict->spec->options.cpus;
        bool good = true;

        if (!cpus)
                return;
        if (!rule->options.cpus) {
                policy_forbid(verdict, "/cpus", "allows no cpus; leave it out");
                return;
        }
        good = parse_cpu_list(cpus, wanted, sizeof(wanted)) == 0;
        for (size_t i = 0; good && i < sizeof(wanted); i++)
                good = (wanted[i] & ~rule->cpus[i]) == 0;
        if (!good)
                policy_forbid(verdict, "/cpus", "allows the CPUs %s; give some of these", rule->options.cpus);
}

/* Every event has a copy of them, and all tenants share the room for events. */
static void check_labels(struct policy_verdict *verdict)
{
        const cJSON *label;
        size_t bytes = 0;

        cJSON_ArrayForEach (label, verdict->spec->options.labels) {
                bytes += strlen(label->string) + strlen(label->valuestring);
        }
        if (bytes > LABEL_BYTES_MAX)
                policy_exceed(verdict, "/labels",
                        "allows %d bytes of labels, and these have %zu; shorten them", LABEL_BYTES_MAX,
                        bytes);
}

/* Without a recovery the kernel removes the disk when the worker dies. Another disk may get its number before ublkd has
 * taken the node from the tenant. A disk in the driver's unprivileged mode has none, and has to have
 * an owner. Any other owner, also the one that it would have anyway, is refused: what the node of a tenant's disk is, ublkd
 * decides. */
static void check_recovery_and_owner(struct policy_verdict *verdict)
{
        if (verdict->spec->options.isolation == ISOLATION_KERNEL) {
                policy_forbid(verdict, "/isolation",
                        "does not allow kernel; give ublkd, or leave it out, and recovery.onCrash and owner "
                        "as well");
                return;
        }
        if (device_spec_on_crash(verdict->spec) == ON_CRASH_NONE)
                policy_forbid(verdict, "/recovery/onCrash",
                        "does not allow none; give reissue, queue or fail, or leave it out");
        if (has_field(verdict->spec->document, "owner"))
                policy_forbid(verdict, "/owner", "allows no owner; leave it out");
}

/* Buffered writes to the disk wait then, and sync(2) of each process of the host with them, and what suspends the host. With
 * `fail` they do not wait for a worker. */
static void check_waiting(struct policy_verdict *verdict)
{
        const struct device_options *options = &verdict->spec->options;

        if (verdict->rule->options.waiting)
                return;
        if (options->on_full == ON_FULL_WAIT)
                policy_forbid(verdict, "/onFull",
                        "does not allow wait (\"waiting\"), because sync(2) of every process would wait for "
                        "it; give error, or leave it out");
        if (options->recovery.trigger == TRIGGER_MANUAL
                && device_spec_on_crash(verdict->spec) != ON_CRASH_FAIL)
                policy_forbid(verdict, "/recovery/trigger",
                        "does not allow manual (\"waiting\"), because sync(2) of every process would wait "
                        "for it; give auto, or leave it out, or give fail for recovery.onCrash");
}

int policy_check_mount(const struct policy_rule *rule, struct problem_list *problems)
{
        struct policy_verdict verdict = {.rule = rule, .problems = problems};

        if (!rule->options.mount)
                policy_forbid(&verdict, "",
                        "does not allow file systems that the host mounts; ask an administrator for "
                        "\"mount\": "
                        "true in that rule");
        return verdict.error;
}

int policy_check(const struct policy_rule *rule, const struct policy_client *client,
        const struct device_spec *spec, const struct policy_usage *usage, struct problem_list *problems)
{
        struct policy_verdict verdict = {.rule = rule, .client = client, .spec = spec, .problems = problems};

        check_targets(&verdict);
        check_store(&verdict);
        check_devices(&verdict, usage);
        check_size(&verdict, usage);
        check_name(&verdict);
        check_id(&verdict);
        check_cpus(&verdict);
        check_labels(&verdict);
        check_recovery_and_owner(&verdict);
        check_waiting(&verdict);
        policy_ceilings_check(&verdict);
        return verdict.error;
}
