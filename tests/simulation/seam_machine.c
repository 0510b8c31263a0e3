/* SPDX-License-Identifier: MIT */
/* In place of what else the reconciler asks of the machine: the runtime directory, kept descriptors, nodes of
 * disks, /sys, searches for the users of a disk, and the log. The worker's region is not there: what is in it
 * decides nothing about a device. */
#include "sim.h"

#include "ublkd/base/log.h"
#include "ublkd/disks/disk_node.h"
#include "ublkd/disks/disk_size.h"
#include "ublkd/disks/disk_stat.h"
#include "ublkd/disks/disk_timeout.h"
#include "ublkd/driver/char_device.h"
#include "ublkd/offload/close_away.h"
#include "ublkd/paths/path_watch.h"
#include "ublkd/reconcile/reconciler_events.h"
#include "ublkd/runtime/claim_file.h"
#include "ublkd/runtime/fd_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the runtime directory ---- */

static struct runtime_file *find_file(const char *uid, enum runtime_text which)
{
        for (int i = 0; i < FILES; i++) {
                struct runtime_file *file = &sim->files[i];

                if (file->text && strcmp(file->uid, uid) == 0 && file->which == which)
                        return file;
        }
        return NULL;
}

static struct runtime_file *free_file(void)
{
        for (int i = 0; i < FILES; i++)
                if (!sim->files[i].text)
                        return &sim->files[i];
        return NULL;
}

const char *runtime_dir_path(const struct runtime_dir *dir)
{
        (void)dir;
        return "/run/ublkd";
}

int runtime_dir_write(struct runtime_dir *dir, const char *uid, enum runtime_text which, const char *text)
{
        struct runtime_file *file = find_file(uid, which);

        (void)dir;
        if (!ublkd_acts(sim))
                return -EIO;
        if (world_bad_luck(sim))
                return -ENOSPC;
        if (!file)
                file = free_file();
        if (!file) {
                world_break(sim, "files pile up in the runtime directory");
                return -ENOSPC;
        }
        free(file->text);
        *file = (struct runtime_file){.text = strdup(text), .which = which};
        snprintf(file->uid, sizeof(file->uid), "%s", uid);
        return 0;
}

int runtime_dir_read(struct runtime_dir *dir, const char *uid, enum runtime_text which, char **ret)
{
        const struct runtime_file *file = find_file(uid, which);

        (void)dir;
        if (!file)
                return -ENOENT;
        *ret = strdup(file->text);
        return *ret ? 0 : -ENOMEM;
}

int runtime_dir_remove(struct runtime_dir *dir, const char *uid, enum runtime_text which)
{
        struct runtime_file *file = find_file(uid, which);

        (void)dir;
        if (!ublkd_acts(sim) || !file)
                return 0;
        free(file->text);
        *file = (struct runtime_file){};
        return 0;
}

/* It is used by the functions below alone. */
int runtime_dir_open_disks(const struct runtime_dir *dir)
{
        (void)dir;
        return world_bad_luck(sim) ? -ENOSPC : STAND_IN_NOTHING;
}

int runtime_dir_open_region(struct runtime_dir *dir, const char *uid)
{
        (void)dir, (void)uid;
        return -ENOENT;
}

/* A worker gets it, and does not look at it. No region has any faults here. */
int runtime_dir_ensure_region(struct runtime_dir *dir, const char *uid, const struct device_region_key *key)
{
        (void)dir, (void)uid, (void)key;
        return STAND_IN_NOTHING;
}

int runtime_dir_ensure_kept(struct runtime_dir *dir, const char *uid, const struct device_region_key *key,
        const struct region_kept_wish *wish)
{
        (void)wish;
        return runtime_dir_ensure_region(dir, uid, key);
}

int runtime_dir_remove_region(struct runtime_dir *dir, const char *uid)
{
        (void)dir, (void)uid;
        return 0;
}

int runtime_dir_remove_worker(struct runtime_dir *dir, const char *uid)
{
        int owner = sim->socket_owner;

        (void)dir;
        if (ublkd_acts(sim) && owner != NO_PROCESS && strcmp(sim->processes[owner].uid, uid) == 0)
                sim->socket_owner = NO_PROCESS;
        return 0;
}

/* The runtime directory has no records of another database. */
int runtime_dir_each_record(
        struct runtime_dir *dir, int (*each)(void *userdata, const char *uid), void *userdata)
{
        (void)dir, (void)each, (void)userdata;
        return 0;
}

int runtime_dir_read_record(struct runtime_dir *dir, const char *uid, size_t size_max, char **ret)
{
        (void)dir, (void)uid, (void)size_max, (void)ret;
        return -ENOENT;
}

int record_keeper_ensure(struct record_keeper *keeper, const char *name)
{
        (void)keeper, (void)name;
        return world_bad_luck(sim) ? -ENOSPC : 0;
}

int claim_file_write(struct runtime_dir *dir, const char *uid, const struct backing_claims *claims)
{
        struct written_claims *written = &sim->claims;

        (void)dir;
        if (!ublkd_acts(sim))
                return -EIO;
        if (world_bad_luck(sim))
                return -ENOSPC;
        backing_claims_clear(&written->claims);
        snprintf(written->uid, sizeof(written->uid), "%s", uid);
        return backing_claims_append(&written->claims, claims);
}

int claim_file_read(struct runtime_dir *dir, const char *uid, struct backing_claims *ret)
{
        (void)dir;
        return strcmp(sim->claims.uid, uid) == 0 ? backing_claims_append(ret, &sim->claims.claims) : -ENOENT;
}

int claim_file_remove(struct runtime_dir *dir, const char *uid)
{
        (void)dir;
        if (!ublkd_acts(sim) || strcmp(sim->claims.uid, uid) != 0)
                return 0;
        backing_claims_clear(&sim->claims.claims);
        sim->claims = (struct written_claims){};
        return 0;
}

/* ---- descriptors ---- */

int close_away(int fd)
{
        descriptor_close(sim, fd);
        return -1;
}

int fd_store_take(struct fd_store *store, const char *uid, uint16_t *ret_epoch)
{
        const struct kept_descriptors *kept = &sim->kept;

        (void)store;
        if (!sim->keeps_descriptors || strcmp(kept->uid, uid) != 0 || kept->stores[0] == NO_STORE)
                return -1;
        *ret_epoch = kept->epoch;
        return descriptor_open(sim, kept->stores[0]);
}

void fd_store_keep(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number, int fd)
{
        (void)store;
        if (!ublkd_acts(sim) || !sim->keeps_descriptors)
                return;
        if (number >= (sim->listed ? PLACES : 1)) {
                world_break(sim, "a descriptor is kept for no place");
                return;
        }
        if (sim->kept.uid[0] != '\0' && (strcmp(sim->kept.uid, uid) != 0 || sim->kept.epoch != epoch))
                world_break(sim, "a descriptor of a store is kept for no disk");
        if (sim->kept.uid[0] == '\0')
                for (unsigned i = 0; i < PLACES; i++)
                        sim->kept.stores[i] = NO_STORE;
        sim->kept.epoch = epoch;
        sim->kept.stores[number] = descriptor_store(sim, fd);
        snprintf(sim->kept.uid, sizeof(sim->kept.uid), "%s", uid);
        if (sim->kept.stores[number] == NO_STORE)
                world_break(sim, "a descriptor that is not open is kept");
        if (sim->listed && (sim->kept.stores[number] == BESIDE) != (number != sim->place))
                world_break(sim, "a descriptor is kept for the place of another store");
}

int fd_store_take_listed(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number)
{
        const struct kept_descriptors *kept = &sim->kept;

        (void)store;
        if (!sim->keeps_descriptors || strcmp(kept->uid, uid) != 0 || kept->epoch != epoch
                || kept->stores[number] == NO_STORE)
                return -1;
        return descriptor_open(sim, kept->stores[number]);
}

void fd_store_drop(struct fd_store *store, const char *uid, uint16_t epoch, unsigned number)
{
        bool is_empty = true;

        (void)store;
        if (!ublkd_acts(sim) || strcmp(sim->kept.uid, uid) != 0 || sim->kept.epoch != epoch)
                return;
        sim->kept.stores[number] = NO_STORE;
        for (unsigned i = 0; i < PLACES; i++)
                is_empty = is_empty && sim->kept.stores[i] == NO_STORE;
        if (is_empty)
                sim->kept = (struct kept_descriptors){};
}

/* The stores of this world are files, and files are not claimed. */
int fd_store_take_claim(struct fd_store *store, const char *uid, unsigned number)
{
        (void)store, (void)uid, (void)number;
        return -1;
}

void fd_store_keep_claim(struct fd_store *store, const char *uid, unsigned number, int fd)
{
        (void)store, (void)uid, (void)number, (void)fd;
        world_break(sim, "a claim is kept for a file");
}

void fd_store_drop_claim(struct fd_store *store, const char *uid, unsigned number)
{
        (void)store, (void)uid, (void)number;
        world_break(sim, "a claim of a file is let go");
}

int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret);

int __wrap_statx(int fd, const char *path, int flags, unsigned mask, struct statx *ret)
{
        int store = descriptor_store(sim, fd);

        (void)path, (void)flags;
        if (store == NO_STORE) {
                errno = EBADF;
                return -1;
        }
        *ret = (struct statx){
                .stx_mask = mask,
                .stx_mode = S_IFREG | 0600,
                .stx_ino = 100 + (uint64_t)store,
                .stx_dev_major = 8,
                .stx_dev_minor = 1,
        };
        return 0;
}

/* ---- disks, as /sys and /dev have them ---- */

int disk_size_read(const char *sys _unused_, int number, uint64_t *ret_size, uint32_t *ret_logical_block_size)
{
        const struct kernel_disk *disk = &sim->disks[number];

        if (!disk->exists || !disk->was_started)
                return -ENOENT;
        *ret_size = disk->size;
        if (ret_logical_block_size)
                *ret_logical_block_size = 512;
        return 0;
}

bool disk_stat_is_kept(const char *sys _unused_, int number _unused_)
{
        return !world_bad_luck(sim);
}

int disk_stat_read(const char *sys _unused_, int number, struct disk_stat *ret)
{
        *ret = (struct disk_stat){.in_flight = world_chance(sim, 100) ? sim->disks[number].queue_depth : 0};
        return sim->disks[number].exists ? 0 : -ENOENT;
}

enum char_device char_device_look(int number)
{
        const struct kernel_disk *disk = &sim->disks[number];

        if (disk->holder != NO_PROCESS || world_bad_luck(sim)) /* udev has it open for a moment */
                return CHAR_DEVICE_HELD;
        return disk->deleted ? CHAR_DEVICE_GONE : CHAR_DEVICE_FREE;
}

int disk_node_announce(int disks, const struct disk_node *node)
{
        (void)disks, (void)node;
        return 1;
}

int disk_node_notify(int number)
{
        (void)number;
        return 0;
}

int disk_node_publish(const struct disk_node *node)
{
        (void)node;
        return world_bad_luck(sim) ? -ENOENT : 0;
}

int disk_node_withdraw(int disks, const char *name, int number)
{
        (void)disks, (void)name, (void)number;
        return 0;
}

int disk_timeout_shorten(struct disk_timeout *timeout, int number, uint64_t delay)
{
        (void)timeout, (void)delay;
        if (world_bad_luck(sim))
                return -EAGAIN;
        reconciler_timeout_done(sim->ublkd.reconciler, number, 0);
        return 0;
}

/* ---- who uses a disk ---- */

int disk_search_ask(struct disk_search *search, int number, enum disk_depth depth, disk_answered answered,
        void *userdata, struct disk_question **ret)
{
        struct world *world = sim;

        (void)search, (void)depth;
        if (!ublkd_acts(world) || world_bad_luck(world))
                return -EAGAIN;
        for (int i = 0; i < QUESTIONS; i++) {
                struct disk_question *question = &world->ublkd.questions[i];

                if (question->used)
                        continue;
                *question = (struct disk_question){.used = true,
                        .serial = ++world->question_serial,
                        .number = number,
                        .answered = answered,
                        .userdata = userdata};
                world_at(world, world->now + world_between(world, MS, 10 * SECOND), EVENT_ANSWER, i, 0,
                        question->serial);
                *ret = question;
                return 0;
        }
        world_break(world, "questions pile up");
        return -EAGAIN;
}

void seam_question_answered(struct world *world, const struct event *event)
{
        const struct disk_question *question = &world->ublkd.questions[event->a];
        struct disk_answer answer = {.text = ""};

        if (!ublkd_acts(world) || !question->used || question->serial != event->c)
                return;
        answer.number = question->number;
        if (!world_bad_luck(world))
                answer.use = world->disks[question->number].openers > 0 ? DISK_USED : DISK_UNUSED;
        if (answer.use == DISK_USED)
                answer.text = "process 7 (dd)";
        question->answered(question->userdata, &answer);
}

struct disk_question *disk_question_free(struct disk_question *question)
{
        if (question)
                question->used = false;
        return NULL;
}

/* ---- where paths lead: not simulated ---- */

int path_watch_new(struct path_watches *watches, const char *path, const struct path_store *store,
        path_watch_changed changed, void *userdata, struct path_watch **ret)
{
        (void)watches, (void)path, (void)store, (void)changed, (void)userdata, (void)ret;
        return -ENOSPC;
}

struct path_watch *path_watch_free(struct path_watch *watch)
{
        (void)watch;
        return NULL;
}

const struct path_view *path_watch_view(const struct path_watch *watch)
{
        (void)watch;
        return NULL;
}

const char *path_watch_path(const struct path_watch *watch)
{
        (void)watch;
        return NULL;
}

const struct path_store *path_watch_store(const struct path_watch *watch)
{
        (void)watch;
        return NULL;
}

/* ---- the log is part of the trace ---- */

void log_record(int level, const struct log_fields *fields, const char *format, ...)
{
        char text[512];
        va_list arguments;

        (void)level, (void)fields;
        if (!sim || !sim->trace)
                return;
        va_start(arguments, format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)vsnprintf(text, sizeof(text), format, arguments);
#pragma GCC diagnostic pop
        va_end(arguments);
        world_trace(sim, "log: %s", text);
}
