/* SPDX-License-Identifier: MIT */
/* foreign_scan: a look at the process behind a foreign disk may hang, and the loop goes on. In the driver's
 * place a function that knows two disks; in the place of a stuck process a pipe without a writer. */
#include "ublkd/host/foreign_scan.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* A busy machine may let the process of a look wait for its turn: the patience is long enough for that. */
enum { STUCK = 700, GOOD = 800, PATIENCE_USEC = 2 * 1000 * 1000, DEADLINE_USEC = 60 * 1000 * 1000 };

struct world {
        sd_event *event;
        struct device_store *store;
        struct foreign_disks found;
        struct adoptables adoptable;
        struct foreign_scan *scan;
        char folder[32], proc[32];
        unsigned done, turns;
};

static sd_event_source *answer_source;

int __wrap_ublk_ctl_get_info(
        struct ublk_ctl *ctl, int number, ublk_ctl_done done, void *userdata, struct ublk_ctl_call **ret);
void __wrap_ublk_ctl_call_cancel(struct ublk_ctl_call *call);

static struct {
        int number;
        ublk_ctl_done done;
        void *userdata;
} asked;

/* /dev/ublkb3 is served by a process that is stuck, /dev/ublkb8 by another one. */
static int on_answer(sd_event_source *source _unused_, void *userdata _unused_)
{
        const struct kernel_device device = {.number = asked.number,
                .state = KERNEL_STATE_LIVE,
                .cookie = 5,
                .server_pid = asked.number == 3 ? STUCK : GOOD};

        asked.done(asked.userdata, 0, &device);
        return 0;
}

int __wrap_ublk_ctl_get_info(struct ublk_ctl *ctl _unused_, int number, ublk_ctl_done done, void *userdata,
        struct ublk_ctl_call **ret)
{
        asked.number = number;
        asked.done = done;
        asked.userdata = userdata;
        CHECK_INT(sd_event_source_set_enabled(answer_source, SD_EVENT_ONESHOT), 0);
        *ret = (struct ublk_ctl_call *)&asked;
        return 0;
}

void __wrap_ublk_ctl_call_cancel(struct ublk_ctl_call *call _unused_)
{
        CHECK(sd_event_source_set_enabled(answer_source, SD_EVENT_OFF) >= 0);
}

static void on_done(void *userdata)
{
        ((struct world *)userdata)->done++;
}

static int on_turn(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        ((struct world *)userdata)->turns++;
        CHECK(sd_event_source_set_time_relative(source, 10 * 1000) >= 0);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void put(const struct world *world, int pid, const char *name, const char *text)
{
        char path[128];
        _cleanup_close_ int fd = -1;

        snprintf(path, sizeof(path), "%s/%d", world->proc, pid);
        (void)mkdir(path, 0700);
        snprintf(path, sizeof(path), "%s/%d/%s", world->proc, pid, name);
        (void)unlink(path);
        if (!text) {
                CHECK_INT(mkfifo(path, 0600), 0);
                return;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void put_disk(const struct world *world, const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/%s", world->folder, name);
        CHECK_INT(mkdir(path, 0700), 0);
}

static void world_new(struct world *world)
{
        const struct device_backend *backend;
        void *context;

        *world = (struct world){.folder = "/tmp/foreign-scan-XXXXXX", .proc = "/tmp/foreign-proc-XXXXXX"};
        CHECK(mkdtemp(world->folder) && mkdtemp(world->proc));
        CHECK_INT(sd_event_new(&world->event), 0);
        CHECK_INT(sd_event_add_defer(world->event, &answer_source, on_answer, NULL), 0);
        CHECK_INT(sd_event_source_set_enabled(answer_source, SD_EVENT_OFF), 0);
        CHECK_INT(store_memory_open(&backend, &context), 0);
        CHECK_INT(device_store_new(backend, context, &world->store), 0);
        CHECK_INT(foreign_scan_new(
                          &(struct foreign_scan_config){
                                  .event = world->event,
                                  .store = world->store,
                                  .found = &world->found,
                                  .adoptable = &world->adoptable,
                                  .folder = world->folder,
                                  .proc = world->proc,
                                  .patience_usec = PATIENCE_USEC,
                                  .done = on_done,
                                  .userdata = world,
                          },
                          &world->scan),
                0);
        foreign_scan_set_control(world->scan, (struct ublk_ctl *)&asked);
        put_disk(world, "ublkc8");
        put(world, STUCK, "comm", "stuck\n");
        put(world, STUCK, "stat", NULL);
        put(world, GOOD, "comm", "kublk\n");
        put(world, GOOD, "stat", "800 (kublk) S 1 0 0");
}

static void world_free(struct world *world)
{
        char command[96];

        foreign_scan_free(world->scan);
        device_store_free(world->store);
        foreign_disks_clear(&world->found);
        answer_source = sd_event_source_disable_unref(answer_source);
        sd_event_unref(world->event);
        snprintf(command, sizeof(command), "rm -r %s %s", world->folder, world->proc);
        CHECK_INT(system(command), 0);
}

/* Until the scan is over; the loop has a turn every 10 ms meanwhile. */
static void scan_once(struct world *world)
{
        sd_event_source *turns = NULL;
        unsigned before = world->done;
        uint64_t start, now;

        CHECK_INT(sd_event_add_time_relative(world->event, &turns, CLOCK_MONOTONIC, 0, 1000, on_turn, world),
                0);
        CHECK(foreign_scan_begin(world->scan));
        CHECK(foreign_scan_begin(world->scan)); /* it is under way */
        CHECK(sd_event_now(world->event, CLOCK_MONOTONIC, &start) >= 0);
        for (now = start; world->done == before && now < start + DEADLINE_USEC;) {
                CHECK(sd_event_run(world->event, UINT64_MAX) >= 0);
                CHECK(sd_event_now(world->event, CLOCK_MONOTONIC, &now) >= 0);
        }
        CHECK_INT(world->done, before + 1);
        sd_event_source_disable_unref(turns);
}

static const struct foreign_disk *disk_of(const struct world *world, int number)
{
        for (size_t i = 0; i < world->found.count; i++)
                if (world->found.items[i].number == number)
                        return &world->found.items[i];
        CHECK(!"the disk was found");
        abort();
}

static void a_process_that_is_stuck_does_not_stop_the_loop(void)
{
        struct world world;

        world_new(&world);
        put_disk(&world, "ublkc3");
        world.turns = 0;
        alarm(60); /* where the loop itself looks it hangs for ever */
        scan_once(&world);
        CHECK(world.turns >= 3);
        CHECK_INT(world.found.count, 2);
        CHECK(!disk_of(&world, 3)->looked);
        CHECK(strstr(disk_of(&world, 3)->detail, "process 700,"));
        alarm(0);
        put(&world, STUCK, "stat", "700 (stuck) S 1 0 0"); /* it goes on */
        scan_once(&world);
        CHECK(disk_of(&world, 3)->looked && disk_of(&world, 3)->is_new);
        CHECK_STR(disk_of(&world, 3)->server.process, "stuck");
        put(&world, STUCK, "stat", NULL);
        scan_once(&world);
        CHECK_STR(disk_of(&world, 3)->server.process, "stuck"); /* as was known before */
        CHECK(!disk_of(&world, 3)->is_new);
        world_free(&world);
        while (waitpid(-1, NULL, WNOHANG) > 0) {} /* those that were killed */
}

static void what_serves_a_disk_is_found(void)
{
        struct world world;

        world_new(&world);
        scan_once(&world);
        CHECK_INT(world.found.count, 1);
        CHECK(disk_of(&world, 8)->looked && disk_of(&world, 8)->is_new);
        CHECK_INT(disk_of(&world, 8)->server.pid, GOOD);
        CHECK_STR(disk_of(&world, 8)->server.process, "kublk");
        scan_once(&world);
        CHECK(!disk_of(&world, 8)->is_new);
        world_free(&world);
}

/* The scan ends when the control plane is lost; a freed scan does not call back. */
static void a_scan_that_is_cut_off(void)
{
        struct world world;

        world_new(&world);
        put_disk(&world, "ublkc3");
        CHECK(foreign_scan_begin(world.scan));
        for (int i = 0; i < 4; i++) /* the questions, and the look begins */
                CHECK(sd_event_run(world.event, 1000) >= 0);
        foreign_scan_set_control(world.scan, NULL);
        CHECK_INT(world.done, 1);
        CHECK(!foreign_scan_begin(world.scan));
        foreign_scan_set_control(world.scan, (struct ublk_ctl *)&asked);
        CHECK(foreign_scan_begin(world.scan));
        world_free(&world);
        CHECK_INT(world.done, 1);
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN);
        a_process_that_is_stuck_does_not_stop_the_loop();
        what_serves_a_disk_is_found();
        a_scan_that_is_cut_off();
        return check_report();
}
