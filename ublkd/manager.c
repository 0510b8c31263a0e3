/* SPDX-License-Identifier: MIT */
/* Owns every module of the supervisor and the event loop.
 *
 * Order within one turn of the loop, by sd-event priority (lower runs first):
 *   -20  messages of workers      (FAILED must be read before the death that follows it)
 *   -10  deaths of workers, answers of the control helper
 *     0  the reconciler's queue, HTTP, timers
 * This way a decision always sees the newest facts. */
#include "ublkd/manager.h"
#include "ublkd/manager_api.h"
#include "ublkd/manager_internal.h"
#include "ublkd/manager_looks.h"

#include "api/api.h"
#include "ublkd/authority/authority.h"
#include "ublkd/base/file_io.h"
#include "ublkd/base/log.h"
#include "ublkd/base/version.h"
#include "ublkd/tasks/config_reload.h"
#include "ublkd/tasks/subuid_watch.h"
#include "ublkd/tasks/declared_devices.h"
#include "ublkd/disk_users/disk_search.h"
#include "ublkd/tasks/driver_keeper.h"
#include "ublkd/tasks/event_loop.h"
#include "ublkd/filesystems/filesystem_job.h"
#include "ublkd/host/served_disk.h"
#include "ublkd/tasks/manager_reports.h"
#include "ublkd/offload/job_thread.h"
#include "ublkd/tasks/optional_parts.h"
#include "ublkd/paths/path_watch.h"
#include "ublkd/peers/peer_path.h"
#include "ublkd/reconcile/reconciler.h"
#include "ublkd/reconcile/reconciler_events.h"
#include "ublkd/reconcile/runtime_remade.h"
#include "ublkd/reconcile/spec_preflight.h"
#include "ublkd/records/record_keeper.h"
#include "ublkd/tasks/runtime_guard.h"
#include "ublkd/tasks/service_line.h"
#include "ublkd/tasks/service_state.h"
#include "ublkd/store/event_writer.h"
#include "ublkd/tasks/worker_upgrade.h"
#include "ublkd/workers/worker_uids.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct progress_places progress_places = {.sys = "/sys", .proc = "/proc"};

DEFINE_CLEANUP(struct manager, manager_free);

static void on_events_written(void *userdata, int error)
{
        ((struct manager *)userdata)->events_error = error < 0 ? error : 0;
        manager_report_events(error);
}

static int open_event_writer(struct manager *manager)
{
        return event_writer_new(
                &(struct event_writer_config){
                        .event = manager->event,
                        .store = manager->store,
                        .changed = on_events_written,
                        .userdata = manager,
                },
                &manager->event_writer);
}

static void on_runtime_changed(void *userdata, bool remade)
{
        struct manager *manager = userdata;

        if (remade)
                (void)worker_uids_choose(manager->runtime_dir, &manager->confinement); /* of living workers */
        if (remade && manager->reconciler)
                reconciler_runtime_remade(manager->reconciler);
        if (manager->api && api_listen_again(manager->api) > 0)
                log_info(NULL, "The socket of the API was removed, and was made again");
}

static int open_runtime_guard(struct manager *manager)
{
        return runtime_guard_new(
                &(struct runtime_guard_config){
                        .event = manager->event,
                        .dir = manager->runtime_dir,
                        .store = manager->store,
                        .record_keeper = manager->record_keeper,
                        .disk_marks = manager->disk_marks,
                        .changed = on_runtime_changed,
                        .userdata = manager,
                },
                &manager->runtime_guard);
}

static int open_reconciler(struct manager *manager);

static void set_control(struct manager *manager, struct ublk_ctl *ctl)
{
        reconciler_set_control(manager->reconciler, ctl);
        foreign_scan_set_control(manager->foreign_scan, ctl);
        if (manager->boot_pass_done)
                (void)manager_look_for_disks(manager);
}

static int on_driver_tried(void *userdata, struct ublk_ctl *ctl)
{
        struct manager *manager = userdata;
        int r = manager->reconciler ? 0 : open_reconciler(manager);

        if (r >= 0)
                set_control(manager, ctl);
        service_line_changed(manager->service_line);
        return r;
}

static int open_driver_keeper(struct manager *manager, const struct manager_options *options)
{
        return driver_keeper_new(
                &(struct driver_keeper_config){
                        .event = manager->event,
                        .host = &manager->host,
                        .ignored_features = options->ignored_features,
                        .program = options->helper,
                        .tried = on_driver_tried,
                        .userdata = manager,
                },
                &manager->driver_keeper);
}

/* At the start the driver is asked after this, so that the first pass has the devices of the files. */
static void on_files_applied(void *userdata)
{
        struct manager *manager = userdata;
        int r = driver_keeper_start(manager->driver_keeper);

        if (r < 0)
                (void)sd_event_exit(manager->event, r);
        if (manager->reloading) {
                manager->reloading = false;
                service_state_ready();
        }
        service_line_changed(manager->service_line);
}

static void on_boot_pass_done(void *userdata)
{
        struct manager *manager = userdata;

        manager->boot_pass_done = true;
        log_info(NULL, "Ready: %zu devices", device_store_count(manager->store));
        if (manager->api)
                api_boot_pass_done(manager->api);
        service_state_ready();
        declared_devices_boot_pass_done(manager->declared);
        worker_upgrade_set(manager->worker_upgrade, manager->replace_workers);
        (void)manager_look_for_disks(manager); /* now the disks of this ublkd are known */
        manager_look_at_state(manager);
}

/* Read again what can change while ublkd runs. */
static int on_hangup(
        sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_, void *userdata)
{
        struct manager *manager = userdata;

        manager->reloading = manager->boot_pass_done;
        if (manager->reloading)
                service_state_reloading();
        config_reload_begin(manager->config_reload);
        return 0;
}

static void on_config_applied(
        void *userdata, const struct setting_values *values, const struct api_rights *rights)
{
        struct manager *manager = userdata;

        log_set_level(values->log_level);
        api_set_rights(manager->api, rights, values->refuse_unstable_paths);
        declared_devices_set_policy(manager->declared, values->refuse_unstable_paths);
        manager->replace_workers = values->replace_workers;
        if (manager->boot_pass_done)
                worker_upgrade_set(manager->worker_upgrade, manager->replace_workers);
}

/* Whose events count together. */
static uint32_t account_of(void *userdata, uid_t uid)
{
        return policy_account_of(((struct manager *)userdata)->policy, uid);
}

static void on_policy_applied(void *userdata, const struct policy *policy)
{
        struct manager *manager = userdata;

        manager->policy = policy;
        api_set_policy(manager->api, policy);
        device_store_set_accounts(manager->store, account_of, manager);
}

static void on_config_done(void *userdata)
{
        declared_devices_reload(((struct manager *)userdata)->declared);
}

static int open_config_reload(struct manager *manager, const struct manager_options *options)
{
        return config_reload_new(
                &(struct config_reload_config){
                        .event = manager->event,
                        .request = options->config_request,
                        .started = options->config,
                        .policy = options->policy,
                        .host = &manager->host,
                        .apply = on_config_applied,
                        .apply_policy = on_policy_applied,
                        .done = on_config_done,
                        .userdata = manager,
                },
                &manager->config_reload);
}

static void on_subuids_changed(void *userdata)
{
        config_reload_subuids(((struct manager *)userdata)->config_reload);
}

/* Disks are served without it. The look finds what has changed since the policy was read. */
static void open_subuid_watch(struct manager *manager)
{
        int r = subuid_watch_new(manager->event, "/etc", on_subuids_changed, manager, &manager->subuid_watch);

        if (r < 0)
                log_warning(NULL,
                        "Watching /etc/subuid failed: %s; reload ublkd after a new user is in a group of the "
                        "policy",
                        strerror(-r));
        config_reload_subuids(manager->config_reload);
}

/* The policy names the pools. */
static const struct policy *manager_policy(void *userdata)
{
        return ((struct manager *)userdata)->policy;
}

static int open_disk_search(struct manager *manager, const char *helper)
{
        return disk_search_new(manager->event,
                &(struct disk_search_options){
                        .roots = {.proc = "/proc",
                                  .sys = "/sys",
                                  .helper = helper,
                                  .describe = served_disk_describe,
                                  .describe_userdata = manager->store}
        },
                &manager->disk_search);
}

static void on_timeout_done(void *userdata, int number, int error)
{
        struct manager *manager = userdata;

        if (manager->reconciler)
                reconciler_timeout_done(manager->reconciler, number, error);
}

static int open_filesystems(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        const struct filesystem_limits limits = {.program = options->helper};
        int r = filesystem_mounts_place(options->runtime_dir, manager->mounts);

        if (r < 0) {
                (void)problem_add(problems, -r, "", "RuntimeDirUnusable",
                        "The runtime directory %s cannot be used, as file systems are to be mounted beside "
                        "it: "
                        "%s; name another with --runtime-dir",
                        options->runtime_dir, strerror(-r));
                return r;
        }
        r = filesystem_maker_new(&(struct filesystem_maker_config){.event = manager->event,
                                         .store = manager->store,
                                         .mounts = manager->mounts,
                                         .limits = &limits},
                &manager->filesystem_maker);
        return r < 0 ? r
                     : filesystem_mounts_new(
                               manager->event, manager->store, manager->mounts, &manager->filesystem_mounts);
}

static int open_disk_timeout(struct manager *manager)
{
        return disk_timeout_new(manager->event,
                &(struct disk_timeout_options){.done = on_timeout_done, .userdata = manager},
                &manager->disk_timeout);
}

static void on_disk_changed(void *userdata, int number)
{
        struct manager *manager = userdata;

        if (manager->reconciler)
                reconciler_disk_changed(manager->reconciler, number);
}

static void open_optional_parts(struct manager *manager, const struct manager_options *options)
{
        manager->worker_groups = optional_worker_groups(manager->event);
        worker_start_use_groups(manager->worker_start, manager->worker_groups);
        manager->partition_scanner = optional_partition_scanner(manager->event, options->helper);
        manager->private_nodes = optional_private_nodes(manager->store, manager->runtime_dir);
        manager->node_recall = optional_node_recall(manager->event, manager->private_nodes, options->helper);
        manager->cdi_specs = optional_cdi_specs(options->cdi_dir, options->state_dir, manager->runtime_dir);
        manager->disk_watch = optional_disk_watch(manager->event, on_disk_changed, manager);
        manager->disk_marks = optional_disk_marks(manager->store, manager->runtime_dir);
}

static int open_reconciler(struct manager *manager)
{
        return reconciler_new(
                &(struct reconciler_config){
                        .event = manager->event,
                        .store = manager->store,
                        .runtime_dir = manager->runtime_dir,
                        .record_keeper = manager->record_keeper,
                        .host = &manager->host,
                        .worker_start = manager->worker_start,
                        .version = ublkd_version,
                        .disk_search = manager->disk_search,
                        .disk_timeout = manager->disk_timeout,
                        .disk_watch = manager->disk_watch,
                        .progress_places = &progress_places,
                        .partition_scanner = manager->partition_scanner,
                        .private_nodes = manager->private_nodes,
                        .node_recall = manager->node_recall,
                        .cdi_specs = manager->cdi_specs,
                        .worker_groups = manager->worker_groups,
                        .allow_fault_target = manager->allow_fault_target,
                        .image_thread = manager->image_thread,
                        .path_watches = manager->path_watches,
                        .fd_store = manager->fd_store,
                        .boot_pass_done = on_boot_pass_done,
                        .userdata = manager,
                },
                &manager->reconciler);
}

static int open_declared(struct manager *manager, const struct manager_options *options)
{
        return declared_devices_new(
                &(struct declared_devices_config){
                        .declared = {.event = manager->event,
                                     .store = manager->store,
                                     .dirs = options->devices_dirs,
                                     .dir_count = options->devices_dir_count,
                                     .refuse_unstable_paths = options->refuse_unstable_paths,
                                     .allow_fault_target = options->allow_fault_target,
                                     .policy = manager_policy,
                                     .policy_userdata = manager,
                                     .checks = {.disk_search = manager->disk_search,
                                        .read_reach = manager_read_reach,
                                        .try_spec = manager_try_spec,
                                        .end_preflight = spec_preflight_end,
                                        .userdata = manager}},
                        .host = &manager->host,
                        .record_keeper = manager->record_keeper,
                        .applied = on_files_applied,
                        .userdata = manager,
        },
                &manager->declared);
}

/* The loop and the host, and the runtime directory, where sockets and regions lie. */
static int open_basis(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        int r = event_loop_open(on_hangup, manager, &manager->event);

        if (r < 0)
                return r;
        r = fd_store_new(&manager->fd_store);
        if (r < 0)
                return r;
        r = host_read(&manager->host);
        if (r < 0)
                return r;
        r = make_dirs(options->runtime_dir, 0755);
        if (r < 0 && r != -EACCES && r != -EROFS && r != -ENOTDIR) /* runtime_dir_open() explains these */
                return r;
        return runtime_dir_open(options->runtime_dir, &manager->runtime_dir, problems);
}

/* The store, and what follows its records and events. */
static int open_records(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        int r = device_store_open(options->state_dir, &manager->store, problems);

        if (r < 0)
                return r;
        if (r > 0)
                manager_report_new_state(options->state_dir);
        device_store_set_accounts(manager->store, account_of, manager);
        r = service_line_new(manager->event, manager->store, &manager->host, &manager->service_line);
        if (r < 0)
                return r;
        r = worker_upgrade_new(manager->event, manager->store, &manager->host, manager->service_line,
                &manager->worker_upgrade);
        if (r < 0)
                return r;
        r = record_keeper_new(manager->store, manager->runtime_dir, &manager->record_keeper);
        return r < 0 ? r : open_event_writer(manager);
}

/* Choose uids that no worker of another disk has. */
static void choose_uids(struct manager *manager, const struct worker_confinement *wanted)
{
        struct worker_confinement *chosen = &manager->confinement;
        int r;

        *chosen = *wanted;
        r = worker_uids_choose(manager->runtime_dir, chosen);
        if (r < 0)
                log_warning(NULL,
                        "The uids of workers cannot be noted: %s; before a change of WorkerUids= to a range "
                        "that "
                        "overlaps with this one, stop all disks, or restart the machine",
                        strerror(-r));
        if (r > 0)
                log_warning(NULL,
                        "WorkerUids=%u-%u is not in force: workers that serve may have some of these uids "
                        "for "
                        "other disks; ublkd goes on with %u-%u; choose a range that does not overlap with "
                        "those "
                        "since the start of the machine, or restart the machine",
                        wanted->first_user, wanted->first_user + wanted->users - 1, chosen->first_user,
                        chosen->first_user + chosen->users - 1);
}

/* What works on one disk for the reconciler: its workers, its openers, its timeout, its path, its image. */
static int open_disk_services(struct manager *manager, const struct manager_options *options)
{
        int r;

        choose_uids(manager, &options->confinement);
        r = worker_start_new(manager->event, options->worker, &manager->confinement, &manager->worker_start);
        if (r < 0)
                return r;
        worker_start_keep_spares(manager->worker_start, options->spare_workers);
        r = authority_new(manager->event, &manager->authority);
        if (r < 0)
                return r;
        r = open_disk_search(manager, options->helper);
        if (r < 0)
                return r;
        r = open_disk_timeout(manager);
        if (r < 0)
                return r;
        r = path_watches_new(manager->event, &(struct path_watches_options){.program = options->helper},
                &manager->path_watches);
        return r < 0 ? r : job_thread_new(manager->event, &manager->image_thread);
}

/* What clients of the API ask for, done in processes apart. */
static int open_client_services(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        const struct delivery_limits limits = {
                .program = options->helper, .account = account_of, .userdata = manager};
        int r = manager_open_foreign_scan(manager);

        if (r < 0)
                return r;
        r = manager_open_state_look(manager);
        if (r < 0)
                return r;
        r = node_deliveries_new(manager->event, &limits, &manager->node_deliveries);
        if (r < 0)
                return r;
        r = open_filesystems(manager, options, problems);
        return r < 0 ? r : peer_paths_new(manager->event, &manager->peer_paths);
}

/* What joins the others: the files that describe devices, the driver, the API, and the reload of the configuration. */
static int open_front(
        struct manager *manager, const struct manager_options *options, struct problem_list *problems)
{
        int r = open_runtime_guard(manager);

        if (r < 0)
                return r;
        r = open_declared(manager, options);
        if (r < 0)
                return r;
        r = open_driver_keeper(manager, options);
        if (r < 0)
                return r;
        r = manager_open_api(manager, options, problems);
        return r < 0 ? r : open_config_reload(manager, options);
}

int manager_new(const struct manager_options *options, struct manager **ret, struct problem_list *problems)
{
        _cleanup_(manager_free_pointer) struct manager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->state_dir = options->state_dir;
        manager->replace_workers = options->replace_workers;
        manager->allow_fault_target = options->allow_fault_target;
        manager->policy = options->policy->policy;
        r = open_basis(manager, options, problems);
        if (r >= 0)
                r = open_records(manager, options, problems);
        if (r >= 0)
                r = open_disk_services(manager, options);
        if (r >= 0)
                r = open_client_services(manager, options, problems);
        if (r < 0)
                return r;
        open_optional_parts(manager, options);
        r = open_front(manager, options, problems);
        if (r < 0)
                return r;
        open_subuid_watch(manager);
        declared_devices_apply(manager->declared); /* then the driver is asked, and the reconciler opened */
        *ret = TAKE_PTR(manager);
        return 0;
}

struct manager *manager_free(struct manager *manager)
{
        if (!manager)
                return NULL;
        api_free(manager->api);
        authority_free(manager->authority);
        subuid_watch_free(manager->subuid_watch);
        config_reload_free(manager->config_reload); /* the API has a name of its configuration */
        declared_devices_free(manager->declared);
        runtime_guard_free(manager->runtime_guard);
        disk_watch_free(manager->disk_watch);
        reconciler_free(manager->reconciler);
        disk_search_free(manager->disk_search);
        disk_timeout_free(manager->disk_timeout);
        partition_scanner_free(manager->partition_scanner);
        node_deliveries_free(manager->node_deliveries);
        filesystem_mounts_free(manager->filesystem_mounts);
        filesystem_maker_free(manager->filesystem_maker);
        peer_paths_free(manager->peer_paths);
        cdi_specs_free(manager->cdi_specs);
        node_recall_free(manager->node_recall);
        private_nodes_free(manager->private_nodes);
        job_thread_free(manager->image_thread);
        path_watches_free(manager->path_watches);
        foreign_scan_free(manager->foreign_scan);
        state_look_free(manager->state_look);
        worker_start_free(manager->worker_start);
        worker_groups_free(manager->worker_groups);
        driver_keeper_free(manager->driver_keeper);
        event_writer_free(manager->event_writer);
        record_keeper_free(manager->record_keeper);
        disk_marks_free(manager->disk_marks);
        worker_upgrade_free(manager->worker_upgrade);
        service_line_free(manager->service_line);
        device_store_free(manager->store);
        fd_store_free(manager->fd_store);
        runtime_dir_free(manager->runtime_dir);
        host_clear(&manager->host);
        sd_event_unref(manager->event);
        free(manager);
        return NULL;
}

int manager_run(struct manager *manager)
{
        int r = sd_event_loop(manager->event);

        manager_report_stop(manager->store, r);
        return r < 0 ? r : 0;
}
