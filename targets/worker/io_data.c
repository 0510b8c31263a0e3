/* Where a request's bytes live. */
#include "targets/worker/io_data.h"
#include "ublkd/base/cleanup.h"

#include <sys/mman.h>

int io_data_init(struct io_data *data, unsigned depth, uint32_t max_io_size)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t stride = (max_io_size + page - 1) / page * page;
        void *memory;

        memory = mmap(NULL, stride * depth, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
                return -errno;
        /* A huge page for the first 4 KiB of a tag would make an idle disk as big as a busy one. EINVAL: no
         * such pages. */
        (void)madvise(memory, stride * depth, MADV_NOHUGEPAGE);
        *data = (struct io_data){.memory = memory, .stride = stride, .size = stride * depth};
        return 0;
}

void io_data_destroy(struct io_data *data)
{
        if (data->memory)
                (void)munmap(data->memory, data->size);
        *data = (struct io_data){};
}
