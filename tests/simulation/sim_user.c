/* SPDX-License-Identifier: MIT */
/* Requests of the user, through the device store. A ublkd that does not run gets none. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPEC_SIZE = 512 };

/* Puts `wish` as JSON into text. */
static void write_spec(const struct world *world, const struct wish *wish, char text[static SPEC_SIZE])
{
        static const char *const targets[] = {"{\"type\":\"loop\",\"path\":\"/store\"}",
                "{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":\"/store\"},"
                "{\"type\":\"loop\",\"path\":\"/beside\"}]}",
                "{\"type\":\"stripe\",\"children\":[{\"type\":\"loop\",\"path\":\"/beside\"},"
                "{\"type\":\"loop\",\"path\":\"/store\"}]}"};
        static const char *const patience[] = {"0", "1us", "5ms", "1s", "20s"};
        static const char *const on_crash[_RECOVERY_MAX] = {"none", "queue", "fail"};

        snprintf(text, SPEC_SIZE,
                "{\"name\":\"" DEVICE "\",\"target\":%s,"
                "\"size\":\"%uMiB\",\"queues\":1,\"queueDepth\":%u,\"enabled\":%s%s,"
                "\"recovery\":{\"onCrash\":\"%s\",\"trigger\":\"%s\",\"giveUpAfter\":\"%s\"}}",
                targets[world->listed ? 1 + world->place : 0], wish->size, 1 + wish->variant % 128,
                wish->disabled ? "false" : "true", wish->fixed_number ? ",\"id\":1" : "",
                wish->recovery == RECOVERY_QUEUE && wish->replays ? "reissue" : on_crash[wish->recovery],
                wish->manual ? "manual" : "auto", patience[wish->patience]);
}

/* A device with a new epoch gets a new disk, which was not live yet. */
static unsigned epoch_now(const struct world *world)
{
        const struct device_record *record = ublkd_record(world);

        return record ? record->epoch : 0;
}

static void note_epoch(struct world *world, unsigned before)
{
        if (epoch_now(world) != before)
                world->was_live = false;
}

/* The disk may grow all the same: the kernel may have the new size, and ublkd not yet have learnt it. */
static void note_size_taken_back(struct world *world, unsigned size)
{
        const struct device_record *record = ublkd_record(world);
        unsigned *given_up = record->number >= 0 ? &world->disks[record->number].size_given_up : NULL;

        if (given_up && *given_up < world->wish.size && size < world->wish.size)
                *given_up = world->wish.size;
}

static void put(struct world *world, struct wish wish)
{
        _cleanup_problems_ struct problem_list problems = {};
        const struct put_condition condition = {.mode = PUT_CREATE_OR_REPLACE};
        _cleanup_device_spec_ struct device_spec *spec = NULL;
        unsigned before = epoch_now(world);
        const struct device_record *record;
        enum put_outcome outcome;
        char text[SPEC_SIZE];
        cJSON *document;
        int r;

        write_spec(world, &wish, text);
        document = cJSON_Parse(text);
        r = device_spec_parse(document, NULL, &spec, &problems);
        cJSON_Delete(document);
        if (r < 0) {
                TRACE(world, "user: %s", problems.items[0].detail);
                world_break(world, "the simulation writes a spec that is not valid");
                return;
        }
        r = device_store_put(world->ublkd.store, spec, &condition, &record, &outcome, &problems);
        TRACE(world, "user: puts %s: %d", text, r);
        if (r < 0)
                return;
        spec = NULL;
        note_size_taken_back(world, wish.size);
        world->wish = wish;
        note_epoch(world, before);
}

static bool can_ask(const struct world *world)
{
        return ublkd_acts(world) && world->ublkd.store && ublkd_record(world);
}

void user_creates(struct world *world)
{
        if (!ublkd_acts(world) || !world->ublkd.store || ublkd_record(world))
                return;
        world->was_live = false;
        world->refused_restart = 0;
        put(world, world->wish);
}

void user_replaces(struct world *world)
{
        struct wish wish = world->wish;

        wish.variant++;
        if (can_ask(world))
                put(world, wish);
}

void user_toggles(struct world *world)
{
        struct wish wish = world->wish;

        wish.disabled = !wish.disabled;
        if (can_ask(world))
                put(world, wish);
}

void user_stops_or_starts(struct world *world)
{
        bool stops;

        if (!can_ask(world))
                return;
        stops = !ublkd_record(world)->stopped;
        TRACE(world, "user: %s", stops ? "stops" : "starts");
        (void)(stops ? device_store_request_stop(world->ublkd.store, DEVICE)
                     : device_store_request_start(world->ublkd.store, DEVICE));
}

void user_grows(struct world *world)
{
        struct wish wish = world->wish;

        wish.size += 1 + (unsigned)world_random(world, 3);
        if (world_chance(world, 100))
                wish.size = 1;
        if (can_ask(world))
                put(world, wish);
}

void user_changes_trigger(struct world *world)
{
        struct wish wish = world->wish;

        wish.manual = !wish.manual;
        if (can_ask(world))
                put(world, wish);
}

void user_changes_patience(struct world *world)
{
        struct wish wish = world->wish;

        wish.patience = (unsigned)world_random(world, 5);
        if (can_ask(world))
                put(world, wish);
}

void user_removes(struct world *world, bool force)
{
        if (!can_ask(world))
                return;
        TRACE(world, "user: deletes%s", force ? ", by force" : "");
        (void)device_store_request_delete(world->ublkd.store, DEVICE, force);
}

void user_deletes(struct world *world)
{
        if (world_chance(world, 200) && can_ask(world))
                user_removes(world, world_chance(world, 300));
}

void user_recovers(struct world *world)
{
        if (!can_ask(world))
                return;
        TRACE(world, "user: recover");
        (void)device_store_request_recover(world->ublkd.store, DEVICE);
}

void user_restarts(struct world *world)
{
        unsigned before = epoch_now(world);

        if (!can_ask(world))
                return;
        TRACE(world, "user: restart");
        (void)device_store_request_restart(world->ublkd.store, DEVICE, world_chance(world, 200));
        note_epoch(world, before);
}

void user_tries_again(struct world *world)
{
        if (!can_ask(world))
                return;
        TRACE(world, "user: try again");
        (void)device_store_try_again(world->ublkd.store, DEVICE);
}

/* Where another store was found than the one that the disk was made on. */
void user_accepts_store(struct world *world)
{
        const struct device_record *record = ublkd_record(world);
        const struct store_status *listed = NULL;
        const struct backing_identity *found;
        int store, r;

        if (!can_ask(world))
                return;
        if (world->listed && record->status.store_count == PLACES)
                listed = &record->status.stores[world->place];
        found = listed ? &listed->found : &record->status.backing.found;
        if (backing_identity_is_empty(found))
                return;
        store = store_of_token(found->lasting);
        TRACE(world, "user: accepts %s", found->lasting);
        r = listed ? device_store_accept_listed(
                             world->ublkd.store, DEVICE, listed->pointer, backing_identity_text(found))
                   : device_store_accept_backing(world->ublkd.store, DEVICE, backing_identity_text(found));
        if (r >= 0 && record->number >= 0)
                world->disks[record->number].consented = store;
}
