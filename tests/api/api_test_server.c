/* SPDX-License-Identifier: MIT */
/* The API with a store and a fake reconciler, for the tests of the API.
 *
 *   api_test_server [--state-dir DIR] [--sqlite] [--listen ADDRESS]... [--passed N]
 *                   [--times IDLE,HEAD,BODY,REPLY[,TOKEN]]     milliseconds
 *                   [--unstable-paths refuse] [--allow-fault-target yes]  like ublkd
 *                   [--readers everyone|GID] [--administrators GID] [--socket-group GID]
 *                   [--policy DIR]
 *                   [--patience TIME]                  of the search for users, milliseconds
 *
 * Prints "ready" when it serves. Then it reads commands from stdin, one for each line, and answers each with
 * "ok" or a value:
 *   policy                          read the policy again
 *   auto on|off                     make every device Live (Disabled, gone) by itself; on at first
 *   status NAME PHASE REASON TEXT   set a status, like the reconciler
 *   condition NAME TYPE STATUS REASON TEXT    set a condition beside Ready; StoreLow was seen 200 s ago
 *   remove NAME                     report that the disk is gone
 *   busy NUMBER TEXT | idle         searches find that TEXT uses /dev/ublkbNUMBER
 *   own UID                         from now on a "process 1" of that user uses it as well; -1: none
 *   reach NUMBER                    of every store: enum backing_reach
 *   preflight [TEXT]                preflights of specs fail with TEXT from now on; without TEXT they succeed
 *   preflights                      how many preflights have begun
 *   stop on|off                     searches for users stop at their start (SIGSTOP)
 *   searches                        how many searches have begun
 *   settled on|off                  the answer to /readyz
 *   full on|off                     the disk below the database
 *   look slow|quick                 whether a look at the host ends without a command
 *   looked                          end the look at the host
 *   checks                          how often the file of the database was looked at
 *   hold [COMMAND]                  stand still until the next line, as a loop that is held up; a value for each. Then
 *                                   run the command, before the loop goes on
 *   waits | watches | connections   how many requests wait; how many clients watch, are connected
 *   note NAME REASON TEXT           add an event of a device, a warning
 *   act NAME run|succeed|fail       what becomes of its action, as the reconciler has it
 *   flood NAME COUNT                add that many events of it
 *   count NAME QUEUE OP TIMES BYTES NS    add requests (OP: enum stats_op) to one of its two queues
 *   errors NAME QUEUE OP TIMES      add failed ones: writes with ENOSPC, others with EIO
 *   failed NAME OP ERRNO COUNT OFFSET LENGTH    the newest failed request of a device in its status
 *   restarts COUNT                  worker restarts in later statuses
 *   stats-error ERRNO               fail to read its statistics; 0: read them
 * It exits at the end of stdin. */
#include "api/api.h"
#include "ublkd/base/clock.h"
#include "ublkd/base/log.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/peers/peer_path.h"
#include "api/held/first_pass.h"
#include "ublkd/records/record_keeper.h"
#include "api/http/server.h"
#include "api/held/wait.h"
#include "api/held/watch.h"
#include "tests/api/api_test_options.h"
#include "tests/api/api_test_stats.h"
#include "tests/api/api_test_status.h"
#include "tests/api/api_test_filesystem.h"
#include "tests/api/api_test_hooks.h"
#include "tests/api/api_test_search.h"
#include "tests/unit/ublkd/store/store_faulty.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <fcntl.h>

struct server {
        sd_event *event;
        struct store_faulty disk; /* `full` makes it fail */
        struct device_store *store;
        struct host host;
        struct runtime_dir *runtime_dir; /* STATE_DIR/run */
        struct record_keeper *record_keeper;
        struct disk_search *disk_search;
        struct peer_paths *peer_paths;
        struct api *api;
        sd_event_source *reconcile;
        char **queue; /* names; owned */
        size_t queued;
        bool automatic, settled;
        bool look_is_slow; /* the look at the host */
        int flooded;
        unsigned restarts;      /* worker restarts in later statuses */
        const char *policy_dir; /* NULL: no policy */
        struct api_rights rights;
        struct api_test_stats stats;
};

static int reconcile_one(struct server *server, const char *name)
{
        const struct device_record *record = device_store_get(server->store, name);

        if (!record)
                return 0;
        if (record->deleting)
                return device_store_remove(server->store, name);
        if (!record->spec
                || (device_record_enabled(record) == (record->status.phase != PHASE_DISABLED)
                        && record->status.observed_generation == record->generation
                        && record->status.observed_restart == record->restart
                        && record->status.observed_asked == record->asked))
                return 0;
        if (record->spec->options.id >= 0 && record->number != record->spec->options.id) {
                int r = device_store_assign_number(server->store, name, (int)record->spec->options.id);

                if (r < 0)
                        return r;
                record = device_store_get(server->store, name);
        }
        if (device_record_enabled(record))
                return api_test_set_status(
                        server->store, server->restarts, record, PHASE_LIVE, REASON_LIVE, "It serves.");
        return api_test_set_status(server->store, server->restarts, record, PHASE_DISABLED,
                record->stopped ? REASON_STOPPED : REASON_DISABLED, "It has no disk.");
}

static int on_reconcile(sd_event_source *source, void *userdata)
{
        struct server *server = userdata;

        for (size_t i = 0; i < server->queued; i++) {
                (void)reconcile_one(server, server->queue[i]); /* a full disk: the test repeats its request */
                free(server->queue[i]);
        }
        server->queued = 0;
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
}

static void on_event(void *userdata, const struct store_event *event)
{
        struct server *server = userdata;
        char **queue;

        if (!server->automatic
                || (event->kind != STORE_SPEC && event->kind != STORE_INTENT && event->kind != STORE_ADOPTED))
                return;
        queue = reallocarray(server->queue, server->queued + 1, sizeof(*queue));
        if (!queue)
                abort();
        server->queue = queue;
        server->queue[server->queued++] = strdup(event->name);
        (void)sd_event_source_set_enabled(server->reconcile, SD_EVENT_ON);
}

static int read_stats(void *userdata, const struct device_record *record, struct device_stats **ret)
{
        return api_test_stats_read(&((struct server *)userdata)->stats, record->name, ret);
}

static bool is_settled(void *userdata)
{
        return ((struct server *)userdata)->settled;
}

static bool look_at_host(void *userdata)
{
        struct server *server = userdata;

        if (server->record_keeper)
                (void)record_keeper_list(
                        server->record_keeper, ADOPTABLES_SHOWN_MAX, &server->host.adoptable);
        device_store_set_gone(server->store, device_store_check(server->store) == -ENOLINK);
        return server->look_is_slow;
}

static int command_auto(struct server *server, char *arguments)
{
        server->automatic = strcmp(arguments, "on") == 0;
        return 0;
}

static int command_status(struct server *server, char *arguments)
{
        const char *name = strsep(&arguments, " "), *phase = strsep(&arguments, " "),
                   *reason = strsep(&arguments, " ");
        const struct device_record *record = device_store_get(server->store, name);

        for (int i = 0; record && i < _PHASE_MAX; i++)
                if (strcmp(device_phase_to_string(i), phase) == 0)
                        return api_test_set_status(server->store, server->restarts, record, i,
                                reason_from_string(reason), arguments ? arguments : "");
        return -ENOENT;
}

/* Set a condition beside Ready, and keep Ready. */
static int command_condition(struct server *server, char *arguments)
{
        const char *name = strsep(&arguments, " "), *type = strsep(&arguments, " "),
                   *status = strsep(&arguments, " "), *reason = strsep(&arguments, " ");
        const struct device_record *record = device_store_get(server->store, name);
        struct device_status changed;
        int r = record ? device_status_copy(&record->status, &changed) : -ENOENT;

        if (r < 0)
                return r;
        r = -EINVAL;
        for (int i = 0; i < _CONDITION_MAX; i++)
                for (int k = 0; k < _CONDITION_STATUS_MAX; k++)
                        if (strcmp(condition_type_to_string(i), type) == 0
                                && strcmp(condition_status_to_string(k), status) == 0)
                                r = device_condition_set(&changed.conditions.of[i], k,
                                        reason_from_string(reason), "%s", arguments ? arguments : "");
        if (changed.conditions.of[CONDITION_SPACE].reason == REASON_STORE_LOW)
                changed.conditions.of[CONDITION_SPACE].observed_at =
                        clock_usec(CLOCK_REALTIME) - 200 * USEC_PER_SEC;
        if (r >= 0)
                r = device_store_set_status(server->store, name, &changed);
        device_status_clear(&changed);
        return r;
}

static int command_failed(struct server *server, char *arguments)
{
        return api_test_set_error(server->store, arguments);
}

static int command_remove(struct server *server, char *arguments)
{
        return device_store_remove(server->store, arguments);
}

static int command_busy(struct server *server _unused_, char *arguments)
{
        int number = atoi(strsep(&arguments, " "));

        api_test_search_finds(number, arguments ? arguments : "");
        return 0;
}

static int command_own(struct server *server _unused_, char *arguments)
{
        api_test_search_finds_of((uid_t)atoi(arguments));
        return 0;
}

static int command_idle(struct server *server _unused_, char *arguments _unused_)
{
        api_test_search_finds(-1, "");
        return 0;
}

static int command_reach(struct server *server _unused_, char *arguments)
{
        api_test_reach((enum backing_reach)atoi(arguments));
        return 0;
}

static int command_preflight(struct server *server _unused_, char *arguments)
{
        api_test_refuse(arguments);
        return 0;
}

static int command_preflights(struct server *server _unused_, char *arguments _unused_)
{
        return api_test_preflights();
}

static int command_stop(struct server *server _unused_, char *arguments)
{
        api_test_search_stops(strcmp(arguments, "on") == 0);
        return 0;
}

static int command_searches(struct server *server _unused_, char *arguments _unused_)
{
        return api_test_searches();
}

static int command_checks(struct server *server, char *arguments _unused_)
{
        return (int)server->disk.checks;
}

static int command_settled(struct server *server, char *arguments)
{
        server->settled = strcmp(arguments, "on") == 0;
        if (server->settled)
                api_boot_pass_done(server->api);
        return 0;
}

static int command_full(struct server *server, char *arguments)
{
        server->disk.write_error = strcmp(arguments, "on") == 0 ? -ENOSPC : 0;
        return 0;
}

static int command_look(struct server *server, char *arguments)
{
        server->look_is_slow = strcmp(arguments, "slow") == 0;
        return 0;
}

static int command_looked(struct server *server, char *arguments _unused_)
{
        api_host_seen(server->api);
        return 0;
}

static int command_waits(struct server *server, char *arguments _unused_)
{
        return (int)wait_count(server->api);
}

static int command_first_passes(struct server *server, char *arguments _unused_)
{
        return (int)first_pass_count(server->api);
}

static int command_watches(struct server *server, char *arguments _unused_)
{
        return (int)watch_count(server->api);
}

static int command_act(struct server *server, char *arguments)
{
        return api_test_act(server->store, arguments);
}

static int command_note(struct server *server, char *arguments)
{
        const char *name = strsep(&arguments, " "), *reason = strsep(&arguments, " ");

        return device_store_note(server->store, name, EVENT_WARNING, reason_from_string(reason), "%s",
                arguments ? arguments : "");
}

/* Add COUNT events with different reasons, so that none repeats another. */
static int command_flood(struct server *server, char *arguments)
{
        const char *name = strsep(&arguments, " ");
        int count = atoi(arguments), r = 0;

        for (int i = 0; r >= 0 && i < count; i++) {
                char reason[32];

                snprintf(reason, sizeof(reason), "Flood%d", server->flooded++);
                r = device_store_note(
                        server->store, name, EVENT_NORMAL, reason_from_string(reason), "%0500d", i);
        }
        return r;
}

static int command_count(struct server *server, char *arguments)
{
        return api_test_stats_count(&server->stats, arguments);
}

static int command_errors(struct server *server, char *arguments)
{
        return api_test_stats_fail(&server->stats, arguments);
}

static int command_restarts(struct server *server, char *arguments)
{
        server->restarts = (unsigned)atoi(arguments);
        return 0;
}

static int command_stats_error(struct server *server, char *arguments)
{
        server->stats.error = -atoi(arguments);
        return 0;
}

static int command_policy(struct server *server, char *arguments _unused_)
{
        const struct policy *before = server->rights.policy;
        int r = api_test_load_policy(server->policy_dir, &server->rights);

        if (r < 0)
                return r;
        api_set_policy(server->api, server->rights.policy);
        policy_free((struct policy *)before); /* ours */
        return 0;
}

static int command_connections(struct server *server, char *arguments _unused_)
{
        return (int)server->api->connections;
}

static int command_fault_targets(struct server *server, char *arguments)
{
        server->api->config.allow_fault_target = strcmp(arguments, "allow") == 0;
        return 0;
}

static int run_command(struct server *server, char *line);

static int command_hold(struct server *server, char *arguments)
{
        char line[16];

        printf("0\n");
        if (fflush(stdout) != 0)
                return -errno;
        if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
                return -EIO;
        return *arguments ? run_command(server, arguments) : 0;
}

static int run_command(struct server *server, char *line)
{
        static const struct {
                const char *name;
                int (*run)(struct server *server, char *arguments);
        } commands[] = {
                {"policy",        command_policy       },
                {"auto",          command_auto         },
                {"status",        command_status       },
                {"condition",     command_condition    },
                {"remove",        command_remove       },
                {"busy",          command_busy         },
                {"own",           command_own          },
                {"idle",          command_idle         },
                {"stop",          command_stop         },
                {"preflight",     command_preflight    },
                {"preflights",    command_preflights   },
                {"reach",         command_reach        },
                {"searches",      command_searches     },
                {"checks",        command_checks       },
                {"settled",       command_settled      },
                {"full",          command_full         },
                {"look",          command_look         },
                {"looked",        command_looked       },
                {"hold",          command_hold         },
                {"fault-targets", command_fault_targets},
                {"waits",         command_waits        },
                {"first-passes",  command_first_passes },
                {"connections",   command_connections  },
                {"watches",       command_watches      },
                {"note",          command_note         },
                {"act",           command_act          },
                {"count",         command_count        },
                {"errors",        command_errors       },
                {"failed",        command_failed       },
                {"restarts",      command_restarts     },
                {"stats-error",   command_stats_error  },
                {"flood",         command_flood        },
        };
        char *rest = line, *name = strsep(&rest, " ");

        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                if (strcmp(commands[i].name, name) == 0)
                        return commands[i].run(server, rest ? rest : line + strlen(line));
        return -EINVAL;
}

/* Each command is one write of the test, and one line. */
static int on_command(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        struct server *server = userdata;
        char line[1024];
        ssize_t n = read(fd, line, sizeof(line) - 1);

        if (n <= 0)
                return sd_event_exit(server->event, 0);
        line[n] = '\0';
        line[strcspn(line, "\n")] = '\0';
        printf("%d\n", run_command(server, line));
        return fflush(stdout) == 0 ? 0 : -errno;
}

static int open_backend(
        struct server *server, const char *state_dir, bool sqlite, struct problem_list *problems)
{
        return sqlite ? store_sqlite_open(state_dir, &server->disk.real, &server->disk.real_context, problems)
                      : store_memory_open(&server->disk.real, &server->disk.real_context);
}

static int open_keeper(struct server *server, const char *state_dir, struct problem_list *problems)
{
        char path[512];
        int r;

        if (!state_dir)
                return 0;
        snprintf(path, sizeof(path), "%s/run", state_dir);
        r = runtime_dir_open(path, &server->runtime_dir, problems);
        if (r == -EBUSY) { /* another server shares the directory, and does not adopt */
                problem_list_clear(problems);
                return 0;
        }
        return r < 0 ? r : record_keeper_new(server->store, server->runtime_dir, &server->record_keeper);
}

static struct adoption adopt(void *userdata, const char *uid, const char *name)
{
        struct server *server = userdata;

        return record_keeper_adopt(server->record_keeper, uid, name);
}

static int list_adoptable(void *userdata, struct adoptables *ret)
{
        struct server *server = userdata;

        return record_keeper_list(server->record_keeper, SIZE_MAX, ret);
}

static int start(
        struct server *server, struct api_config *config, uint64_t patience, struct problem_list *problems)
{
        _cleanup_(sd_event_source_unrefp) sd_event_source *commands = NULL;
        int r = sd_event_default(&server->event);

        if (r >= 0)
                r = host_read(&server->host);
        if (r >= 0)
                r = problem_add(
                        &server->host.problems, ENODEV, "", "NoDriver", "The ublk driver is not loaded.");
        if (r >= 0)
                r = sd_event_add_defer(server->event, &server->reconcile, on_reconcile, server);
        if (r >= 0)
                r = sd_event_source_set_enabled(server->reconcile, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_io(server->event, &commands, STDIN_FILENO, EPOLLIN, on_command, server);
        if (r >= 0) /* "hold" comes before all that is due */
                r = sd_event_source_set_priority(commands, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_floating(commands, true);
        if (r >= 0)
                r = open_keeper(server, config->state_dir, problems);
        if (r >= 0)
                r = device_store_subscribe(server->store, on_event, server);
        if (r >= 0)
                r = api_test_search_new(server->event, patience, &server->disk_search);
        config->disk_search = server->disk_search;
        if (r >= 0)
                r = peer_paths_new(server->event, &server->peer_paths);
        config->peer_paths = server->peer_paths;
        return r < 0 ? r : api_new(server->event, config, &server->api, problems);
}

static void stop(struct server *server)
{
        api_free(server->api);
        disk_search_free(server->disk_search);
        peer_paths_free(server->peer_paths);
        record_keeper_free(server->record_keeper);
        runtime_dir_free(server->runtime_dir);
        device_store_free(server->store);
        policy_free((struct policy *)server->rights.policy); /* ours */
        sd_event_source_disable_unref(server->reconcile);
        for (size_t i = 0; i < server->queued; i++)
                free(server->queue[i]);
        free(server->queue);
        host_clear(&server->host);
        sd_event_unref(server->event);
}

int main(int argc, char *argv[])
{
        struct server server = {.automatic = true, .settled = true};
        struct api_test_options options = {};
        struct api_config config = {.host = &server.host,
                .read_stats = read_stats,
                .read_counters = api_test_counters,
                .read_reach = api_test_read_reach,
                .try_spec = api_test_try,
                .end_preflight = api_test_end_preflight,
                .deliver = api_test_deliver,
                .cancel_delivery = api_test_cancel_delivery,
                .make_filesystem = api_test_make_filesystem,
                .abandon_filesystem = api_test_abandon_filesystem,
                .look_at_host = look_at_host,
                .adopt = adopt,
                .list_adoptable = list_adoptable,
                .is_ready = is_settled,
                .userdata = &server,
                .listen = options.listen};
        _cleanup_problems_ struct problem_list problems = {};
        int r;

        if (!api_test_parse(argc, argv, &config, &options))
                return 2;
        log_open();
        r = open_backend(&server, config.state_dir, options.sqlite, &problems);
        if (r >= 0)
                r = device_store_new(&store_faulty_backend, &server.disk, &server.store);
        api_test_filesystem_use(server.store);
        config.store = server.store;
        if (r >= 0 && options.policy_dir)
                r = api_test_load_policy(options.policy_dir, &config.rights);
        server.policy_dir = options.policy_dir;
        server.rights = config.rights;
        if (r >= 0)
                r = start(&server, &config, options.patience, &problems);
        if (r >= 0) {
                puts("ready");
                fflush(stdout);
                r = sd_event_loop(server.event);
        }
        for (size_t i = 0; i < problems.count; i++)
                fprintf(stderr, "%s\n", problems.items[i].detail);
        stop(&server);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
