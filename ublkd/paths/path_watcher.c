/* SPDX-License-Identifier: MIT */
/* The path watcher: one loop over the supervisor's orders, inotify and mountinfo.
 *
 * A look at a path follows it (path_walk), and links the path to every name on the way and to every mount
 * point that could cover one. Only after that stat() decides where it leads: what changes in between is
 * reported as a change again. A change of a name marks the paths that are linked to it, and `settle_usec`
 * later they are looked at, so that one look serves many changes.
 *
 * Not every change is reported: the kernel may have no inotify watch left, and file systems of other machines
 * and of the kernel do not report what others do. Such paths are looked at every `poll_usec`.
 *
 * No change of a name reports that a file system fills up: of a file that is served, the room below it is measured in
 * each look, and every `room_usec`. Only a change of that leads to another look. */
#include "ublkd/paths/path_watcher.h"

#include "ublkd/base/cleanup.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/fd_path.h"
#include "ublkd/paths/mount_list.h"
#include "ublkd/paths/path_names.h"
#include "ublkd/paths/path_room.h"
#include "ublkd/paths/path_walk.h"
#include "ublkd/paths/path_wire.h"

#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

enum {
        POLL_USEC = 30 * 1000 * 1000,
        ROOM_USEC = 60 * 1000 * 1000,
        SETTLE_USEC = 100 * 1000,
        MOUNTS_USEC = 100 * 1000, /* mountinfo is not read more often */
        ORDERS_PER_TURN = 256,
        EVENTS_SIZE = 64 * 1024,
        CHANGES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO,
};

struct item {
        struct path_dependent names; /* first: what path_names calls back with */
        struct path_id id;
        struct path_store store;
        bool is_due, is_polled;
        struct path_room room; /* known where it leads to its file */
        uint64_t due;
        TAILQ_ENTRY(item) of_due, of_polled;
        char path[];
};

TAILQ_HEAD(items, item);

struct watcher {
        struct path_watcher_options options;
        int channel, inotify;      /* inotify: -1: there is none, and every path is polled */
        struct mount_list *mounts; /* NULL: likewise */
        struct path_names *names;
        struct item **slots;
        size_t slot_count;
        struct items due;    /* by `due` */
        struct items polled; /* all that are to be */
        uint64_t poll_at, mounts_at;
        uint64_t room_at; /* 0: no room was measured yet */
        bool mounts_changed;
        bool complete; /* of the look under way: each change will be reported */
};

/* ---- the queue of looks ---- */

/* Once; `due` never lies before that of another, so the queue stays in order. */
static void item_changed(struct watcher *watcher, struct item *item)
{
        if (item->is_due)
                return;
        item->is_due = true;
        item->due = monotonic_now() + watcher->options.settle_usec;
        TAILQ_INSERT_TAIL(&watcher->due, item, of_due);
}

static void item_is_new(struct watcher *watcher, struct item *item)
{
        item->is_due = true;
        item->due = 0;
        TAILQ_INSERT_HEAD(&watcher->due, item, of_due);
}

static void item_not_due(struct watcher *watcher, struct item *item)
{
        if (item->is_due)
                TAILQ_REMOVE(&watcher->due, item, of_due);
        item->is_due = false;
}

static void item_set_polled(struct watcher *watcher, struct item *item, bool polled)
{
        if (polled && !item->is_polled) {
                if (TAILQ_EMPTY(&watcher->polled))
                        watcher->poll_at = monotonic_now() + watcher->options.poll_usec;
                TAILQ_INSERT_TAIL(&watcher->polled, item, of_polled);
        } else if (!polled && item->is_polled) {
                TAILQ_REMOVE(&watcher->polled, item, of_polled);
        }
        item->is_polled = polled;
}

/* ---- a look ---- */

/* Whether file systems of that type report every change to inotify: not where another machine makes some of
 * them, or the kernel does. */
static bool reports_changes(int directory)
{
        static const unsigned long silent[] = {
                NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, FUSE_SUPER_MAGIC,
                V9FS_MAGIC, CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC, CODA_SUPER_MAGIC,
                NCP_SUPER_MAGIC, OCFS2_SUPER_MAGIC, AUTOFS_SUPER_MAGIC, PROC_SUPER_MAGIC, SYSFS_MAGIC,
                0x01161970, /* GFS2 */
                0x0bd00bd0, /* Lustre */
                0x19830326, /* BeeGFS */
                0x47504653, /* GPFS */
                0x786f4256, /* VirtualBox's shared folders */
        };
        struct statfs info;

        if (fstatfs(directory, &info) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
                if ((unsigned long)info.f_type == silent[i])
                        return false;
        return true;
}

/* The place of a directory, or -errno. */
static int watch_directory(const struct watcher *watcher, int directory)
{
        int place;

        if (watcher->inotify < 0)
                return -EMFILE;
        place = inotify_add_watch(watcher->inotify, fd_path(directory).text, CHANGES | IN_ONLYDIR);
        return place < 0 ? -errno : place;
}

struct look {
        struct watcher *watcher;
        struct item *item;
};

static void on_step(void *userdata, int directory, const char *name, const char *point)
{
        struct look *look = userdata;
        struct watcher *watcher = look->watcher;
        struct path_dependent *names = &look->item->names;
        int place = watch_directory(watcher, directory);

        if (place < 0 || !reports_changes(directory)
                || path_names_link(watcher->names, place, name, names) < 0
                || path_names_link(watcher->names, PATH_PLACE_MOUNTS, point, names) < 0)
                watcher->complete = false;
}

/* What is there, as far as a device could be made on it. */
static bool store_of(const struct stat *info, struct path_store *ret)
{
        if (S_ISBLK(info->st_mode))
                *ret = (struct path_store){.is_disk = true, .device = info->st_rdev};
        else if (S_ISREG(info->st_mode))
                *ret = (struct path_store){.device = info->st_dev, .inode = info->st_ino};
        else
                return false;
        return true;
}

static bool leads_nowhere(int error)
{
        return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG;
}

static struct path_view view_of(const struct item *item, const struct stat *info, int error)
{
        struct path_view view = {.error = error};

        if (error) {
                view.state = leads_nowhere(error) ? PATH_GONE : PATH_UNKNOWN;
                return view;
        }
        view.is_store = store_of(info, &view.found);
        view.state = view.is_store && path_store_equal(&view.found, &item->store) ? PATH_SAME : PATH_OTHER;
        return view;
}

/* Measure the room below the file that `info` describes. Return false if it is unknown. */
static bool measure_room(const char *path, const struct stat *info, struct path_space *ret)
{
        uint64_t allocated = (uint64_t)info->st_blocks * S_BLKSIZE, size = (uint64_t)info->st_size;
        struct statvfs fs;

        if (statvfs(path, &fs) < 0)
                return false;
        *ret = (struct path_space){
                .missing = size > allocated ? size - allocated : 0,
                .available = (uint64_t)fs.f_bavail * fs.f_frsize,
                .total = (uint64_t)fs.f_blocks * fs.f_frsize,
                .at = clock_usec(CLOCK_REALTIME),
        };
        return true;
}

static void look_at_room(struct watcher *watcher, struct item *item, const struct stat *info)
{
        struct path_space space;

        item->room = measure_room(item->path, info, &space) ? path_room_judge(&item->room, &space)
                                                            : (struct path_room){};
        if (item->room.known && watcher->room_at == 0)
                watcher->room_at = monotonic_now() + watcher->options.room_usec;
}

/* The walk must have come where stat() came, or it has missed a name that matters (a link of /proc is not
 * what it reads as). */
static bool walk_agrees(int end, int walk_error, const struct stat *info, int error)
{
        struct stat walked;

        if (end < 0 || error)
                return end < 0 && walk_error == error;
        return fstat(end, &walked) == 0 && walked.st_dev == info->st_dev && walked.st_ino == info->st_ino;
}

static struct path_view look_at(struct watcher *watcher, struct item *item)
{
        struct look look = {.watcher = watcher, .item = item};
        _cleanup_close_ int end = -1;
        struct path_links before;
        struct path_view view;
        struct stat info;
        int walked, error;

        path_names_take(&item->names, &before);
        watcher->complete = watcher->mounts;
        walked = path_walk(item->path, on_step, &look, &end);
        path_names_release(watcher->names, &before);
        error = stat(item->path, &info) < 0 ? errno : 0;
        if (!walk_agrees(end, -walked, &info, error))
                watcher->complete = false;
        item_set_polled(watcher, item, !watcher->complete);
        view = view_of(item, &info, error);
        if (view.state == PATH_SAME && !view.found.is_disk)
                look_at_room(watcher, item, &info);
        else
                item->room = (struct path_room){};
        view.room = item->room;
        return view;
}

/* May block: the supervisor reads, or is gone. */
static int report(const struct watcher *watcher, const struct path_report *report)
{
        return send(watcher->channel, report, sizeof(*report), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* A supervisor that sees no end of a look knows where this process hangs. */
static int look(struct watcher *watcher, struct item *item)
{
        struct path_report answer = {.type = PATH_REPORT_LOOKING, .id = item->id};
        int r;

        item_not_due(watcher, item);
        r = report(watcher, &answer);
        if (r < 0)
                return r;
        answer.type = PATH_REPORT_VIEW;
        answer.view = look_at(watcher, item);
        return report(watcher, &answer);
}

/* ---- orders ---- */

static struct item *item_find(const struct watcher *watcher, struct path_id id)
{
        struct item *item = id.slot < watcher->slot_count ? watcher->slots[id.slot] : NULL;

        return item && item->id.serial == id.serial ? item : NULL;
}

static void item_free(struct watcher *watcher, struct item *item)
{
        item_not_due(watcher, item);
        item_set_polled(watcher, item, false);
        path_names_release(watcher->names, &item->names.links);
        watcher->slots[item->id.slot] = NULL;
        free(item);
}

static int slots_grow(struct watcher *watcher, uint32_t slot)
{
        size_t count = watcher->slot_count ? watcher->slot_count : 64;
        struct item **slots;

        if (slot < watcher->slot_count)
                return 0;
        if (slot >= PATH_SLOTS_MAX)
                return -EINVAL;
        while (count <= slot)
                count *= 2;
        slots = reallocarray(watcher->slots, count, sizeof(struct item *));
        if (!slots)
                return -ENOMEM;
        memset(slots + watcher->slot_count, 0, (count - watcher->slot_count) * sizeof(struct item *));
        watcher->slots = slots;
        watcher->slot_count = count;
        return 0;
}

static int take_watch(struct watcher *watcher, const struct path_order *order)
{
        size_t size = strlen(order->path) + 1;
        int r = slots_grow(watcher, order->id.slot);
        struct item *item;

        if (r < 0)
                return r;
        if (watcher->slots[order->id.slot])
                item_free(watcher, watcher->slots[order->id.slot]);
        item = malloc(sizeof(*item) + size);
        if (!item)
                return -ENOMEM;
        *item = (struct item){.id = order->id, .store = order->store};
        memcpy(item->path, order->path, size);
        watcher->slots[order->id.slot] = item;
        item_is_new(watcher, item);
        return 0;
}

/* 0; -errno: this process ends, and another one takes over. */
static int carry_out(struct watcher *watcher, const struct path_order *order)
{
        struct item *item;

        switch (order->type) {
        case PATH_ORDER_WATCH:
                return take_watch(watcher, order);
        case PATH_ORDER_DROP:
                item = item_find(watcher, order->id);
                if (item)
                        item_free(watcher, item);
                return 0;
        case PATH_ORDER_PING:
                return report(watcher, &(struct path_report){.type = PATH_REPORT_PONG});
        }
        return -EBADMSG;
}

/* 1: there may be more; 0: none for now; -errno: the supervisor is gone, or this process is of no use. */
static int take_order(struct watcher *watcher)
{
        struct path_order order = {};
        ssize_t n = recv(watcher->channel, &order, sizeof(order), MSG_DONTWAIT);
        int r;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -EPIPE;
        order.path[PATH_MAX - 1] = '\0';
        if ((size_t)n < offsetof(struct path_order, path)
                || (order.type == PATH_ORDER_WATCH && (size_t)n != path_order_size(&order)))
                return -EBADMSG;
        r = carry_out(watcher, &order);
        return r < 0 ? r : 1;
}

/* ---- changes ---- */

static void on_dependent(void *userdata, struct path_dependent *dependent)
{
        item_changed(userdata, (struct item *)dependent);
}

static void all_changed(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->slot_count; i++)
                if (watcher->slots[i])
                        item_changed(watcher, watcher->slots[i]);
}

static void take_event(struct watcher *watcher, const struct inotify_event *event)
{
        if (event->mask & IN_Q_OVERFLOW)
                all_changed(watcher);
        else if (event->mask & (IN_IGNORED | IN_UNMOUNT))
                path_names_each_in(watcher->names, event->wd, on_dependent, watcher);
        else if (event->len > 0)
                path_names_each(watcher->names, event->wd, event->name, on_dependent, watcher);
        if (event->mask & IN_IGNORED)
                path_names_lose(watcher->names, event->wd);
}

static int take_events(struct watcher *watcher)
{
        alignas(struct inotify_event) char events[EVENTS_SIZE];
        ssize_t n = read(watcher->inotify, events, sizeof(events));
        const struct inotify_event *event;

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        for (const char *at = events; at < events + n; at += sizeof(*event) + event->len) {
                event = (const struct inotify_event *)(const void *)at;
                take_event(watcher, event);
        }
        return 0;
}

static void on_mount(void *userdata, const char *point)
{
        struct watcher *watcher = userdata;

        path_names_each(watcher->names, PATH_PLACE_MOUNTS, point, on_dependent, watcher);
}

/* On ENOMEM every path may have changed. */
static void take_mounts(struct watcher *watcher)
{
        if (!watcher->mounts_changed || monotonic_now() < watcher->mounts_at)
                return;
        watcher->mounts_changed = false;
        if (mount_list_changes(watcher->mounts, on_mount, watcher) < 0)
                all_changed(watcher);
        watcher->mounts_at = monotonic_now() + MOUNTS_USEC;
}

static void poll_silent(struct watcher *watcher)
{
        uint64_t now = monotonic_now();
        struct item *item;

        if (TAILQ_EMPTY(&watcher->polled) || now < watcher->poll_at)
                return;
        TAILQ_FOREACH (item, &watcher->polled, of_polled)
                item_changed(watcher, item);
        watcher->poll_at = now + watcher->options.poll_usec;
}

/* Return whether the room of the item is another one than was reported. */
static bool room_has_changed(const struct item *item)
{
        struct path_space space;
        struct path_room room;
        struct stat info;

        if (stat(item->path, &info) < 0 || !measure_room(item->path, &info, &space))
                return true;
        room = path_room_judge(&item->room, &space);
        return !path_room_equal(&room, &item->room);
}

/* Those that are polled are looked at anyway, and only they may lie on a server that does not answer. */
static void poll_room(struct watcher *watcher)
{
        if (watcher->room_at == 0 || monotonic_now() < watcher->room_at)
                return;
        watcher->room_at = 0;
        for (size_t i = 0; i < watcher->slot_count; i++) {
                struct item *item = watcher->slots[i];

                if (!item || !item->room.known)
                        continue;
                watcher->room_at = monotonic_now() + watcher->options.room_usec;
                if (!item->is_polled && room_has_changed(item))
                        item_changed(watcher, item);
        }
}

/* ---- the loop ---- */

static void leave_place(void *userdata, int place)
{
        struct watcher *watcher = userdata;

        if (place != PATH_PLACE_MOUNTS)
                (void)inotify_rm_watch(watcher->inotify, place);
}

/* When there is something to do without an event. UINT64_MAX: never. */
static uint64_t next_due(const struct watcher *watcher)
{
        uint64_t due = UINT64_MAX;

        if (!TAILQ_EMPTY(&watcher->due))
                due = TAILQ_FIRST(&watcher->due)->due;
        if (!TAILQ_EMPTY(&watcher->polled) && watcher->poll_at < due)
                due = watcher->poll_at;
        if (watcher->room_at > 0 && watcher->room_at < due)
                due = watcher->room_at;
        if (watcher->mounts_changed && watcher->mounts_at < due)
                due = watcher->mounts_at;
        return due;
}

static int wait_for_work(const struct watcher *watcher, struct pollfd fds[static 3])
{
        uint64_t due = next_due(watcher), now = monotonic_now();
        struct timespec left = {};
        int r;

        if (due != UINT64_MAX && due > now)
                left = (struct timespec){.tv_sec = (time_t)((due - now) / USEC_PER_SEC),
                        .tv_nsec = (long)((due - now) % USEC_PER_SEC * 1000)};
        r = ppoll(fds, 3, due == UINT64_MAX ? NULL : &left, NULL);
        return r < 0 && errno != EINTR ? -errno : 0;
}

/* One look, so that orders are carried out between two of them. */
static int look_if_due(struct watcher *watcher)
{
        struct item *item = TAILQ_FIRST(&watcher->due);

        return item && item->due <= monotonic_now() ? look(watcher, item) : 0;
}

static int serve(struct watcher *watcher)
{
        struct pollfd fds[] = {
                {.fd = watcher->channel,                                      .events = POLLIN },
                {.fd = watcher->inotify,                                      .events = POLLIN },
                {.fd = watcher->mounts ? mount_list_fd(watcher->mounts) : -1, .events = POLLPRI},
        };
        int r = 0;

        while (r >= 0) {
                r = wait_for_work(watcher, fds);
                for (int i = 0, more = 1; r >= 0 && fds[0].revents && more > 0 && i < ORDERS_PER_TURN; i++)
                        r = more = take_order(watcher);
                if (r >= 0 && fds[1].revents)
                        r = take_events(watcher);
                if (fds[2].revents & POLLPRI)
                        watcher->mounts_changed = true;
                if (r >= 0) {
                        take_mounts(watcher);
                        poll_silent(watcher);
                        poll_room(watcher);
                        r = look_if_due(watcher);
                }
        }
        return r;
}

static void set_defaults(struct path_watcher_options *options)
{
        if (options->poll_usec == 0)
                options->poll_usec = POLL_USEC;
        if (options->room_usec == 0)
                options->room_usec = ROOM_USEC;
        if (options->settle_usec == 0)
                options->settle_usec = SETTLE_USEC;
}

/* What a process holds is freed by its end. */
int path_watcher_main(int fd, const struct path_watcher_options *options)
{
        struct watcher watcher = {.channel = fd};

        (void)prctl(PR_SET_NAME, "ublkd-paths");
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it could hang in a look when the supervisor ends */
        if (options)
                watcher.options = *options;
        set_defaults(&watcher.options);
        TAILQ_INIT(&watcher.due);
        TAILQ_INIT(&watcher.polled);
        watcher.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (mount_list_open("/proc/self/mountinfo", &watcher.mounts) < 0)
                watcher.mounts = NULL;
        if (path_names_new(leave_place, &watcher, &watcher.names) < 0)
                return EXIT_FAILURE;
        return serve(&watcher) == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}
