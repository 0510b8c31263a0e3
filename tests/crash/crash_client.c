/* SPDX-License-Identifier: MIT */
/* The requests of a disk before the crash. */
#include "tests/crash/crash_client.h"
#include "targets/worker/queue/perform.h"
#include "tests/unit/loop_driver.h"

#include <string.h>

enum { BLOCKS_MAX = 16, FILL_BLOCKS_MAX = 32 };

/* ---- the disk as a whole ---- */

static uint64_t disk_size(const struct target_host *host)
{
        return host->disk.params.size;
}

/* Perform requests of one kind for as much of [offset, end) as they cover at one time. Return how much that was. */
static int64_t transfer_some(struct target_host *host, enum io_op op, uint64_t offset, uint64_t end)
{
        struct host_request requests[HOST_DEPTH];
        unsigned count = 0;
        uint64_t at = offset;
        int r;

        for (; count < HOST_DEPTH && at < end; count++) {
                uint64_t length = end - at < HOST_DATA_SIZE ? end - at : HOST_DATA_SIZE;

                requests[count] = (struct host_request){.op = op, .offset = at, .length = (uint32_t)length};
                at += length;
        }
        r = target_host_perform(host, requests, count);
        for (unsigned i = 0; r >= 0 && i < count; i++)
                r = requests[i].result < 0 ? requests[i].result : 0;
        return r < 0 ? r : (int64_t)(at - offset);
}

int client_read_disk(struct target_host *host, char *data)
{
        int64_t n;

        for (uint64_t offset = 0; offset < disk_size(host); offset += (uint64_t)n) {
                n = transfer_some(host, IO_READ, offset, disk_size(host));
                if (n < 0)
                        return (int)n;
                memcpy(data + offset, target_host_data(host, 0), (size_t)n);
        }
        return 0;
}

static int fill_range(struct target_host *host, struct model *model, uint64_t offset, uint64_t length)
{
        uint64_t first = offset / CRASH_SECTOR, count = length / CRASH_SECTOR;
        int r;

        model_contents(model, 0, first, count, target_host_data(host, 0));
        r = target_host_one(host, IO_WRITE, 0, offset, (uint32_t)length);
        for (uint64_t i = 0; r >= 0 && i < count; i++)
                model->filled[first + i] = true;
        return r < 0 ? r : 0;
}

int client_fill(struct target_host *host, struct model *model, uint64_t seed)
{
        struct crash_random random = {crash_mix(seed)};
        unsigned percent = (unsigned)crash_random_below(&random, 5) * 25;
        uint64_t block = host->disk.params.logical_block_size, length;
        int r = 0;

        for (uint64_t offset = 0; r >= 0 && offset < disk_size(host); offset += length) {
                uint64_t rest = disk_size(host) - offset;

                length = (1 + crash_random_below(&random, FILL_BLOCKS_MAX)) * block;
                length = length < HOST_DATA_SIZE ? length : HOST_DATA_SIZE;
                length = length < rest ? length : rest;
                if (crash_random_chance(&random, percent))
                        r = fill_range(host, model, offset, length);
        }
        if (r >= 0 && host->disk.device.target->flush)
                r = target_host_one(host, IO_FLUSH, 0, 0, 0);
        return r < 0 ? r : 0;
}

/* ---- requests ---- */

static bool is_met(const struct client *client, uint64_t offset, uint64_t length)
{
        for (unsigned i = 0; i < HOST_DEPTH; i++) {
                const struct target_io *io = &client->slots[i].io;

                if (client->slots[i].busy && io->op != IO_FLUSH && offset < io->offset + io->length
                        && io->offset < offset + length)
                        return true;
        }
        return false;
}

static enum io_op draw_op(struct client *client)
{
        static const enum io_op ops[] = {IO_WRITE, IO_WRITE, IO_WRITE, IO_WRITE, IO_WRITE, IO_WRITE, IO_READ,
                IO_READ, IO_FLUSH, IO_DISCARD, IO_WRITE_ZEROES};
        enum io_op op = ops[crash_random_below(&client->random, ARRAY_SIZE(ops))];

        if ((op == IO_FLUSH && !client->host->disk.params.volatile_cache)
                || (op == IO_DISCARD && client->host->disk.params.max_discard_size == 0)
                || (op == IO_WRITE_ZEROES && client->host->disk.params.max_write_zeroes_size == 0))
                return IO_WRITE;
        return op;
}

/* The driver sends discards of whole granules only. */
static uint64_t unit_of(const struct client *client, enum io_op op)
{
        uint64_t granule = client->host->disk.params.discard_granularity;

        return op == IO_DISCARD && granule > client->block ? granule : client->block;
}

static void draw_range(struct client *client, struct target_io *io)
{
        uint64_t unit = unit_of(client, io->op), size = disk_size(client->host) / unit * unit, most;
        uint64_t first = client->hot_first, count = client->hot_count;
        bool anywhere = crash_random_chance(&client->random, 15);

        if (anywhere) {
                first = 0;
                count = size / client->block;
        }
        io->offset = (first + crash_random_below(&client->random, count)) * client->block / unit * unit;
        io->offset = io->offset < size ? io->offset : 0;
        most = crash_random_chance(&client->random, 10) ? HOST_DATA_SIZE / unit : BLOCKS_MAX;
        most = most * unit < HOST_DATA_SIZE ? most : HOST_DATA_SIZE / unit;
        io->length = (uint32_t)((1 + crash_random_below(&client->random, most ? most : 1)) * unit);
        if (io->length > size - io->offset)
                io->length = (uint32_t)(size - io->offset);
}

static unsigned draw_flags(struct client *client, enum io_op op)
{
        if (op == IO_WRITE && crash_random_chance(&client->random, 15))
                return client->host->disk.params.fua ? IO_FUA : 0;
        return op == IO_WRITE_ZEROES && crash_random_chance(&client->random, 40) ? IO_NOUNMAP : 0;
}

/* The answer to a request. */
static void answer(struct client_slot *slot, int result)
{
        struct client *client = slot->client;
        struct target_io *io = &slot->io;
        uint64_t begun = client->model->requests[slot->version - 1].begun;

        model_end(client->model, slot->version, result, record_moment(client->record));
        if (result < 0 && client->error == 0)
                client->error = result;
        if (result >= 0 && io->op == IO_READ && !client->lied)
                client->lied = !model_accepts_read(client->model, io->offset / CRASH_SECTOR,
                        io->length / CRASH_SECTOR, io->data, begun, client->record->now, &client->finding);
}

static void answered(struct client_slot *slot, int result)
{
        if (!slot->early)
                answer(slot, result);
        slot->early = false;
        slot->client->ended++;
        slot->busy = false;
}

static void plain_ended(struct host_plain *plain, int result)
{
        struct client_slot *slot = (struct client_slot *)plain;

        slot->client->plain++;
        answered(slot, result);
}

static bool is_plain(const struct client *client, const struct target_io *io)
{
        return client->entry != CLIENT_BY_CALLBACKS && (io->op == IO_READ || io->op == IO_WRITE);
}

/* Return whether the request goes the plain way. It may have ended by then. */
static bool begin_plain(struct client_slot *slot)
{
        struct client *client = slot->client;

        slot->plain.ended = plain_ended;
        if (!is_plain(client, &slot->io) || !host_plain_begin(client->host, &slot->plain, &slot->io))
                return false;
        if (client->entry == CLIENT_PLAIN_EARLY && slot->busy && slot->io.op == IO_WRITE) {
                answer(slot, (int)slot->io.length);
                slot->early = true;
        }
        return true;
}

static void request_co(void *argument)
{
        struct client_slot *slot = argument;

        answered(slot, perform_co(&slot->io, &slot->client->host->durability));
}

static struct client_slot *free_slot(struct client *client)
{
        for (unsigned i = 0; i < client->depth; i++)
                if (!client->slots[i].busy)
                        return &client->slots[i];
        return NULL;
}

/* Any queue may get any request: the block layer chooses by the CPU. */
static struct io_loop *draw_loop(struct client *client)
{
        struct target_host *host = client->host;

        return target_host_loop(
                host, host->queues > 1 ? (unsigned)crash_random_below(&client->random, host->queues) : 0);
}

/* Turn the loop of one of the requests that are under way. So the queues overtake one another. Return 0 or -errno. */
static int turn_one(struct client *client)
{
        struct io_loop *busy[HOST_DEPTH];
        unsigned count = 0;

        for (unsigned i = 0; i < HOST_DEPTH; i++)
                if (client->slots[i].busy)
                        busy[count++] = io_loop_of(client->slots[i].io.queue);
        return loop_turn(busy[client->host->queues > 1 ? crash_random_below(&client->random, count) : 0]);
}

/* Begin a request that is allowed now, if one is drawn. */
static void begin_one(struct client *client)
{
        struct client_slot *slot = free_slot(client);
        struct io_loop *loop;
        struct target_io *io;
        int r;

        if (!slot)
                return;
        loop = draw_loop(client);
        io = &slot->io;
        *io = (struct target_io){.queue = &loop->queue, .op = draw_op(client)};
        if (io->op != IO_FLUSH)
                draw_range(client, io);
        if (!client->overlaps && io->op != IO_FLUSH && is_met(client, io->offset, io->length))
                return;
        io->flags = draw_flags(client, io->op);
        io->tag = (uint16_t)(slot - client->slots);
        io->data = io->op == IO_READ || io->op == IO_WRITE ? target_host_data(client->host, io->tag) : NULL;
        slot->client = client;
        slot->version = model_begin(client->model, &(struct model_request){.op = io->op,
                                                           .flags = io->flags,
                                                           .first = io->offset / CRASH_SECTOR,
                                                           .count = io->length / CRASH_SECTOR,
                                                           .begun = record_moment(client->record)});
        if (slot->version == 0) {
                client->error = -ENOMEM;
                return;
        }
        if (io->op == IO_WRITE)
                model_contents(client->model, slot->version, io->offset / CRASH_SECTOR,
                        io->length / CRASH_SECTOR, io->data);
        slot->busy = true;
        client->begun++;
        if (begin_plain(slot))
                return;
        r = co_start(&loop->coroutines, request_co, slot);
        if (r < 0)
                answered(slot, r);
}

static void draw_place(struct client *client)
{
        uint64_t blocks = disk_size(client->host) / client->block;

        client->hot_count = 1
                            + crash_random_below(&client->random,
                                    crash_random_chance(&client->random, 50) ? blocks : 1 + blocks / 8);
        client->hot_first = crash_random_below(&client->random, blocks - client->hot_count + 1);
        client->overlaps = crash_random_chance(&client->random, 50);
        client->depth = 1 + (unsigned)crash_random_below(&client->random, client->depth);
}

static bool wants_more(const struct client *client, const struct client_habits *habits)
{
        return client->error == 0 && client->begun < habits->requests;
}

void client_run(struct client *client, const struct client_habits *habits)
{
        int r = 0;

        client->random.state = crash_mix(~habits->seed);
        client->block = client->host->disk.params.logical_block_size;
        client->depth = habits->depth;
        client->entry = habits->entry;
        draw_place(client);
        while (r >= 0 && (client->ended < client->begun || wants_more(client, habits))) {
                while (wants_more(client, habits) && client->begun - client->ended < client->depth
                        && crash_random_chance(&client->random, 75))
                        begin_one(client);
                if (client->begun > client->ended)
                        r = turn_one(client);
        }
        if (r < 0)
                client->error = r;
}
