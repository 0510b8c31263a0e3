/* SPDX-License-Identifier: MIT */
/* What the supervisor does with the files that describe devices. */
#include "ublkd/tasks/declared_devices.h"

#include "ublkd/base/log.h"
#include "ublkd/base/sentence.h"
#include "ublkd/host/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As systemd orders its directories: the administrator, this boot, local packages, packages. */
static const char *const usual_dirs[] = {"/etc/ublkd/devices.d", "/run/ublkd/devices.d",
        "/usr/local/lib/ublkd/devices.d", "/usr/lib/ublkd/devices.d"};

struct declared_devices {
        struct declared_devices_config config;
        struct declared *declared;
        struct adoptables adoptable; /* at the begin of a pass */
};

DEFINE_CLEANUP(struct declared_devices, declared_devices_free);

static bool is_adoptable(void *userdata, const char *name)
{
        const struct declared_devices *devices = userdata;

        for (size_t i = 0; i < devices->adoptable.count; i++) {
                const struct adoptable *item = &devices->adoptable.items[i];

                if (item->name && item->age != RECORD_REMOVED && strcmp(item->name, name) == 0)
                        return true;
        }
        return false;
}

/* Read from sysfs, behind which nothing hangs. Only a clear answer says that there is no disk. */
static bool disk_exists(void *userdata _unused_, int number)
{
        static const char *const places[] = {"/sys/class/ublk-char/ublkc", "/sys/block/ublkb"};
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                snprintf(path, sizeof(path), "%s%d", places[i], number);
                if (access(path, F_OK) == 0 || errno != ENOENT)
                        return true;
        }
        return false;
}

static bool is_listed(const struct host *host, const char *detail)
{
        for (size_t i = 0; i < host->files.count; i++)
                if (sentence_equal(host->files.items[i].detail, detail))
                        return true;
        return false;
}

/* A problem that stays is logged once. */
static void on_applied(void *userdata, const struct problem_list *problems)
{
        struct declared_devices *devices = userdata;
        struct host *host = devices->config.host;

        for (size_t i = 0; i < problems->count; i++)
                if (!is_listed(host, problems->items[i].detail))
                        log_record(LOG_WARNING,
                                &(const struct log_fields){.reason = problems->items[i].reason}, "%s",
                                problems->items[i].detail);
        if (problems->dropped > 0)
                log_warning(NULL,
                        "%zu more problems of the files that describe devices are not listed; correct those "
                        "above, and run 'systemctl reload ublkd'",
                        problems->dropped);
        problem_list_clear(&host->files);
        (void)problem_list_append(&host->files, problems);
        devices->config.applied(devices->config.userdata);
}

int declared_devices_new(const struct declared_devices_config *config, struct declared_devices **ret)
{
        _cleanup_(declared_devices_free_pointer) struct declared_devices *devices =
                calloc(1, sizeof(*devices));
        struct declared_config declared = config->declared;
        int r;

        if (!devices)
                return -ENOMEM;
        devices->config = *config;
        declared.is_adoptable = is_adoptable;
        declared.disk_exists = disk_exists;
        declared.applied = on_applied;
        declared.userdata = devices;
        if (declared.dir_count == 0) {
                declared.dirs = usual_dirs;
                declared.dir_count = ARRAY_SIZE(usual_dirs);
        }
        r = declared_new(&declared, &devices->declared);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(devices);
        return 0;
}

struct declared_devices *declared_devices_free(struct declared_devices *devices)
{
        if (!devices)
                return NULL;
        declared_free(devices->declared);
        adoptables_clear(&devices->adoptable);
        free(devices);
        return NULL;
}

void declared_devices_set_policy(struct declared_devices *devices, bool refuse_unstable_paths)
{
        declared_set_policy(devices->declared, refuse_unstable_paths);
}

static void apply(struct declared_devices *devices, bool asked)
{
        (void)record_keeper_list(devices->config.record_keeper, SIZE_MAX, &devices->adoptable);
        declared_apply(devices->declared, asked);
}

void declared_devices_apply(struct declared_devices *devices)
{
        apply(devices, false);
}

void declared_devices_reload(struct declared_devices *devices)
{
        log_info(NULL, "Reloading the files that describe devices");
        apply(devices, true);
}

void declared_devices_boot_pass_done(struct declared_devices *devices)
{
        declared_disks_are_known(devices->declared);
}
