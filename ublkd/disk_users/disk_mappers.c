/* SPDX-License-Identifier: MIT */
/* The disks that are mapped into the memory of processes.
 *
 * The kernel reads a process's mappings under the lock of its memory, which the process can hold for long. So a thread
 * asks. A process whose mappings are many, or whose thread does not come back, is read after all others. */
#include "ublkd/disk_users/disk_look.h"

#include "ublkd/base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

enum {
        CHUNK_SIZE = 64 * 1024,  /* longer than any line */
        FIRST_SIZE = 256 * 1024, /* bytes of a process, for look_first_share() */
        FIRST_USEC = 20 * 1000,  /* the same for one call */
        HANGING_MANY = 32,       /* when so many hang, others get */
        HANGING_USEC = 1000,     /* so much for a call */
};

/* What a thread asks of one process. */
struct asked {
        struct aside_job job; /* first member */
        int directory;        /* /proc/PID; owned */
        int maps;             /* owned; -1: not open yet */
        char link[64];        /* the mapping that it asks about; "": it reads on */
        dev_t device;         /* of that mapping */
        int result;           /* of the call; for a mapping as of disk_node_ask() */
        bool ended;           /* all has been read */
        size_t size;          /* of the text that was read and not parsed */
        char text[CHUNK_SIZE];
};

/* A line of maps: "00400000-00401000 rw-s 00000000 08:01 99    /srv/file". */
struct mapping {
        unsigned long from, to;
        struct seen_pair file; /* the device of its file system, and its inode */
        const char *path;
};

static void asked_free(struct aside_job *job)
{
        struct asked *asked = (struct asked *)job;

        close_fd(asked->directory);
        close_fd(asked->maps);
        free(asked);
}

static int read_on(struct asked *asked)
{
        if (asked->maps < 0)
                asked->maps = openat(asked->directory, "maps", O_RDONLY | O_CLOEXEC);
        if (asked->maps < 0)
                return -errno;
        while (asked->size < CHUNK_SIZE && !asked->ended) {
                ssize_t n = read(asked->maps, asked->text + asked->size, CHUNK_SIZE - asked->size);

                if (n < 0)
                        return -errno;
                asked->size += (size_t)n;
                asked->ended = n == 0;
        }
        return 0;
}

static void asked_run(struct aside_job *job)
{
        struct asked *asked = (struct asked *)job;

        asked->result = asked->link[0] ? disk_node_ask(asked->directory, asked->link, &asked->device)
                                       : read_on(asked);
}

static struct asked *asked_new(const struct process *process)
{
        struct asked *asked = malloc(sizeof(*asked));

        if (!asked)
                return NULL;
        asked->job = (struct aside_job){.run = asked_run, .free = asked_free};
        asked->directory = fcntl(process->directory, F_DUPFD_CLOEXEC, 0);
        asked->maps = -1;
        asked->link[0] = '\0';
        asked->size = 0;
        asked->ended = false;
        if (asked->directory >= 0)
                return asked;
        free(asked);
        return NULL;
}

/* The reading of one process. */
struct reading {
        const struct process *process;
        struct asked *asked; /* NULL: it hangs, and the thread owns it */
        size_t size;         /* of what has been read */
        size_t size_max;
        uint64_t until; /* CLOCK_MONOTONIC, microseconds */
        bool first;     /* others have not been read yet */
};

static uint64_t time_for_a_call(const struct look *look, const struct reading *reading)
{
        uint64_t now = monotonic_now();

        if (reading->first)
                return look->hanging < HANGING_MANY ? FIRST_USEC : HANGING_USEC;
        return now < reading->until ? reading->until - now : 0;
}

/* Return what the call returns; -ETIME: it hangs. */
static int ask(struct look *look, struct reading *reading)
{
        int r = aside_run(&look->aside, &reading->asked->job, time_for_a_call(look, reading));

        if (r == -ETIME) {
                reading->asked = NULL;
                look->hanging++;
        }
        return r < 0 ? r : reading->asked->result;
}

/* Return 1; 0: no file is mapped; -EBADMSG. */
static int parse_mapping(const char *line, struct mapping *ret)
{
        unsigned long long inode;
        unsigned device_major, device_minor;

        ret->path = strchr(line, '/'); /* no other field contains one */
        if (!ret->path)
                return 0;
        if (sscanf(line, "%lx-%lx %*s %*s %x:%x %llu", &ret->from, &ret->to, &device_major, &device_minor,
                    &inode)
                != 5)
                return -EBADMSG;
        if (inode == 0)
                return 0; /* "[anon:a/b]" */
        ret->file = (struct seen_pair){
                .first = makedev(device_major, device_minor) + UINT64_C(1), .second = inode};
        return 1;
}

/* Ask what is mapped; as disk_node_ask(). */
static int ask_mapping(struct look *look, struct reading *reading, const struct mapping *mapping, dev_t *ret)
{
        struct asked *asked = reading->asked;
        int r;

        /* the link has no leading zeros */
        snprintf(asked->link, sizeof(asked->link), "map_files/%lx-%lx", mapping->from, mapping->to);
        if (look->roots->node)
                r = look->roots->node(asked->directory, asked->link, ret);
        else
                r = ask(look, reading);
        if (!reading->asked)
                return r;
        if (!look->roots->node)
                *ret = asked->device;
        asked->link[0] = '\0';
        return r;
}

static int add_mapping(struct look *look, struct reading *reading, const char *line)
{
        struct disk_users *disk;
        struct mapping mapping;
        dev_t device = 0;
        int r = parse_mapping(line, &mapping);

        if (r <= 0 || seen_set_has(&look->files, mapping.file))
                return r;
        r = ask_mapping(look, reading, &mapping, &device);
        if (!reading->asked)
                return r;
        r = disk_of_node(look, r, device, mapping.path, &disk);
        if (r > 0)
                return seen_set_add(&look->files, mapping.file);
        if (r == -ENOMEM || !disk)
                return r == -ENOMEM ? r : 0;
        return disk_process_add(look, disk, reading->process);
}

/* Parse the whole lines of the text, and keep the rest. */
static int add_lines(struct look *look, struct reading *reading)
{
        struct asked *asked = reading->asked;
        size_t at = 0;
        int r = 0;

        while (r >= 0 && at < asked->size) {
                char *line = asked->text + at, *end = memchr(line, '\n', asked->size - at);

                if (!end && !asked->ended)
                        break;
                if (!end && asked->size == CHUNK_SIZE)
                        return -EBADMSG;
                end = end ? end : asked->text + asked->size;
                *end = '\0';
                at = (size_t)(end - asked->text) + 1;
                r = add_mapping(look, reading, line);
                if (!reading->asked)
                        return r;
        }
        if (r < 0)
                return r;
        if (at == 0 && asked->size == CHUNK_SIZE)
                return -EBADMSG; /* a line without an end */
        reading->size += at;
        asked->size -= at < asked->size ? at : asked->size;
        memmove(asked->text, asked->text + at, asked->size);
        return 0;
}

/* Return 0: all mappings have been read; -ETIME: too many, or they hang; other -errno. */
static int read_mappings(struct look *look, struct reading *reading)
{
        int r = 0;

        while (r >= 0 && !reading->asked->ended) {
                if (reading->size > reading->size_max
                        || (!reading->first && monotonic_now() >= reading->until))
                        return -ETIME;
                r = ask(look, reading);
                if (r >= 0)
                        r = add_lines(look, reading);
                if (!reading->asked)
                        return r;
        }
        return r;
}

static int add_mappers(struct look *look, struct reading *reading)
{
        int r;

        reading->asked = asked_new(reading->process);
        if (!reading->asked)
                return errno == ENOMEM ? -ENOMEM : -errno;
        r = read_mappings(look, reading);
        if (reading->asked)
                asked_free(&reading->asked->job);
        return r;
}

int disk_mappers_add(struct look *look, const struct process *process)
{
        struct reading reading = {
                .process = process, .size_max = look_first_share(look, FIRST_SIZE), .first = true};
        int r = add_mappers(look, &reading);

        if (r == -ETIME)
                return late_add(look, &look->late_mappers, process);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                look_note_gap(look, process, "mappings", r);
        return 0;
}

static int read_late(struct look *look, const struct process *process, uint64_t until)
{
        struct reading reading = {.process = process, .size_max = SIZE_MAX, .until = until};

        return add_mappers(look, &reading);
}

int disk_mappers_finish(struct look *look)
{
        return late_finish(look, &look->late_mappers, look->mappers_until, read_late, "mappings");
}
