/* SPDX-License-Identifier: MIT */
/* A small world in virtual time: one kernel, one device of ours, its workers and stores, its ublkd, bad luck.
 * The reconciler, the device store and all that they decide with are the real ones; what they would ask of
 * the machine is answered here.
 *
 *   sim_world.c     random numbers, the queue of events, the trace
 *   sim_kernel.c    disks and control commands, as the driver behaves (states, EBUSY, EINVAL, what blocks)
 *   sim_helper.c    how commands come and go: helper processes that are given up, fall silent, or die
 *   sim_worker.c    worker processes: boot, open, GO, fetch, serve, leave, die
 *   sim_disk.c      what outlives ublkd: the database, the runtime directory, backing stores, descriptors
 *   sim_ublkd.c     a life of ublkd: it starts, decides, and is SIGKILLed at any point
 *   sim_user.c      what the user asks for, through the device store
 *   sim_schedule.c  what goes wrong and when
 *   sim_judge.c     what must be true at the end
 *
 *   seam_event.c    in place of sd-event and the clocks
 *   seam_ctl.c      under ublkd/driver/ublk_ctl.c, with tests/stand_in/ctl_stand_in.h
 *   seam_worker.c   under ublkd/workers/worker_proc.c, with tests/stand_in/worker_stand_in.h
 *   seam_machine.c  in place of the runtime directory, the descriptor store, udev, /sys, searches and the log
 *
 * The seams replace functions at link time, so there is one world at a time: `sim`. ublkd can be killed in
 * the middle of any of them. Its code then runs on until it returns to the loop, and nothing that it does
 * meanwhile has an effect (ublkd_acts()), which is what a SIGKILL comes to.
 *
 * Everything random comes from the seed, so a seed is a schedule. Times are microseconds, sizes MiB. */
#pragma once

#include "tests/simulation/walk.h"
#include "tests/stand_in/ctl_stand_in.h"
#include "tests/stand_in/kernel_disk.h"
#include "tests/stand_in/worker_stand_in.h"
#include "ublkd/plan/attempt.h"
#include "ublkd/reconcile/reconciler.h"

#include <stdarg.h>
#include <stddef.h>

enum {
        NUMBERS = 5,    /* kernel numbers; foreign disks have the first three only */
        WORKERS = 4096, /* processes in one schedule, dead ones included */
        COMMANDS = 64,  /* control commands not dropped yet */
        HELPERS = 4,    /* processes for control commands that a ublkd may have, dying ones included */
        EVENTS = 8192,
        SOURCES = 32,       /* of sd-event, at a time */
        FILES = 16,         /* of the runtime directory, at a time */
        DESCRIPTORS = 4096, /* of backing stores, that a ublkd has ever had */
        STORES = 3,
        PLACES = 2,       /* of a disk that lies in several stores */
        BESIDE = STORES,  /* the store of the place that the schedule is not about */
        QUESTIONS = 16,   /* who uses a disk, at a time */
        FIRST_PID = 1000, /* of process 0 */
        NO_STORE = -1,
};

#define MS UINT64_C(1000)
#define SECOND UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)
#define DEVICE "disk"

/* ------------------------------------------------------------------ sim_kernel.c */

/* What happens to a disk when its worker dies. */
enum disk_recovery { RECOVERY_NONE, RECOVERY_QUEUE, RECOVERY_FAIL, _RECOVERY_MAX };

struct command {
        bool used;
        unsigned serial; /* events that are about an earlier one in the same place are void */
        int helper;
        unsigned helper_life;
        bool given_up;  /* its deadline passed */
        bool effective; /* the driver is done with it, or never gets it */
        bool answered;  /* and that is on its way to ublkd */
        bool held;      /* given up, and remembered: it may yet take effect */
        bool unread;    /* in the socket of a helper that does not read */
        bool stubborn;  /* not even SIGKILL gets it out of the driver */
        enum command_type type;
        int number;
        unsigned instance; /* the disk that it is meant for */
        int worker;        /* START, END */
        bool guarded;      /* only for the disk with that cookie */
        uint64_t cookie;
        struct kernel_device_request request; /* ADD */
        unsigned size;                        /* SET_PARAMS, UPDATE_SIZE */
        unsigned incarnation;                 /* of ublkd */
        struct ctl_call *call;                /* NULL: no caller waits for the answer any more */
        enum {
                FATE_NORMAL,
                FATE_INTERRUPTED,
                FATE_INTERRUPTED_EFFECTIVE,
                FATE_HANGS,
                FATE_HANGS_EFFECTIVE,
                FATE_FAILS
        } fate;
        uint64_t issued_at;
        int result;
        struct kernel_disk info; /* GET_INFO, ADD */
};

/* ------------------------------------------------------------------ sim_helper.c */

enum helper_state { HELPER_NONE, HELPER_ACTIVE, HELPER_RETIRED, HELPER_DYING };

struct helper {
        enum helper_state state;
        bool mute;       /* stopped: it reads nothing, and says nothing */
        bool killed;     /* dead when the driver has returned from its commands */
        bool death_seen; /* is on its way */
        unsigned life;   /* counts those that were in this slot */
        unsigned misses;
};

/* Ways to get that wrong, which the rules must find; see mutation.c. */
enum helper_mistake {
        NO_MISTAKE,
        DROPS_WHAT_WAS_GIVEN_UP,
        RELEASES_WHEN_IT_KILLS,
        NEVER_RELEASES,
        KEEPS_A_HELPER_THAT_HANGS,
        RETIRES_AND_DOES_NOT_KILL,
        KEEPS_THE_SLOT_OF_THE_DEAD,
        SWALLOWS_CALLS_OF_THE_DEAD,
        HAS_NO_DEADLINE,
        COMPARES_NO_COOKIE,
        _HELPER_MISTAKE_MAX
};

/* ------------------------------------------------------------------ sim_worker.c */

enum process_stage {
        PROCESS_BOOTING,
        PROCESS_OPENING, /* its store */
        PROCESS_OPEN,
        PROCESS_ATTACHING, /* has GO: opens /dev/ublkcN */
        PROCESS_FETCHING,
        PROCESS_READY,
        PROCESS_SERVING,
        PROCESS_LEAVING,
        _PROCESS_STAGE_MAX
};

/* Why a worker cannot serve. */
enum refusal { REFUSAL_NONE, REFUSAL_BROKEN, REFUSAL_GONE, REFUSAL_CHANGED, _REFUSAL_MAX };

struct process {
        bool alive, hung;
        bool retires;   /* LEAVE came */
        bool preflight; /* it only looks whether it could serve */
        bool listens;   /* has booted: who comes later can find it */
        bool deaf;      /* it has closed its socket, and lives on */
        bool going;     /* has got GO */
        enum process_stage stage;
        char uid[UID_TEXT_SIZE]; /* of the device that its socket is of */
        unsigned epoch, restart;
        unsigned size;       /* that it serves */
        unsigned connection; /* incarnation of the ublkd that it talks to, 0: none */
        int number;
        int given;    /* the store whose descriptor it was given, or NO_STORE */
        int beside;   /* of a list: that of the other place */
        int expected; /* the store that it is to find, or NO_STORE: any will do */
        int store;    /* that it has opened */
        int known_as; /* whose identity it reports: of what it was given, that which was expected */
        unsigned attach_tries;
        uint64_t received_until;         /* messages to it arrive in order */
        uint64_t sent_until;             /* messages from it as well */
        struct worker_stand_in stand_in; /* with which the ublkd of `connection` knows it */
};

/* The value that comes with it. */
enum message {
        MESSAGE_HELLO,  /* its number + 1 */
        MESSAGE_PARAMS, /* its size; BACKING comes just before */
        MESSAGE_READY,
        MESSAGE_FAILED,  /* enum refusal; BACKING comes just before a REFUSAL_CHANGED */
        MESSAGE_GROWN,   /* its size */
        MESSAGE_REFUSED, /* the same: it has not grown */
        MESSAGE_GONE,    /* it has closed its end */
        MESSAGE_GO,      /* the number */
        MESSAGE_LIVE,
        MESSAGE_GROW, /* the size */
        MESSAGE_LEAVE,
        MESSAGE_CONNECT,
        MESSAGE_EOF
};

/* ------------------------------------------------------------------ sim_disk.c */

struct database {
        bool exists; /* the record of the device */
        struct device_record record;
        char *text;
        uint64_t revision;
};

struct runtime_file {
        char *text; /* NULL: this place is free */
        char uid[UID_TEXT_SIZE];
        enum runtime_text which;
};

struct written_claims {
        char uid[UID_TEXT_SIZE]; /* "": none */
        struct backing_claims claims;
};

/* Of a disk with one store, the first place. */
struct kept_descriptors {
        char uid[UID_TEXT_SIZE]; /* "": none */
        uint16_t epoch;
        int stores[PLACES]; /* NO_STORE: none */
};

struct descriptor {
        int store;
        bool open;
};

/* ------------------------------------------------------------------ sim_ublkd.c */

struct sd_event_source {
        bool used, on, once;
        bool deferred;
        uint64_t time;
        unsigned arming; /* the last one; events of older ones are void */
        sd_event_time_handler_t on_time;
        sd_event_handler_t on_turn;
        sd_event_inotify_handler_t on_closed;
        int watched; /* with on_closed: the number of the disk */
        void *userdata;
};

struct disk_question {
        bool used;
        unsigned serial;
        int number;
        disk_answered answered;
        void *userdata;
};

struct ublkd {
        bool alive;
        unsigned incarnation; /* 1, 2, … */
        struct device_store *store;
        struct reconciler *reconciler;
        struct host host;
        struct ublk_ctl *ctl;
        bool control;        /* the control plane has come */
        bool boot_pass_done; /* it has reported so */
        struct helper helpers[HELPERS];
        struct sd_event_source sources[SOURCES];
        struct disk_question questions[QUESTIONS];
        unsigned descriptors; /* the first of this incarnation */
        /* as the reconciler knows it */
        struct plan_facts facts; /* for which it has asked plan() last */
        bool decided;            /* it has, in this incarnation */
        bool looked;             /* the kernel has answered about our number */
        struct kernel_disk seen; /* what; !exists: nothing is there */
        uint64_t rested_at;      /* when there was NOTHING to do */
};

/* What the user wants, as far as it changes. */
struct wish {
        unsigned variant; /* another one needs another disk */
        unsigned size;
        bool disabled, manual;
        unsigned patience; /* which one */
        enum disk_recovery recovery;
        bool replays; /* RECOVERY_QUEUE: what was in flight as well */
        bool fixed_number;
};

/* ------------------------------------------------------------------ sim_world.c */

enum event_kind {
        EVENT_FAULT,
        EVENT_CALM, /* from here on nothing goes wrong any more */
        EVENT_COMMAND_EFFECT,
        EVENT_COMMAND_RESULT,
        EVENT_COMMAND_DEADLINE,
        EVENT_COMMAND_LATE, /* the answer of one that was given up */
        EVENT_HELPER_DEATH,
        EVENT_PROCESS_STEP,
        EVENT_TO_PROCESS,
        EVENT_TO_UBLKD,
        EVENT_DEATH_SEEN,
        EVENT_STATE_FOLLOWS, /* the kernel notices that a worker is dead */
        EVENT_RELEASED,      /* the last reference of a dead worker is gone */
        EVENT_OPENER_CLOSES,
        EVENT_STRANGER, /* another program replaces a disk */
        EVENT_REMOVAL,  /* the user removes the device */
        EVENT_SOURCE,   /* of sd-event */
        EVENT_ANSWER,   /* who uses a disk */
        EVENT_CONTROL,
        EVENT_UBLKD_STARTS,
};

struct event {
        uint64_t time;
        unsigned order;
        enum event_kind kind;
        int a, b;
        unsigned c;
};

struct world {
        uint64_t seed, random, now;
        bool trace;
        plan_function plan;
        struct event events[EVENTS];
        unsigned event_count, event_order;
        const char *broken; /* the first rule that was broken */

        struct command commands[COMMANDS];
        unsigned command_serial;
        enum helper_mistake mistake;
        struct process processes[WORKERS];
        int process_count;
        struct descriptor descriptors[DESCRIPTORS];
        unsigned descriptor_count;
        int socket_owner; /* the worker whose socket is in the runtime directory */
        bool speaks;      /* a worker: ublkd is reading its message */

        struct kernel_disk disks[NUMBERS]; /* cleared for each schedule, with all that follows */
        unsigned instances;
        struct ublkd ublkd;
        unsigned armings, question_serial;
        struct database database;
        struct runtime_file files[FILES];
        struct written_claims claims;
        struct kept_descriptors kept;
        int path; /* the store that the path in the spec leads to, or NO_STORE */
        struct wish wish;
        unsigned boot, uids;

        /* the character of this schedule */
        bool refuses_second_begin; /* EINVAL from a second START_USER_RECOVERY without a FETCH in between */
        bool notices_early;        /* QUIESCED before the last reference is gone */
        bool can_try_stop;         /* the kernel knows TRY_STOP_DEV */
        bool can_grow;             /* the kernel knows UPDATE_SIZE */
        bool can_quiesce;          /* the kernel knows QUIESCE_DEV */
        bool keeps_descriptors;    /* there is a service manager */
        bool old_workers; /* they do not compare the store that they find with the expected one, nor know LEAVE */
        bool listed;      /* the disk lies in two stores: the one of `place` is what the schedule is about */
        unsigned place;    /* the other one is always BESIDE */
        bool full_sockets; /* workers are slow to read their messages */
        bool slow_backend; /* a dead worker's I/O takes seconds */
        unsigned bad_luck; /* per mille, for each of many small things */
        bool calm, backend_broken;
        int failing; /* enum command_type that fails whenever it is tried, or -1 */
        uint64_t fault_gap;
        unsigned faults_left;
        uint64_t calm_at;

        /* judging */
        bool was_live;            /* in this epoch and boot */
        uint32_t refused_restart; /* the last one that ublkd has refused */
        uint64_t window_since;
        unsigned window_steps, window_asks;
        uint64_t steps, asks;
        void (*on_facts)(
                const struct plan_facts *facts); /* called with each input of plan(); NULL: not called */
};

/* The one that the seams serve. */
extern struct world *sim;

void world_init(struct world *world, uint64_t seed, plan_function decide, bool trace);
uint64_t world_random(struct world *world, uint64_t limit);               /* 0 … limit - 1 */
uint64_t world_between(struct world *world, uint64_t low, uint64_t high); /* both included */
bool world_chance(struct world *world, unsigned per_mille);
bool world_bad_luck(struct world *world); /* never when it is calm */
void world_at(struct world *world, uint64_t time, enum event_kind kind, int a, int b, unsigned c);
bool world_next(struct world *world, struct event *ret);
void world_break(struct world *world, const char *rule);
void world_trace(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define TRACE(world, ...)                                                                                    \
        do {                                                                                                 \
                if ((world)->trace)                                                                          \
                        world_trace((world), __VA_ARGS__);                                                   \
        } while (0)

/* sim_helper.c */
/* 0; -EALREADY: a command for that disk was given up and may yet take effect; -EAGAIN: every helper hangs. */
int helper_submit(struct world *world, const struct command *command);
/* Drop the caller: the answer is ignored. */
void helper_cancel(struct world *world, const struct ctl_call *call);
/* Events about commands and helpers. */
void helper_event(struct world *world, const struct event *event);
void helper_drop_ublkd(struct world *world, unsigned incarnation);
void helper_falls_silent(struct world *world);
void helper_is_killed(struct world *world);

/* sim_kernel.c */
uint64_t kernel_features(const struct world *world);
/* What the command comes to now: 0, -errno, or KERNEL_BLOCKS: it is not done yet. */
int kernel_execute(struct world *world, struct command *command);
/* Straight effects, for administrators and workers. 0 or -errno. */
int kernel_stop(struct world *world, int number);
int kernel_delete(struct world *world, int number);
int kernel_attach(struct world *world, int number, int worker);
int kernel_fetch(struct world *world, int number, int worker, bool all);
void kernel_worker_died(struct world *world, int worker);
void kernel_state_follows(struct world *world, int worker);
void kernel_released(struct world *world, int worker);
void kernel_open_block_device(struct world *world, int number);
void kernel_close_block_device(struct world *world, int number, unsigned instance, bool exclusive);
/* Another program may delete it, and make one with its number, within that time. */
void kernel_may_be_replaced(struct world *world, int number, unsigned per_mille, uint64_t within);
/* It does so, unless a process has the disk open. The new one has no server now. */
void kernel_disk_is_replaced(struct world *world, int number, unsigned instance);

/* sim_worker.c */
/* Starts a copy of `process`. Its index, or NO_PROCESS. */
int process_spawn(struct world *world, const struct process *process);
void process_step(struct world *world, int index);
void process_receive(
        struct world *world, int index, enum message message, unsigned value, unsigned incarnation);
void process_send(struct world *world, int index, enum message message, unsigned value, unsigned incarnation);
void process_kill(struct world *world, int index, const char *why);
void process_queues_taken(struct world *world, int index);
void process_disk_is_live(struct world *world, int index);

/* sim_disk.c */
extern const struct device_backend database_backend; /* context: the world */
void disk_drop_all(struct world *world);             /* frees what is owned */
void disk_reboot(struct world *world);               /* what is gone with a boot */
/* A descriptor of the store; its number is none of this process. */
int descriptor_open(struct world *world, int store);
/* The store that the record has for the place that the schedule is about, or NO_STORE. */
int store_of_record(const struct world *world, const struct device_record *record);
/* The store, or NO_STORE. */
int descriptor_store(const struct world *world, int fd);
void descriptor_close(struct world *world, int fd);
/* The store whose lasting token this is, or NO_STORE. */
int store_of_token(const char *token);
void store_identity_of(const struct world *world, int store, struct backing_identity *ret);

/* sim_ublkd.c */
void ublkd_start(struct world *world);
void ublkd_control_comes(struct world *world, unsigned incarnation);
void ublkd_die(struct world *world, const char *why);
/* SIGKILL at a bad moment. True: it is dead. */
bool ublkd_dies_here(struct world *world, const char *where);
/* Frees what a dead ublkd had. To be called when none of its code is running. */
void ublkd_bury(struct world *world);
/* False: it is dead, and its code only runs on to its end. */
bool ublkd_acts(const struct world *world);
/* It has asked the kernel or changed something; too much of that is spinning. */
void ublkd_count(struct world *world, bool step);
/* The record as ublkd has it; NULL: there is none, or no ublkd. */
const struct device_record *ublkd_record(const struct world *world);
/* It is a manual device that was live in this boot. */
bool ublkd_is_held(const struct device_record *record);

/* seam_ctl.c */
void seam_ctl_result(struct world *world, const struct command *command);
/* A command that was given up can have no effect any more. */
void seam_ctl_released(struct world *world, int number);

/* seam_worker.c */
void seam_worker_receives(
        struct world *world, int index, enum message message, enum process_stage stage, unsigned value);
void seam_worker_dies(struct world *world, int index);

/* seam_event.c */
void seam_event_fires(struct world *world, const struct event *event);
/* Report the close of the character device of a disk to ublkd, if it watches that. */
void seam_event_closed(struct world *world, int number);

/* seam_machine.c */
void seam_question_answered(struct world *world, const struct event *event);

/* sim_user.c */
/* What the user may do, drawn in sim_schedule.c. Without a ublkd nothing comes of it. */
void user_creates(struct world *world);
void user_replaces(struct world *world);
void user_toggles(struct world *world);
void user_stops_or_starts(struct world *world);
void user_deletes(struct world *world);
void user_removes(struct world *world, bool force);
void user_recovers(struct world *world);
void user_restarts(struct world *world);
void user_tries_again(struct world *world);
void user_grows(struct world *world);
void user_changes_trigger(struct world *world);
void user_changes_patience(struct world *world);
void user_accepts_store(struct world *world);

/* sim_judge.c */
/* Whatever is wrong at the end breaks a rule. */
void judge(struct world *world);

/* sim_schedule.c: NULL, or the rule that this schedule broke. `world` is zeroed, or from an earlier schedule;
 * its `mistake` is what the helpers get wrong. */
const char *schedule_run(struct world *world, uint64_t seed, plan_function decide, bool trace);
