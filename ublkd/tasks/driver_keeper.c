/* SPDX-License-Identifier: MIT */
/* Keeps the control device of the ublk driver. */
#include "ublkd/tasks/driver_keeper.h"

#include "ublkd/base/log.h"

enum { RETRY_USEC = 5 * 1000 * 1000 };

struct driver_keeper {
        struct driver_keeper_config config;
        struct ublk_ctl *ctl; /* open, being opened, or failed to open */
        sd_event_source *retry;
        bool tried; /* the first attempt is over */
};

DEFINE_CLEANUP(struct driver_keeper, driver_keeper_free);

static void log_attempt(const struct driver_keeper *keeper, int result)
{
        const struct problem_list *problems = &keeper->config.host->problems;

        if (result >= 0 && keeper->tried)
                log_info(NULL, "The ublk driver answers now; starting devices");
        for (size_t i = 0; !keeper->tried && i < problems->count; i++)
                log_errno(LOG_ERR, NULL, -problems->items[i].error, "%s (trying again every %d s)",
                        problems->items[i].detail, RETRY_USEC / 1000000);
}

static int plan_retry(struct driver_keeper *keeper)
{
        int r = sd_event_source_set_time_relative(keeper->retry, RETRY_USEC);

        return r < 0 ? r : sd_event_source_set_enabled(keeper->retry, SD_EVENT_ONESHOT);
}

static void on_opened(void *userdata, int result, uint64_t features, struct problem_list *problems)
{
        struct driver_keeper *keeper = userdata;
        struct host *host = keeper->config.host;
        int r;

        problem_list_clear(&host->problems);
        host->problems = *problems;
        *problems = (struct problem_list){};
        host->features = features & ~keeper->config.ignored_features;
        host->ublk_available = result >= 0;
        log_attempt(keeper, result);
        keeper->tried = true;
        r = keeper->config.tried(keeper->config.userdata, result >= 0 ? keeper->ctl : NULL);
        if (r >= 0 && result < 0)
                r = plan_retry(keeper);
        if (r < 0)
                (void)sd_event_exit(keeper->config.event, r);
}

static int open_control(struct driver_keeper *keeper)
{
        return ublk_ctl_open(keeper->config.event,
                &(struct ublk_ctl_options){
                        .helper_path = keeper->config.program, .opened = on_opened, .userdata = keeper},
                &keeper->ctl);
}

/* A helper that has neither answered nor exited hangs in the driver; another one would hang, too. */
static int on_retry(sd_event_source *source _unused_, uint64_t now _unused_, void *userdata)
{
        struct driver_keeper *keeper = userdata;

        if (keeper->ctl && !ublk_ctl_is_idle(keeper->ctl))
                return plan_retry(keeper);
        keeper->ctl = ublk_ctl_free(keeper->ctl);
        return open_control(keeper) < 0 ? plan_retry(keeper) : 0;
}

int driver_keeper_new(const struct driver_keeper_config *config, struct driver_keeper **ret)
{
        _cleanup_(driver_keeper_free_pointer) struct driver_keeper *keeper = calloc(1, sizeof(*keeper));
        int r;

        if (!keeper)
                return -ENOMEM;
        keeper->config = *config;
        r = problem_add(&config->host->problems, EAGAIN, "", "DriverAsked",
                "ublkd is asking the ublk driver for its features; read the host again in a moment");
        if (r >= 0)
                r = sd_event_add_time(config->event, &keeper->retry, CLOCK_MONOTONIC, 0, 0, on_retry, keeper);
        if (r >= 0)
                r = sd_event_source_set_enabled(keeper->retry, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(keeper);
        return 0;
}

int driver_keeper_start(struct driver_keeper *keeper)
{
        return keeper->tried || keeper->ctl ? 0 : open_control(keeper);
}

struct driver_keeper *driver_keeper_free(struct driver_keeper *keeper)
{
        if (!keeper)
                return NULL;
        sd_event_source_disable_unref(keeper->retry);
        ublk_ctl_free(keeper->ctl);
        free(keeper);
        return NULL;
}
