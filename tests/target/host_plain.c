/* SPDX-License-Identifier: MIT */
/* Plain requests of a target_host. */
#include "tests/target/host_plain.h"
#include "targets/worker/queue/perform.h"

static bool is_linear(const struct target_device *device)
{
        return device->linear && !device->by_callbacks;
}

bool host_plain_is_there(const struct target_host *host)
{
        const struct target_device *device = &host->disk.device;

        return is_linear(device) || device->target->locate; /* queue_requests_choose_profile() */
}

static void perform_co_plain(void *argument)
{
        struct host_plain *plain = argument;

        plain->ended(plain, perform_co(&plain->io, &plain->host->durability));
}

/* As plain_moved() and plain_not_moved() of queue_requests.c. */
static void moved(struct driver_plain *driver, int result)
{
        struct host_plain *plain = (struct host_plain *)driver;
        int r;

        if (result == (int)plain_length(&plain->descriptor) || plain_has_failed(result)) {
                plain->ended(plain, result);
                return;
        }
        r = co_start(&io_loop_of(plain->io.queue)->coroutines, perform_co_plain, plain);
        if (r < 0)
                plain->ended(plain, r);
}

static struct ublksrv_io_desc descriptor_of(const struct target_io *io)
{
        return (struct ublksrv_io_desc){
                .op_flags = (uint32_t)io->op | (io->flags & IO_FUA ? UBLK_IO_F_FUA : 0),
                .nr_sectors = io->length >> SECTOR_SHIFT,
                .start_sector = io->offset >> SECTOR_SHIFT,
        };
}

bool host_plain_begin(struct target_host *host, struct host_plain *plain, const struct target_io *io)
{
        const struct io_data data = {.route.path = DATA_PATH_COPY};
        struct io_loop *loop = io_loop_of(io->queue);
        const struct plain_rules rules = plain_rules_of(&host->disk.device, &data, loop, HOST_DATA_SIZE);
        const struct plain_data bytes = {.address = io->data};

        assert(io->op == IO_READ || io->op == IO_WRITE);
        plain->driver.moved = moved;
        plain->descriptor = descriptor_of(io);
        plain->io = *io;
        plain->host = host;
        if (!host_plain_is_there(host) || !plain_is(&rules, &plain->descriptor, plain_disk_sectors(&rules)))
                return false;
        if (plain_is_inline(&rules, &plain->descriptor)) {
                moved(&plain->driver, plain_transfer_inline(&rules, &plain->descriptor, io->data));
                return true;
        }
        if (!is_linear(&host->disk.device))
                return plain_move_mapped(
                        &rules, loop, &plain->descriptor, &bytes, user_data_plain(&plain->driver));
        return plain_move(&rules, loop, &plain->descriptor, &bytes, user_data_plain(&plain->driver));
}
