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
        uint64_t done, size;
        uint32_t block;
        bool by_block; /* a piece could not be read */
        /* Of each target that stands on none, by its first file: bytes since the last that could be read. The others of a disk do not
         * hide one that is dead. */
        uint64_t failed[TARGET_FILES_MAX];
        bool is_dead; /* one of them has too many */
};

/* Errors of a part of the medium: ENODATA and EREMOTEIO are what the kernel makes of some of them
 * (blk_status_to_errno()), EILSEQ and EBADMSG say that what was read is not what was written. */
static bool is_of_medium(int error)
{
        return error == -EIO || error == -ENODATA || error == -EREMOTEIO || error == -EILSEQ
               || error == -EBADMSG || error == -ETIMEDOUT;
}

/* Call scan() of a target of the disk. What could not be read counts when it is read by blocks, once. */
static int scan(struct target_action *action, struct target_queue *queue, uint64_t offset, uint32_t length,
        void *memory)
{
        struct scrub *scrub = action->own;
        uint64_t *failed = &scrub->failed[queue->first_file];
        int r = queue->device->target->scan(action, queue, offset, length, memory);

        if (queue->device->child_count > 0)
                return r;
        if (r >= 0)
                *failed = 0;
        else if (scrub->by_block && is_of_medium(r))
                *failed += length;
        scrub->is_dead |= *failed > SCRUB_FAILED_MAX;
        return r;
}

static int read_at(struct scrub *scrub, uint64_t offset, uint32_t length)
{
        struct target_action *action = scrub->action;
        int r = await_action_share(action, length, scrub->rate);

        return r < 0 ? r : scan(action, action->queue, offset, length, action->memory);
}

static int read_blocks(struct scrub *scrub, uint32_t length)
{
        scrub->by_block = true;
        for (uint32_t at = 0, size; at < length; at += size) {
                int r;

                size = length - at < scrub->block ? length - at : scrub->block;
                r = read_at(scrub, scrub->done, size);
                if (r < 0) {
                        if (!is_of_medium(r) || scrub->is_dead)
                                return r;
                        target_action_found(scrub->action, scrub->done, size);
                }
                scrub->done += size;
                target_action_progress(scrub->action, scrub->done, scrub->size); /* each may take its time */
        }
        scrub->by_block = false;
        return 0;
}

/* The disk may grow meanwhile: of a tree, the core notes that of the whole. */
static int read_all(struct scrub *scrub)
{
        const struct target_device *device = scrub->action->queue->of_disk->device;

        while (scrub->done < (scrub->size = target_size(device))) {
                uint64_t rest = scrub->size - scrub->done;
                uint32_t length = rest < PIECE ? (uint32_t)rest : PIECE;
                int r;

                target_action_progress(scrub->action, scrub->done, scrub->size);
                r = read_at(scrub, scrub->done, length);
                if (r >= 0)
                        scrub->done += length;
                else if (is_of_medium(r))
                        r = read_blocks(scrub, length);
                if (r < 0) {
                        target_action_progress(scrub->action, scrub->done, scrub->size);
                        return r;
                }
        }
        target_action_progress(scrub->action, scrub->done, scrub->size);
        return 0;
}

int scrub_act(struct target_action *action, unsigned verb _unused_)
{
        const struct target_device *device = action->queue->device;
        const struct scrub_arguments *arguments = action->arguments;
        struct scrub scrub = {
                .action = action,
                .rate = arguments->rate,
                .block = device->logical_block_size > BLOCK ? device->logical_block_size : BLOCK,
        };

        action->own = &scrub;
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

                r = scan(action, child, part.offset, part.length, (char *)memory + part.position);
        }
        return r < 0 ? r : (int)length;
}
