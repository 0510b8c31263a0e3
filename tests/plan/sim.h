/* SPDX-License-Identifier: MIT */
/* A small world in virtual time: one kernel, one device of ours, its workers, its supervisor, and bad luck.
 *
 *   sim_world.c       random numbers, the queue of events, the trace
 *   sim_kernel.c      disks and control commands, as the driver behaves (states, EBUSY, EINVAL, what blocks)
 *   sim_helper.c      how commands come and go: helper processes that are given up, fall silent, or die
 *   sim_worker.c      worker processes: boot, open, GO, fetch, serve, leave, die
 *   sim_supervisor.c  the reconciler around the real plan.c, attempt.c, backoff.c: SIGKILLed at any point
 *   sim_schedule.c    what goes wrong and when, what the user does, and what must be true at the end
 *
 * Everything random comes from the seed, so a seed is a schedule. Times are microseconds. */
#pragma once

#include "ublkd/plan/attempt.h"
#include "ublkd/plan/plan.h"
#include "walk.h"

#include <stdarg.h>
#include <stddef.h>

enum {
        NUMBERS = 4,    /* kernel numbers */
        WORKERS = 4096, /* processes in one schedule, dead ones included */
        COMMANDS = 64,  /* control commands not forgotten yet */
        HELPERS = 4,    /* processes for control commands that a supervisor may have, dying ones included */
        EVENTS = 8192,
        NOBODY = -1,
};

#define MS UINT64_C(1000)
#define SECOND UINT64_C(1000000)

/* ------------------------------------------------------------------ sim_kernel.c */

enum disk_state { DISK_DEAD, DISK_LIVE, DISK_QUIESCED, DISK_FAIL_IO };

/* What happens to a disk when its worker dies. */
enum disk_recovery { RECOVERY_NONE, RECOVERY_QUEUE, RECOVERY_FAIL, _RECOVERY_MAX };

struct disk {
        bool exists, stranger;
        uint64_t free_at;  /* it no longer exists, and its number is not free before */
        unsigned instance; /* each ADD_DEV makes another */
        unsigned epoch;    /* of the cookie */
        enum disk_state state;
        enum disk_recovery recovery;
        unsigned size;
        bool has_params, was_started;
        bool deleted;                  /* DEL_DEV came, somebody holds it open */
        bool begun;                    /* START_USER_RECOVERY came */
        bool spoilt;                   /* a worker died while it fetched: no worker can fetch any more */
        bool fetched_any, fetched_all; /* by its holder */
        int holder;                    /* the worker whose /dev/ublkcN is open, dead or alive */
        unsigned refusals; /* workers for which START_USER_RECOVERY was refused since it was last live */
        int refused_for;   /* the last of them */
        int openers;       /* of /dev/ublkbN */
};

enum command_type {
        COMMAND_GET_INFO,
        COMMAND_ADD,
        COMMAND_SET_PARAMS,
        COMMAND_START,
        COMMAND_BEGIN_RECOVERY,
        COMMAND_END_RECOVERY,
        COMMAND_STOP,
        COMMAND_TRY_STOP,
        COMMAND_QUIESCE,
        COMMAND_UPDATE_SIZE,
        COMMAND_DEL,
};

struct command {
        bool used;
        unsigned serial; /* events that are about an earlier one in the same place are void */
        int helper;
        unsigned helper_life;
        bool given_up;  /* its deadline passed */
        bool effective; /* the driver is done with it, or never gets it */
        bool answered;  /* and that is on its way to the supervisor */
        bool held;      /* given up, and remembered: it may yet take effect */
        bool unread;    /* in the socket of a helper that does not read */
        bool stubborn;  /* not even SIGKILL gets it out of the driver */
        enum command_type type;
        int number;
        unsigned instance; /* the disk that it is meant for */
        int worker;        /* START, END */
        unsigned epoch;    /* ADD */
        unsigned size;     /* SET_PARAMS, UPDATE_SIZE */
        enum disk_recovery recovery;
        unsigned incarnation; /* of the supervisor */
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
        struct disk info; /* GET_INFO */
};

/* ------------------------------------------------------------------ sim_helper.c */

enum helper_state { HELPER_NONE, HELPER_ACTIVE, HELPER_RETIRED, HELPER_DYING };

struct helper {
        enum helper_state state;
        bool mute;       /* stopped: it reads nothing, and says nothing */
        bool killed;     /* by whomever; dead once the driver lets go of its commands */
        bool death_seen; /* is on its way */
        unsigned life;   /* counts those that were in this slot */
        unsigned misses;
};

/* Ways to get that wrong, which the rules must find; see mutation.c. */
enum helper_mistake {
        NO_MISTAKE,
        FORGETS_WHAT_WAS_GIVEN_UP,
        RELEASES_WHEN_IT_KILLS,
        NEVER_RELEASES,
        KEEPS_A_HELPER_THAT_HANGS,
        RETIRES_AND_DOES_NOT_KILL,
        KEEPS_THE_SLOT_OF_THE_DEAD,
        SWALLOWS_CALLS_OF_THE_DEAD,
        HAS_NO_DEADLINE,
        _HELPER_MISTAKE_MAX
};

/* ------------------------------------------------------------------ sim_worker.c */

enum process_stage {
        PROCESS_BOOTING,
        PROCESS_OPENING, /* its backend */
        PROCESS_OPEN,
        PROCESS_ATTACHING, /* told GO: opens /dev/ublkcN */
        PROCESS_FETCHING,
        PROCESS_READY,
        PROCESS_SERVING,
        PROCESS_LEAVING,
};

struct process {
        bool alive, hung;
        bool listens; /* has booted: who comes later can find it */
        bool going;   /* was told GO */
        enum process_stage stage;
        unsigned epoch, restart;
        unsigned size;       /* that it serves */
        unsigned connection; /* incarnation of the supervisor that it talks to, 0: none */
        int number;
        unsigned attach_tries;
        uint64_t heard_until; /* messages to it arrive in order */
        uint64_t said_until;  /* messages from it as well */
};

enum message {
        MESSAGE_HELLO,
        MESSAGE_PARAMS,
        MESSAGE_READY,
        MESSAGE_GO,
        MESSAGE_LIVE,
        MESSAGE_GROW,
        MESSAGE_GROWN,
        MESSAGE_CONNECT,
        MESSAGE_EOF
};

/* ------------------------------------------------------------------ sim_supervisor.c */

struct supervisor {
        bool alive;
        unsigned incarnation; /* 1, 2, … */
        struct attempt attempt;
        struct helper helpers[HELPERS];
        /* the worker that it knows */
        int worker;
        enum plan_worker stage;
        unsigned size; /* that the worker has told */
        bool killed;
        /* the action that is being carried out */
        bool busy, again;
        enum plan_action action;
        enum plan_worker stage_before;
        int number_before;
        struct disk kernel; /* from GET_INFO; !exists: none of ours */
        bool stranger_there;
        bool number_is_fresh; /* given out by this incarnation and never seen to be ours */
        unsigned numbers_tried;
        uint64_t lost_since;
        unsigned timer;     /* the last one set; older ones are void */
        uint64_t rested_at; /* when there was NOTHING to do */
};

/* The durable record of the device. */
struct record {
        bool exists, deleting, forced, enabled, manual, held, recover_requested;
        unsigned epoch, restart;
        unsigned size;
        int number;
        bool fixed_number;
        uint64_t give_up_after;
        enum disk_recovery recovery;
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
        EVENT_TO_SUPERVISOR,
        EVENT_DEATH_SEEN,
        EVENT_STATE_FOLLOWS, /* the kernel notices that a worker is dead */
        EVENT_RELEASED,      /* the last reference of a dead worker is gone */
        EVENT_OPENER_CLOSES,
        EVENT_TIMER,
        EVENT_SUPERVISOR_STARTS,
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

        struct disk disks[NUMBERS];
        unsigned instances;
        struct command commands[COMMANDS];
        unsigned command_serial;
        enum helper_mistake mistake;
        struct process processes[WORKERS];
        int process_count;
        int socket_owner; /* the worker whose socket is in the runtime directory */
        struct supervisor supervisor;
        struct record record;

        /* the character of this schedule */
        bool refuses_second_begin; /* EINVAL from a second START_USER_RECOVERY without a FETCH in between */
        bool notices_early;        /* QUIESCED before the last reference is gone */
        bool can_try_stop;         /* the kernel knows TRY_STOP_DEV */
        bool can_grow;             /* the kernel knows UPDATE_SIZE; else nobody asks for it */
        bool can_quiesce;          /* the kernel knows QUIESCE_DEV */
        bool slow_backend;         /* a dead worker's I/O takes seconds */
        unsigned bad_luck;         /* per mille, for each of many small things */
        bool calm, backend_broken;
        int failing; /* enum command_type that fails whenever it is tried, or -1 */
        uint64_t fault_gap;
        unsigned faults_left;
        uint64_t calm_at;

        /* judging */
        bool was_live; /* in this epoch, since it was last enabled: a manual device may be held */
        uint64_t window_since;
        unsigned window_steps, window_asks;
        uint64_t steps, asks;
};

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
/* Events about commands and helpers. */
void helper_event(struct world *world, const struct event *event);
void helper_forget_supervisor(struct world *world, unsigned incarnation);
void helper_falls_silent(struct world *world);
void helper_is_killed(struct world *world);

/* sim_kernel.c */
enum { KERNEL_BLOCKS = 1 };
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
void kernel_close_block_device(struct world *world, int number, unsigned instance);

/* sim_worker.c */
int process_spawn(struct world *world, unsigned epoch, unsigned size);
void process_step(struct world *world, int index);
void process_hear(struct world *world, int index, enum message message, unsigned incarnation);
void process_send(struct world *world, int index, enum message message, unsigned incarnation);
void process_kill(struct world *world, int index, const char *why);
void process_queues_taken(struct world *world, int index);
void process_disk_is_live(struct world *world, int index);

/* sim_supervisor.c */
void supervisor_start(struct world *world);
void supervisor_die(struct world *world, const char *why);
void supervisor_kick(struct world *world); /* queue the device's name */
void supervisor_hear(struct world *world, int worker, enum message message, enum process_stage stage);
void supervisor_sees_death(struct world *world, int worker);
void supervisor_result(struct world *world, const struct command *command);
/* A command that was given up can have no effect any more. */
void supervisor_released(struct world *world, int number);

/* sim_schedule.c: NULL, or the rule that this schedule broke. `world` is zeroed, or from an earlier schedule;
 * its `mistake` is what the helpers get wrong. */
const char *schedule_run(struct world *world, uint64_t seed, plan_function decide, bool trace);
