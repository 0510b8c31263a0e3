/* SPDX-License-Identifier: MIT */
/* Reads every block of a disk, a piece at a time, by scan() of its target. A piece that cannot be read is read again block by
 * block: the range that is reported has the blocks that are lost, and no others.
 *
 * It reads as the requests of the disk do: with direct I/O from the medium itself, else through the page cache, where a
 * page that is there hides what is below. */
#include "targets/scrub/scrub.h"

#include "targets/scrub/scrub_desc.h"

#include <errno.h>

enum {
        PIECE = TARGET_ACTION_MEMORY, /* bytes */
        BLOCK = 4096,                 /* bytes */
};

struct scrub {
        struct target_action *action;
        uint64_t rate;
        uint64_t done;
        uint64_t failed; /* bytes since the last that could be read */
        uint32_t block;
};

/* Errors of a part of the medium: ENODATA and EREMOTEIO are what the kernel makes of some of them
 * (blk_status_to_errno()), EILSEQ and EBADMSG say that what was read is not what was written. */
static bool is_of_medium(int error)
{
        return error == -EIO || error == -ENODATA || error == -EREMOTEIO || error == -EILSEQ
               || error == -EBADMSG || error == -ETIMEDOUT;
}

static int read_at(struct scrub *scrub, uint64_t offset, uint32_t length)
{
        struct target_queue *queue = scrub->action->queue;
        int r = await_action_share(scrub->action, length, scrub->rate);

        if (r >= 0)
                r = queue->device->target->scan(scrub->action, queue, offset, length, scrub->action->memory);
        if (r >= 0)
                scrub->failed = 0;
        return r;
}

static int read_blocks(struct scrub *scrub, uint32_t length)
{
        for (uint32_t at = 0, size; at < length; at += size) {
                int r;

                size = length - at < scrub->block ? length - at : scrub->block;
                r = read_at(scrub, scrub->done, size);
                if (r < 0) {
                        scrub->failed += size;
                        if (!is_of_medium(r) || scrub->failed > SCRUB_FAILED_MAX)
                                return r;
                        target_action_found(scrub->action, scrub->done, size);
                }
                scrub->done += size;
        }
        return 0;
}

/* The disk may grow meanwhile: of a tree, the core notes that of the whole. */
static int read_all(struct scrub *scrub)
{
        const struct target_device *device = scrub->action->queue->of_disk->device;
        uint64_t size;

        while (scrub->done < (size = target_size(device))) {
                uint32_t length = size - scrub->done < PIECE ? (uint32_t)(size - scrub->done) : PIECE;
                int r;

                target_action_progress(scrub->action, scrub->done, size);
                r = read_at(scrub, scrub->done, length);
                if (r >= 0)
                        scrub->done += length;
                else if (is_of_medium(r))
                        r = read_blocks(scrub, length);
                if (r < 0) {
                        target_action_progress(scrub->action, scrub->done, size);
                        return r;
                }
        }
        target_action_progress(scrub->action, scrub->done, size);
        return 0;
}

int scrub_disk(struct target_action *action)
{
        const struct target_device *device = action->queue->device;
        const struct scrub_arguments *arguments = action->arguments;
        struct scrub scrub = {
                .action = action,
                .rate = arguments->rate,
                .block = device->logical_block_size > BLOCK ? device->logical_block_size : BLOCK,
        };

        return read_all(&scrub);
}

int scrub_children(struct target_action *action, struct target_queue *queue, target_divide divide,
        uint64_t offset, uint32_t length, void *memory)
{
        const struct target_io whole = {
                .queue = queue, .op = IO_READ, .offset = offset, .length = length, .data = memory};
        struct target_cursor cursor = {};
        struct target_part part;
        int r = 0;

        while (r >= 0 && divide(&whole, &cursor, &part)) {
                struct target_queue *child = &queue->children[part.child];

                r = child->device->target->scan(
                        action, child, part.offset, part.length, (char *)memory + part.position);
        }
        return r < 0 ? r : (int)length;
}
