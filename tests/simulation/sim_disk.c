/* SPDX-License-Identifier: MIT */
/* What outlives ublkd: the database, the runtime directory, backing stores and descriptors of them. */
#include "sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_DESCRIPTOR = 1 << 20 }; /* no descriptor of this process has such a number */

typedef int (*load_each)(void *userdata, const struct device_record *record, const char *document);

/* ---- the database ---- */

static void database_clear(struct database *database)
{
        free(database->record.name);
        record_stores_free(database->record.stores);
        free(database->text);
        *database = (struct database){.revision = database->revision};
}

/* As a row of the real database: what is not durable is not there. */
static int database_load(void *context, load_each each, void *userdata, struct store_stamp *ret)
{
        struct world *world = context;
        const struct database *database = &world->database;

        *ret = (struct store_stamp){
                .database = "0123456789abcdef0123456789abcdef", .revision = database->revision};
        return database->exists ? each(userdata, &database->record, database->text) : 0;
}

/* A transaction fails, or the process dies before or after it. */
static int begin_transaction(struct world *world)
{
        if (!ublkd_acts(world) || ublkd_dies_here(world, "before a transaction"))
                return -EIO;
        return world_bad_luck(world) ? -ENOSPC : 0;
}

static int database_save(void *context, const struct device_record *record, const char *document,
        uint64_t revision, const struct device_event *event __attribute__((unused)))
{
        struct world *world = context;
        struct database *database = &world->database;
        int r = begin_transaction(world);

        if (record->restart_refused == record->restart) /* it holds, whether it is stored or not */
                world->refused_restart = record->restart;
        if (r < 0)
                return r;
        database_clear(database);
        *database = (struct database){.exists = true, .revision = revision, .record = *record};
        database->record.name = strdup(record->name);
        database->text = strdup(document);
        database->record.stores = NULL;
        (void)record_stores_copy(record->stores, &database->record.stores);
        database->record.spec = NULL;
        database->record.quarantine = NULL;
        database->record.status = (struct device_status){};
        database->record.accepted = (struct device_faults){};
        database->record.accepted_with = 0;
        database->record.asked = 0;
        (void)ublkd_dies_here(world, "after a transaction");
        return 0;
}

static int database_erase(void *context, const char *name __attribute__((unused)), uint64_t revision,
        const struct device_event *event __attribute__((unused)))
{
        struct world *world = context;
        int r = begin_transaction(world);

        if (r < 0)
                return r;
        TRACE(world, "database: the record is erased");
        database_clear(&world->database);
        world->database.revision = revision;
        (void)ublkd_dies_here(world, "having erased the record");
        return 0;
}

static int database_save_revision(void *context, uint64_t revision)
{
        struct world *world = context;

        if (ublkd_acts(world))
                world->database.revision = revision;
        return 0;
}

static int database_load_events(void *context __attribute__((unused)),
        int (*each)(void *userdata, const struct device_event *event) __attribute__((unused)),
        void *userdata __attribute__((unused)), uint64_t *ret_compacted)
{
        *ret_compacted = 0;
        return 0;
}

static int database_save_events(void *context __attribute__((unused)),
        const struct device_event *const *events __attribute__((unused)),
        size_t count __attribute__((unused)), uint64_t compacted __attribute__((unused)),
        const struct event_floors *floors __attribute__((unused)))
{
        return 0;
}

static void database_close(void *context __attribute__((unused)))
{
}

const struct device_backend database_backend = {
        .name = "simulated",
        .load = database_load,
        .save = database_save,
        .erase = database_erase,
        .save_revision = database_save_revision,
        .load_events = database_load_events,
        .save_events = database_save_events,
        .close = database_close,
};

/* ---- the runtime directory ---- */

void disk_reboot(struct world *world)
{
        for (int i = 0; i < FILES; i++) {
                free(world->files[i].text);
                world->files[i] = (struct runtime_file){};
        }
        backing_claims_clear(&world->claims.claims);
        world->claims = (struct written_claims){};
        world->kept = (struct kept_descriptors){};
        world->socket_owner = NO_PROCESS;
}

void disk_drop_all(struct world *world)
{
        disk_reboot(world);
        database_clear(&world->database);
}

/* ---- backing stores ---- */

int descriptor_open(struct world *world, int store)
{
        unsigned index = world->descriptor_count;

        if (index >= DESCRIPTORS) {
                world_break(world, "far too many descriptors are opened");
                return -1;
        }
        world->descriptors[world->descriptor_count++] = (struct descriptor){.store = store, .open = true};
        return FIRST_DESCRIPTOR + (int)index;
}

static struct descriptor *find_descriptor(struct world *world, int fd)
{
        int index = fd - FIRST_DESCRIPTOR;

        return index >= 0 && (unsigned)index < world->descriptor_count ? &world->descriptors[index] : NULL;
}

int descriptor_store(const struct world *world, int fd)
{
        int index = fd - FIRST_DESCRIPTOR;

        if (index < 0 || (unsigned)index >= world->descriptor_count || !world->descriptors[index].open)
                return NO_STORE;
        return world->descriptors[index].store;
}

void descriptor_close(struct world *world, int fd)
{
        struct descriptor *descriptor = find_descriptor(world, fd);

        if (fd < 0)
                return;
        if (!descriptor || !descriptor->open)
                world_break(world, "a descriptor that is not open is closed");
        else
                descriptor->open = false;
}

int store_of_record(const struct world *world, const struct device_record *record)
{
        for (unsigned i = 0; world->listed && record->stores && i < record->stores->count; i++)
                if (record->stores->items[i].number == world->place)
                        return store_of_token(record->stores->items[i].identity.lasting);
        return world->listed ? NO_STORE : store_of_token(record->backing.lasting);
}

int store_of_token(const char *token)
{
        int store;

        return token && sscanf(token, "store-%d", &store) == 1 ? store : NO_STORE;
}

void store_identity_of(const struct world *world, int store, struct backing_identity *ret)
{
        *ret = (struct backing_identity){.basis = BACKING_FILE_HANDLE};
        snprintf(ret->boot, sizeof(ret->boot), "store-%d of boot %u", store, world->boot);
        snprintf(ret->lasting, sizeof(ret->lasting), "store-%d", store);
}
