/* The open backend of this worker's device, and the disk that comes of it. */
#pragma once

#include "targets/target.h"
#include "targets/worker/config.h"

struct disk {
        struct target_device device;
        struct disk_params params;
};

/* Opens the backend. `config` must outlive the disk. May block. 0; -errno with problems, or -ENOMEM; then
 * there is nothing to close. */
int disk_open(const struct worker_config *config, struct disk *ret, struct problem_list *problems);
/* Makes it serve `size` bytes, if the backing store has them; never less than it did. Queues may be serving.
 * May block for a moment. 0, also when it does already; -errno with problems, or -ENOMEM, and it stays as it
 * is. */
int disk_grow(struct disk *disk, uint64_t size, struct problem_list *problems);
/* No queue may use it any more. Zero-initialised is fine. */
void disk_close(struct disk *disk);
