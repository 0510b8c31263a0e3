/* SPDX-License-Identifier: MIT */
/* Notices when a program closes a disk that it had open for writing.
 *
 * A watch reports one close, and ends: a program that opens and closes its disk in a loop costs as much as one that does
 * so once, and cannot fill the queue of events, which all disks share. */
#include "ublkd/partitions/disk_writes.h"

#include "ublkd/base/cleanup.h"

#include <sys/epoll.h>
#include <sys/inotify.h>

struct watch {
        int id; /* of inotify */
        void *owner;
};

struct disk_writes {
        disk_written written;
        sd_event_source *source;
        int fd;
        struct watch *watches;
        size_t count;
};

DEFINE_CLEANUP(struct disk_writes, disk_writes_free);

static void drop(struct disk_writes *writes, size_t i)
{
        writes->watches[i] = writes->watches[--writes->count];
}

static void handle(struct disk_writes *writes, const struct inotify_event *event)
{
        for (size_t i = writes->count; i-- > 0;) {
                void *owner = writes->watches[i].owner;

                if (event->mask & IN_Q_OVERFLOW) { /* events were lost */
                        writes->written(owner);
                        continue;
                }
                if (writes->watches[i].id != event->wd)
                        continue;
                /* Also IN_IGNORED, if it comes first: the node is gone, or the kernel has ended the watch while it was set
                 * again. */
                drop(writes, i);
                writes->written(owner);
        }
}

static int on_events(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t size = read(fd, buffer, sizeof(buffer));
        const struct inotify_event *event;

        for (ssize_t at = 0; at < size; at += (ssize_t)(sizeof(*event) + event->len)) {
                event = (const struct inotify_event *)(buffer + at);
                handle(userdata, event);
        }
        return 0;
}

int disk_writes_watch(struct disk_writes *writes, const char *path, void *owner)
{
        int id = inotify_add_watch(writes->fd, path, IN_CLOSE_WRITE | IN_DONT_FOLLOW | IN_ONESHOT);
        struct watch *grown;

        if (id < 0)
                return -errno;
        for (size_t i = 0; i < writes->count; i++)
                if (writes->watches[i].id == id && writes->watches[i].owner == owner)
                        return 0;
        disk_writes_leave(writes, owner);
        grown = reallocarray(writes->watches, writes->count + 1, sizeof(*grown));
        if (!grown) {
                (void)inotify_rm_watch(writes->fd, id);
                return -ENOMEM;
        }
        writes->watches = grown;
        grown[writes->count++] = (struct watch){.id = id, .owner = owner};
        return 0;
}

void disk_writes_leave(struct disk_writes *writes, const void *owner)
{
        for (size_t i = 0; writes && i < writes->count; i++)
                if (writes->watches[i].owner == owner) {
                        (void)inotify_rm_watch(writes->fd, writes->watches[i].id);
                        drop(writes, i);
                        return;
                }
}

int disk_writes_new(sd_event *event, disk_written written, struct disk_writes **ret)
{
        _cleanup_(disk_writes_free_pointer) struct disk_writes *writes = calloc(1, sizeof(*writes));
        int r;

        if (!writes)
                return -ENOMEM;
        writes->written = written;
        writes->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (writes->fd < 0)
                return -errno;
        r = sd_event_add_io(event, &writes->source, writes->fd, EPOLLIN, on_events, writes);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(writes);
        return 0;
}

struct disk_writes *disk_writes_free(struct disk_writes *writes)
{
        if (!writes)
                return NULL;
        sd_event_source_disable_unref(writes->source);
        close_fd(writes->fd);
        free(writes->watches);
        free(writes);
        return NULL;
}
