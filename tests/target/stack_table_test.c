/* SPDX-License-Identifier: MIT */
/* Trees of the targets that exist, in all shapes of up to three levels with up to three children: the core must know of each what
 * follows from its leaves by the rules of tree_rules.h. What a leaf can do is taken from a disk that is that leaf alone. */
#include "tests/target/scratch.h"
#include "tests/unit/check.h"
#include "targets/loop/loop.h"
#include "targets/loop/loop_options.h"
#include "targets/null/null.h"
#include "targets/worker/disk/registry.h"
#include "tests/target/tree_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        LEAF_KINDS = 2,
        BELOW_MAX = 64,
        TEXT_SIZE = 8192,
        MEBIBYTE = 1 << 20,
        FILE_STEP = 8192,
        SMALLEST_FILE = 64 << 10
};

/* The trees are made with each of these. */
static const struct mode {
        unsigned part, null_block; /* bytes */
        const char *of_loops;      /* more options */
        bool read_only;
} modes[] = {
        {4096, 512,  "",                      false},
        /* Buffered, so that blocks of 512 bytes are below on any file system. */
        {512,  4096, ",\"directIo\":\"off\"", false},
        {4096, 512,  "",                      true },
};

static const struct mode *mode;
static struct scratch in_memory, on_disk;
static struct leaf files[LEAVES_MAX], null_leaf;

/* ---- a tree under test ---- */

static struct {
        struct places places;
        unsigned written; /* loops */
        char spec[TEXT_SIZE + 128], target[TEXT_SIZE];
        struct worker_config config;
        struct listed_store list[STORE_LIST_MAX];
        struct disk disk;
        struct problem_list problems;
} now;

static unsigned trees, opened, mixed, refused, lines, shortcuts;

/* The linker puts ours in the place of the worker's: for `null` with limits that no loop has, and for `loop` with what it finds on
 * a host that has more. */
const struct target *__real_target_find(const char *name);
const struct target *__wrap_target_find(const char *name);

static int open_odd(struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        int r = null_target.open(device, ret, problems);

        ret->logical_block_size = mode->null_block;
        ret->physical_block_size = 8192;
        ret->io_min = 16384;
        ret->discard_granularity = 8192;
        ret->max_discard_size = MEBIBYTE;
        ret->max_write_zeroes_size = MEBIBYTE / 2;
        ret->rotational = true;
        return r;
}

static const struct leaf *file_at(const char *path)
{
        for (unsigned i = 0; i < LEAVES_MAX; i++)
                if (strcmp(files[i].path, path) == 0)
                        return &files[i];
        return NULL;
}

/* Another user of the same bytes, and for some a name that stays. */
static int open_known(
        struct target_device *device, struct target_geometry *ret, struct problem_list *problems)
{
        const struct loop_options *options = device->config;
        const struct leaf *file = file_at(options->path);
        int r = loop_target.open(device, ret, problems);

        if (r < 0 || !CHECK(file && ret->sharing.count == 0 && !ret->stable_path))
                return r;
        if (file->stable[0])
                ret->stable_path = strdup(file->stable);
        return problem_add(&ret->sharing, EBUSY, "/target/path", "BackingInUse", "%s", file->path);
}

const struct target *__wrap_target_find(const char *name)
{
        static struct target odd, known;

        odd = null_target;
        odd.open = open_odd;
        known = loop_target;
        known.open = open_known;
        if (strcmp(name, "loop") == 0)
                return &known;
        return strcmp(name, "null") == 0 ? &odd : __real_target_find(name);
}

_printf_(1, 2) static void put(const char *format, ...)
{
        size_t used = strlen(now.target);
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(now.target + used, sizeof(now.target) - used, format, arguments);
        va_end(arguments);
}

/* Write the object of a target. The files are taken in the order of the text. */
static void write_target(const struct tree *tree, bool is_outer)
{
        static const char *const begin[_KIND_MAX] = {
                [NULL_LEAF] = "{\"type\":\"null\"",
                [FAULT_OVER] = "{\"type\":\"fault\",\"child\":",
                [LIST_OF] = "{\"type\":\"linear\",\"children\":[",
                [STRIPE_OF] = "{\"type\":\"stripe\",\"chunk\":4096,\"children\":[",
        };

        if (tree->kind == LOOP_LEAF)
                put("{\"type\":\"loop\",\"path\":\"%s\"%s", files[now.written++].path, mode->of_loops);
        else if (tree->kind == REST_OF)
                put("{\"type\":\"linear\",\"offset\":%u,\"child\":", mode->part);
        else if (tree->kind == PART_OF)
                put("{\"type\":\"linear\",\"offset\":%u,\"length\":%d,\"child\":", mode->part,
                        is_outer ? OUTER_LENGTH : INNER_LENGTH);
        else
                put("%s", begin[tree->kind]);
        for (unsigned i = 0; i < tree->width; i++) {
                put("%s", i > 0 ? "," : "");
                write_target(tree->below[i], false);
        }
        put("%s}", tree->kind >= FIRST_OF_MANY ? "]" : "");
}

/* ---- what the core has made of it ---- */

static void check_params(uint64_t size)
{
        const struct disk_params *params = &now.disk.params, wanted = expect_params(&now.places, size);

        CHECK_INT(params->size, wanted.size);
        CHECK_INT(params->logical_block_size, wanted.logical_block_size);
        CHECK_INT(params->physical_block_size, wanted.physical_block_size);
        CHECK_INT(params->io_min, wanted.io_min);
        CHECK_INT(params->io_opt, wanted.io_opt);
        CHECK_INT(params->discard_granularity, wanted.discard_granularity);
        CHECK_INT(params->max_discard_size, wanted.max_discard_size);
        CHECK_INT(params->max_write_zeroes_size, wanted.max_write_zeroes_size);
        CHECK_INT(params->volatile_cache, wanted.volatile_cache);
        CHECK_INT(params->fua, wanted.fua);
        CHECK_INT(params->rotational, wanted.rotational);
        CHECK_INT(params->queues, wanted.queues);
        CHECK_INT(params->fastest, wanted.fastest);
        CHECK_INT(params->dma_alignment, wanted.dma_alignment);
        CHECK_INT(params->read_only, mode->read_only);
}

static void check_flags(void)
{
        const struct target *target = now.disk.device.target;

        CHECK_INT(target->desc->flags, expect_flags(&now.places));
        CHECK(target->read && target->write && target->flush && target->discard && target->write_zeroes);
}

static uint64_t inode_of(int fd)
{
        struct stat status = {};

        CHECK_INT(fstat(fd, &status), 0);
        return status.st_ino;
}

static void check_claim(const struct leaf *file, const struct reach *reach, uint64_t size)
{
        const struct backing_claims *claims = &now.disk.params.claims;
        uint64_t end = reach->is_whole ? reach->start + size : reach->end != 0 ? reach->end : INT64_MAX;
        unsigned found = 0;

        for (size_t i = 0; i < claims->count; i++) {
                if (strcmp(claims->items[i].key, file->key) != 0)
                        continue;
                found++;
                CHECK_INT(claims->items[i].start, reach->start);
                CHECK_INT(claims->items[i].end, end);
                CHECK_INT(claims->items[i].writes, !mode->read_only);
                CHECK(!claims->items[i].mapped);
        }
        CHECK_INT(found, 1);
}

static void check_lock(unsigned store, const struct leaf *file, const struct reach *reach, uint64_t size)
{
        const struct disk_range *range = &now.disk.ranges[store];
        uint64_t end = reach->is_whole ? reach->start + size : reach->end != 0 ? reach->end : file->size;

        if (!CHECK(store < now.disk.range_count))
                return;
        CHECK_INT(inode_of(range->range.fd), file->inode);
        CHECK_INT(range->range.start, reach->start);
        CHECK_INT(range->range.end, end);
        CHECK_INT(range->range.writes, !mode->read_only);
        CHECK_INT(range->lock, DISK_LOCK_WANTED);
}

/* A problem of the loop has the pointer of its place. */
static void check_sharing(unsigned number)
{
        const struct problem_list *sharing = &now.disk.params.sharing;
        char pointer[PLACE_POINTER_SIZE + 8];
        unsigned found = 0;

        expect_pointer(&now.places, number, pointer);
        strcat(pointer, "/path");
        for (size_t i = 0; i < sharing->count; i++) {
                if (strcmp(sharing->items[i].detail, now.places.all[number].leaf->path) != 0)
                        continue;
                found++;
                CHECK_STR(sharing->items[i].pointer, pointer);
                CHECK_STR(sharing->items[i].reason, "BackingInUse");
                CHECK_INT(sharing->items[i].error, EBUSY);
        }
        CHECK_INT(found, 1);
}

static void check_stable_path(void)
{
        const char *wanted = expect_stable_path(&now.places), *got = now.disk.params.stable_path;

        if (wanted && got)
                CHECK_STR(got, wanted);
        else
                CHECK(!wanted && !got);
}

/* The store, its witness and its lock are in the list at the same place, and so is its path. */
static void check_store(unsigned store, const struct place *place, unsigned number, uint64_t size)
{
        const struct leaf *file = place->leaf;
        const struct reach reach = expect_reach(&now.places, number);
        unsigned numbers[TARGET_STORES_MAX], count = target_tree_stores(now.config.tree, numbers);

        if (CHECK(store < count && store < now.disk.witness_count))
                CHECK_INT(inode_of(now.disk.witnesses[store]), file->inode);
        if (store < count)
                CHECK_STR(target_node_path(&now.config.tree->nodes[numbers[store]]), file->path);
        if (now.config.store_count > 0 && CHECK(store < now.config.store_count))
                CHECK_INT(now.config.stores[store].inode, file->inode);
        check_claim(file, &reach, size);
        check_lock(store, file, &reach, size);
}

static void check_stores(uint64_t size)
{
        unsigned stores = 0;

        for (unsigned i = 0; i < now.places.count; i++)
                if (now.places.all[i].tree->kind == LOOP_LEAF) {
                        check_store(stores++, &now.places.all[i], i, size);
                        check_sharing(i);
                }
        CHECK_INT(now.disk.params.sharing.count, stores);
        check_stable_path();
        CHECK_INT(now.disk.witness_count, stores);
        CHECK_INT(now.disk.range_count, stores);
        CHECK_INT(now.disk.device.file_count, 2 * stores);
}

/* Whether the core may move the bytes of requests by itself, and where to. */
static void check_shortcut(void)
{
        const struct target_device *device = &now.disk.device;
        const struct place *last = &now.places.all[now.places.count - 1];
        const struct reach reach = expect_reach(&now.places, now.places.count - 1);
        bool is_line = reach.is_whole && last->tree->kind == LOOP_LEAF;

        CHECK_INT(device->linear, is_line);
        CHECK_INT(device->target->locate != NULL,
                now.config.tree->count > 1 && !(expect_flags(&now.places) & TARGET_SEES_ALL));
        CHECK_INT(target_tree_has_list(now.config.tree), now.places.loops > 0 && !is_line);
        if (!is_line)
                return;
        lines++;
        shortcuts += !reach.is_seen;
        CHECK_INT(device->linear_offset, reach.start);
        CHECK_INT(inode_of(device->files[device->linear_file]), last->leaf->inode);
        CHECK_INT(device->by_callbacks, reach.is_seen);
        CHECK_INT(device->linear_in_memory, last->leaf->in_memory && !reach.is_seen);
        CHECK_INT(device->store.inode, last->leaf->inode);
}

/* What may come late of a worker that has died, and whether the end of the disk can be looked at in each round. */
static void check_fence(void)
{
        bool ends = true, known = now.places.loops > 0;

        for (unsigned i = 0; i < now.places.count; i++) {
                const struct place *place = &now.places.all[i];

                if (!place->leaf)
                        continue;
                ends = ends && place->leaf->ends_with_process;
                known = known && (place->tree->kind != LOOP_LEAF || place->leaf->end_known);
        }
        CHECK_INT(now.disk.device.io_ends_with_process, ends);
        CHECK_INT(now.disk.device.linear_end_known, known);
}

/* ---- trees ---- */

static int open_spec(unsigned stores, bool exists)
{
        const struct worker_msg msg = {
                .type = WORKER_MSG_CONFIG,
                .config = {.name = (char *)(uintptr_t) "test",
                           .uid = (char *)(uintptr_t) "test",
                           .spec = now.spec,
                           .queues = QUEUES,
                           .queue_depth = 8,
                           .max_io_size = MEBIBYTE,
                           .lock = WORKER_LOCK_TO_SERVE,
                           .exists = exists,
                           .stores = {now.list, stores}}
        };
        int r = worker_config_parse(&msg, &now.config, &now.problems);

        return r < 0 ? r : disk_open(&now.config, -1, &now.disk, &now.problems);
}

static void close_spec(void)
{
        disk_close(&now.disk);
        now.disk = (struct disk){};
        worker_config_clear(&now.config);
        problem_list_clear(&now.problems);
}

static void check_open_tree(uint64_t size)
{
        check_params(size);
        check_flags();
        check_stores(size);
        check_shortcut();
        check_fence();
}

static void check_refusal(unsigned refusals)
{
        static const char *const reasons[] = {"SizeMissing", "OffsetNotAMultiple"};
        bool found = false;

        for (unsigned i = 0; i < ARRAY_SIZE(reasons) && CHECK_INT(now.problems.count, 1); i++)
                found = found
                        || ((refusals & 1U << i) && strcmp(now.problems.items[0].reason, reasons[i]) == 0);
        CHECK(found);
}

/* Return more fields of the spec. */
static const char *mode_of_disk(void)
{
        return mode->read_only ? ",\"readOnly\":true" : "";
}

static bool is_mixed(void)
{
        for (unsigned i = 0; i < now.places.count; i++) {
                const struct leaf *leaf = now.places.all[i].leaf;

                if (leaf && leaf->params.logical_block_size != now.disk.params.logical_block_size)
                        return true;
        }
        return false;
}

/* The workers after the first one are given what the disk has. */
static void check_later_worker(unsigned stores, uint64_t size)
{
        uint32_t block_size = now.disk.params.logical_block_size;
        int r;

        mixed += is_mixed();
        close_spec();
        snprintf(now.spec, sizeof(now.spec), "{\"target\":%s,\"size\":%ju,\"blockSize\":%u%s}", now.target,
                (uintmax_t)size, block_size, mode_of_disk());
        r = open_spec(stores, true);
        if (CHECK_INT(r, 0))
                check_open_tree(size);
}

static void check_tree(const struct tree *tree)
{
        unsigned failures = check_failures, refusals, stores;
        int r;
        uint64_t size;

        if (tree_faults(tree) > 1) /* ublkd refuses it: SecondFaultTarget */
                return;
        now.written = 0;
        now.target[0] = '\0';
        write_target(tree, true);
        tree_place(tree, &null_leaf, files, &now.places);
        size = expect_size(&now.places, &refusals);
        snprintf(now.spec, sizeof(now.spec), "{\"target\":%s%s%s}", now.target,
                size == 0 ? ",\"size\":1048576" : "", mode_of_disk());
        size = size == 0 ? MEBIBYTE : size;
        stores = now.places.all[now.places.count - 1].tree->kind == LOOP_LEAF
                                 && expect_reach(&now.places, now.places.count - 1).is_whole
                         ? 0
                         : now.places.loops;
        trees++;
        r = open_spec(stores, false);
        opened += r >= 0;
        refused += refusals != 0;
        CHECK_INT(r, refusals ? -EINVAL : 0);
        if (refusals)
                check_refusal(refusals);
        if (r >= 0) {
                check_open_tree(size);
                check_later_worker(stores, size);
        }
        if (check_failures > failures)
                fprintf(stderr, "  of %s%s\n", now.spec,
                        now.problems.count > 0 ? now.problems.items[0].detail : "");
        close_spec();
}

/* Return a tree with some of these below it. Of three, the last one is a leaf. */
static struct tree with(
        enum kind kind, unsigned width, const struct tree *below, unsigned count, unsigned number)
{
        const struct tree *all[] = {
                &below[number % count], &below[number / count % count], &below[number / count / count]};
        struct tree tree = {.kind = kind, .width = width};

        memcpy(tree.below, all, width * sizeof(all[0]));
        return tree;
}

/* Put all targets over these, the first two of which are the leaves. Write them to `ret`, or pass them to `each`. Return how many were
 * written. */
static unsigned put_above(
        const struct tree *below, unsigned count, struct tree *ret, void (*each)(const struct tree *))
{
        unsigned made = 0;

        for (enum kind kind = FIRST_INNER; kind < _KIND_MAX; kind++) {
                bool many = kind >= FIRST_OF_MANY;

                for (unsigned width = many ? 2 : 1; width <= (many ? WIDTH_MAX : 1U); width++) {
                        unsigned ways = width == 1 ? count : count * count * (width == 3 ? LEAF_KINDS : 1);

                        for (unsigned number = 0; number < ways; number++) {
                                struct tree tree = with(kind, width, below, count, number);

                                if (each)
                                        each(&tree);
                                else if (CHECK(made < BELOW_MAX))
                                        ret[made++] = tree;
                        }
                }
        }
        return made;
}

/* ---- the files ---- */

static void take_leaf(struct leaf *leaf)
{
        const struct target_device *device = &now.disk.device;

        leaf->params = now.disk.params;
        leaf->params.claims = (struct backing_claims){};
        leaf->params.sharing = (struct problem_list){};
        leaf->params.stable_path = NULL;
        leaf->in_memory = device->linear_in_memory;
        leaf->ends_with_process = device->io_ends_with_process;
        leaf->end_known = device->linear_end_known;
        if (now.disk.params.claims.count > 0)
                snprintf(leaf->key, sizeof(leaf->key), "%s", now.disk.params.claims.items[0].key);
}

/* target: its object, and more fields of the spec. */
static bool find_leaf(struct leaf *leaf, const char *target)
{
        int r;

        snprintf(now.spec, sizeof(now.spec), "{\"target\":%s%s}", target, mode_of_disk());
        r = open_spec(0, false);
        if (CHECK_INT(r, 0))
                take_leaf(leaf);
        close_spec();
        return r >= 0;
}

/* Every other one in memory, so that leaves differ. */
static bool make_file(unsigned number)
{
        struct leaf *file = &files[number];
        char name[2] = {(char)('a' + number)};
        struct stat status;

        file->size = SMALLEST_FILE + (uint64_t)number * FILE_STEP;
        if (!CHECK_INT(scratch_file(number % 2 ? &in_memory : &on_disk, name, file->size, file->path,
                               sizeof(file->path)),
                    0)
                || !CHECK_INT(stat(file->path, &status), 0))
                return false;
        file->inode = status.st_ino;
        if (number % 3 == 1)
                snprintf(file->stable, sizeof(file->stable), "/dev/disk/by-id/%s", name);
        return true;
}

static bool make_files(void)
{
        bool good =
                CHECK_INT(scratch_make(&in_memory, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"), 0)
                && CHECK_INT(scratch_make(&on_disk, "/var/tmp"), 0);

        for (unsigned i = 0; good && i < LEAVES_MAX; i++)
                good = make_file(i);
        return good;
}

static bool find_leaves(void)
{
        bool good = find_leaf(&null_leaf, "{\"type\":\"null\"},\"size\":1048576");

        for (unsigned i = 0; good && i < LEAVES_MAX; i++) {
                char target[512];

                snprintf(target, sizeof(target), "{\"type\":\"loop\",\"path\":\"%s\"%s}", files[i].path,
                        mode->of_loops);
                good = find_leaf(&files[i], target) && CHECK_INT(files[i].params.size, files[i].size);
        }
        return good;
}

static void check_trees(void)
{
        static const struct tree leaves[LEAF_KINDS] = {{.kind = NULL_LEAF}, {.kind = LOOP_LEAF}};
        static struct tree below[LEAF_KINDS + BELOW_MAX];
        unsigned count = ARRAY_SIZE(leaves);

        memcpy(below, leaves, sizeof(leaves));
        count += put_above(leaves, count, below + count, NULL);
        for (unsigned i = 0; i < count; i++)
                check_tree(&below[i]);
        (void)put_above(below, count, NULL, check_tree);
}

int main(void)
{
        bool good = make_files();

        for (unsigned i = 0; good && i < ARRAY_SIZE(modes); i++) {
                mode = &modes[i];
                tree_set_part(mode->part);
                good = find_leaves();
                if (good)
                        check_trees();
        }
        printf("%u trees: %u opened, %u of these with mixed blocks, %u refused, %u lie in a file as it is, "
               "%u with "
               "the shortcut\n",
                trees, opened, mixed, refused, lines, shortcuts);
        CHECK(lines > 0 && shortcuts > 0 && shortcuts < lines && refused > 0 && mixed > 0);
        if (in_memory.path[0])
                scratch_remove(&in_memory);
        if (on_disk.path[0])
                scratch_remove(&on_disk);
        return check_report();
}
