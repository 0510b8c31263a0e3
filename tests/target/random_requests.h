/* SPDX-License-Identifier: MIT */
/* Random requests for a test against a model, of which no two of a batch touch each other. One file of a program
 * includes it. */
#pragma once

#include "tests/target/seeded.h"
#include "tests/target/target_host.h"
#include "ublkd/base/cleanup.h"

#include <string.h>

static inline void random_fill(char *data, uint32_t length)
{
        for (uint32_t i = 0; i < length; i += sizeof(uint64_t)) {
                uint64_t value = next_random(UINT64_MAX);

                memcpy(data + i, &value, sizeof(value));
        }
}

static inline bool requests_overlap(
        const struct host_request *requests, unsigned count, uint64_t offset, uint64_t length)
{
        for (unsigned i = 0; i < count; i++)
                if (requests[i].op != IO_FLUSH && offset < requests[i].offset + requests[i].length
                        && requests[i].offset < offset + length)
                        return true;
        return false;
}

/* Make request number `index` of a batch, a random one within the disk: it touches nothing that one before it
 * touches. One in `longer` may be as long as HOST_DATA_SIZE, all others have four blocks at most; the data of a write
 * is in the memory of the host. Return false: it would touch something; try again. */
static inline bool random_request(
        const struct target_host *host, struct host_request *requests, unsigned index, unsigned longer)
{
        static const enum io_op kinds[] = {
                IO_READ, IO_READ, IO_WRITE, IO_WRITE, IO_WRITE, IO_DISCARD, IO_WRITE_ZEROES, IO_FLUSH};
        static const unsigned flags[] = {0, 0, 0, IO_FUA, IO_NOUNMAP};
        uint32_t block = host->disk.params.logical_block_size;
        struct host_request *request = &requests[index];
        enum io_op op = kinds[next_random(ARRAY_SIZE(kinds))];
        uint64_t blocks = 1 + next_random(next_random(longer) == 0 ? HOST_DATA_SIZE / block : 4);
        uint64_t offset = next_random(host->disk.params.size / block) * block;

        *request = (struct host_request){.op = op, .flags = flags[next_random(ARRAY_SIZE(flags))]};
        if (op == IO_FLUSH)
                return true;
        if (offset + blocks * block > host->disk.params.size
                || requests_overlap(requests, index, offset, blocks * block))
                return false;
        request->offset = offset;
        request->length = (uint32_t)(blocks * block);
        if (op == IO_WRITE)
                random_fill(target_host_data(host, index), request->length);
        return true;
}
