/* SPDX-License-Identifier: MIT */
/* ublkd, the supervisor: parses argv, builds the manager, runs the loop. */
#include "ublkd/declared/device_files.h"
#include "ublkd/host/host.h"
#include "ublkd/offload/proc_spawn.h"
#include "ublkd/kernel/kernel_feature.h"
#include "ublkd/base/log.h"
#include "ublkd/model/device_status.h"
#include "ublkd/manager.h"
#include "ublkd/partitions/partition_reader.h"
#include "ublkd/partitions/partition_wire.h"
#include "ublkd/paths/path_watcher.h"
#include "ublkd/driver/ublk_ctl.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LISTEN_MAX = 16 };

/* As many as the driver has disks: 0x77800000 to 0x778fffff. Above those that systemd gives to containers (up to
 * 1879048191: UIDS-GIDS in its documentation) and those that SSSD gives to users of a directory (up to 2000200000:
 * ldap_idmap_range_max in sssd-ldap(5)), below those that systemd calls foreign (from 2147352576 on). */
#define DEFAULT_UIDS "2004877312-2005925887"

/* Created by units/sysusers.d. */
#define DEFAULT_READERS "ublk"

/* As systemd orders its directories: the administrator, this boot, local packages, packages. */
static const char *const default_devices_dirs[] = {"/etc/ublkd/devices.d", "/run/ublkd/devices.d",
        "/usr/local/lib/ublkd/devices.d", "/usr/lib/ublkd/devices.d"};

static const char usage_text[] =
        "Usage: ublkd [OPTION]...\n"
        "Manage user-space block devices (ublk) over a REST API.\n"
        "\n"
        "  --listen PATH|tcp://127.0.0.1:PORT  where to answer; may be given several times\n"
        "                                      (default: sockets from systemd, else RUNTIME_DIR/ublkd.sock)\n"
        "  --state-dir DIR      where device specs are kept (default: /var/lib/ublkd)\n"
        "  --runtime-dir DIR    sockets of workers and of the API (default: /run/ublkd)\n"
        "  --worker PROGRAM     the worker to start\n"
        "                       (default: ublkd-worker beside ublkd, else\n"
        "                       " UBLKD_WORKER_PATH ")\n"
        "  --ignore-feature NAME  do not use a feature of the kernel (BATCH_IO, AUTO_BUF_REG, ...; see GET "
        "/host)\n"
        "                       for disks created from now on; may be given several times\n"
        "  --devices-dir DIR    read files NAME.json that describe devices; may be given several times, the "
        "most\n"
        "                       important first (default: /etc/ublkd/devices.d, and the same in /run,\n"
        "                       /usr/local/lib and /usr/lib)\n"
        "  --unstable-paths POLICY  warn or refuse: what is done about a device on a path like /dev/sdb, "
        "which\n"
        "                       may be another disk after a reboot (default: warn)\n"
        "  --readers POLICY     who may read, beside root: group[:NAME] or everyone\n"
        "                       (default: group:" DEFAULT_READERS ")\n"
        "  --worker-uids FIRST-LAST  uids and gids of the workers alone: that of /dev/ublkbN runs as\n"
        "                       FIRST + N (default: " DEFAULT_UIDS ")\n"
        "  --sandbox POLICY     required or best-effort: whether a worker refuses to serve that cannot\n"
        "                       give up all that it does not need (default: required)\n"
        "  --log-level LEVEL    error, warning, info or debug (default: info)\n"
        "  -h, --help, --version\n";

enum {
        OPT_LISTEN = 256,
        OPT_STATE_DIR,
        OPT_RUNTIME_DIR,
        OPT_WORKER,
        OPT_IGNORE_FEATURE,
        OPT_DEVICES_DIR,
        OPT_UNSTABLE_PATHS,
        OPT_READERS,
        OPT_SANDBOX,
        OPT_WORKER_UIDS,
        OPT_LOG_LEVEL,
        OPT_HELP = 'h',
        OPT_VERSION = 512,
        OPT_HELPER,
        OPT_PATH_WATCHER,
        OPT_PARTITION_READER
};

static const struct option options[] = {
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"state-dir", required_argument, NULL, OPT_STATE_DIR},
        {"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
        {"worker", required_argument, NULL, OPT_WORKER},
        {"ignore-feature", required_argument, NULL, OPT_IGNORE_FEATURE},
        {"devices-dir", required_argument, NULL, OPT_DEVICES_DIR},
        {"unstable-paths", required_argument, NULL, OPT_UNSTABLE_PATHS},
        {"readers", required_argument, NULL, OPT_READERS},
        {"sandbox", required_argument, NULL, OPT_SANDBOX},
        {"worker-uids", required_argument, NULL, OPT_WORKER_UIDS},
        {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
        {"help", no_argument, NULL, OPT_HELP},
        {"version", no_argument, NULL, OPT_VERSION},
        {"control-helper", no_argument, NULL, OPT_HELPER}, /* for ublk_ctl only */
        {"path-watcher", no_argument, NULL, OPT_PATH_WATCHER}, /* for path_watch only */
        {PARTITION_READER_NAME, no_argument, NULL, OPT_PARTITION_READER}, /* for partition_scan only */
        {},
};

struct arguments {
        struct manager_options manager;
        const char *listen[LISTEN_MAX];
        const char *devices_dirs[DEVICE_DIRS_MAX];
        char worker[PATH_MAX];
        bool helper, path_watcher, partition_reader, done;
};

static int parse_log_level(const char *text)
{
        static const struct {
                const char *name;
                int level;
        } levels[] = {
                {"error",   LOG_ERR    },
                {"warning", LOG_WARNING},
                {"info",    LOG_INFO   },
                {"debug",   LOG_DEBUG  }
        };

        for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
                if (strcmp(text, levels[i].name) == 0) {
                        log_set_level(levels[i].level);
                        return 0;
                }
        fprintf(stderr, "ublkd: --log-level %s is unknown; give error, warning, info or debug\n", text);
        return -EINVAL;
}

/* Return 0, or -errno: why the program cannot be executed. EACCES returns 0: then ublkd does not run as root,
 * which the control plane reports later. */
static int check_program(const char *path)
{
        struct stat info;

        if (stat(path, &info) < 0)
                return errno == EACCES ? 0 : -errno;
        if (!S_ISREG(info.st_mode))
                return S_ISDIR(info.st_mode) ? -EISDIR : -EACCES;
        return access(path, X_OK) < 0 ? -errno : 0;
}

/* Write the path of the worker beside this program, where a build tree has it. Return 0, or -errno: why it cannot
 * be run. */
static int find_worker_beside(char *path, size_t size)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;
        int length;

        if (n < 0)
                return -errno;
        self[n] = '\0';
        slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        length = snprintf(path, size, "%s/ublkd-worker", self);
        return length > 0 && (size_t)length < size ? check_program(path) : -ENAMETOOLONG;
}

/* The worker that the administrator named, else the one beside this program, else the installed one. */
static int choose_worker(struct arguments *arguments)
{
        struct manager_options *manager = &arguments->manager;
        bool named = manager->worker;
        int r;

        if (named)
                r = check_program(manager->worker);
        else {
                r = find_worker_beside(arguments->worker, sizeof(arguments->worker));
                manager->worker = r == -ENOENT ? UBLKD_WORKER_PATH : arguments->worker;
                if (r == -ENOENT)
                        r = check_program(UBLKD_WORKER_PATH);
        }
        if (r == -ENOENT && !named)
                log_error(NULL,
                        "The program ublkd-worker was not found beside ublkd, nor at %s; install it there, "
                        "or name it with --worker",
                        UBLKD_WORKER_PATH);
        else if (r < 0)
                log_error(NULL,
                        "The worker %s cannot be executed: %s; name the ublkd-worker that belongs to this "
                        "ublkd with --worker",
                        manager->worker, strerror(-r));
        return r;
}

static int parse_ignored(const char *name, uint64_t *features)
{
        for (unsigned bit = 0; kernel_feature_name(bit); bit++)
                if (strcmp(kernel_feature_name(bit), name) == 0) {
                        *features |= UINT64_C(1) << bit;
                        return 0;
                }
        fprintf(stderr, "ublkd: --ignore-feature %s is unknown; 'ublkctl host' lists what the kernel has\n",
                name);
        return -EINVAL;
}

static int parse_unstable_paths(const char *text, bool *ret_refuse)
{
        if (strcmp(text, "warn") != 0 && strcmp(text, "refuse") != 0) {
                fprintf(stderr, "ublkd: --unstable-paths %s is unknown; give warn or refuse\n", text);
                return -EINVAL;
        }
        *ret_refuse = strcmp(text, "refuse") == 0;
        return 0;
}

static int parse_readers(const char *text, struct manager_options *manager)
{
        static const char prefix[] = "group:";
        bool named = strncmp(text, prefix, strlen(prefix)) == 0 && text[strlen(prefix)];

        if (strcmp(text, "everyone") != 0 && strcmp(text, "group") != 0 && !named) {
                fprintf(stderr, "ublkd: --readers %s is unknown; give group, group:NAME or everyone\n", text);
                return -EINVAL;
        }
        manager->readers = (struct api_readers){.everyone = strcmp(text, "everyone") == 0,
                .name = named ? text + strlen(prefix) : DEFAULT_READERS};
        return 0;
}

static int parse_sandbox(const char *text, bool *ret_best_effort)
{
        if (strcmp(text, "required") != 0 && strcmp(text, "best-effort") != 0) {
                fprintf(stderr, "ublkd: --sandbox %s is unknown; give required or best-effort\n", text);
                return -EINVAL;
        }
        *ret_best_effort = strcmp(text, "best-effort") == 0;
        return 0;
}

static int parse_devices_dir(const char *text, struct arguments *arguments)
{
        struct manager_options *manager = &arguments->manager;

        if (text[0] != '/' || text[strlen(text) - 1] == '/') {
                fprintf(stderr,
                        "ublkd: --devices-dir %s is not an absolute path; give one without a / at its end\n",
                        text);
                return -EINVAL;
        }
        if (manager->devices_dirs != arguments->devices_dirs) { /* the default */
                manager->devices_dirs = arguments->devices_dirs;
                manager->devices_dir_count = 0;
        }
        if (manager->devices_dir_count == DEVICE_DIRS_MAX) {
                fprintf(stderr, "ublkd: at most %d --devices-dir are possible\n", DEVICE_DIRS_MAX);
                return -E2BIG;
        }
        arguments->devices_dirs[manager->devices_dir_count++] = text;
        return 0;
}

/* Neither that of root nor the number that stands for none. */
static int parse_uids(const char *text, struct manager_options *manager)
{
        unsigned long long first, last;
        int end = 0;

        if (sscanf(text, "%10llu-%10llu%n", &first, &last, &end) < 2 || text[end] != '\0' || first == 0
                || last < first || last >= UINT32_MAX) {
                fprintf(stderr, "ublkd: --worker-uids %s is not a range of uids; give FIRST-LAST\n", text);
                return -EINVAL;
        }
        manager->confinement.first_user = (uint32_t)first;
        manager->confinement.users = (uint32_t)(last - first + 1);
        return 0;
}

static int parse_one(struct arguments *arguments, int option)
{
        struct manager_options *manager = &arguments->manager;

        switch (option) {
        case OPT_LISTEN:
                if (manager->listen_count == LISTEN_MAX) {
                        fprintf(stderr, "ublkd: at most %d --listen are possible\n", LISTEN_MAX);
                        return -E2BIG;
                }
                arguments->listen[manager->listen_count++] = optarg;
                return 0;
        case OPT_STATE_DIR:
                manager->state_dir = optarg;
                return 0;
        case OPT_RUNTIME_DIR:
                manager->runtime_dir = optarg;
                return 0;
        case OPT_WORKER:
                manager->worker = optarg;
                return 0;
        case OPT_IGNORE_FEATURE:
                return parse_ignored(optarg, &manager->ignored_features);
        case OPT_DEVICES_DIR:
                return parse_devices_dir(optarg, arguments);
        case OPT_UNSTABLE_PATHS:
                return parse_unstable_paths(optarg, &manager->refuse_unstable_paths);
        case OPT_READERS:
                return parse_readers(optarg, manager);
        case OPT_WORKER_UIDS:
                return parse_uids(optarg, manager);
        case OPT_SANDBOX:
                return parse_sandbox(optarg, &manager->confinement.best_effort);
        case OPT_LOG_LEVEL:
                return parse_log_level(optarg);
        case OPT_HELPER:
                arguments->helper = true;
                return 0;
        case OPT_PATH_WATCHER:
                arguments->path_watcher = true;
                return 0;
        case OPT_PARTITION_READER:
                arguments->partition_reader = true;
                return 0;
        case OPT_HELP:
                fputs(usage_text, stdout);
                arguments->done = true;
                return 0;
        case OPT_VERSION:
                puts("ublkd " UBLKD_VERSION);
                arguments->done = true;
                return 0;
        default: /* getopt_long() has printed the problem */
                fputs("Try 'ublkd --help'.\n", stderr);
                return -EINVAL;
        }
}

static int parse_arguments(int argc, char *argv[], struct arguments *ret)
{
        int option, r;

        ret->manager = (struct manager_options){.state_dir = "/var/lib/ublkd",
                .runtime_dir = "/run/ublkd",
                .listen = ret->listen,
                .devices_dirs = default_devices_dirs,
                .devices_dir_count = ARRAY_SIZE(default_devices_dirs),
                .readers = {.name = DEFAULT_READERS}};
        (void)parse_uids(DEFAULT_UIDS, &ret->manager);
        while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
                r = parse_one(ret, option);
                if (r < 0 || ret->done)
                        return r;
        }
        if (optind < argc) {
                fprintf(stderr, "ublkd: '%s' is not an option; try 'ublkd --help'\n", argv[optind]);
                return -EINVAL;
        }
        return 0;
}

/* A group that is made later counts from the next start on. */
static void find_readers(struct api_readers *readers)
{
        if (readers->everyone)
                return;
        readers->group = host_group(readers->name);
        readers->has_group = readers->group != 0;
}

static void log_readers(const struct api_readers *readers)
{
        if (!readers->everyone && !readers->has_group)
                log_info(NULL,
                        "There is no group %s: only root may read; to let others, create the group "
                        "(systemd-sysusers), add them to it, and restart ublkd",
                        readers->name);
}

static void log_problems(const struct problem_list *problems, int error)
{
        for (size_t i = 0; i < problems->count; i++)
                log_error(NULL, "%s", problems->items[i].detail);
        if (problems->count == 0)
                log_error(NULL, "ublkd cannot start: %s", strerror(-error));
}

static int run(const struct manager_options *manager_options)
{
        _cleanup_problems_ struct problem_list problems = {};
        struct manager *manager = NULL;
        int r = manager_new(manager_options, &manager, &problems);

        if (r < 0) {
                log_problems(&problems, r);
                return r;
        }
        log_readers(&manager_options->readers);
        r = manager_run(manager);
        if (r < 0)
                log_error(NULL, "The event loop failed: %s; workers continue to serve, start ublkd again",
                        strerror(-r));
        manager_free(manager);
        return r;
}

int main(int argc, char *argv[])
{
        struct arguments arguments = {};

        if (parse_arguments(argc, argv, &arguments) < 0)
                return 2;
        if (arguments.done)
                return EXIT_SUCCESS;
        if (arguments.helper)
                return ublk_ctl_helper_main(PROC_SPAWN_FIRST_FD);
        if (arguments.path_watcher)
                return path_watcher_main(PROC_SPAWN_FIRST_FD, NULL);
        if (arguments.partition_reader)
                return partition_reader_main(PARTITION_ANSWER_FD, PARTITION_DISK_FD);
        log_open();
        if (choose_worker(&arguments) < 0)
                return EXIT_FAILURE;
        find_readers(&arguments.manager.readers);
        return run(&arguments.manager) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
