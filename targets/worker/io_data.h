/* Where a request's bytes live.
 *
 * Now there is one way, the plain copy: each tag has a stretch of memory of this process, the driver copies a
 * write's bytes into it before it hands the request over, and a read's bytes out of it as the request is
 * committed. Other ways (user copy, buffers that stay in the kernel) come in here, and the rest of the worker
 * asks only for addresses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct io_data {
        char *memory;  /* one mapping; only what requests have used is resident */
        size_t stride; /* bytes per tag, page-aligned */
        size_t size;
};

/* For `depth` tags of up to `max_io_size` bytes. 0 or -errno. */
int io_data_init(struct io_data *data, unsigned depth, uint32_t max_io_size);
/* Zero-initialised is fine. */
void io_data_destroy(struct io_data *data);

/* The memory of a tag: data->stride bytes. */
static inline void *io_data_of(const struct io_data *data, uint16_t tag)
{
        return data->memory + data->stride * tag;
}
