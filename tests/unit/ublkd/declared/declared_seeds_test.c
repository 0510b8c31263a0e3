/* SPDX-License-Identifier: MIT */
/* declared: whatever the files become, from a seed, no device is removed whose file cannot be read, or whose disk is
 * in use; and when everything can be read again, the devices are those of the files. */
#include "tests/unit/check.h"
#include "tests/unit/ublkd/declared/declared_world.h"

#include <stdlib.h>

enum { ROUNDS = 60 };

static bool reads(size_t dir)
{
        return !world.away[dir] && !world.faulty[dir];
}

static bool is_any_faulty(void)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (world.faulty[dir] && !world.away[dir])
                        return true;
        return false;
}

/* Return the state of the file that counts for the name; IS_ABSENT: none does. */
static enum file_is effective(size_t name)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (reads(dir) && world.is[dir][name] != IS_ABSENT)
                        return world.is[dir][name];
        return IS_ABSENT;
}

static bool is_good(enum file_is is)
{
        return is == IS_GOOD || is == IS_OTHER_SPEC;
}

/* Return the directory of the file that owns the device. */
static size_t owner_dir(const char *source)
{
        for (size_t dir = 0; dir < DIRS; dir++)
                if (strncmp(source, world.dirs[dir], strlen(world.dirs[dir])) == 0)
                        return dir;
        abort();
}

/* Check what a pass may not have done to a device that was there before it. */
static void check_device(size_t name, const char *source, bool was_read_only)
{
        char text[8];
        const struct device_record *record;
        enum file_is is = effective(name);
        bool known = !is_any_faulty() && reads(owner_dir(source)) && (is == IS_ABSENT || is == IS_MASK);

        snprintf(text, sizeof(text), "d%zu", name);
        record = device_store_get(world.store, text);
        if (!CHECK(record != NULL))
                return;
        if (world.used[name]) {
                CHECK(!record->deleting);
                CHECK(record->spec->options.read_only == was_read_only); /* that needs a new disk */
        }
        CHECK(!record->deleting || known);
        if (!reads(owner_dir(source)))
                CHECK(!record->deleting && record->spec->options.read_only == was_read_only);
        if (world.faulty[0] && !world.away[0] && owner_dir(source) == 1) /* a file there may replace it */
                CHECK(record->spec->options.read_only == was_read_only);
        if (known && !world.used[name] && !world.doubt)
                CHECK(record->deleting);
        if (known && world.used[name] && !world.doubt)
                CHECK_INT(record->source_state, SOURCE_GONE);
}

static void change_something(void)
{
        switch (rand() % 7) {
        case 2:
                dir_set_faulty((size_t)rand() % DIRS, rand() % 3 == 0);
                break;
        case 0:
                dir_move((size_t)rand() % DIRS);
                break;
        case 1:
                world.used[rand() % NAMES] ^= true;
                break;
        default: {
                size_t dir = (size_t)rand() % DIRS;

                file_set(dir, (size_t)rand() % NAMES, (enum file_is)(rand() % _IS_MAX));
        }
        }
}

static bool has_doubt(void)
{
        for (size_t name = 0; name < NAMES; name++)
                for (size_t dir = 0; dir < DIRS; dir++) {
                        enum file_is is = world.is[dir][name];

                        if (!reads(dir) || is == IS_ABSENT)
                                continue;
                        if (!is_good(is) && is != IS_MASK)
                                return true;
                        break; /* it replaces the others */
                }
        return false;
}

static void one_round(void)
{
        char sources[NAMES][160] = {};
        bool read_only[NAMES] = {}, there[NAMES] = {};

        show_disks();
        for (int i = rand() % 4; i >= 0; i--)
                change_something();
        for (size_t i = 0; i < NAMES; i++) {
                char name[8];
                const struct device_record *record;

                snprintf(name, sizeof(name), "d%zu", i);
                record = device_store_get(world.store, name);
                there[i] = record != NULL;
                if (!record)
                        continue;
                snprintf(sources[i], sizeof(sources[i]), "%s", record->source);
                read_only[i] = record->spec->options.read_only;
        }
        world.doubt = has_doubt();
        apply();
        for (size_t i = 0; i < NAMES; i++)
                if (there[i])
                        check_device(i, sources[i], read_only[i]);
        erase_withdrawn();
}

/* Everything can be read, and no disk is in use. */
static void check_the_end(void)
{
        for (size_t dir = 0; dir < DIRS; dir++) {
                if (world.away[dir])
                        dir_move(dir);
                dir_set_faulty(dir, false);
        }
        memset(world.used, 0, sizeof(world.used));
        for (size_t i = 0; i < NAMES; i++)
                if (effective(i) != IS_ABSENT && !is_good(effective(i)))
                        file_set(0, i, IS_OTHER_SPEC);
        show_disks();
        apply();
        erase_withdrawn();
        apply();
        for (size_t i = 0; i < NAMES; i++) {
                const struct device_record *record;
                char name[8];

                snprintf(name, sizeof(name), "d%zu", i);
                record = device_store_get(world.store, name);
                CHECK((record != NULL) == is_good(effective(i)));
                if (record)
                        CHECK(record->spec->options.read_only == (effective(i) == IS_OTHER_SPEC)
                                && record->source_state == SOURCE_APPLIED);
        }
}

static void test_seed(unsigned seed)
{
        unsigned before = check_failures;

        srand(seed);
        world_make();
        declared_disks_are_known(world.declared);
        for (int i = 0; i < ROUNDS; i++)
                one_round();
        check_the_end();
        world_free();
        if (check_failures > before)
                fprintf(stderr, "  seed %u\n", seed);
}

int main(int argc, char *argv[])
{
        if (argc > 1)
                test_seed((unsigned)strtoul(argv[1], NULL, 10));
        else
                for (unsigned seed = 1; seed <= 6; seed++)
                        test_seed(seed);
        return check_report();
}
