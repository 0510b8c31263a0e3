/* SPDX-License-Identifier: MIT */
/* swap_watch: who is called when the list of swap areas changes. The list is a file, which does not wake a loop: the test
 * does. */
#include "ublkd/disks/swap_watch.h"

#include "ublkd/base/cleanup.h"

#include "tests/unit/check.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static char tree[] = "/tmp/swap-watch-XXXXXX";
static sd_event_io_handler_t wake;
static void *waked;

int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t callback, void *userdata);
int __wrap_sd_event_add_io(sd_event *event, sd_event_source **ret, int fd, uint32_t events,
        sd_event_io_handler_t callback, void *userdata)
{
        CHECK(!event && fd >= 0);
        CHECK_INT(events, EPOLLPRI);
        *ret = NULL;
        wake = callback;
        waked = userdata;
        return 0;
}

static int called[8];
static size_t calls;

static void on_changed(void *userdata, int number)
{
        CHECK(userdata == tree);
        if (CHECK(calls < ARRAY_SIZE(called)))
                called[calls++] = number;
}

static void put(const char *areas)
{
        _cleanup_fclose_ FILE *file = NULL;
        char path[96];

        snprintf(path, sizeof(path), "%s/swaps", tree);
        file = fopen(path, "we"); /* the same file, which the watch has open */
        CHECK(file && fprintf(file, "Filename Type Size Used Priority\n%s", areas) > 0);
}

#define AREA(NAME) "/dev/" NAME " partition 16380 0 -2\n"

static const struct {
        const char *areas;
        size_t calls;
        int called[2];
        bool has_3, has_4;
} rows[] = {
        {AREA("ublkb3"),                    0, {},     true,  false}, /* nothing has changed */
        {AREA("ublkb3") AREA("ublkb4"),     1, {4},    true,  true },
        {AREA("ublkb3p1") AREA("ublkb3p2"), 1, {4},    true,  false},
        {AREA("sda2") AREA("ublkb3"),       0, {},     true,  false},
        {AREA("ublkb4"),                    2, {4, 3}, false, true },
        {"",                                1, {4},    false, false},
};

static void check_changes(void)
{
        struct swap_watch *watch = NULL;

        put(AREA("ublkb3"));
        CHECK_INT(swap_watch_new(NULL, tree, tree, on_changed, tree, &watch), 0);
        CHECK(swap_watch_has(watch, 3) && !swap_watch_has(watch, 4));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                calls = 0;
                put(rows[i].areas);
                CHECK_INT(wake(NULL, -1, EPOLLPRI, waked), 0);
                CHECK_INT(calls, rows[i].calls);
                for (size_t j = 0; j < calls; j++)
                        CHECK_INT(called[j], rows[i].called[j]);
                CHECK_INT(swap_watch_has(watch, 3), rows[i].has_3);
                CHECK_INT(swap_watch_has(watch, 4), rows[i].has_4);
        }
        swap_watch_free(watch);
}

static void check_no_swap_in_the_kernel(void)
{
        struct swap_watch *watch = NULL;
        char path[96];

        snprintf(path, sizeof(path), "%s/swaps", tree);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(swap_watch_new(NULL, tree, tree, on_changed, tree, &watch), -ENOENT);
        CHECK(!watch && !swap_watch_has(watch, 3));
        swap_watch_free(watch);
}

int main(void)
{
        CHECK(mkdtemp(tree));
        check_changes();
        check_no_swap_in_the_kernel();
        CHECK_INT(rmdir(tree), 0);
        return check_report();
}
